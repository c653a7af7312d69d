//! Replaces unique passages of a text and leaves every other byte as it is.

pub mod error;
mod find;
mod nearest;
mod rewrite;

use crate::lines::line_number_at;
use crate::match_level::{FoldedText, MatchLevel};
use crate::placeholder::find_placeholder;
use error::EditError;
use find::{Match, MatchError, find, occurrences};
use std::ops::Range;

/// Maximum length of an inexact match, as a multiple of the searched length, plus [`MATCH_MARGIN`]. Without a limit, a match
/// could contain any amount of white space.
const MATCH_FACTOR: usize = 4;

/// Additional bytes for short passages with deep indentation.
const MATCH_MARGIN: usize = 1000;

/// Replacement of a passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replacement<'a> {
    /// Passage to replace; must occur once.
    pub old: &'a str,
    /// New text.
    pub new: &'a str,
}

/// A text after its edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// New text.
    pub text: String,
    /// Match level of each edit, in order.
    pub match_levels: Vec<MatchLevel>,
}

/// Edit with the byte range of its passage and the final new text.
struct ResolvedEdit {
    number: usize,
    range: Range<usize>,
    new: String,
    level: MatchLevel,
}

/// Replaces the only occurrence of each passage in `text`; `path` is named in errors. All passages are searched in the
/// original `text`.
///
/// # Errors
/// When a passage is empty, equal to its new text, absent, not unique or overlaps another, or a new text contains a
/// placeholder; nothing is replaced then.
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

/// Applies changes to `text`; they must be in order and must not overlap.
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
