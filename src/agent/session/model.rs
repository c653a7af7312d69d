//! The model in use: what a call to it may cost and hold, and what happens when it cannot be used.

use super::{Moment, NextAction, Session};
use crate::agent::context_window::Overflow;
use crate::agent::evaluation::MAX_REPLY_TOKENS;
use crate::core::event::{BilledUsage, Purpose};
use crate::core::failure::{Failure, FailureKind};
use crate::core::limits::{ModelTerms, OnLimit};
use crate::core::price::{Price, Usd};
use crate::core::stop_reason::{ReachedLimit, StopReason};
use crate::core::usage::Usage;
use crate::llm::error_action::should_fall_back;
use crate::messages;
use std::sync::Arc;

impl Session {
    /// Which of the run's models is in use, by its place in the chain.
    pub fn model_in_use(&self) -> usize {
        self.run.model
    }

    /// Whether a call id was used before in this session.
    pub fn has_call_id(&self, id: &str) -> bool {
        self.call_ids.contains(id)
    }

    /// What must be known of it.
    pub(super) fn terms(&self) -> &ModelTerms {
        self.limits.models.at(self.run.model)
    }

    /// What an answer of it costs that took `usage`; nothing when its price is not known, or nobody counted what has one.
    pub fn cost_of(&self, usage: Option<Usage>) -> Option<Usd> {
        let price = self.terms().price?;
        usage.map(|usage| price.cost(usage)).or_else(|| (price == Price::FREE).then_some(Usd::ZERO))
    }

    /// Tokens of the longest answer that a request for `purpose` may ask for: what was wanted, lowered to what is left to
    /// spend and to what the window leaves beside the prompt; the server's own limit when absent.
    pub fn output_limit(&self, purpose: Purpose) -> Option<u32> {
        let terms = self.terms();
        let longest = self.spending_for(purpose).longest_answer(&self.limits.caps, terms, purpose)?;
        let longest = match purpose {
            Purpose::Summary => longest.min(self.summary_tokens()),
            Purpose::Evaluation => longest.min(MAX_REPLY_TOKENS),
            Purpose::Step | Purpose::Closing => longest,
        };
        let window = terms.window.filter(|_| !purpose.is_internal());
        let room = window.map(|window| self.filling.answer_room(window, self.limits.tools_bytes));
        Some(room.and_then(|room| u32::try_from(room).ok()).map_or(longest, |room| room.min(longest)))
    }

    /// The cap that stands in the way of a call for `purpose`.
    pub fn exceeded_limit(&self, purpose: Purpose) -> Option<ReachedLimit> {
        let spending = self.spending_for(purpose).exceeded_limit(&self.limits.caps, self.terms(), purpose);
        let given_up = purpose == Purpose::Step && self.run.abandoned == Some(StopReason::BudgetExceeded);
        let cap = if self.limits.caps.usd.is_some() { ReachedLimit::Usd } else { ReachedLimit::Tokens };
        spending.or(given_up.then_some(cap))
    }

    /// Whether the request for `purpose` under way may be sent once more.
    pub fn can_afford_retry(&self, purpose: Purpose) -> bool {
        self.run.spending.can_afford_retry(&self.limits.caps, purpose)
    }

    /// What the run has spent and the mark it has reached, when that is to be said now.
    pub fn cost_warning(&self) -> Option<(Usd, Usd)> {
        self.run.spending.warning(&self.limits.caps)
    }

    /// Sets aside the most that the call for `purpose` that begins now can cost.
    pub(super) fn reserve(&mut self, purpose: Purpose) {
        self.run.requested = false;
        self.run.asked = Some(purpose);
        let longest = self.output_limit(purpose);
        let most = self.spending_for(purpose).worst_case(&self.limits.caps, self.terms(), longest);
        self.run.spending.reserve(most);
    }

    /// A request goes out.
    pub(super) fn record_request(&mut self) {
        self.run.requested = true;
        self.tally.requests = self.tally.requests.saturating_add(1);
    }

    /// What is wrong when the next prompt does not fit into the window.
    pub(super) fn overflow(&self) -> Option<Overflow> {
        self.filling.overflow(self.terms().window, self.limits.tools_bytes)
    }

    /// What is wrong with a conversation that does not fit into the window by our own estimate, so that it is not sent.
    pub(super) fn overflow_failure(&self) -> Option<Failure> {
        let Overflow { prompt, window } = self.overflow()?;
        let first = self.tally.steps == 0;
        let message = messages::context_overflow(prompt, window.tokens, window.source.name(), first);
        Some(Failure { kind: FailureKind::ContextOverflow, message, retryable: false })
    }

    /// The conversation does not fit into the window, as the server or our own estimate says, and could not be made shorter. A
    /// summary cannot be asked for, as that request would not fit either; where only too little could be freed it can.
    pub(super) fn context_full(&self, failure: Option<Failure>) -> NextAction {
        let can_close = self.limits.on_limit == OnLimit::Summary && failure.is_none();
        if can_close {
            NextAction::StartClosing(StopReason::ContextFull)
        } else {
            self.stop(StopReason::ContextFull, failure)
        }
    }

    /// A model call failed for good: the next model takes over, or the run ends.
    pub(super) fn after_model_failure(&self, failure: &Failure, moment: Moment) -> NextAction {
        let in_time = self.limits.work_time().is_none_or(|end| moment.elapsed < end);
        let next =
            self.limits.models.after(self.run.model).filter(|_| in_time && should_fall_back(failure.kind));
        if let Some(next) = next {
            let (from, to) = (self.terms().model.clone(), next.model.clone());
            return NextAction::SwitchModel { from, to, because: failure.clone() };
        }
        let message = messages::fallbacks_failed(&self.model, &failure.message, &self.run.unusable);
        let told = Some(Failure { message, ..failure.clone() });
        match failure.kind {
            FailureKind::ContextOverflow => self.context_full(told),
            FailureKind::Auth => self.stop(StopReason::AuthError, told),
            _ => self.stop(StopReason::LlmError, told),
        }
    }

    /// The next model takes over, for the rest of the run: the step begins again.
    pub(super) fn apply_model_switch(&mut self, from: &str, to: &str, because: &Failure) {
        self.run.failure = None;
        self.run.steps = self.run.steps.saturating_sub(1);
        self.tally.steps = self.tally.steps.saturating_sub(1);
        self.run.model = self.run.model.saturating_add(1);
        self.run.unusable.push(format!("{from}: {}", because.message));
        self.use_model(to);
    }

    /// The conversation goes on with `model`: what only another model can read is dropped, as signatures are refused even by
    /// the other models of their provider (<https://github.com/vybestack/llxprt-code/issues/2335>), and lengths are counted
    /// anew.
    pub(super) fn use_model(&mut self, model: &str) {
        if self.model != model {
            self.messages.iter_mut().for_each(|message| Arc::make_mut(message).clear_opaque());
            self.filling.recount(self.messages.iter().map(AsRef::as_ref));
        }
        model.clone_into(&mut self.model);
        self.recount();
    }

    /// Counts a request that gave no answer and is repeated: what the provider said that it used, or the worst that it
    /// may have.
    pub(super) fn record_retry(&mut self, kind: FailureKind, billed: Option<BilledUsage>) {
        self.run.requested = false;
        let Some(BilledUsage { usage, cost_usd }) = billed else {
            self.unreported(kind.may_be_billed());
            return self.run.spending.write_off(kind.may_be_billed());
        };
        let purpose = self.run.asked.unwrap_or(Purpose::Step);
        self.tally.usage += usage;
        self.tally.add_cost(purpose, cost_usd);
        self.run.spending.pay(usage, cost_usd);
    }

    /// The same for one that is not repeated.
    pub(super) fn record_failed_request(
        &mut self,
        purpose: Purpose,
        kind: FailureKind,
        billed: Option<BilledUsage>,
    ) {
        let Some(BilledUsage { usage, cost_usd }) = billed else {
            return self.unreported_end(kind.may_be_billed());
        };
        self.tally.usage += usage;
        self.tally.add_cost(purpose, cost_usd);
        self.run.spending.settle(Some(usage), cost_usd);
    }

    /// The call ends, and nobody said what it used; it `may_be_billed` all the same.
    pub(super) fn unreported_end(&mut self, may_be_billed: bool) {
        self.unreported(may_be_billed);
        self.run.spending.give_up(may_be_billed);
    }

    /// Notes a request of which nobody said what it used; where nothing is paid for, it cost nothing.
    pub(super) fn unreported(&mut self, may_be_billed: bool) {
        self.tally.unreported |= may_be_billed && self.terms().price != Some(Price::FREE);
    }

    /// Counts anew what the conversation costs.
    pub(super) fn recount(&mut self) {
        self.run.spending.recount(&self.limits.caps, self.messages.iter().map(AsRef::as_ref));
    }
}
