//! Handles quality gates in a session: an answer counts as done when the required gates have passed; otherwise the model is notified.

use super::{Moment, NextAction, RunEnd, Session};
use agent_core::event::MessageOrigin;
use agent_core::quality_gate::GateResult;
use agent_messages as messages;

/// State of the gates in a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct GateProgress {
    /// Results for the last answer; `None` before the gates have run.
    results: Option<Vec<GateResult>>,
    /// How often the model was notified of failed gates.
    retries: u32,
}

impl GateProgress {
    /// Discards the results, because a new answer arrived.
    pub(super) fn answered(&mut self) {
        self.results = None;
    }

    /// Records that the model was notified of failed gates.
    pub(super) fn note_retry(&mut self) {
        self.retries = self.retries.saturating_add(1);
    }

    pub(super) fn set_results(&mut self, results: &[GateResult]) {
        self.results = Some(results.to_vec());
    }

    /// Returns the results of the gates.
    pub(super) fn results(&self) -> &[GateResult] {
        self.results.as_deref().unwrap_or_default()
    }
}

impl Session {
    /// Returns the action after a finished answer: run the gates, notify the model, or end the run with the result of the gates.
    pub(super) fn check_gates(&self, done: RunEnd, moment: Moment) -> NextAction {
        let Some(max_rounds) = self.limits.gate_rounds else { return self.check_evaluation(done, moment) };
        let Some(results) = &self.run.gates.results else { return NextAction::RunGates };
        let failed: Vec<&GateResult> =
            results.iter().filter(|result| result.required && !result.passed).collect();
        if failed.is_empty() {
            self.check_evaluation(done, moment)
        } else if self.run.gates.retries < max_rounds {
            NextAction::AddUserMessage(MessageOrigin::Gate, messages::gates_failed(&failed))
        } else {
            self.stop_partial(done)
        }
    }
}
