//! What a session knows of its subagents, and how the session of one begins.

use super::approvals::PendingApprovals;
use super::structured_output::StructuredOutput;
use super::{RunState, Session};
use crate::agent::spending::UsedBudget;
use crate::agent::tally::Tally;
use crate::core::budget_share::BudgetShare;
use crate::core::evaluation::EvaluationLimits;
use crate::core::event::{Event, HookVerdict};
use crate::core::limits::Limits;
use crate::core::message::Role;
use crate::text::delimiter::Delimiter;
use std::collections::BTreeMap;
use std::time::Duration;

/// What the requests of a subagent offer, and how far it may go by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubagentLimits {
    /// Model calls.
    pub max_steps: u32,
    /// Tokens of its tools, at most.
    pub tools_tokens: u64,
    /// Bytes of its tools.
    pub tools_bytes: u64,
}

impl Session {
    /// What a subagent is held to that is asked when the run has taken `elapsed`: what its own run is, gates and evaluation aside, with
    /// what is left of its time, and the models from the one in use on.
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
            ..self.limits.clone()
        }
    }

    /// The session of a subagent that knows nothing of this one but the task it gets.
    #[must_use]
    pub fn new_subagent(&self, limits: Limits, call_id: &str) -> Self {
        let id = format!("{}/{call_id}", self.id);
        Self { mark: Delimiter::for_session(&id), id, ..Self::new(limits) }
    }

    /// The session of a subagent that knows all that was said before the answer that asks it.
    #[must_use]
    pub fn fork_for_subagent(&self, limits: Limits) -> Self {
        let mut fork = Self {
            limits,
            pending: Vec::new(),
            results: BTreeMap::default(),
            waiting: PendingApprovals::default(),
            unread: Vec::new(),
            demand: StructuredOutput::default(),
            tally: Tally::default(),
            prefix: None,
            compacted_at: None,
            run: RunState::default(),
            ..self.clone()
        };
        if fork.messages.last().is_some_and(|last| last.role == Role::Assistant) {
            fork.messages.pop();
        }
        fork.filling.recount(fork.messages.iter().map(AsRef::as_ref));
        fork
    }

    /// What everybody but the subagent that `call_id` asked has used up of the caps.
    pub fn used_by_others(&self, call_id: &str) -> UsedBudget {
        self.run.spending.used_by_others(call_id)
    }

    /// Of a subagent: what everybody else has used up of the caps.
    pub fn set_used_elsewhere(&mut self, elsewhere: UsedBudget) {
        self.run.spending.set_used_elsewhere(elsewhere);
    }

    /// What the run pays from.
    pub fn budget_share(&self) -> BudgetShare {
        self.run.spending.purse
    }

    /// Something happened in the session of the subagent that `call_id` asked.
    pub(super) fn subagent(&mut self, call_id: &str, event: &Event, purse: Option<BudgetShare>) {
        let calls = self.tally.add_subagent_event(call_id, event);
        self.run.spending.add_subagent_usage(call_id, purse, calls);
        let spending = &mut self.run.spending;
        match event {
            // Its purse is known by this name: a call of the model gets another.
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
