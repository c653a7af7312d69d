//! The instruction files of one session: their names, their bound, and the directories that calls have touched.

use agent_core::run_result::InstructionFile;
use agent_text::delimiter::Delimiter;
use agent_workspace::path::RelPath;
use agent_workspace::walk::NEVER_WALKED;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Files with instructions for agents; of each directory the first that has text is used.
pub const INSTRUCTION_FILES: [&str; 5] =
    [".agent.md", "AGENTS.override.md", "AGENTS.md", "CLAUDE.md", ".architect.md"];

/// Bytes of all instructions of a session. Codex has the same limit; more would bury the task.
pub const MAX_INSTRUCTION_BYTES: usize = 32 << 10;

/// Largest instruction file in bytes; the model receives less.
pub const MAX_INSTRUCTION_FILE_BYTES: u64 = 1 << 20;

/// Compares the text of the file at a path with that of earlier runs. Returns warnings too.
pub type CompareInstructions = Rc<dyn Fn(&str, &str) -> (InstructionFile, Vec<String>)>;

/// The instruction files of one session.
#[derive(Clone, Default)]
pub struct NestedInstructions {
    /// Absent where the files of directories are not used.
    compare: Option<CompareInstructions>,
    delimiter: Delimiter,
    /// Bytes of all instructions in the conversation.
    used: Cell<usize>,
    /// Bytes of those in the system message.
    used_at_start: Cell<usize>,
    /// Directories whose files are in the conversation, or that have none.
    known: RefCell<BTreeSet<RelPath>>,
    /// Directories that calls have touched since files were last added.
    touched: RefCell<BTreeSet<RelPath>>,
}

impl std::fmt::Debug for NestedInstructions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NestedInstructions").field("known", &self.known).finish_non_exhaustive()
    }
}

impl NestedInstructions {
    /// Creates the instructions of a session that has none yet.
    pub fn new(compare: CompareInstructions, delimiter: Delimiter) -> Self {
        Self { compare: Some(compare), delimiter, ..Self::default() }
    }

    /// Records that the session has the text of `file`.
    pub fn record(&self, file: &InstructionFile) {
        let bytes = usize::try_from(file.bytes).unwrap_or(usize::MAX);
        self.used.set(self.used.get().saturating_add(bytes));
        match file.path.rsplit_once('/') {
            Some((directory, _)) if file.is_nested() => {
                let parts: Vec<&str> = directory.split('/').collect();
                self.known.borrow_mut().insert(RelPath::from_parts(&parts));
            }
            _ => self.used_at_start.set(self.used_at_start.get().saturating_add(bytes)),
        }
    }

    /// Returns the instructions of a session that begins with the same system message.
    #[must_use]
    pub fn for_new_session(&self) -> Self {
        Self {
            used: self.used_at_start.clone(),
            known: RefCell::default(),
            touched: RefCell::default(),
            ..self.clone()
        }
    }

    /// Checks whether the files of directories are used.
    pub fn is_enabled(&self) -> bool {
        self.compare.is_some()
    }

    /// Returns the directories that calls have touched for the first time, outer directories first.
    pub fn take_touched(&self) -> Vec<RelPath> {
        let touched = self.touched.take().into_iter();
        touched.filter(|directory| self.known.borrow_mut().insert(directory.clone())).collect()
    }

    /// Returns the part of `text` for which there is room in the conversation.
    pub fn fitting<'a>(&self, text: &'a str) -> &'a str {
        fitting(text, self.used.get())
    }

    /// Returns `text` between the delimiters of the session.
    pub fn wrap(&self, text: &str) -> String {
        self.delimiter.wrap(text)
    }

    /// Compares the `text` of the file at `path` with that of earlier runs. `None` where the files are not used.
    pub fn compare(&self, path: &str, text: &str) -> Option<(InstructionFile, Vec<String>)> {
        self.compare.as_ref().map(|compare| compare(path, text))
    }

    /// Records that a call has touched `path`, a file or (`is_directory`) a directory.
    pub fn touch(&self, path: &RelPath, is_directory: bool) {
        let parts: Vec<&str> = path.parts().collect();
        let depth = parts.len().saturating_sub(usize::from(!is_directory));
        for end in 1..=depth {
            let Some(parts) = parts.get(..end) else { return };
            if parts.last().is_some_and(|name| NEVER_WALKED.contains(name)) {
                return;
            }
            let directory = RelPath::from_parts(parts);
            if !self.known.borrow().contains(&directory) {
                self.touched.borrow_mut().insert(directory);
            }
        }
    }
}

/// Returns the part of `text` that fits beside `used` bytes of other instructions.
pub fn fitting(text: &str, used: usize) -> &str {
    let room = MAX_INSTRUCTION_BYTES.saturating_sub(used);
    text.get(..text.floor_char_boundary(room)).unwrap_or(text)
}
