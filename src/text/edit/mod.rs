//! Replaces unique passages of a text and leaves every other byte as it is.

pub mod error;
mod find;
mod nearest;
mod rewrite;

use crate::text::lines::number_at;
use crate::text::placeholder::placeholder;
use crate::text::rung::{Folds, Rung};
use error::EditError;
use find::{Found, Miss, find, occurrences};
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
    pub rungs: Vec<Rung>,
}

/// A passage and its new text.
struct Change {
    number: usize,
    range: Range<usize>,
    new: String,
    rung: Rung,
}

/// `text` with the only occurrence of each passage replaced; `path` is named in errors. All passages are those of `text`,
/// whatever the other replacements are.
///
/// # Errors
/// When a passage is empty, equal to what it becomes, absent, not unique or part of another's, or a new text leaves
/// something out; nothing is replaced then.
pub fn replace(path: &str, text: &str, edits: &[Replacement<'_>]) -> Result<Edited, EditError> {
    let searched = Folds::new(text);
    let mut changes = Vec::with_capacity(edits.len());
    for (number, edit) in (1..).zip(edits) {
        let change = change(path, &searched, number, *edit);
        changes.push(change.map_err(|error| match edits.len() {
            1 => error,
            of => EditError::OneOf { number, of, error: Box::new(error) },
        })?);
    }
    let rungs = changes.iter().map(|change| change.rung).collect();
    changes.sort_by_key(|change| (change.range.start, change.range.end));
    for pair in changes.windows(2) {
        if let [first, second] = pair
            && second.range.start < first.range.end
        {
            let (first, second) = (first.number, second.number);
            return Err(EditError::Overlap { path: path.to_owned(), first, second });
        }
    }
    if let Some(line) = placeholder(edits.iter().flat_map(|edit| edit.new.lines()), text) {
        return Err(EditError::Placeholder(line.to_owned()));
    }
    let text = spliced(text, &changes);
    Ok(Edited { text, rungs })
}

fn change(
    path: &str,
    searched: &Folds<'_>,
    number: usize,
    edit: Replacement<'_>,
) -> Result<Change, EditError> {
    let (text, Replacement { old, new }) = (searched.text, edit);
    if old.is_empty() {
        return Err(EditError::EmptyOld);
    }
    if old == new {
        return Err(EditError::Same);
    }
    let found = find(searched, old).map_err(|miss| missed(path, text, edit, miss))?;
    let (wanted, length) = (old.len(), found.range.len());
    if length > wanted.saturating_mul(MATCH_FACTOR).saturating_add(MATCH_MARGIN) {
        let line = number_at(text, found.range.start);
        return Err(EditError::TooMuch { path: path.to_owned(), wanted, found: length, line });
    }
    let new =
        rewrite::rewritten(text, &found, old, new).ok_or_else(|| missed(path, text, edit, Miss::Absent))?;
    let Found { range, rung, .. } = found;
    if text.get(range.clone()) == Some(new.as_str()) {
        return Err(EditError::Same);
    }
    Ok(Change { number, range, new, rung })
}

fn missed(path: &str, text: &str, edit: Replacement<'_>, miss: Miss) -> EditError {
    let path = path.to_owned();
    match miss {
        Miss::Several { rung, count, lines } => EditError::NotUnique { path, rung, count, lines },
        Miss::Absent => {
            let hint = nearest::nearest(text, edit.old);
            match occurrences(text, edit.new).as_slice() {
                [at] if !edit.new.trim().is_empty() => {
                    EditError::AlreadyApplied { path, line: number_at(text, *at), hint }
                }
                _ => EditError::NotFound { path, hint },
            }
        }
    }
}

/// `text` with changes that are in order and do not overlap.
fn spliced(text: &str, changes: &[Change]) -> String {
    let grown: usize = changes.iter().map(|change| change.new.len()).sum();
    let mut out = String::with_capacity(text.len() + grown);
    let mut from = 0;
    for Change { range, new, .. } in changes {
        out.push_str(text.get(from..range.start).unwrap_or_default());
        out.push_str(new);
        from = range.end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests;
