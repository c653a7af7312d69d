//! Applies the hunks of one file: all or none, each at the only position of its lines.

use crate::indent_shift::IndentShift;
use crate::lines::{BOM, LineEnding, body};
use crate::match_level::MatchLevel;
use crate::patch::error::PatchError;
use crate::patch::hunk::{Hunk, Line};
use crate::patch::locate::{HunkLocation, Search};
use crate::placeholder::find_placeholder;

/// A text after a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patched {
    /// New text.
    pub text: String,
    /// Match level of each hunk.
    pub match_levels: Vec<MatchLevel>,
    /// Number of lines added and removed.
    pub changed_lines: usize,
}

/// Applies all `hunks` to `text`.
///
/// # Errors
/// When a hunk does not fit; nothing is applied then.
pub fn apply(text: &str, hunks: &[Hunk]) -> Result<Patched, PatchError> {
    // The model never sees a byte order mark, so its patches lack it and it is preserved. Diffs made by programs contain
    // it.
    let Some(rest) = text.strip_prefix(BOM).filter(|_| !names_bom(hunks)) else {
        return apply_hunks(text, hunks);
    };
    let patched = apply_hunks(rest, hunks)?;
    Ok(Patched { text: format!("{BOM}{}", patched.text), ..patched })
}

/// Checks whether the first old line of the hunks starts with a byte order mark.
fn names_bom(hunks: &[Hunk]) -> bool {
    let old = |line: &&Line| matches!(line, Line::Context(_) | Line::Removed(_));
    let first = hunks.first().and_then(|hunk| hunk.lines.iter().find(old));
    first.is_some_and(|line| match line {
        Line::Context(text) | Line::Removed(text) | Line::Added(text) => text.starts_with(BOM),
    })
}

fn apply_hunks(text: &str, hunks: &[Hunk]) -> Result<Patched, PatchError> {
    let old: Vec<&str> = text.split_inclusive('\n').collect();
    let default = LineEnding::dominant(text).unwrap_or(LineEnding::Lf);
    let mut out: Vec<String> = Vec::with_capacity(old.len());
    let mut search = Search::new(text, &old);
    let mut match_levels = Vec::with_capacity(hunks.len());
    let (mut next, mut offset) = (0_usize, 0_isize);
    for (number, hunk) in (1..).zip(hunks) {
        let HunkLocation { at, level, shift } = search.locate(hunk, next, offset, number)?;
        out.extend(old.get(next..at).unwrap_or_default().iter().map(|line| (*line).to_owned()));
        if let Some(wanted) = hunk.position() {
            offset = at.cast_signed() - wanted.cast_signed();
        }
        next = at + hunk.old_len;
        append_hunk(&mut out, &old, hunk, at, shift.as_ref(), default);
        match_levels.push(level);
    }
    out.extend(old.get(next..).unwrap_or_default().iter().map(|line| (*line).to_owned()));
    terminate_inner_lines(&mut out, default);
    if let Some(line) = find_placeholder(hunks.iter().flat_map(Hunk::added), text) {
        return Err(PatchError::Placeholder(line.to_owned()));
    }
    let changed_lines =
        hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| !matches!(line, Line::Context(_))).count();
    Ok(Patched { text: out.concat(), match_levels, changed_lines })
}

/// Writes the new side of `hunk`; context lines retain their bytes, an added line gets the ending of its neighbour.
fn append_hunk(
    out: &mut Vec<String>,
    old: &[&str],
    hunk: &Hunk,
    at: usize,
    shift: Option<&IndentShift>,
    default: LineEnding,
) {
    let mut source = old.iter().skip(at);
    let mut ending = old.get(at).and_then(|line| LineEnding::dominant(line)).unwrap_or(default);
    let reaches_end = at + hunk.old_len == old.len();
    let old_ends_bare = reaches_end && old.last().is_some_and(|line| !line.ends_with('\n'));
    let written = out.len();
    for line in &hunk.lines {
        match line {
            Line::Context(_) => {
                if let Some(have) = source.next() {
                    ending = LineEnding::dominant(have).unwrap_or(ending);
                    out.push((*have).to_owned());
                }
            }
            Line::Removed(_) => {
                ending = source.next().and_then(|have| LineEnding::dominant(have)).unwrap_or(ending);
            }
            Line::Added(text) => {
                let shifted = shift.and_then(|shift| shift.apply(text));
                out.push(shifted.unwrap_or_else(|| text.clone()) + ending.as_str());
            }
        }
    }
    let bare = hunk.new_without_newline || (old_ends_bare && !hunk.old_without_newline);
    if reaches_end
        && out.len() > written
        && let Some(last) = out.last_mut()
    {
        if bare {
            last.truncate(body(last).len());
        } else if !last.ends_with('\n') {
            last.push_str(ending.as_str());
        }
    }
}

/// Adds a newline to a former last line without one, if lines follow it now.
fn terminate_inner_lines(lines: &mut [String], ending: LineEnding) {
    if let Some((_, inner)) = lines.split_last_mut() {
        for line in inner.iter_mut().filter(|line| !line.ends_with('\n')) {
            line.push_str(ending.as_str());
        }
    }
}
