//! Fires hooks before and after tool calls, and applies their results.

use crate::Engine;
use crate::hooks::{HookEvent, HookInput, HookOutcome};
use agent_core::event::{Event, HookVerdict};
use agent_core::file_change::{Change, ChangeAction, ChangedBy, FileState, ObservedFile};
use agent_core::message::CallKey;
use agent_runtime::emitter::EmitError;
use agent_text::diff;
use agent_tools::file_change::MAX_EDIT_BYTES;
use agent_tools::{Access, Plan, ToolOutput};
use agent_workspace::error::FileError;
use agent_workspace::file::Content;
use agent_workspace::path::RelPath;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// The parts of a tool call that are passed to hooks.
#[derive(Clone, Copy)]
pub(super) struct CallView<'a> {
    pub call_id: &'a str,
    pub tool: &'a str,
    pub access: Access,
    pub args: &'a Value,
    pub plan: &'a Plan,
}

/// A file after a call and before the hooks.
struct EditedFile {
    path: RelPath,
    /// The content; `None` when it cannot be read.
    content: Option<Content>,
}

impl Engine {
    /// Fires the hooks of `event` and emits the outcome of each. No hook starts after `cancel`.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    pub async fn fire(
        &self,
        event: HookEvent,
        input: HookInput,
        cancel: &CancellationToken,
    ) -> Result<HookOutcome, EmitError> {
        if self.options.dry_run || cancel.is_cancelled() || !self.hooks.has(event) {
            return Ok(HookOutcome::default());
        }
        let outcome = self.hooks.fire(event, input, cancel).await;
        for run in &outcome.runs {
            if run.verdict == HookVerdict::Stop {
                self.is_stopped_by_hook.set(true);
            }
            self.emitter.emit(Event::HookEnd {
                hook: run.name.clone(),
                on: event.name().to_owned(),
                verdict: run.verdict,
                output: run.output.clone(),
                duration_ms: u64::try_from(run.duration.as_millis()).unwrap_or(u64::MAX),
            })?;
        }
        Ok(outcome)
    }

    /// Fires the hooks before a call.
    pub(super) async fn fire_pre_tool_hooks(
        &self,
        call: CallView<'_>,
        cancel: &CancellationToken,
    ) -> Result<HookOutcome, EmitError> {
        if !self.hooks.has(HookEvent::PreToolUse) {
            return Ok(HookOutcome::default());
        }
        self.fire(HookEvent::PreToolUse, self.hook_input(call), cancel).await
    }

    /// Fires the hooks after a call, and appends their messages and their changes of edited files to the output.
    pub(super) async fn fire_post_tool_hooks(
        &self,
        call: CallView<'_>,
        output: &mut ToolOutput,
        cancel: &CancellationToken,
    ) -> Result<(), EmitError> {
        let events = [HookEvent::PostToolUse, HookEvent::OnError, HookEvent::PostEdit];
        if self.options.dry_run || !events.into_iter().any(|event| self.hooks.has(event)) {
            return Ok(());
        }
        let edited = self.edited_files(call.access, output);
        let about = |output: &ToolOutput| HookInput {
            tool_output: Some(output.text.clone()),
            tool_success: Some(!output.is_error),
            ..self.hook_input(call)
        };
        let mut outcomes = Vec::new();
        if output.is_error {
            let mut outcome = self.fire(HookEvent::OnError, about(output), cancel).await?;
            if let Some(text) = outcome.result.take() {
                (output.text, output.is_error) = (text, false);
                output.images.clear();
            }
            outcomes.push(outcome);
        }
        let input = about(output);
        outcomes.push(self.fire(HookEvent::PostToolUse, input.clone(), cancel).await?);
        for file in &edited {
            let file_path = Some(file.path.as_str().to_owned());
            let input = HookInput { file_path, other_files: Vec::new(), ..input.clone() };
            outcomes.push(self.fire(HookEvent::PostEdit, input, cancel).await?);
        }
        for text in outcomes.into_iter().flat_map(HookOutcome::into_model_texts) {
            append_paragraph(&mut output.text, &text);
        }
        for file in edited {
            self.show_change_by_hooks(file, output);
        }
        Ok(())
    }

    fn hook_input(&self, call: CallView<'_>) -> HookInput {
        let mut files = call.plan.touched_files.iter().map(|touch| {
            self.real_path(&touch.path).map_or_else(|| touch.path.clone(), |path| path.as_str().to_owned())
        });
        HookInput {
            call: Some(CallKey::new(self.subagent.as_deref(), call.call_id)),
            tool_name: Some(call.tool.to_owned()),
            tool_input: Some(call.args.clone()),
            file_path: files.next(),
            other_files: files.collect(),
            command: call.plan.command.clone(),
            ..HookInput::default()
        }
    }

    /// Resolves `path`, as the model wrote it, inside the workspace; returns `None` when it does not exist or is outside.
    pub(super) fn real_path(&self, path: &str) -> Option<RelPath> {
        let path = self.workspace.path(path).ok()?;
        self.workspace.resolve(&path).ok()
    }

    /// Returns the files that a file tool changed and did not delete. Changes by commands are not included, because they are
    /// only detected by comparison and may have another cause.
    fn edited_files(&self, access: Access, output: &ToolOutput) -> Vec<EditedFile> {
        let is_edit = |change: &&Change| access == Access::Write && change.action != ChangeAction::Deleted;
        let paths = output.changed.iter().filter(is_edit).filter_map(|change| self.real_path(&change.path));
        let edited = paths.map(|path| EditedFile { content: self.content(&path).ok(), path });
        edited.collect()
    }

    fn content(&self, path: &RelPath) -> Result<Content, FileError> {
        self.workspace.read(path, MAX_EDIT_BYTES)
    }

    /// Appends a diff of the changes that hooks made to an edited file, so that the model's next edit matches.
    fn show_change_by_hooks(&self, file: EditedFile, output: &mut ToolOutput) {
        let EditedFile { path, content: Some(before) } = file else { return };
        let after = match self.content(&path) {
            Ok(after) if after.hash == before.hash => return,
            Ok(after) => Some(after),
            Err(FileError::Missing(_)) => None,
            Err(error) => {
                return append_paragraph(&mut output.text, &format!("After the hooks: {error}"));
            }
        };
        let (path, hash) = (path.as_str().to_owned(), after.as_ref().map(|after| after.hash.clone()));
        let state =
            |content: &Content| FileState::regular_file(content.hash.clone(), content.mode.as_raw_mode());
        let became = after.as_ref().map_or(FileState::Absent, state);
        output.changed.push(Change::between(&path, ChangedBy::Command, &state(&before), &became));
        // A file that the model has not seen completely stays unobserved, although the diff is shown.
        let was_seen = output.seen.iter().any(|seen| seen.path == path);
        output.seen.retain(|seen| seen.path != path);
        match hash {
            Some(hash) if was_seen => output.seen.push(ObservedFile { path: path.clone(), hash }),
            _ => self.observed_files.forget(&path),
        }
        let texts = (String::from_utf8(before.bytes), after.map(|after| String::from_utf8(after.bytes)));
        let what = match texts {
            (_, None) => format!("A hook removed {path}."),
            (Ok(before), Some(Ok(after))) => {
                format!("A hook changed {path}:\n{}", diff::unified(&path, &before, &after))
            }
            (_, Some(_)) => format!("A hook changed {path}, which is not text."),
        };
        append_paragraph(&mut output.text, &what);
    }
}

/// Appends a paragraph to a text for the model.
pub(super) fn append_paragraph(text: &mut String, paragraph: &str) {
    text.push_str("\n\n");
    text.push_str(paragraph.trim_end());
}
