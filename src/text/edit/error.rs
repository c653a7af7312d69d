//! Errors of text edits, with messages for the model.

use crate::edit::find::MAX_COUNT;
use crate::lines::quoted;
use crate::match_level::MatchLevel;

/// Reason why a text was not edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The searched passage is empty.
    #[error(
        "old_str is empty. To add text at the end use write_file with mode append; to insert lines use apply_patch"
    )]
    EmptyOldText,
    /// Old and new text are the same.
    #[error("old_str and new_str are the same, so nothing would change")]
    NoChange,
    /// The passage does not occur.
    #[error("old_str not found{}. Check spaces, indentation, and line breaks.{}", in_file(.path), near(.hint.as_ref()))]
    NotFound {
        /// File name for the message; empty when unknown.
        path: String,
        /// Position of a similar passage and the first difference.
        hint: Option<String>,
    },
    /// The passage does not occur, but the new text does.
    #[error(
        "old_str not found{}, but new_str is in line {line}: this edit seems to be already applied. Read the lines before you try again.{}",
        in_file(.path), near(.hint.as_ref())
    )]
    AlreadyApplied {
        /// File name for the message; empty when unknown.
        path: String,
        /// First line of the new text, counted from 1.
        line: usize,
        /// Position of a passage similar to the old one and the first difference.
        hint: Option<String>,
    },
    /// The passage occurs more than once.
    #[error("old_str {} {} times{} (lines {}). Add more context lines to make it unique.", appears(*.level), at_least(*.count), in_file(.path), listed(.lines, *.count))]
    NotUnique {
        /// File name for the message; empty when unknown.
        path: String,
        /// Level on which the passage was found.
        level: MatchLevel,
        /// Number of occurrences, at most 1000.
        count: usize,
        /// First lines of the first occurrences, counted from 1.
        lines: Vec<usize>,
    },
    /// The matched passage is much longer than the searched one.
    #[error(
        "old_str has {wanted} bytes, but the passage that it would match{} has {found} (line {line}). Give the passage exactly as it is",
        in_file(.path)
    )]
    MatchTooLong {
        /// File name for the message; empty when unknown.
        path: String,
        /// Bytes of the searched passage.
        wanted: usize,
        /// Bytes of the matched passage.
        found: usize,
        /// First line of the matched passage, counted from 1.
        line: usize,
    },
    /// A line of the new text is a placeholder for omitted code.
    #[error(
        "new_str leaves code out: the line {} would be written to the file literally. Write every line that the file must contain, or replace a smaller passage",
        quoted(.0)
    )]
    Placeholder(String),
    /// Two replacements overlap.
    #[error("edits {first} and {second} overlap{}: combine them into one edit", in_file(.path))]
    Overlap {
        /// File name for the message; empty when unknown.
        path: String,
        /// Number of the edit that starts first, counted from 1.
        first: usize,
        /// Number of the other edit.
        second: usize,
    },
    /// One of several replacements failed, so none was made.
    #[error("edit {number} of {of} failed, so none was made: {error}")]
    InEdit {
        /// Number of the edit, counted from 1.
        number: usize,
        /// Number of edits.
        of: usize,
        /// Error of the edit.
        error: Box<EditError>,
    },
}

fn in_file(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" in {path}") }
}

fn near(hint: Option<&String>) -> String {
    hint.map_or_else(String::new, |hint| format!(" {hint}"))
}

fn appears(level: MatchLevel) -> String {
    match level.difference() {
        None => "appears".to_owned(),
        Some(allowance) => format!("does not appear as it is written; {allowance} it appears"),
    }
}

fn at_least(count: usize) -> String {
    if count >= MAX_COUNT { format!("at least {count}") } else { count.to_string() }
}

fn listed(lines: &[usize], count: usize) -> String {
    let names: Vec<String> = lines.iter().map(usize::to_string).collect();
    let more = if count > lines.len() { ", ..." } else { "" };
    format!("{}{more}", names.join(", "))
}
