//! Applies guardrails to calls: checks planned file changes and commands, and counts the effects of calls that ran.

use crate::Engine;
use crate::command_class::classify;
use crate::guardrails::edit::{self, Edit};
use crate::links;
use agent_core::decision::DenialReason;
use agent_core::event::Event;
use agent_core::file_change::{Change, FileState};
use agent_core::guardrail::{CallCounts, ConversationSide, GuardrailAction};
use agent_messages as messages;
use agent_runtime::emitter::EmitError;
use agent_text::diff;
use agent_tools::rewrite::Rewrite;
use agent_tools::{Access, CommandStatus, Plan, Tool, ToolOutput};
use agent_workspace::Workspace;
use serde_json::Value;
use std::collections::BTreeSet;
use tokio_util::sync::CancellationToken;

/// Maximum bytes of changed files whose lines are counted after one command; the rest is not counted.
const MAX_COUNTED_BYTES: usize = 64 << 20;

/// Result of the guardrail checks for an allowed call.
#[derive(Debug, Default)]
pub(super) struct GuardrailPass {
    /// Remarks for the model, appended to the result.
    pub(super) remarks: Vec<String>,
    /// Number of lines that the call adds and removes.
    lines: u64,
}

impl Engine {
    /// Checks a call before it runs. Without `args`, only its plan is checked.
    pub(super) fn check_guardrails(
        &self,
        tool: &dyn Tool,
        args: Option<&Value>,
        plan: &Plan,
    ) -> Result<GuardrailPass, DenialReason> {
        match (tool.access(), args, &plan.command) {
            (Access::Execute, _, Some(command)) if self.guardrails.has_limits() => {
                let class = classify(command, &self.commands).class;
                let touched = links::touched_files(plan);
                let written = touched.iter().filter(|touch| touch.write).map(|touch| touch.path.as_str());
                self.guardrails.check_command(command, &class, &self.resolved_paths(written))?;
                Ok(GuardrailPass::default())
            }
            (Access::Write, Some(args), _) if self.guardrails.checks_edits() => {
                let cx = self.context("", &CancellationToken::new());
                // A call that fails changes nothing, and its own error message explains why.
                let rewrites = tool.rewrites(args, &cx).unwrap_or_default();
                let edits: Vec<Edit> = rewrites.into_iter().map(|rewrite| self.edit(rewrite)).collect();
                let remarks = self.guardrails.check_edits(&edits)?;
                Ok(GuardrailPass { remarks, lines: edits.iter().map(Edit::lines).sum() })
            }
            _ => Ok(GuardrailPass::default()),
        }
    }

    /// Returns the workspace files among `paths`, with resolved links.
    pub(super) fn resolved_paths<'a>(&self, paths: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
        let resolved = |raw: &str| {
            let path = self.workspace.path(raw).ok()?;
            Some(self.workspace.resolve(&path).unwrap_or(path).as_str().to_owned())
        };
        paths.filter_map(resolved).collect()
    }

    fn edit(&self, rewrite: Rewrite) -> Edit {
        let path = match rewrite.new {
            Some(_) => self.workspace.resolve(&rewrite.path),
            None => self.workspace.resolve_directory(&rewrite.path),
        };
        let path = path.map_or_else(|_| rewrite.path.as_str().to_owned(), |path| path.as_str().to_owned());
        let replaced = diff::changed_lines(rewrite.old_text(), rewrite.new.as_deref().unwrap_or_default());
        Edit { path, display_path: rewrite.path.as_str().to_owned(), new: rewrite.new, replaced }
    }

    /// Counts the effects of a call that ran.
    pub(super) async fn count_effects(
        &self,
        plan: &Plan,
        output: &ToolOutput,
        passed: &GuardrailPass,
    ) -> CallCounts {
        let command = plan.command.as_deref().filter(|_| output.command_outcome.is_some());
        let lines = match command {
            Some(_) if self.guardrails.counts_lines() => {
                self.count_changed_lines(output.changed.clone()).await
            }
            None if !output.changed.is_empty() => passed.lines,
            _ => 0,
        };
        let tests_passed = match output.command_outcome {
            Some(CommandStatus::Succeeded) => Some(true),
            Some(CommandStatus::Failed) => Some(false),
            Some(CommandStatus::Running) | None => None,
        };
        let is_test = command.is_some_and(|command| self.guardrails.is_test(command));
        CallCounts { lines, command: command.is_some(), tests_passed: tests_passed.filter(|_| is_test) }
    }

    /// Counts added and removed lines of files whose contents before and after are stored.
    async fn count_changed_lines(&self, changes: Vec<Change>) -> u64 {
        let workspace = Workspace::clone(&self.workspace);
        let count = move || {
            let mut bytes = 0_usize;
            let texts = changes.iter().filter_map(|change| {
                Some((
                    stored_text(&workspace, &change.before_state())?,
                    stored_text(&workspace, &change.after_state())?,
                ))
            });
            let counted = texts.map_while(|(old, new)| {
                bytes = bytes.saturating_add(old.len()).saturating_add(new.len());
                (bytes <= MAX_COUNTED_BYTES).then(|| edit::lines(&diff::changed_lines(&old, &new)))
            });
            counted.sum()
        };
        tokio::task::spawn_blocking(count).await.unwrap_or_default()
    }

    /// Returns the replacement for a text that a guardrail withholds from the model, if one does.
    pub(super) fn withheld_note(&self, text: &str) -> Result<Option<String>, EmitError> {
        let found = self.guardrails.texts.find(ConversationSide::Input, text);
        let Some(triggered) = found.filter(|found| found.action == GuardrailAction::Block) else {
            return Ok(None);
        };
        self.emitter.emit(Event::Guardrail { triggered: triggered.clone() })?;
        Ok(Some(messages::withheld_text(&triggered.name, &triggered.message)))
    }
}

/// Returns the stored text of a file in this state, if it is stored and is text.
fn stored_text(workspace: &Workspace, state: &FileState) -> Option<String> {
    match state {
        FileState::Absent => Some(String::new()),
        FileState::Content { hash, .. } => String::from_utf8(workspace.content_store()?.get(hash)?).ok(),
        FileState::Unknown => None,
    }
}
