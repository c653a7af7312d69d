//! Finds the one passage that an edit means, on the first rung of the ladder on which it occurs.

use crate::text::indentation::{Shift, shifted};
use crate::text::lines::{body, number_at};
use crate::text::rung::{Folds, Rung};
use memchr::memmem::Finder;
use std::ops::Range;

/// Occurrences counted before giving up; "more than this" is enough to say that a passage is not unique.
pub const MAX_COUNT: usize = 1000;

/// Line numbers listed for a passage that occurs more than once.
const MAX_LISTED: usize = 10;

/// A passage that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Where it is, in bytes.
    pub range: Range<usize>,
    /// How it was found.
    pub rung: Rung,
    /// How its lines are shifted against those looked for.
    pub shift: Option<Shift>,
}

/// Why no passage was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Miss {
    /// There is none.
    Absent,
    /// There are several.
    Several {
        /// On which rung.
        rung: Rung,
        /// How many, at most [`MAX_COUNT`].
        count: usize,
        /// Where the first ones start, counted from 1.
        lines: Vec<usize>,
    },
}

/// The only passage that is `old`.
///
/// # Errors
/// When there is none, or more than one on the first rung that has any.
pub fn find(searched: &Folds<'_>, old: &str) -> Result<Found, Miss> {
    let text = searched.text;
    // Whoever writes `\n` was shown lines, not their endings: they tell no two passages apart.
    let shown = old.contains('\n') && !old.contains('\r') && text.contains("\r\n");
    if !shown && let Some(start) = only(Rung::Exact, text, old)? {
        return Ok(Found { range: start..start + old.len(), rung: Rung::Exact, shift: None });
    }
    for rung in Rung::FOLDS {
        let wanted = rung.fold(old);
        let Some(start) = only(rung, searched.on(rung), &wanted)? else { continue };
        let range = rung.unfold(text, start)..rung.unfold(text, start + wanted.len());
        let rung = if shown && rung == Rung::Endings { Rung::Exact } else { rung };
        return Ok(Found { range, rung, shift: None });
    }
    find_shifted(searched, old)
}

fn only(rung: Rung, text: &str, old: &str) -> Result<Option<usize>, Miss> {
    let found = occurrences(text, old);
    let rung = if rung == Rung::Endings { Rung::Exact } else { rung };
    match found.as_slice() {
        [] => Ok(None),
        [start] => Ok(Some(*start)),
        _ => Err(Miss::Several {
            rung,
            count: found.len(),
            lines: found.iter().take(MAX_LISTED).map(|at| number_at(text, *at)).collect(),
        }),
    }
}

/// Whole lines, each with the same indentation more or less.
fn find_shifted(searched: &Folds<'_>, old: &str) -> Result<Found, Miss> {
    let fold = searched.on(Rung::Punctuation);
    let wanted = Rung::Indentation.fold(old);
    let have: Vec<&str> = fold.lines().collect();
    let want: Vec<&str> = wanted.lines().collect();
    let mut places = shifted(&have, &want, 0, MAX_COUNT);
    if places.len() > 1 {
        let lines = places.iter().take(MAX_LISTED).map(|(at, _)| at + 1).collect();
        return Err(Miss::Several { rung: Rung::Indentation, count: places.len(), lines });
    }
    let (at, shift) = places.pop().ok_or(Miss::Absent)?;
    let mut lines = searched.text.split_inclusive('\n');
    let start: usize = lines.by_ref().take(at).map(str::len).sum();
    let passage: Vec<&str> = lines.take(want.len()).collect();
    let unended = passage.last().filter(|_| !old.ends_with('\n'));
    let length = passage.iter().map(|line| line.len()).sum::<usize>()
        - unended.map_or(0, |line| line.len() - body(line).len());
    Ok(Found { range: start..start + length, rung: Rung::Indentation, shift: Some(shift) })
}

/// Where `old` starts, overlapping occurrences included: "aa" is not unique in "aaa".
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
