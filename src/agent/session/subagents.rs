//! What a session knows of its subagents, and how the session of one begins.

use super::structured::Demand;
use super::waiting::Waiting;
use super::{RunState, Session};
use crate::agent::spending::UsedUp;
use crate::agent::tally::Tally;
use crate::evaluation::EvaluationLimits;
use crate::event::{Event, HookVerdict};
use crate::limits::Limits;
use crate::message::Role;
use crate::purse::Purse;
use crate::text::mark::Mark;
use std::collections::BTreeMap;
use std::time::Duration;

/// What the requests of a subagent offer, and how far it may go by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubagentRoom {
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
    pub fn limits_of_subagent(&self, elapsed: Duration, room: SubagentRoom) -> Limits {
        let timeout = self.limits.work_time().map(|end| end.saturating_sub(elapsed));
        Limits {
            max_steps: room.max_steps,
            timeout,
            caps: self.limits.caps.of_subagent(room.tools_tokens),
            models: self.limits.models.beginning_with(self.run.model),
            tools_bytes: room.tools_bytes,
            gate_rounds: None,
            evaluation: EvaluationLimits::default(),
            ..self.limits.clone()
        }
    }

    /// The session of a subagent that knows nothing of this one but the task it gets.
    #[must_use]
    pub fn with_subagent(&self, limits: Limits, call_id: &str) -> Self {
        let id = format!("{}/{call_id}", self.id);
        Self { mark: Mark::of(&id), id, ..Self::new(limits) }
    }

    /// The session of a subagent that knows all that was said before the answer that asks it.
    #[must_use]
    pub fn forked(&self, limits: Limits) -> Self {
        let mut fork = Self {
            limits,
            pending: Vec::new(),
            results: BTreeMap::default(),
            waiting: Waiting::default(),
            unread: Vec::new(),
            demand: Demand::default(),
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
    pub fn used_up_beside(&self, call_id: &str) -> UsedUp {
        self.run.spending.beside(call_id)
    }

    /// Of a subagent: what everybody else has used up of the caps.
    pub fn shares_with(&mut self, elsewhere: UsedUp) {
        self.run.spending.shares_with(elsewhere);
    }

    /// What the run pays from.
    pub fn purse(&self) -> Purse {
        self.run.spending.purse
    }

    /// Something happened in the session of the subagent that `call_id` asked.
    pub(super) fn subagent(&mut self, call_id: &str, event: &Event, purse: Option<Purse>) {
        let calls = self.tally.subagent(call_id, event);
        self.run.spending.of_subagent(call_id, purse, calls);
        let spending = &mut self.run.spending;
        match event {
            // Its purse is known by this name: a call of the model gets another.
            Event::RunStart { .. } => drop(self.call_ids.insert(call_id.to_owned())),
            Event::RequestSent { .. } => drop(spending.subagent_requests(call_id, true)),
            Event::ModelResponse { .. } => drop(spending.subagent_requests(call_id, false)),
            Event::Retry { kind, billed, .. } => {
                spending.subagent_requests(call_id, false);
                self.unreported(billed.is_none() && kind.may_be_billed());
            }
            Event::ModelFailed { failure, billed, .. } => {
                spending.subagent_requests(call_id, false);
                self.unreported(billed.is_none() && failure.kind.may_be_billed());
            }
            Event::HookEnd { verdict: HookVerdict::Stop, output, .. } => self.stopped(output),
            Event::ModelAbandoned { .. } => {
                let requested = spending.subagent_requests(call_id, false);
                self.unreported(requested);
            }
            _ => {}
        }
    }
}
