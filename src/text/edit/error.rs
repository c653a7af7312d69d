//! Why a text was not edited, in words for the model.

use crate::text::edit::find::MAX_COUNT;
use crate::text::lines::quoted;
use crate::text::match_level::MatchLevel;

/// Why a text was not edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// There is no passage to look for.
    #[error(
        "old_str is empty. To add text at the end use write_file with mode append; to insert lines use apply_patch"
    )]
    EmptyOldText,
    /// Old and new passage are the same.
    #[error("old_str and new_str are the same, so nothing would change")]
    NoChange,
    /// The passage does not occur.
    #[error("old_str not found{}. Check spaces, indentation, and line breaks.{}", in_file(.path), near(.hint.as_ref()))]
    NotFound {
        /// The file, for the message; empty when unknown.
        path: String,
        /// Where something similar is and how it differs.
        hint: Option<String>,
    },
    /// The passage does not occur, and what it was to become does.
    #[error(
        "old_str not found{}, but new_str stands in line {line}: this edit seems to be already applied. Read the lines before you try again.{}",
        in_file(.path), near(.hint.as_ref())
    )]
    AlreadyApplied {
        /// The file, for the message; empty when unknown.
        path: String,
        /// Where the new passage starts, counted from 1.
        line: usize,
        /// Where something like the old passage is, in case it is not, and how it differs.
        hint: Option<String>,
    },
    /// The passage occurs more than once.
    #[error("old_str {} {} times{} (lines {}). Add more context lines to make it unique.", appears(*.level), at_least(*.count), in_file(.path), listed(.lines, *.count))]
    NotUnique {
        /// The file, for the message; empty when unknown.
        path: String,
        /// How it was looked for.
        level: MatchLevel,
        /// How often, at most 1000.
        count: usize,
        /// Where the first ones start, counted from 1.
        lines: Vec<usize>,
    },
    /// What was found is much more than what was looked for.
    #[error(
        "old_str has {wanted} bytes, but the passage that it would match{} has {found} (line {line}). Give the passage exactly as it is",
        in_file(.path)
    )]
    MatchTooLong {
        /// The file, for the message; empty when unknown.
        path: String,
        /// Bytes looked for.
        wanted: usize,
        /// Bytes found.
        found: usize,
        /// Where, counted from 1.
        line: usize,
    },
    /// A line of the new text stands for code that was left out.
    #[error(
        "new_str leaves code out: the line {} would stand in the file as it is. Write every line that is to be there, or replace a smaller passage",
        quoted(.0)
    )]
    Placeholder(String),
    /// Two replacements want the same bytes.
    #[error("edits {first} and {second} overlap{}: make one edit of them", in_file(.path))]
    Overlap {
        /// The file, for the message; empty when unknown.
        path: String,
        /// The edit that begins first, counted from 1.
        first: usize,
        /// The other.
        second: usize,
    },
    /// One of several replacements cannot be made.
    #[error("edit {number} of {of}, and so none of them, can be made: {error}")]
    InEdit {
        /// Which, counted from 1.
        number: usize,
        /// How many there are.
        of: usize,
        /// Why.
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
