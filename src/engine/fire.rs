//! Where hooks meet the engine: before and after one tool call, and around model calls and the run.

use crate::change::{Change, ChangeAction, Seen};
use crate::emit::EmitError;
use crate::engine::Engine;
use crate::engine::hooks::{HookEvent, HookInput, HookOutcome};
use crate::event::Event;
use crate::text::diff;
use crate::tools::{Plan, ToolOutput};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Files of one call that the hooks of `post_edit` run for; a call that changes more is told so.
const MAX_EDITED_FILES: usize = 20;

/// The largest file that is compared before and after hooks.
const MAX_COMPARED_BYTES: u64 = 4 << 20;

/// A tool call as hooks are told about it.
#[derive(Clone, Copy)]
pub(super) struct Told<'a> {
    pub tool: &'a str,
    pub args: &'a Value,
    pub plan: &'a Plan,
}

impl Told<'_> {
    fn input(&self) -> HookInput {
        HookInput {
            tool_name: Some(self.tool.to_owned()),
            tool_input: Some(self.args.clone()),
            file_path: self.plan.touches.first().map(|touch| touch.path.clone()),
            command: self.plan.command.clone(),
            ..HookInput::default()
        }
    }
}

impl Engine {
    /// Fires the hooks of `event` and tells what each did.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    pub async fn fire(
        &self,
        event: HookEvent,
        input: HookInput,
        cancel: &CancellationToken,
    ) -> Result<HookOutcome, EmitError> {
        if self.options.dry_run || !self.hooks.has(event) {
            return Ok(HookOutcome::default());
        }
        let outcome = self.hooks.fire(event, input, cancel).await;
        for run in &outcome.runs {
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

    /// The hooks before a call.
    pub(super) async fn fire_before(
        &self,
        told: Told<'_>,
        cancel: &CancellationToken,
    ) -> Result<HookOutcome, EmitError> {
        self.fire(HookEvent::PreToolUse, told.input(), cancel).await
    }

    /// The hooks after a call; what they say is appended to the output, and what they changed is shown.
    pub(super) async fn fire_after(
        &self,
        told: Told<'_>,
        output: &mut ToolOutput,
        cancel: &CancellationToken,
    ) -> Result<(), EmitError> {
        let events = [HookEvent::PostToolUse, HookEvent::OnError, HookEvent::PostEdit];
        if !events.into_iter().any(|event| self.hooks.has(event)) {
            return Ok(());
        }
        let edited = self.edited(output);
        let input = HookInput {
            tool_output: Some(output.text.clone()),
            tool_success: Some(!output.is_error),
            ..told.input()
        };
        let mut said = Vec::new();
        if output.is_error {
            said.push(self.fire(HookEvent::OnError, input.clone(), cancel).await?);
        }
        said.push(self.fire(HookEvent::PostToolUse, input.clone(), cancel).await?);
        for (path, _) in &edited {
            let input = HookInput { file_path: Some(path.clone()), ..input.clone() };
            said.push(self.fire(HookEvent::PostEdit, input, cancel).await?);
        }
        for outcome in said {
            for text in outcome.context.into_iter().chain(outcome.block) {
                append(&mut output.text, &text);
            }
        }
        self.show_changes_by_hooks(&edited, output);
        Ok(())
    }

    /// The files a call changed, with their content as the call left it.
    fn edited(&self, output: &mut ToolOutput) -> Vec<(String, String)> {
        let paths = output.changed.iter().filter(|change| change.action != ChangeAction::Deleted);
        let edited: Vec<_> = paths
            .take(MAX_EDITED_FILES)
            .filter_map(|change| Some((change.path.clone(), self.content(&change.path)?)))
            .collect();
        if output.changed.len() > MAX_EDITED_FILES {
            let text = format!("[edit hooks ran for the first {MAX_EDITED_FILES} files only]");
            append(&mut output.text, &text);
        }
        edited
    }

    fn content(&self, path: &str) -> Option<String> {
        let path = self.workspace.path(path).ok()?;
        let content = self.workspace.read(&path, MAX_COMPARED_BYTES).ok()?;
        String::from_utf8(content.bytes).ok()
    }

    /// A hook may reformat what was written; the model is shown how, so that its next edit fits.
    fn show_changes_by_hooks(&self, edited: &[(String, String)], output: &mut ToolOutput) {
        for (path, before) in edited {
            let Some(after) = self.content(path).filter(|after| after != before) else { continue };
            let hash = crate::workspace::file::hash(after.as_bytes());
            append(
                &mut output.text,
                &format!("A hook changed {path}:\n{}", diff::unified(path, before, &after)),
            );
            output.changed.push(Change {
                path: path.clone(),
                action: ChangeAction::Modified,
                before: Some(crate::workspace::file::hash(before.as_bytes())),
                after: Some(hash.clone()),
            });
            // A diff is not the file: what the model had not seen before stays unseen.
            if output.seen.iter().any(|seen| seen.path == *path) {
                output.seen.push(Seen { path: path.clone(), hash });
            }
        }
    }
}

/// Adds a paragraph to what the model reads.
pub(super) fn append(text: &mut String, paragraph: &str) {
    text.push_str("\n\n");
    text.push_str(paragraph.trim_end());
}
