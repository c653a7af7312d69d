//! What is left of what a run may use: when it is little, the model is told, once.

use super::{Moment, NextAction, Session};
use crate::core::event::MessageOrigin;
use crate::messages;

/// Little is less than this part of what there was.
const LITTLE: u32 = 5;

impl Session {
    /// The words about it, where little time, money or tokens are left for the work and the model does not know yet.
    pub(super) fn low_budget_warning(&self, moment: Moment) -> Option<NextAction> {
        if !self.limits.tells_what_is_left || self.run.spending.is_low_budget_reported() || !self.run.answered
        {
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
