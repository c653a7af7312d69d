//! The model in use: cost, limits and window of a call to it, and the fallback when it fails.

use super::{Moment, NextAction, RequestState, Session};
use crate::context_window::Overflow;
use crate::context_window::PromptEstimate;
use crate::evaluation::MAX_REPLY_TOKENS;
use agent_core::event::{BilledUsage, Purpose};
use agent_core::failure::{Failure, FailureKind};
use agent_core::limits::{ModelTerms, OnLimit};
use agent_core::price::{Price, Usd};
use agent_core::run_result::Cost;
use agent_core::stop_reason::{ReachedLimit, StopReason};
use agent_core::usage::Usage;
use agent_llm::error_action::should_fall_back;
use agent_messages as messages;
use std::sync::Arc;

impl Session {
    /// Returns the position of the model in use in the fallback chain.
    pub fn model_in_use(&self) -> usize {
        self.run.model
    }

    /// Whether a call id was used before in this session.
    pub fn has_call_id(&self, id: &str) -> bool {
        self.call_ids.contains(id)
    }

    /// Returns the terms (price, window, limits) of the model in use.
    pub(super) fn terms(&self) -> &ModelTerms {
        self.limits.models.at(self.run.model)
    }

    /// Returns the cost of an answer with `usage`. `None` when the price is unknown, or when a paid answer has no usage.
    pub fn cost_of(&self, usage: Option<Usage>) -> Option<Usd> {
        let price = self.terms().price?;
        usage.map(|usage| price.cost(usage)).or_else(|| (price == Price::FREE).then_some(Usd::ZERO))
    }

    /// Returns the limit on output tokens of a request for `purpose`: the configured one, lowered to what the budget and the window leave; `None`
    /// for the default of the server.
    pub fn output_limit(&self, purpose: Purpose) -> Option<u32> {
        let terms = self.terms();
        let longest = self.spending_for(purpose).longest_answer(&self.limits.caps, terms, purpose)?;
        let longest = match purpose {
            Purpose::Summary => longest.min(self.summary_tokens()),
            Purpose::Evaluation => longest.min(MAX_REPLY_TOKENS),
            Purpose::Step | Purpose::Closing => longest,
        };
        let window = terms.window.filter(|_| !purpose.is_internal());
        let room = window.map(|window| match purpose {
            Purpose::Closing => self.closing_estimate().answer_room(window, 0),
            _ => self.prompt_estimate.answer_room(window, self.limits.tools_bytes),
        });
        Some(room.and_then(|room| u32::try_from(room).ok()).map_or(longest, |room| room.min(longest)))
    }

    /// Returns the limit that prevents a call for `purpose`.
    pub fn exceeded_limit(&self, purpose: Purpose) -> Option<ReachedLimit> {
        let spending = self.spending_for(purpose).exceeded_limit(&self.limits.caps, self.terms(), purpose);
        let given_up = purpose == Purpose::Step && self.run.abandoned == Some(StopReason::BudgetExceeded);
        let cap = if self.limits.caps.usd.is_some() { ReachedLimit::Usd } else { ReachedLimit::Tokens };
        spending.or(given_up.then_some(cap))
    }

    /// Whether the current request for `purpose` may be sent once more.
    pub fn can_afford_retry(&self, purpose: Purpose) -> bool {
        self.run.spending.can_afford_retry(&self.limits.caps, purpose)
    }

    /// Returns the cost of the run and the warning threshold it has reached, when a warning is due.
    pub fn cost_warning(&self) -> Option<(Usd, Usd)> {
        self.run.spending.warning(&self.limits.caps)
    }

    /// Returns the cost of the session.
    pub fn cost(&self) -> Cost {
        self.tally.total(self.terms().price.is_some())
    }

    /// Returns what the run may have cost: known costs, and the highest possible ones of calls whose cost is unknown.
    pub fn spent_in_run(&self) -> Usd {
        self.run.spending.used_up().bound.usd
    }

    /// Reserves the highest possible cost of the call for `purpose` that starts now.
    pub(super) fn reserve(&mut self, purpose: Purpose) {
        self.run.request = RequestState::NotSent;
        self.run.purpose = Some(purpose);
        let longest = self.output_limit(purpose);
        let worst_case = self.spending_for(purpose).worst_case(&self.limits.caps, self.terms(), longest);
        self.run.spending.reserve(worst_case);
    }

    /// Counts a request that is sent.
    pub(super) fn record_request(&mut self) {
        self.run.request = RequestState::UnderWay;
        self.tally.requests = self.tally.requests.saturating_add(1);
    }

    /// Returns the overflow when the next prompt does not fit into the window.
    pub(super) fn overflow(&self) -> Option<Overflow> {
        self.prompt_estimate.overflow(self.terms().window, self.limits.tools_bytes)
    }

    /// Whether the request for the closing summary, which offers no tools, fits into the window.
    pub(super) fn closing_fits(&self) -> bool {
        let window = self.prompt_estimate.effective_window(self.terms().window);
        self.closing_estimate().overflow(window, 0).is_none()
    }

    fn closing_estimate(&self) -> PromptEstimate {
        self.prompt_estimate.without_tools(self.limits.tools_bytes)
    }

    /// Returns the failure for a conversation that exceeds the window by our own estimate, so that it is not sent.
    pub(super) fn overflow_failure(&self) -> Option<Failure> {
        let Overflow { prompt, window } = self.overflow()?;
        let first = self.tally.steps == 0;
        let message = messages::context_overflow(prompt, window.tokens, window.source.name(), first);
        Some(Failure { kind: FailureKind::ContextOverflow, message, retryable: false })
    }

    /// Returns the action when the conversation exceeds the window and compaction did not help: the closing summary if its request fits and
    /// there is work to summarize.
    pub(super) fn context_full(&self, failure: Option<Failure>, closing_fits: bool) -> NextAction {
        if self.limits.on_limit == OnLimit::Summary && closing_fits && self.tally.steps > 0 {
            let limit = Some(self.with_value(ReachedLimit::Window));
            NextAction::StartClosing(StopReason::ContextFull, limit)
        } else {
            self.stop(StopReason::ContextFull, failure)
        }
    }

    /// Returns the action after the final failure of a model call: switch to the next model, or end the run.
    pub(super) fn after_model_failure(&self, failure: &Failure, moment: Moment) -> NextAction {
        let in_time = self.limits.work_time().is_none_or(|end| moment.elapsed < end);
        let next =
            self.limits.models.after(self.run.model).filter(|_| in_time && should_fall_back(failure.kind));
        if let Some(next) = next {
            let (from, to) = (self.terms().model.clone(), next.model.clone());
            return NextAction::SwitchModel { from, to, failure: failure.clone() };
        }
        let message = messages::fallbacks_failed(&self.model, &failure.message, &self.run.unusable);
        let final_failure = Some(Failure { message, ..failure.clone() });
        match failure.kind {
            FailureKind::ContextOverflow => self.context_full(final_failure, false),
            FailureKind::Auth => self.stop(StopReason::AuthError, final_failure),
            _ => self.stop(StopReason::LlmError, final_failure),
        }
    }

    /// Switches to the next model for the rest of the run; the step starts again.
    pub(super) fn apply_model_switch(&mut self, from: &str, to: &str, because: &Failure) {
        self.run.failure = None;
        self.take_back_step();
        self.run.model = self.run.model.saturating_add(1);
        self.run.unusable.push(format!("{from}: {}", because.message));
        self.use_model(to);
    }

    fn take_back_step(&mut self) {
        self.run.steps = self.run.steps.saturating_sub(1);
        self.tally.steps = self.tally.steps.saturating_sub(1);
    }

    /// Continues the conversation with `model`. Opaque data of other models is removed, because even models of the same provider refuse the
    /// signatures (<https://github.com/vybestack/llxprt-code/issues/2335>), and lengths are counted again.
    pub(super) fn use_model(&mut self, model: &str) {
        if self.model != model {
            self.messages.iter_mut().for_each(|message| Arc::make_mut(message).clear_opaque());
            self.prompt_estimate.recount(self.messages.iter().map(AsRef::as_ref));
        }
        model.clone_into(&mut self.model);
        self.recount();
    }

    /// Counts a failed request that is retried: its reported usage, or else the highest possible cost.
    pub(super) fn record_retry(&mut self, kind: FailureKind, billed: Option<BilledUsage>) {
        self.run.request = RequestState::Failed;
        let Some(BilledUsage { usage, cost_usd }) = billed else {
            self.unreported(kind.may_be_billed());
            return self.run.spending.write_off(kind.may_be_billed());
        };
        let purpose = self.run.purpose.unwrap_or(Purpose::Step);
        self.tally.add_request(purpose, usage, cost_usd);
        self.run.spending.pay(usage, cost_usd);
    }

    /// Records that a call for `purpose` was abandoned. A call that was not sent is no step.
    pub(super) fn record_abandoned(&mut self, purpose: Purpose, reason: StopReason) {
        if purpose == Purpose::Step && self.run.request == RequestState::NotSent {
            self.take_back_step();
        }
        self.unreported_end(self.run.request == RequestState::UnderWay);
        self.no_answer(purpose, None, Some(reason));
    }

    /// Counts a failed request that is not retried.
    pub(super) fn record_failed_request(
        &mut self,
        purpose: Purpose,
        kind: FailureKind,
        billed: Option<BilledUsage>,
    ) {
        let Some(BilledUsage { usage, cost_usd }) = billed else {
            return self.unreported_end(kind.may_be_billed());
        };
        self.tally.add_request(purpose, usage, cost_usd);
        self.run.spending.settle(Some(usage), cost_usd);
    }

    /// Ends a call without reported usage, which the provider may bill.
    pub(super) fn unreported_end(&mut self, may_be_billed: bool) {
        self.unreported(may_be_billed);
        self.run.spending.give_up(may_be_billed);
    }

    /// Records that usage is unknown. Free models cost nothing in any case.
    pub(super) fn unreported(&mut self, may_be_billed: bool) {
        self.tally.unreported |= may_be_billed && self.terms().price != Some(Price::FREE);
    }

    /// Recalculates the token bound of the conversation.
    pub(super) fn recount(&mut self) {
        self.run.spending.recount(&self.limits.caps, self.messages.iter().map(AsRef::as_ref));
    }
}
