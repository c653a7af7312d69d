//! Notifies the model once when little time, money or tokens are left.

use super::{Moment, NextAction, Session};
use agent_core::event::MessageOrigin;
use agent_messages as messages;

/// Fraction of a limit (one fifth) below which little is left.
const LITTLE: u32 = 5;

impl Session {
    /// Returns the message to the model when little is left and it was not notified yet.
    pub(super) fn low_budget_warning(&self, moment: Moment) -> Option<NextAction> {
        if !self.limits.warns_when_low || self.run.spending.is_low_budget_reported() || !self.run.answered {
            return None;
        }
        let mut what = Vec::new();
        if let Some(end) = self.limits.work_time() {
            let left = end.saturating_sub(moment.elapsed);
            what.extend((left < end / LITTLE).then(|| messages::time_left(left, end)));
        }
        let spending = &self.run.spending;
        if let Some((left, of)) = spending.money_left(&self.limits.caps) {
            what.extend((left < of.div_floor(LITTLE.into())).then(|| messages::money_left(left, of)));
        }
        if let Some((left, of)) = spending.tokens_left(&self.limits.caps) {
            what.extend((left < of / u64::from(LITTLE)).then(|| messages::tokens_left(left, of)));
        }
        (!what.is_empty()).then(|| {
            NextAction::AddUserMessage(MessageOrigin::Remaining, messages::limits_nearly_reached(&what))
        })
    }
}
