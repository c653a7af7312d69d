//! Keeps the results of calls for later sessions (`tools.keep_results`).

use crate::core::message::ToolCall;
use crate::engine::Engine;
use crate::engine::call::PlannedCall;
use crate::journal::kept_results::{FinishedCall, MAX_RESULT_BYTES};
use crate::messages;
use crate::runtime::emitter::EmitError;
use crate::tools::outputs::Outputs;
use crate::tools::{CommandStatus, Plan, ToolOutput};
use std::io::Read;

impl Engine {
    /// Keeps the result `text` of a call that succeeded and changed nothing, if the results of its tool are kept.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    pub(super) fn keep_result(
        &self,
        call: &ToolCall,
        ready: &PlannedCall<'_>,
        output: &ToolOutput,
        text: &str,
    ) -> Result<(), EmitError> {
        let is_complete = matches!(output.command_outcome, None | Some(CommandStatus::Succeeded));
        let may_keep = is_complete && !output.is_error && output.changed.is_empty();
        let Some(kept) = self.outputs.kept.as_ref().filter(|kept| may_keep && kept.keeps(&call.name)) else {
            return Ok(());
        };
        let named = ready.plan.touched_files.iter().map(|touch| touch.path.clone());
        let seen = output.seen.iter().map(|seen| seen.path.clone());
        let finished = FinishedCall {
            tool: &call.name,
            arguments: &ready.args,
            summary: &self.emitter.redactor().text(&ready.plan.summary),
            paths: named.chain(seen).chain(self.files_in_command(&ready.plan)).collect(),
        };
        let full_text = |name: &str| self.full_text(&call.id, name, text);
        match kept.keep(&finished, &self.workspace, full_text) {
            Ok(()) => Ok(()),
            Err(error) => self.warn(messages::result_not_kept(&error)),
        }
    }

    /// Returns the words of a command that are paths of files in the workspace.
    fn files_in_command(&self, plan: &Plan) -> Vec<String> {
        let words = plan.command.as_deref().and_then(shlex::split).unwrap_or_default();
        let words = words.iter().map(|word| word.rsplit('=').next().unwrap_or(word));
        let is_file = |path: &String| {
            let path = self.workspace.path(path);
            path.is_ok_and(|path| self.workspace.open_file(&path).is_ok())
        };
        words.map(|word| plan.path_from_root(word)).filter(is_file).collect()
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
