//! Why a patch was not read or not applied, in words for the model.

use crate::text::lines::{QUOTE_CHARS, one_line, quoted};

/// Lines named when a hunk fits in more than one place.
const MAX_LISTED: usize = 5;

/// Why a patch was not applied; the text is untouched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// There is nothing in it.
    #[error("the patch is empty")]
    Empty,
    /// It has no hunk.
    #[error("the patch has no hunks: each starts with a line like `@@ -10,3 +10,4 @@`, or a bare `@@`")]
    NoHunks,
    /// A line of a hunk starts with none of the four signs.
    #[error(
        "hunk {hunk}: the line {line} starts with none of ' ' (context), '-' (removed), '+' (added); context lines need a leading space"
    )]
    BadLine {
        /// Counted from 1.
        hunk: usize,
        /// The line, quoted.
        line: String,
    },
    /// A hunk header cannot be read.
    #[error("hunk {hunk}: the header {line} is not like `@@ -10,3 +10,4 @@`")]
    BadHeader {
        /// Counted from 1.
        hunk: usize,
        /// The line, quoted.
        line: String,
    },
    /// It goes on with another file.
    #[error("the patch changes more than one file: leave out `path` and name each file in the patch")]
    ManyFiles,
    /// It names more files than one call may change.
    #[error("the patch changes more than {0} files: make several calls")]
    TooManyFiles(usize),
    /// It does not say which file it is for.
    #[error(
        "the patch does not say which file it is for: give `path`, or `--- a/FILE` and `+++ b/FILE` above the hunks, or `*** Update File: FILE`"
    )]
    NoPath,
    /// It names another file than the call.
    #[error("the patch is for {}, not for {}: leave out `path`", one_line(.named, QUOTE_CHARS), one_line(.path, QUOTE_CHARS))]
    OtherPath {
        /// What the patch names.
        named: String,
        /// What the call names.
        path: String,
    },
    /// A part of a git diff without text.
    #[error(
        "the part {} has no hunks: modes, binary files and renames without change are not for apply_patch",
        quoted(.0)
    )]
    NoText(String),
    /// A hunk changes nothing.
    #[error("hunk {hunk} has no added or removed line")]
    NoChange {
        /// Counted from 1.
        hunk: usize,
    },
    /// The file is as the patch would make it.
    #[error("it changes nothing: removed and added lines are the same")]
    Unchanged,
    /// A file that is to be made has lines that would have to be there already.
    #[error("a new file has added lines only")]
    AddWithContext,
    /// A file that is to go has lines that the patch does not remove.
    #[error("a file that is deleted has removed lines only, and all of them")]
    PartialDelete,
    /// A line of an envelope that belongs to nothing.
    #[error(
        "line {number} of the patch, {line}, is not understood here: sections start with `*** Add File: `, `*** Update File: ` or `*** Delete File: `, hunks with `@@`, and the lines of a new file with `+`"
    )]
    UnexpectedLine {
        /// Counted from 1, from `*** Begin Patch`.
        number: usize,
        /// The line, quoted.
        line: String,
    },
    /// An envelope without its last line.
    #[error("the patch does not end with `*** End Patch`: it seems to be cut off, so none of it was applied")]
    MissingEnd,
    /// The context is not in the file.
    #[error(
        "hunk {hunk} does not fit at line {line}: {} there. The context must be the file's exact text: read the lines and make the patch again",
        mismatch(.expected, .found.as_deref())
    )]
    Mismatch {
        /// Counted from 1.
        hunk: usize,
        /// The first line that differs, counted from 1 in the file as the patch found it.
        line: usize,
        /// What the hunk expects.
        expected: String,
        /// What the file has; `None` past its end.
        found: Option<String>,
    },
    /// What the hunk would make is there, and what it would change is not.
    #[error(
        "hunk {hunk} does not fit, but what it would make stands at line {line}: it seems to be already applied. Read the lines before you try again"
    )]
    AlreadyApplied {
        /// Counted from 1.
        hunk: usize,
        /// Where, counted from 1.
        line: usize,
    },
    /// A line of its `@@` headers is not in the file.
    #[error("hunk {hunk}: the line {} of its `@@` is not in the file", quoted(.line))]
    NoScope {
        /// Counted from 1.
        hunk: usize,
        /// The line.
        line: String,
    },
    /// It says that it is at the end of the file, and is not.
    #[error("hunk {hunk} is not at the end of the file, as its `*** End of File` says")]
    NotAtEnd {
        /// Counted from 1.
        hunk: usize,
    },
    /// It adds lines, and nothing says where.
    #[error("hunk {hunk} does not say where its lines go: give it context lines")]
    NoContext {
        /// Counted from 1.
        hunk: usize,
    },
    /// The context is in several places and not where the header says.
    #[error("hunk {hunk} fits at lines {}: give the right line number or more context", listed(.lines))]
    Ambiguous {
        /// Counted from 1.
        hunk: usize,
        /// Where it fits.
        lines: Vec<usize>,
    },
    /// An added line stands for code that was left out.
    #[error(
        "it leaves code out: the line {} would stand in the file as it is. Write every line that is to be there",
        quoted(.0)
    )]
    Placeholder(String),
    /// Too many hunks had to be looked for.
    #[error(
        "hunk {hunk} is not where its line number says, as too many before it: give the right line numbers"
    )]
    SearchLimit {
        /// Counted from 1.
        hunk: usize,
    },
    /// What is wrong with the part for one of several files.
    #[error("{}: {error}", one_line(.path, QUOTE_CHARS))]
    InFile {
        /// The file, as the patch names it.
        path: String,
        /// What is wrong.
        error: Box<PatchError>,
    },
}

impl PatchError {
    /// The same, said of the part for `path`.
    #[must_use]
    pub fn in_file(self, path: &str) -> Self {
        Self::InFile { path: path.to_owned(), error: Box::new(self) }
    }
}

fn mismatch(expected: &str, found: Option<&str>) -> String {
    match found {
        Some(found) => format!("expected {}, found {}", quoted(expected), quoted(found)),
        None => format!("expected {}, but the file ends", quoted(expected)),
    }
}

fn listed(lines: &[usize]) -> String {
    lines.iter().take(MAX_LISTED).map(usize::to_string).collect::<Vec<_>>().join(", ")
}
