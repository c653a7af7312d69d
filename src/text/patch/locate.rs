//! Finds the position of a hunk: the one in its header, else the only one on the first match level with a match.

use crate::indent_shift::{IndentShift, find_with_shift};
use crate::line_search::line_positions;
use crate::lines::body;
use crate::match_level::{FoldedText, MatchLevel};
use crate::patch::error::PatchError;
use crate::patch::hunk::Hunk;

/// Maximum lines searched for hunks with wrong line numbers: enough for 1,000 such hunks in a file of 20,000 lines, and still
/// fast.
const MAX_SEARCHED_LINES: usize = 20_000_000;

/// Maximum number of positions with a different indentation that are examined.
const MAX_SHIFTED: usize = 100;

/// Maximum number of positions compared to find the likeliest one of a hunk that does not fit.
const MAX_COMPARED: usize = 100;

/// Searches hunks in the lines of a text.
pub struct Search<'a> {
    folds: FoldedText<'a>,
    bodies: Vec<&'a str>,
    /// Number of lines that may still be searched.
    left: usize,
}

/// Position of a hunk in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HunkLocation {
    /// Index of the first old line.
    pub at: usize,
    /// Level of the match.
    pub level: MatchLevel,
    /// Indentation shift of the file against the patch.
    pub shift: Option<IndentShift>,
}

/// Search for a hunk.
#[derive(Clone, Copy)]
struct HunkQuery<'a> {
    hunk: &'a Hunk,
    /// Number of the hunk, counted from 1.
    number: usize,
    /// First line that the hunk may start at.
    from: usize,
    /// Line in the header of the hunk, with the offset of earlier hunks.
    place: Option<usize>,
}

impl<'a> Search<'a> {
    /// Creates a search in `text`, whose lines are `lines`.
    pub fn new(text: &'a str, lines: &[&'a str]) -> Self {
        let bodies = lines.iter().map(|line| body(line)).collect();
        Self { folds: FoldedText::new(text), bodies, left: MAX_SEARCHED_LINES }
    }

    /// Returns the position of `hunk` at or after the line `from`: the one in its header, moved by `offset`, the error of earlier
    /// hunks; else the only other position.
    ///
    /// # Errors
    /// When there is no position, or more than one.
    pub fn locate(
        &mut self,
        hunk: &Hunk,
        from: usize,
        offset: isize,
        number: usize,
    ) -> Result<HunkLocation, PatchError> {
        let place = hunk.position().map(|at| at.saturating_add_signed(offset));
        let wanted = HunkQuery { hunk, number, from, place };
        let exact = |at| HunkLocation { at, level: MatchLevel::Exact, shift: None };
        if let Some(at) = place.filter(|at| *at >= from && self.fits(hunk, *at)) {
            return Ok(exact(at));
        }
        if hunk.old_len == 0 {
            return if hunk.at_end { Ok(exact(self.bodies.len())) } else { Err(no_position(wanted)) };
        }
        for level in [MatchLevel::Exact, MatchLevel::TrailingSpace, MatchLevel::Punctuation] {
            if let Some(at) = self.locate_on(level, wanted)? {
                return Ok(HunkLocation { at, level, shift: None });
            }
        }
        let indented = self.locate_shifted(wanted)?;
        indented.ok_or_else(|| self.mismatch(wanted))
    }

    fn fits(&self, hunk: &Hunk, at: usize) -> bool {
        at <= self.bodies.len()
            && self.bodies.len() - at >= hunk.old_len
            && hunk.old_lines().zip(self.bodies.iter().skip(at)).all(|(want, have)| want == *have)
    }

    /// Returns the only position on `level`, or the one of the header.
    fn locate_on(&mut self, level: MatchLevel, wanted: HunkQuery<'_>) -> Result<Option<usize>, PatchError> {
        self.spend(wanted)?;
        let lines = folded(level, wanted.hunk.old_lines());
        let want: Vec<&str> = lines.iter().map(String::as_str).collect();
        let all: Vec<usize> = line_positions(&self.lines(level), &want, wanted.from)
            .filter(|at| self.may_end(wanted.hunk, *at))
            .collect();
        if let Some(at) =
            wanted.place.filter(|at| level != MatchLevel::Exact && all.binary_search(at).is_ok())
        {
            return Ok(Some(at));
        }
        only(&self.in_scope(wanted, all)?, wanted.number)
    }

    /// Returns the only position with a uniform indentation shift that also applies to the added lines.
    fn locate_shifted(&mut self, wanted: HunkQuery<'_>) -> Result<Option<HunkLocation>, PatchError> {
        self.spend(wanted)?;
        let hunk = wanted.hunk;
        let lines = folded(MatchLevel::Punctuation, hunk.old_lines());
        let want: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut all = find_with_shift(&self.lines(MatchLevel::Punctuation), &want, wanted.from, MAX_SHIFTED);
        all.retain(|(at, shift)| {
            self.may_end(hunk, *at) && hunk.added().all(|line| shift.apply(line).is_some())
        });
        let places = all.iter().map(|(at, _)| *at).collect();
        let place = only(&self.in_scope(wanted, places)?, wanted.number)?;
        let found = all.into_iter().find(|(at, _)| Some(*at) == place);
        Ok(found.map(|(at, shift)| HunkLocation { at, level: MatchLevel::Indentation, shift: Some(shift) }))
    }

    /// Returns the lines folded on `level`.
    fn lines(&self, level: MatchLevel) -> Vec<&str> {
        if level == MatchLevel::Exact {
            self.bodies.clone()
        } else {
            self.folds.at_level(level).lines().collect()
        }
    }

    fn may_end(&self, hunk: &Hunk, at: usize) -> bool {
        !hunk.at_end || at + hunk.old_len == self.bodies.len()
    }

    fn spend(&mut self, wanted: HunkQuery<'_>) -> Result<(), PatchError> {
        let far = self.bodies.len().saturating_sub(wanted.from);
        self.left = self.left.checked_sub(far).ok_or(PatchError::SearchLimit { hunk: wanted.number })?;
        Ok(())
    }

    /// Filters `all` positions to the first one after the lines of the hunk's `@@` headers. Each header is searched after the
    /// previous one; if the first occurs more than once, each occurrence counts.
    fn in_scope(&self, wanted: HunkQuery<'_>, all: Vec<usize>) -> Result<Vec<usize>, PatchError> {
        let Some((outer, inner)) = wanted.hunk.scope.split_first().filter(|_| !all.is_empty()) else {
            return Ok(all);
        };
        let lines: Vec<&str> = self.folds.at_level(MatchLevel::Punctuation).lines().map(str::trim).collect();
        let positions = |line: &String| -> Result<Vec<usize>, PatchError> {
            let folded = MatchLevel::Punctuation.fold(line);
            let places: Vec<usize> = line_positions(&lines, &[folded.trim()], 0).collect();
            let missing = || PatchError::NoScope { hunk: wanted.number, line: line.clone() };
            if places.is_empty() { Err(missing()) } else { Ok(places) }
        };
        let inner = inner.iter().map(positions).collect::<Result<Vec<_>, _>>()?;
        let next =
            |places: &[usize], at: usize| places.get(places.partition_point(|place| *place < at)).copied();
        let mut found: Vec<usize> = positions(outer)?
            .into_iter()
            .filter_map(|start| {
                let scope = inner.iter().try_fold(start, |at, places| next(places, at + 1))?;
                next(&all, scope)
            })
            .collect();
        found.dedup();
        Ok(found)
    }

    /// Returns the error for a hunk without a position.
    fn mismatch(&self, wanted: HunkQuery<'_>) -> PatchError {
        let HunkQuery { hunk, number, from, place } = wanted;
        let want: Vec<&str> = hunk.old_lines().collect();
        let new: Vec<&str> = hunk.new_lines().collect();
        if hunk.at_end && line_positions(&self.bodies, &want, from).next().is_some() {
            return PatchError::NotAtEnd { hunk: number };
        }
        if hunk.added().any(|line| !line.trim().is_empty())
            && let [at] = line_positions(&self.bodies, &new, from).take(2).collect::<Vec<_>>().as_slice()
        {
            return PatchError::AlreadyApplied { hunk: number, line: at + 1 };
        }
        let at = place.map_or_else(|| self.likeliest(&want, from), |at| at.max(from));
        let different =
            want.iter().enumerate().find(|(index, line)| self.bodies.get(at + index) != Some(*line));
        let (line, expected) = different.map_or((0, ""), |(index, line)| (index, *line));
        PatchError::Mismatch {
            hunk: number,
            line: at + line + 1,
            expected: expected.to_owned(),
            found: self.bodies.get(at + line).map(|have| (*have).to_owned()),
        }
    }

    /// Returns the position with most lines of `want`, among the first positions of its first line that is not blank.
    fn likeliest(&self, want: &[&str], from: usize) -> usize {
        let Some((index, first)) = want.iter().enumerate().find(|(_, line)| !line.trim().is_empty()) else {
            return from;
        };
        let starts = self.bodies.iter().enumerate().skip(from + index);
        let starts = starts.filter(|(_, line)| line.trim() == first.trim()).map(|(at, _)| at - index);
        let equal =
            |at: &usize| want.iter().zip(self.bodies.iter().skip(*at)).take_while(|(a, b)| a == b).count();
        starts.take(MAX_COMPARED).max_by_key(|at| (equal(at), std::cmp::Reverse(*at))).unwrap_or(from)
    }
}

/// Returns the error for a hunk without old lines that has no position.
fn no_position(wanted: HunkQuery<'_>) -> PatchError {
    let hunk = wanted.number;
    match wanted.place {
        Some(line) => PatchError::Mismatch { hunk, line, expected: String::new(), found: None },
        None => PatchError::NoContext { hunk },
    }
}

fn folded<'a>(level: MatchLevel, lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    // Adds a line break, because folding removes white space before one.
    let fold = |line: &str| level.fold(&format!("{line}\n"));
    lines.map(fold).map(|line| body(&line).to_owned()).collect()
}

fn only(places: &[usize], hunk: usize) -> Result<Option<usize>, PatchError> {
    match places {
        [] => Ok(None),
        [at] => Ok(Some(*at)),
        _ => Err(PatchError::Ambiguous { hunk, lines: places.iter().map(|at| at + 1).collect() }),
    }
}
