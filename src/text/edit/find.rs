//! Finds the unique passage of an edit on the first match level on which it occurs.

use crate::indent_shift::{IndentShift, find_with_shift};
use crate::lines::{body, line_number_at};
use crate::match_level::{FoldedText, MatchLevel};
use memchr::memmem::Finder;
use std::ops::Range;

/// Maximum number of occurrences counted for the message about a passage that is not unique.
pub const MAX_COUNT: usize = 1000;

/// Line numbers listed for a passage that occurs more than once.
const MAX_LISTED: usize = 10;

/// A matched passage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Byte range in the text.
    pub range: Range<usize>,
    /// Level of the match.
    pub level: MatchLevel,
    /// Indentation shift against the searched lines.
    pub shift: Option<IndentShift>,
}

/// Reason why no unique passage was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatchError {
    /// No occurrence.
    Absent,
    /// Several occurrences.
    Ambiguous {
        /// Level of the matches.
        level: MatchLevel,
        /// Number of occurrences, at most [`MAX_COUNT`].
        count: usize,
        /// First lines of the first occurrences, counted from 1.
        lines: Vec<usize>,
    },
}

/// Returns the only occurrence of `old`.
///
/// # Errors
/// When there is none, or more than one on the first level with an occurrence.
pub fn find(searched: &FoldedText<'_>, old: &str) -> Result<Match, MatchError> {
    let text = searched.text;
    // The model sees lines without their endings, so a `\n` in `old` also matches `\r\n`.
    let ignores_endings = old.contains('\n') && !old.contains('\r') && text.contains("\r\n");
    if !ignores_endings && let Some(start) = unique_occurrence(MatchLevel::Exact, text, old)? {
        return Ok(Match { range: start..start + old.len(), level: MatchLevel::Exact, shift: None });
    }
    for level in MatchLevel::FOLDS {
        let wanted = level.fold(old);
        let Some(start) = unique_occurrence(level, searched.at_level(level), &wanted)? else { continue };
        let range = level.unfold(text, start)..level.unfold(text, start + wanted.len());
        let level = if ignores_endings && level == MatchLevel::Endings { MatchLevel::Exact } else { level };
        return Ok(Match { range, level, shift: None });
    }
    find_shifted(searched, old)
}

fn unique_occurrence(level: MatchLevel, text: &str, old: &str) -> Result<Option<usize>, MatchError> {
    let found = occurrences(text, old);
    let level = if level == MatchLevel::Endings { MatchLevel::Exact } else { level };
    match found.as_slice() {
        [] => Ok(None),
        [start] => Ok(Some(*start)),
        _ => Err(MatchError::Ambiguous {
            level,
            count: found.len(),
            lines: found.iter().take(MAX_LISTED).map(|at| line_number_at(text, *at)).collect(),
        }),
    }
}

/// Finds whole lines with a uniform indentation shift.
fn find_shifted(searched: &FoldedText<'_>, old: &str) -> Result<Match, MatchError> {
    let fold = searched.at_level(MatchLevel::Punctuation);
    let wanted = MatchLevel::Indentation.fold(old);
    let have: Vec<&str> = fold.lines().collect();
    let want: Vec<&str> = wanted.lines().collect();
    let mut places = find_with_shift(&have, &want, 0, MAX_COUNT);
    if places.len() > 1 {
        let lines = places.iter().take(MAX_LISTED).map(|(at, _)| at + 1).collect();
        return Err(MatchError::Ambiguous { level: MatchLevel::Indentation, count: places.len(), lines });
    }
    let (at, shift) = places.pop().ok_or(MatchError::Absent)?;
    let mut lines = searched.text.split_inclusive('\n');
    let start: usize = lines.by_ref().take(at).map(str::len).sum();
    let passage: Vec<&str> = lines.take(want.len()).collect();
    let unended = passage.last().filter(|_| !old.ends_with('\n'));
    let length = passage.iter().map(|line| line.len()).sum::<usize>()
        - unended.map_or(0, |line| line.len() - body(line).len());
    Ok(Match { range: start..start + length, level: MatchLevel::Indentation, shift: Some(shift) })
}

/// Returns the byte offsets of the first [`MAX_COUNT`] occurrences of `old` in `text`, overlapping ones included: "aa" is not unique
/// in "aaa".
pub fn occurrences(text: &str, old: &str) -> Vec<usize> {
    let step = old.chars().next().map_or(1, char::len_utf8);
    let finder = Finder::new(old);
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some(at) = text.get(from..).and_then(|rest| finder.find(rest.as_bytes())) {
        found.push(from + at);
        if found.len() >= MAX_COUNT {
            break;
        }
        from += at + step;
    }
    found
}
