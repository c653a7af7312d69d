//! What a session does about quality gates: an answer counts as done when the required ones have passed, and the model is told of
//! those that have not.

use super::{Moment, NextAction, RunOutcome, Session};
use crate::core::event::MessageOrigin;
use crate::core::quality_gate::GateResult;
use crate::messages;
use serde::{Deserialize, Serialize};

/// How far the gates of a run have come.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct GateProgress {
    /// What became of them for the last answer; nothing before they were looked at.
    results: Option<Vec<GateResult>>,
    /// How often the model was told.
    told: u32,
}

impl GateProgress {
    /// There is another answer.
    pub(super) fn answered(&mut self) {
        self.results = None;
    }

    /// The model was told what has not passed.
    pub(super) fn note_retry(&mut self) {
        self.told = self.told.saturating_add(1);
    }

    pub(super) fn looked_at(&mut self, results: &[GateResult]) {
        self.results = Some(results.to_vec());
    }

    /// What became of the gates.
    pub(super) fn results(&self) -> &[GateResult] {
        self.results.as_deref().unwrap_or_default()
    }
}

impl Session {
    /// The end of a run whose model says that it is done, once the gates have been looked at; or what is to be done first.
    pub(super) fn check_gates(&self, done: RunOutcome, moment: Moment) -> NextAction {
        let Some(most) = self.limits.gate_rounds else { return self.check_evaluation(done, moment) };
        let Some(results) = &self.run.gating.results else { return NextAction::RunGates };
        let failed: Vec<&GateResult> =
            results.iter().filter(|result| result.required && !result.passed).collect();
        if failed.is_empty() {
            self.check_evaluation(done, moment)
        } else if self.run.gating.told < most {
            NextAction::AddUserMessage(MessageOrigin::Gate, messages::gates_failed(&failed))
        } else {
            self.stop_partial(done)
        }
    }
}
