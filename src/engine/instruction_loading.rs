//! Adds the instruction files of directories below the workspace root to the conversation, when a file below them is first touched.

use crate::Engine;
use crate::call_plan::PlannedCall;
use crate::nested_instructions::{INSTRUCTION_FILES, MAX_INSTRUCTION_FILE_BYTES};
use agent_core::event::{Event, MessageOrigin};
use agent_core::run_result::InstructionFile;
use agent_messages as messages;
use agent_runtime::emitter::EmitError;
use agent_text::invisible;
use agent_tools::ToolOutput;
use agent_workspace::error::FileError;
use agent_workspace::path::RelPath;

impl Engine {
    /// Records the files that a call has read, changed or named, for [`Self::add_nested_instructions`].
    pub(super) fn touch_instructions(&self, planned: &PlannedCall<'_>, output: &ToolOutput) {
        if !self.instructions.is_enabled() || output.is_error {
            return;
        }
        let named = self.resolved(&planned.plan).touched_files.into_iter().map(|touch| touch.path);
        let changed = output.changed.iter().map(|change| change.path.clone());
        let seen = output.seen.iter().map(|seen| seen.path.clone());
        for path in named.chain(changed).chain(seen) {
            let Ok(path) = self.workspace.path(&path) else { continue };
            let path = self.workspace.resolve(&path).unwrap_or(path);
            self.instructions.touch(&path, self.workspace.is_directory(&path));
        }
    }

    /// Adds the instructions of the directories that calls have touched to the conversation, outer directories first.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    pub fn add_nested_instructions(&self) -> Result<(), EmitError> {
        let own = &self.instructions;
        for directory in own.take_touched() {
            let Some((path, text)) = self.instructions_of(&directory)? else { continue };
            let shown = own.fitting(text.trim());
            let body = own.wrap(&messages::cut_instructions(shown, text.trim().len(), Some(&path)));
            let note = invisible::note("these instructions", shown);
            let message = messages::nested_instructions(&path, directory.as_str(), &body, note);
            let Some((file, warnings)) = own.compare(&path, &text) else { continue };
            let file = InstructionFile { bytes: shown.len() as u64, ..file };
            own.record(&file);
            self.emitter.emit(Event::Instructions { file })?;
            self.emitter.emit(Event::user_message(message, MessageOrigin::Instructions))?;
            warnings.into_iter().try_for_each(|text| self.warn(text))?;
        }
        Ok(())
    }

    /// Returns the path and the text of the instructions of `directory`, and emits a notice about each file that is unusable.
    fn instructions_of(&self, directory: &RelPath) -> Result<Option<(String, String)>, EmitError> {
        for name in INSTRUCTION_FILES {
            let path = directory.join(name);
            let text = match self.workspace.read(&path, MAX_INSTRUCTION_FILE_BYTES) {
                Err(FileError::Missing(_)) => continue,
                Ok(content) => String::from_utf8(content.bytes).map_err(|_| "is not valid UTF-8".to_owned()),
                Err(error) => Err(error.to_string()),
            };
            match text {
                Ok(text) if text.trim().is_empty() => {}
                Ok(text) => return Ok(Some((path.as_str().to_owned(), text))),
                Err(problem) => {
                    self.warn(messages::instructions_unusable(path.as_str(), &problem))?;
                }
            }
        }
        Ok(None)
    }
}
