//! Tracks the calls of the last answer that wait for approval, and holds back messages until they have results.

use super::{Moment, NextAction, Session};
use agent_core::event::{Event, MessageOrigin};
use agent_core::image::Image;
use agent_core::message::ToolCall;
use agent_core::run_result::PendingApproval;
use agent_core::stop_reason::StopReason;
use agent_journal::approvals::Approvals;
use std::collections::BTreeSet;

/// State of a turn in which a call waits for approval.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PendingApprovals {
    approvals: Approvals,
    /// Calls that have started and neither ended nor been postponed.
    started: BTreeSet<String>,
    /// Whether a call has waited: calls that have not started are still to run.
    has_waited: bool,
    /// Messages that arrived meanwhile; they follow the results.
    held_messages: Vec<(String, MessageOrigin, Vec<Image>)>,
}

impl PendingApprovals {
    /// Applies an event.
    pub(super) fn apply(&mut self, event: &Event) {
        self.approvals.apply(event);
        match event {
            Event::ToolCallStart { call, .. } => drop(self.started.insert(call.id.clone())),
            Event::ToolCallPending { call_id, .. } => {
                self.started.remove(call_id);
                self.has_waited = true;
            }
            Event::ToolCallEnd { result, .. } => drop(self.started.remove(&result.call_id)),
            _ => {}
        }
    }

    /// Whether the approval of a call is still open.
    pub(super) fn is_open(&self, call_id: &str) -> bool {
        self.approvals.unanswered().any(|approval| approval.call_id == call_id)
    }
}

impl Session {
    /// Returns the calls whose outcome is unknown because an earlier process died while they ran. Calls that wait, and calls behind one that
    /// waits, have not started and are not included.
    pub fn interrupted_calls(&self) -> Vec<ToolCall> {
        let PendingApprovals { started, has_waited, .. } = &self.pending_approvals;
        self.open_calls().into_iter().filter(|call| !has_waited || started.contains(&call.id)).collect()
    }

    /// Returns the number of calls of an earlier run that this run has to run.
    pub(super) fn resumed_call_count(&self) -> usize {
        if self.pending_approvals.has_waited { self.open_calls().len() } else { 0 }
    }

    /// Returns the approvals requested for calls without a result.
    pub fn approvals(&self) -> &Approvals {
        &self.pending_approvals.approvals
    }

    /// Returns the calls that wait for approval.
    pub fn awaiting_approval(&self) -> Vec<PendingApproval> {
        let open = self.pending_approvals.approvals.unanswered().cloned();
        open.map(|approval| PendingApproval {
            id: approval.id,
            tool: approval.tool,
            summary: approval.summary,
            reason: approval.reason,
        })
        .collect()
    }

    /// Whether the run must end and leave its approved calls to a later run.
    pub(super) fn should_pause(&self, moment: Moment) -> bool {
        self.pending_approvals.has_waited && (moment.interrupted || self.run.stopped.is_some())
    }

    /// Ends the run with calls left to run.
    pub(super) fn pause(&self, moment: Moment) -> NextAction {
        match &self.run.stopped {
            _ if moment.interrupted => self.stop(StopReason::UserInterrupt, None),
            Some(reason) => self.stop_with_answer(StopReason::Guardrail, reason.clone(), None),
            None => self.stop(StopReason::AwaitingApproval, None),
        }
    }

    /// Holds back a message while calls wait. Returns whether it was held back.
    pub(super) fn hold_message(&mut self, text: &str, origin: MessageOrigin, images: &[Image]) -> bool {
        let waits = self.pending_approvals.has_waited && !self.pending.is_empty();
        if waits {
            self.pending_approvals.held_messages.push((text.to_owned(), origin, images.to_vec()));
        }
        waits
    }

    /// Adds the messages that were held back, after the results of the calls.
    pub(super) fn release_held_messages(&mut self) {
        for (text, origin, images) in std::mem::take(&mut self.pending_approvals).held_messages {
            self.add_user_message(&text, origin, &images);
        }
    }
}
