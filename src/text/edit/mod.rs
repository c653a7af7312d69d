//! Replaces unique passages of a text and leaves every other byte as it is.

pub mod error;
mod find;
mod nearest;
mod rewrite;

use crate::text::lines::line_number_at;
use crate::text::match_level::{FoldedText, MatchLevel};
use crate::text::placeholder::find_placeholder;
use error::EditError;
use find::{Match, MatchError, find, occurrences};
use std::ops::Range;

/// Times as many bytes as were looked for, with [`MATCH_MARGIN`] on top, that a passage may have which is not exactly
/// what was looked for: white space that nobody wrote could otherwise be of any length.
const MATCH_FACTOR: usize = 4;

/// Bytes, for short passages that are deeply indented.
const MATCH_MARGIN: usize = 1000;

/// One replacement: a passage and what it becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replacement<'a> {
    /// The passage; must occur once.
    pub old: &'a str,
    /// What it becomes.
    pub new: &'a str,
}

/// A text after its edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The new text.
    pub text: String,
    /// How the passage of each edit was found, in their order.
    pub match_levels: Vec<MatchLevel>,
}

/// A passage and its new text.
struct ResolvedEdit {
    number: usize,
    range: Range<usize>,
    new: String,
    level: MatchLevel,
}

/// `text` with the only occurrence of each passage replaced; `path` is named in errors. All passages are those of `text`,
/// whatever the other replacements are.
///
/// # Errors
/// When a passage is empty, equal to what it becomes, absent, not unique or part of another's, or a new text leaves
/// something out; nothing is replaced then.
pub fn replace(path: &str, text: &str, edits: &[Replacement<'_>]) -> Result<Edited, EditError> {
    let searched = FoldedText::new(text);
    let mut changes = Vec::with_capacity(edits.len());
    for (number, edit) in (1..).zip(edits) {
        let change = change(path, &searched, number, *edit);
        changes.push(change.map_err(|error| match edits.len() {
            1 => error,
            of => EditError::InEdit { number, of, error: Box::new(error) },
        })?);
    }
    let match_levels = changes.iter().map(|change| change.level).collect();
    changes.sort_by_key(|change| (change.range.start, change.range.end));
    for pair in changes.windows(2) {
        if let [first, second] = pair
            && second.range.start < first.range.end
        {
            let (first, second) = (first.number, second.number);
            return Err(EditError::Overlap { path: path.to_owned(), first, second });
        }
    }
    if let Some(line) = find_placeholder(edits.iter().flat_map(|edit| edit.new.lines()), text) {
        return Err(EditError::Placeholder(line.to_owned()));
    }
    let text = splice(text, &changes);
    Ok(Edited { text, match_levels })
}

fn change(
    path: &str,
    searched: &FoldedText<'_>,
    number: usize,
    edit: Replacement<'_>,
) -> Result<ResolvedEdit, EditError> {
    let (text, Replacement { old, new }) = (searched.text, edit);
    if old.is_empty() {
        return Err(EditError::EmptyOldText);
    }
    if old == new {
        return Err(EditError::NoChange);
    }
    let found = find(searched, old).map_err(|miss| match_error(path, text, edit, miss))?;
    let (wanted, length) = (old.len(), found.range.len());
    if length > wanted.saturating_mul(MATCH_FACTOR).saturating_add(MATCH_MARGIN) {
        let line = line_number_at(text, found.range.start);
        return Err(EditError::MatchTooLong { path: path.to_owned(), wanted, found: length, line });
    }
    let new = rewrite::rewrite_passage(text, &found, old, new)
        .ok_or_else(|| match_error(path, text, edit, MatchError::Absent))?;
    let Match { range, level, .. } = found;
    if text.get(range.clone()) == Some(new.as_str()) {
        return Err(EditError::NoChange);
    }
    Ok(ResolvedEdit { number, range, new, level })
}

fn match_error(path: &str, text: &str, edit: Replacement<'_>, miss: MatchError) -> EditError {
    let path = path.to_owned();
    match miss {
        MatchError::Ambiguous { level, count, lines } => EditError::NotUnique { path, level, count, lines },
        MatchError::Absent => {
            let hint = nearest::nearest(text, edit.old);
            match occurrences(text, edit.new).as_slice() {
                [at] if !edit.new.trim().is_empty() => {
                    EditError::AlreadyApplied { path, line: line_number_at(text, *at), hint }
                }
                _ => EditError::NotFound { path, hint },
            }
        }
    }
}

/// `text` with changes that are in order and do not overlap.
fn splice(text: &str, changes: &[ResolvedEdit]) -> String {
    let grown: usize = changes.iter().map(|change| change.new.len()).sum();
    let mut out = String::with_capacity(text.len() + grown);
    let mut from = 0;
    for ResolvedEdit { range, new, .. } in changes {
        out.push_str(text.get(from..range.start).unwrap_or_default());
        out.push_str(new);
        from = range.end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests;
