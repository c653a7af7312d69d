//! Errors of patches, with messages for the model.

use crate::lines::{QUOTE_CHARS, one_line, quoted};

/// Maximum number of lines listed for an ambiguous hunk.
const MAX_LISTED: usize = 5;

/// Reason why a patch was not parsed or applied; the text is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch is empty.
    #[error("the patch is empty")]
    Empty,
    /// The patch has no hunk.
    #[error("the patch has no hunks: each starts with a line like `@@ -10,3 +10,4 @@`, or a bare `@@`")]
    NoHunks,
    /// A line of a hunk starts with none of the four signs.
    #[error(
        "hunk {hunk}: the line {line} starts with none of ' ' (context), '-' (removed), '+' (added); context lines need a leading space"
    )]
    BadLine {
        /// Number of the hunk, counted from 1.
        hunk: usize,
        /// Quoted line.
        line: String,
    },
    /// A hunk header cannot be read.
    #[error("hunk {hunk}: the header {line} is not like `@@ -10,3 +10,4 @@`")]
    BadHeader {
        /// Number of the hunk, counted from 1.
        hunk: usize,
        /// Quoted line.
        line: String,
    },
    /// The patch contains another file.
    #[error("the patch changes more than one file: leave out `path` and name each file in the patch")]
    ManyFiles,
    /// The patch changes more files than one call may change.
    #[error("the patch changes more than {0} files: make several calls")]
    TooManyFiles(usize),
    /// The patch does not name its file.
    #[error(
        "the patch does not name its file: give `path`, or `--- a/FILE` and `+++ b/FILE` above the hunks, or `*** Update File: FILE`"
    )]
    NoPath,
    /// The patch names a different file than the call.
    #[error("the patch is for {}, not for {}: leave out `path`", one_line(.named, QUOTE_CHARS), one_line(.path, QUOTE_CHARS))]
    OtherPath {
        /// Path in the patch.
        named: String,
        /// Path in the call.
        path: String,
    },
    /// A part of a git diff without a text change.
    #[error(
        "the part {} has no hunks: modes, binary files and renames without change are not for apply_patch",
        quoted(.0)
    )]
    NoText(String),
    /// A hunk changes nothing.
    #[error("hunk {hunk} has no added or removed line")]
    NoChange {
        /// Number of the hunk, counted from 1.
        hunk: usize,
    },
    /// The patched file is equal to the old one.
    #[error("it changes nothing: removed and added lines are the same")]
    Unchanged,
    /// A new file has context or removed lines.
    #[error("the hunk of a new file has added lines only")]
    AddWithContext,
    /// The patch of a deleted file does not remove all lines.
    #[error("the hunks of a deleted file have removed lines only, and must remove all lines")]
    PartialDelete,
    /// An envelope has a line outside of any section.
    #[error(
        "line {number} of the patch, {line}, is not expected here: sections start with `*** Add File: `, `*** Update File: ` or `*** Delete File: `, hunks with `@@`, and the lines of a new file with `+`"
    )]
    UnexpectedLine {
        /// Line number, counted from 1 at `*** Begin Patch`.
        number: usize,
        /// Quoted line.
        line: String,
    },
    /// An envelope has no last line.
    #[error("the patch does not end with `*** End Patch`: it seems to be cut off, so none of it was applied")]
    MissingEnd,
    /// The context is not in the file.
    #[error(
        "hunk {hunk} does not fit at line {line}: {} there. The context must be the file's exact text: read the lines and make the patch again",
        mismatch(.expected, .found.as_deref())
    )]
    Mismatch {
        /// Number of the hunk, counted from 1.
        hunk: usize,
        /// The first line that differs, counted from 1 in the file as the patch found it.
        line: usize,
        /// Line in the hunk.
        expected: String,
        /// Line in the file; `None` past its end.
        found: Option<String>,
    },
    /// The file contains the new lines of the hunk, but not the old ones.
    #[error(
        "hunk {hunk} does not fit, but its new lines are at line {line}: it seems to be already applied. Read the lines before you try again"
    )]
    AlreadyApplied {
        /// Number of the hunk, counted from 1.
        hunk: usize,
        /// First line of the new lines, counted from 1.
        line: usize,
    },
    /// A line of the hunk's `@@` headers is not in the file.
    #[error("hunk {hunk}: the line {} of its `@@` is not in the file", quoted(.line))]
    NoScope {
        /// Number of the hunk, counted from 1.
        hunk: usize,
        /// Line of the header.
        line: String,
    },
    /// A hunk with `*** End of File` is not at the end of the file.
    #[error("hunk {hunk} has `*** End of File`, but its lines are not at the end of the file")]
    NotAtEnd {
        /// Number of the hunk, counted from 1.
        hunk: usize,
    },
    /// A hunk adds lines without a position.
    #[error("hunk {hunk} has no position for its lines: add context lines")]
    NoContext {
        /// Number of the hunk, counted from 1.
        hunk: usize,
    },
    /// The context occurs in several positions, and not in the one of the header.
    #[error("hunk {hunk} fits at lines {}: give the right line number or more context", listed(.lines))]
    Ambiguous {
        /// Number of the hunk, counted from 1.
        hunk: usize,
        /// Lines where the hunk fits.
        lines: Vec<usize>,
    },
    /// An added line is a placeholder for omitted code.
    #[error(
        "it leaves code out: the line {} would be written to the file literally. Write every line that the file must contain",
        quoted(.0)
    )]
    Placeholder(String),
    /// Too many hunks have wrong line numbers.
    #[error(
        "the line number of hunk {hunk} is wrong, like those of too many hunks before it: give the right line numbers"
    )]
    SearchLimit {
        /// Number of the hunk, counted from 1.
        hunk: usize,
    },
    /// Error in the part for one of several files.
    #[error("{}: {error}", one_line(.path, QUOTE_CHARS))]
    InFile {
        /// Path in the patch.
        path: String,
        /// Error of that part.
        error: Box<PatchError>,
    },
}

impl PatchError {
    /// Adds the `path` of the file to an error.
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
