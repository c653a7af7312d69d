//! Creates the sessions of subagents and tracks their spending in the session of the run.

use super::approvals::PendingApprovals;
use super::structured_output::StructuredOutput;
use super::{RunState, Session};
use crate::spending::UsedBudget;
use crate::tally::Tally;
use agent_core::budget_share::{Amount, BudgetCap, BudgetShare};
use agent_core::evaluation::EvaluationLimits;
use agent_core::event::{Event, HookVerdict, Purpose};
use agent_core::limits::Limits;
use agent_core::message::Role;
use agent_core::stop_reason::ReachedLimit;
use agent_text::delimiter::Delimiter;
use std::collections::BTreeMap;
use std::time::Duration;

/// Limits of a subagent and size of its tool definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubagentLimits {
    /// Maximum number of steps.
    pub max_steps: u32,
    /// Upper bound on the tokens of its tool definitions.
    pub tools_tokens: u64,
    /// Bytes of its tool definitions.
    pub tools_bytes: u64,
}

/// Returns the id of the session of the subagent that the call `call_id` of session `session` starts.
pub fn subagent_id(session: &str, call_id: &str) -> String {
    format!("{session}/{call_id}")
}

impl Session {
    /// Returns the limits of a subagent that starts when the run has taken `elapsed`: those of the run, without gates, evaluation and
    /// review, for the time that is left, and with the models from the one in use.
    pub fn subagent_limits(&self, elapsed: Duration, room: SubagentLimits) -> Limits {
        let timeout = self.limits.work_time().map(|end| end.saturating_sub(elapsed));
        Limits {
            max_steps: room.max_steps,
            timeout,
            caps: self.limits.caps.of_subagent(room.tools_tokens),
            models: self.limits.models.starting_at(self.run.model),
            tools_bytes: room.tools_bytes,
            gate_rounds: None,
            evaluation: EvaluationLimits::default(),
            review_passes: None,
            ..self.limits.clone()
        }
    }

    /// Creates the session of a subagent that starts with an empty conversation.
    #[must_use]
    pub fn new_subagent(&self, limits: Limits, call_id: &str) -> Self {
        let id = subagent_id(&self.id, call_id);
        // The subagent can read the outputs of the run, which are named after its calls.
        let call_ids = self.call_ids.clone();
        Self { delimiter: Delimiter::for_session(&id), id, call_ids, ..Self::new(limits) }
    }

    /// Creates the session of a subagent that starts with a copy of the conversation, without the answer that requests it.
    #[must_use]
    pub fn fork_for_subagent(&self, limits: Limits) -> Self {
        let mut fork = Self {
            limits,
            pending: Vec::new(),
            results: BTreeMap::default(),
            pending_approvals: PendingApprovals::default(),
            unread: Vec::new(),
            structured_output: StructuredOutput::default(),
            tally: Tally::default(),
            prefix: None,
            compacted_at: None,
            run: RunState::default(),
            ..self.clone()
        };
        if fork.messages.last().is_some_and(|last| last.role == Role::Assistant) {
            fork.messages.pop();
        }
        fork.prompt_estimate.recount(fork.messages.iter().map(AsRef::as_ref));
        fork
    }

    /// Returns what the run and all subagents except that of `call_id` have used of the caps.
    pub fn used_by_others(&self, call_id: &str) -> UsedBudget {
        self.run.spending.used_by_others(call_id)
    }

    /// Sets, in a subagent's session, what all others have used of the caps.
    pub fn set_used_elsewhere(&mut self, elsewhere: UsedBudget) {
        self.run.spending.set_used_elsewhere(elsewhere);
    }

    /// Returns what the run and its subagents have used, and reserved for requests under way.
    pub fn used_in_run(&self) -> Amount {
        self.run.spending.used_up().bound
    }

    /// Checks whether a request of the run or of a subagent is under way.
    pub fn has_reserved(&self) -> bool {
        self.run.spending.has_reserved()
    }

    /// Lowers the caps of the run to what other runs leave of a shared budget.
    pub(super) fn set_budget_cap(&mut self, cap: BudgetCap) {
        let caps = &mut self.limits.caps;
        let own = self.run.own_caps.get_or_insert(BudgetCap { usd: caps.usd, tokens: caps.tokens });
        caps.usd = own.usd.into_iter().chain(cap.usd).min();
        caps.tokens = own.tokens.into_iter().chain(cap.tokens).min();
    }

    /// Checks whether a step needs more than other runs leave of a shared budget.
    pub fn is_over_total_budget(&self) -> bool {
        let caps = BudgetCap { usd: self.limits.caps.usd, tokens: self.limits.caps.tokens };
        self.run.own_caps.is_some_and(|own| own != caps)
            && matches!(self.exceeded_limit(Purpose::Step), Some(ReachedLimit::Usd | ReachedLimit::Tokens))
    }

    /// Returns the budget share of the run.
    pub fn budget_share(&self) -> BudgetShare {
        self.run.spending.budget_share
    }

    /// Applies an event of the subagent that `call_id` started.
    pub(super) fn apply_subagent_event(
        &mut self,
        call_id: &str,
        event: &Event,
        budget_share: Option<BudgetShare>,
    ) {
        let calls = self.tally.add_subagent_event(call_id, event);
        self.run.spending.add_subagent_usage(call_id, budget_share, calls);
        let spending = &mut self.run.spending;
        match event {
            // The id now identifies the budget share of the subagent, so later calls of the model must not reuse it.
            Event::RunStart { .. } => drop(self.call_ids.insert(call_id.to_owned())),
            Event::RequestSent { .. } => drop(spending.set_subagent_request(call_id, true)),
            Event::ModelResponse { .. } => drop(spending.set_subagent_request(call_id, false)),
            Event::Retry { kind, billed, .. } => {
                spending.set_subagent_request(call_id, false);
                self.unreported(billed.is_none() && kind.may_be_billed());
            }
            Event::ModelFailed { failure, billed, .. } => {
                spending.set_subagent_request(call_id, false);
                self.unreported(billed.is_none() && failure.kind.may_be_billed());
            }
            Event::HookEnd { verdict: HookVerdict::Stop, output, .. } => self.set_stopped_by_hook(output),
            Event::ModelAbandoned { .. } => {
                let requested = spending.set_subagent_request(call_id, false);
                self.unreported(requested);
            }
            _ => {}
        }
    }
}
