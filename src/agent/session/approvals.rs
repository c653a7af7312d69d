//! Calls of the last answer that wait for a person: which of them have begun, and what is said meanwhile.

use super::{Moment, NextAction, Session};
use crate::core::event::{Event, MessageOrigin};
use crate::core::message::ToolCall;
use crate::core::run_result::PendingApproval;
use crate::core::stop_reason::StopReason;
use crate::journal::approvals::Approvals;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What is known of a turn in which a call has waited.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct PendingApprovals {
    approvals: Approvals,
    /// Calls that were taken up and neither ended nor put off.
    begun: BTreeSet<String>,
    /// A call has waited: those that have not begun are still to run.
    held: bool,
    /// What was said since; it follows the results.
    said: Vec<(String, MessageOrigin)>,
}

impl PendingApprovals {
    /// Takes note of an event.
    pub(super) fn apply(&mut self, event: &Event) {
        self.approvals.apply(event);
        match event {
            Event::ToolCallStart { call, .. } => drop(self.begun.insert(call.id.clone())),
            Event::ToolCallPending { call_id, .. } => {
                self.begun.remove(call_id);
                self.held = true;
            }
            Event::ToolCallEnd { result, .. } => drop(self.begun.remove(&result.call_id)),
            _ => {}
        }
    }

    /// Whether nobody has answered yet what was asked about a call.
    pub(super) fn is_open(&self, call_id: &str) -> bool {
        self.approvals.unanswered().any(|approval| approval.call_id == call_id)
    }
}

impl Session {
    /// The calls without a result of which nobody knows what became of them, when an earlier process died over them. Those
    /// that wait are not among them, nor those behind one that waits: they have not begun.
    pub fn interrupted_calls(&self) -> Vec<ToolCall> {
        let PendingApprovals { begun, held, .. } = &self.waiting;
        self.open_calls().into_iter().filter(|call| !held || begun.contains(&call.id)).collect()
    }

    /// How many calls of an earlier run this one has to run.
    pub(super) fn resumed_call_count(&self) -> usize {
        if self.waiting.held { self.open_calls().len() } else { 0 }
    }

    /// What was asked about calls that have no result yet.
    pub fn approvals(&self) -> &Approvals {
        &self.waiting.approvals
    }

    /// The calls that wait for an answer.
    pub fn awaiting_approval(&self) -> Vec<PendingApproval> {
        let open = self.waiting.approvals.unanswered().cloned();
        open.map(|asked| PendingApproval {
            id: asked.id,
            tool: asked.tool,
            summary: asked.summary,
            reason: asked.reason,
        })
        .collect()
    }

    /// Whether the run ends although calls are left, which a later one can run: they were approved for that.
    pub(super) fn should_pause(&self, moment: Moment) -> bool {
        self.waiting.held && (moment.interrupted || self.run.stopped.is_some())
    }

    /// The run ends, and calls are left to run.
    pub(super) fn pause(&self, moment: Moment) -> NextAction {
        match &self.run.stopped {
            _ if moment.interrupted => self.stop(StopReason::UserInterrupt, None),
            Some(reason) => self.stop_with_answer(StopReason::Guardrail, reason.clone(), None),
            None => self.stop(StopReason::AwaitingApproval, None),
        }
    }

    /// Keeps what is said while calls wait until they have their results; whether it did.
    pub(super) fn hold_message(&mut self, text: &str, origin: MessageOrigin) -> bool {
        let waits = self.waiting.held && !self.pending.is_empty();
        if waits {
            self.waiting.said.push((text.to_owned(), origin));
        }
        waits
    }

    /// The calls have their results: says what was said meanwhile.
    pub(super) fn release_held_messages(&mut self) {
        for (text, origin) in std::mem::take(&mut self.waiting).said {
            self.user_message(&text, origin);
        }
    }
}
