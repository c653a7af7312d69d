//! Emits the end of a run.

use crate::Agent;
use crate::session::RunEnd;
use agent_core::event::Event;
use agent_core::failure::{Failure, FailureKind};
use agent_core::run_result::RunResult;
use agent_core::stop_reason::StopReason;
use agent_runtime::emitter::EmitError;

impl<S> Agent<S> {
    /// Emits the end of the run and returns the result as emitted, without secrets.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn emit_run_end(&self, result: RunResult) -> Result<RunResult, EmitError> {
        match self.emitter.emit(Event::RunEnd { result: Box::new(result.clone()) })?.event {
            Event::RunEnd { result } => Ok(*result),
            _ => Ok(result),
        }
    }

    /// Builds the result of a run whose journal can no longer be written, and emits it to the other sinks.
    pub fn end_without_journal(&self, error: &EmitError) -> RunResult {
        let failure = Failure { kind: FailureKind::Internal, message: error.to_string(), retryable: false };
        let outcome: RunEnd = self.session.borrow().stop_with(StopReason::InternalError, Some(failure));
        let result = self.session.borrow().result(outcome, self.elapsed());
        self.emitter.remove_journal();
        self.emit_run_end(result.clone()).unwrap_or(result)
    }
}
