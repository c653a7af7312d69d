//! The checkpoint after a step: a commit of its changes, under a reference or on the current branch.

use crate::pipeline_command::steps::{BegunStep, Steps};
use agent_config::pipeline::{Checkpoint, Step};
use agent_core::quality_gate::GateResult;
use agent_engine::file_commit::{CommitWriter, advance_branch, changed_files, filtered_files};
use agent_journal::checkpoint_refs::ref_name;
use agent_messages as messages;
use agent_terminal::Style;
use std::time::Duration;

/// Name of the checkpoint among the checks of a step.
const NAME: &str = "checkpoint";

impl Steps<'_> {
    /// Returns the files that have changes that are not committed, for a step that ends with a checkpoint.
    ///
    /// # Errors
    /// Why no checkpoint is possible.
    pub async fn changed_before(&self, step: &Step) -> Result<Vec<String>, String> {
        match step.checkpoint {
            Checkpoint::Off => Ok(Vec::new()),
            Checkpoint::Reference | Checkpoint::Commit => {
                let files = changed_files(&self.launcher, self.workspace.root()).await?;
                Ok(files.into_iter().collect())
            }
        }
    }

    /// Writes the checkpoint of the step, and returns whether that succeeded; `None` if it has none.
    pub async fn checkpoint(&self, begun: &BegunStep<'_>) -> Option<GateResult> {
        let is_commit = match begun.step.checkpoint {
            Checkpoint::Off => return None,
            Checkpoint::Reference => false,
            Checkpoint::Commit => true,
        };
        let started_at = self.app.source.elapsed();
        let written = self.write_checkpoint(begun, is_commit).await;
        let duration = self.app.source.elapsed().saturating_sub(started_at);
        Some(GateResult {
            name: NAME.to_owned(),
            required: true,
            passed: written.is_ok(),
            output: written.err().unwrap_or_default(),
            duration_ms: u64::try_from(Duration::as_millis(&duration)).unwrap_or(u64::MAX),
        })
    }

    async fn write_checkpoint(&self, begun: &BegunStep<'_>, is_commit: bool) -> Result<(), String> {
        let &BegunStep { work, step, index, .. } = begun;
        let root = self.workspace.root();
        let changed_before = work.record.begun_step(&step.name).unwrap_or_default();
        let changed = changed_files(&self.launcher, root).await?;
        // A commit on the branch must not contain a file without its filter, such as the plain text of an encrypted file.
        let filtered = filtered_files(&self.launcher, root, &changed).await?;
        let is_own = |path: &String| !is_commit || !changed_before.contains(path) && !filtered.contains(path);
        let (files, mut left_out): (Vec<String>, Vec<String>) = changed.into_iter().partition(is_own);
        if !files.is_empty() {
            let redactor = self.app.redactor(&self.setup.settings);
            let writer = CommitWriter {
                launcher: &self.launcher,
                workspace: &self.workspace,
                policy: &self.policy,
                redactor: &redactor,
                unix_seconds: self.app.source.unix_time().as_secs(),
            };
            let reference = ref_name(&work.record.id, u32::try_from(index + 1).unwrap_or(u32::MAX));
            let message = format!("agent pipeline: {}\n", step.name);
            let commit = writer.commit(&reference, &message, &files).await?;
            if is_commit {
                let written: Vec<String> =
                    files.into_iter().filter(|path| !commit.omitted_files.contains(path)).collect();
                if !written.is_empty() {
                    advance_branch(&self.launcher, root, &commit, &written).await?;
                }
            }
            let text = messages::checkpoint_written(&reference, &commit.id, is_commit, work.language);
            work.log(Style::Plain, &text);
            left_out.extend(commit.omitted_files);
        }
        if !left_out.is_empty() {
            let text = messages::checkpoint_left_out(&messages::list_paths(&left_out), work.language);
            self.app.notify(Style::Warning, &text);
        }
        Ok(())
    }
}
