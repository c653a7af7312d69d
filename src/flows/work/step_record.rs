//! The steps of a pipeline in the record of its command.

use crate::work::record::{RecordedStep, WorkRecord};
use agent_core::quality_gate::GateResult;
use agent_core::work::{WorkEvent, WorkRun};
use agent_run::error::AppResult;

impl WorkRecord {
    fn step(&self, name: &str) -> Option<RecordedStep> {
        self.work.borrow().steps.iter().find(|step| step.name == name).cloned()
    }

    /// Records that a step begins. `changed_before` are the files with changes that are not committed.
    ///
    /// # Errors
    /// Fails when the record cannot be written.
    pub fn begin_step(&self, name: &str, changed_before: Vec<String>) -> AppResult<()> {
        self.write(WorkEvent::StepStart { name: name.to_owned(), changed_before })
    }

    /// Returns the files that had changes when the step began; `None` if it did not begin.
    pub fn begun_step(&self, name: &str) -> Option<Vec<String>> {
        self.step(name).map(|step| step.changed_before)
    }

    /// Checks whether the step ended and the next one followed.
    pub fn has_ended(&self, name: &str) -> bool {
        self.step(name).is_some_and(|step| step.has_ended)
    }

    /// Records the result of a step without a session.
    ///
    /// # Errors
    /// Fails when the record cannot be written.
    pub fn add_result(&self, run: WorkRun) -> AppResult<()> {
        self.write(WorkEvent::StepResult { run: Box::new(run) })
    }

    /// Records that a step ended and the next one follows.
    ///
    /// # Errors
    /// Fails when the record cannot be written.
    pub fn end_step(&self, name: &str) -> AppResult<()> {
        self.write(WorkEvent::StepEnd { name: name.to_owned() })
    }

    /// Records the checks after the run `name`, in place of those that are recorded.
    ///
    /// # Errors
    /// Fails when the record cannot be written.
    pub fn set_checks(&self, name: &str, results: Vec<GateResult>) -> AppResult<()> {
        self.write(WorkEvent::Checks { name: name.to_owned(), results })
    }
}
