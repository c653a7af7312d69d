//! Makes checkpoints: git commits of the files that the session has changed, under separate references.
//!
//! Branches, index and working tree are unchanged. Each checkpoint is a commit on top of the current `HEAD` with the current
//! content of every file that the session has changed, including untracked and ignored ones.

use crate::Engine;
use crate::checkpoints::Checkpoints;
use crate::file_commit::{CommitWriter, FileCommit};
use agent_core::event::Event;
use agent_journal::checkpoint_refs::ref_name;
use agent_messages as messages;
use agent_runtime::emitter::EmitError;

impl Engine {
    /// Makes a checkpoint after `step` of this run, if one is due.
    ///
    /// # Errors
    /// When the journal can no longer be written. A failure of git emits one warning and disables checkpoints.
    pub async fn checkpoint(&self, step: u32) -> Result<(), EmitError> {
        let Some(checkpoints) = &self.checkpoints else { return Ok(()) };
        if checkpoints.finish_step(step) { self.make_checkpoint(checkpoints).await } else { Ok(()) }
    }

    /// Makes a checkpoint of the changes since the last one at the end of the run.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint).
    pub async fn last_checkpoint(&self) -> Result<(), EmitError> {
        let Some(checkpoints) = &self.checkpoints else { return Ok(()) };
        self.make_checkpoint(checkpoints).await
    }

    async fn make_checkpoint(&self, checkpoints: &Checkpoints) -> Result<(), EmitError> {
        let Some(step) = checkpoints.take_due_step() else { return Ok(()) };
        match self.commit(checkpoints, step).await {
            Ok(event) => self.emitter.emit(event).map(drop),
            Err(reason) => {
                checkpoints.disable();
                self.warn(messages::no_checkpoints(&reason))
            }
        }
    }

    async fn commit(&self, checkpoints: &Checkpoints, step: u32) -> Result<Event, String> {
        let reference = ref_name(checkpoints.session(), step);
        let message = format!("agent checkpoint: session {}, step {step}\n", checkpoints.session());
        let writer = CommitWriter {
            launcher: &self.launcher,
            workspace: &self.workspace,
            policy: &self.policy,
            redactor: self.emitter.redactor(),
            unix_seconds: self.source.unix_time().as_secs(),
        };
        let FileCommit { id, omitted_files, .. } =
            writer.commit(&reference, &message, &checkpoints.files()).await?;
        Ok(Event::Checkpoint { step, reference, commit: id, omitted_files })
    }
}
