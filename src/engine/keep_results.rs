//! Keeps the results of calls for later sessions (`tools.keep_results`).

use crate::Engine;
use crate::call_plan::PlannedCall;
use crate::command_class::{CommandClass, classify};
use agent_core::message::ToolCall;
use agent_journal::kept_results::{FinishedCall, MAX_RESULT_BYTES};
use agent_messages as messages;
use agent_runtime::emitter::EmitError;
use agent_tools::outputs::{Outputs, is_stored};
use agent_tools::{CommandStatus, Plan, ToolOutput};
use serde_json::Value;
use std::io::Read;

/// Program that changes the repository.
const GIT: &str = "git";

/// Maximum number of names in the text of a command that are looked up.
const MAX_NAMED: usize = 500;

impl Engine {
    /// Keeps the result `text` of a call that succeeded and changed nothing, if the results of its tool are kept.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    pub(super) fn keep_result(
        &self,
        call: &ToolCall,
        planned: &PlannedCall<'_>,
        output: &ToolOutput,
        text: &str,
    ) -> Result<(), EmitError> {
        let is_complete = matches!(output.command_outcome, None | Some(CommandStatus::Succeeded));
        let has_changed =
            output.is_unlisted || !output.changed.is_empty() || self.may_change_unseen(&planned.plan);
        // The result of reading a stored one would outlive it.
        let is_copy = planned.args.get("path").and_then(Value::as_str).is_some_and(is_stored);
        let may_keep =
            is_complete && !output.is_error && !has_changed && !is_copy && output.images.is_empty();
        let Some(kept) = self.outputs.kept.as_ref().filter(|kept| may_keep && kept.keeps(&call.name)) else {
            return Ok(());
        };
        let named = planned.plan.touched_files.iter().map(|touch| touch.path.clone());
        let finished = FinishedCall {
            tool: &call.name,
            arguments: &planned.args,
            summary: &self.emitter.redactor().text(&planned.plan.summary),
            paths: named.chain(self.files_in_command(&planned.plan)).collect(),
            seen: &output.seen,
        };
        let full_text = |name: &str| self.full_text(&call.id, name, text);
        match kept.keep(&finished, &self.workspace, full_text) {
            Ok(()) => Ok(()),
            Err(error) => self.warn(messages::result_not_kept(&error)),
        }
    }

    /// Checks whether a command may change what the list of changes does not contain, such as the repository.
    fn may_change_unseen(&self, plan: &Plan) -> bool {
        let Some(command) = plan.command.as_deref() else { return false };
        let class = classify(command, &self.commands).class;
        // The list of changes leaves the repository out.
        class > CommandClass::Confine || (class > CommandClass::Safe && command.contains(GIT))
    }

    /// Returns the files of the workspace that the text of a command names, also below a directory that it names.
    fn files_in_command(&self, plan: &Plan) -> Vec<String> {
        let text = plan.command.as_deref().unwrap_or_default();
        let is_end = |c: char| c.is_whitespace() || ";|&<>(){}\"'`$=,:".contains(c);
        let words: Vec<&str> = text.split(is_end).filter(|word| !word.is_empty()).collect();
        let path = |word: &str| plan.path_from_root(word);
        let is_directory =
            |name: &String| self.workspace.path(name).is_ok_and(|it| self.workspace.is_directory(&it));
        let directories: Vec<String> = words.iter().map(|word| path(word)).filter(is_directory).collect();
        let below = |word: &str| {
            directories.iter().map(|directory| format!("{directory}/{word}")).collect::<Vec<_>>()
        };
        let is_file =
            |name: &String| self.workspace.path(name).is_ok_and(|it| self.workspace.open_file(&it).is_ok());
        let named = words.iter().flat_map(|word| below(word).into_iter().chain([path(word)]));
        named.take(MAX_NAMED).filter(is_file).collect()
    }

    /// Returns the text of a result, with the stored output of the call after it, which is then found below `name`.
    fn full_text(&self, call_id: &str, name: &str, text: &str) -> Vec<u8> {
        let Ok(file) = self.outputs.open(&Outputs::name(call_id)) else { return text.as_bytes().to_vec() };
        let text = text.replace(&Outputs::name(call_id), name);
        let mut all = format!("{text}\n\n{}\n", messages::FULL_OUTPUT).into_bytes();
        match file.take(MAX_RESULT_BYTES as u64).read_to_end(&mut all) {
            Ok(_) => all,
            Err(error) => format!("{text}\n{error}").into_bytes(),
        }
    }
}
