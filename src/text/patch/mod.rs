//! Parses a unified diff of one file and applies it: strict context, running offset, all hunks or none.

use crate::text::lines::{BOM, Ending, body, quoted};

/// Lines named when a hunk fits in more than one place.
const MAX_LISTED: usize = 5;

/// Lines that may be looked through for hunks that are not where their headers say: a moment's work, and a thousand
/// such hunks in a file of twenty thousand lines.
const MAX_SEARCHED_LINES: usize = 20_000_000;

/// One hunk: the lines it expects and the lines it leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The first old line, counted from 1 (0 for an insertion at the start); `None` for a bare `@@`.
    start: Option<usize>,
    /// Whether the header says that the hunk replaces no line.
    inserts: bool,
    /// Its lines, in order.
    lines: Vec<Line>,
    /// How many of them are of the old side.
    old_len: usize,
    /// `\ No newline at end of file` stood after the last line of the new side.
    new_without_newline: bool,
    /// … after the last line of the old side only.
    old_without_newline: bool,
}

/// A line of a hunk, without its ending.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Line {
    Context(String),
    Removed(String),
    Added(String),
}

/// A text after a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patched {
    /// The new text.
    pub text: String,
    /// Hunks applied.
    pub hunks: usize,
    /// Lines added and removed.
    pub changed_lines: usize,
}

/// Why a patch was not applied; the text is untouched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// There is nothing in it.
    #[error("the patch is empty")]
    Empty,
    /// It has no hunk.
    #[error("the patch has no hunks: each starts with a line like `@@ -10,3 +10,4 @@`")]
    NoHunks,
    /// A line of a hunk starts with none of the four signs.
    #[error(
        "hunk {hunk}: the line {line} starts with none of ' ' (context), '-' (removed), '+' (added); context lines need a leading space"
    )]
    BadLine {
        /// Counted from 1.
        hunk: usize,
        /// The line, quoted.
        line: String,
    },
    /// A hunk header cannot be read.
    #[error("hunk {hunk}: the header {line} is not like `@@ -10,3 +10,4 @@`")]
    BadHeader {
        /// Counted from 1.
        hunk: usize,
        /// The line, quoted.
        line: String,
    },
    /// It goes on with another file.
    #[error("the patch changes more than one file: call apply_patch once for each")]
    ManyFiles,
    /// A hunk changes nothing.
    #[error("hunk {hunk} has no added or removed line")]
    NoChange {
        /// Counted from 1.
        hunk: usize,
    },
    /// The context is not in the file.
    #[error(
        "hunk {hunk} does not fit at line {line}: {} there. The context must be the file's exact text: read the lines and make the patch again",
        mismatch(.expected, .found.as_deref())
    )]
    Mismatch {
        /// Counted from 1.
        hunk: usize,
        /// The first line that differs, counted from 1 in the file as the patch found it.
        line: usize,
        /// What the hunk expects.
        expected: String,
        /// What the file has; `None` past its end.
        found: Option<String>,
    },
    /// The context is in several places and not where the header says.
    #[error("hunk {hunk} fits at lines {}: give the right line number or more context", listed(.lines))]
    Ambiguous {
        /// Counted from 1.
        hunk: usize,
        /// Where it fits.
        lines: Vec<usize>,
    },
    /// Too many hunks had to be looked for.
    #[error(
        "hunk {hunk} is not where its line number says, as too many before it: give the right line numbers"
    )]
    Astray {
        /// Counted from 1.
        hunk: usize,
    },
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

/// `text` with every hunk of `patch` applied.
///
/// # Errors
/// When the patch cannot be read or one hunk does not fit; nothing is applied then.
pub fn apply(text: &str, patch: &str) -> Result<Patched, PatchError> {
    // The mark in front of some texts is shown to nobody, so no patch has it; it stays in front.
    let Some(rest) = text.strip_prefix(BOM) else { return apply_hunks(text, patch) };
    let patched = apply_hunks(rest, patch)?;
    Ok(Patched { text: format!("{BOM}{}", patched.text), ..patched })
}

fn apply_hunks(text: &str, patch: &str) -> Result<Patched, PatchError> {
    let hunks = parse(patch)?;
    let old: Vec<&str> = text.split_inclusive('\n').collect();
    let default = Ending::of(text).unwrap_or(Ending::Lf);
    let mut out: Vec<String> = Vec::with_capacity(old.len());
    let mut search = Search { old: &old, left: MAX_SEARCHED_LINES };
    let (mut next, mut offset) = (0_usize, 0_isize);
    for (index, hunk) in hunks.iter().enumerate() {
        let at = search.locate(hunk, next, offset, index + 1)?;
        out.extend(old.get(next..at).unwrap_or_default().iter().map(|line| (*line).to_owned()));
        if let Some(wanted) = hunk.position() {
            offset = at.cast_signed() - wanted.cast_signed();
        }
        next = at + hunk.old_len;
        append_hunk(&mut out, &old, hunk, at, default);
    }
    out.extend(old.get(next..).unwrap_or_default().iter().map(|line| (*line).to_owned()));
    terminate_inner_lines(&mut out, default);
    let changed_lines =
        hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| !matches!(line, Line::Context(_))).count();
    Ok(Patched { text: out.concat(), hunks: hunks.len(), changed_lines })
}

impl Hunk {
    fn old_lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| match line {
            Line::Context(text) | Line::Removed(text) => Some(text.as_str()),
            Line::Added(_) => None,
        })
    }

    fn push(&mut self, line: Line) {
        self.old_len += usize::from(!matches!(line, Line::Added(_)));
        self.lines.push(line);
    }

    /// The index of its first old line as its header says.
    fn position(&self) -> Option<usize> {
        let start = self.start?;
        Some(if self.inserts && self.old_len == 0 { start } else { start.saturating_sub(1) })
    }
}

/// Looks for hunks in the old lines.
struct Search<'a> {
    old: &'a [&'a str],
    /// Lines that may still be looked through.
    left: usize,
}

impl Search<'_> {
    /// Where `hunk` fits: where its header says, moved by what earlier hunks were off; else the only other place.
    fn locate(
        &mut self,
        hunk: &Hunk,
        from: usize,
        offset: isize,
        number: usize,
    ) -> Result<usize, PatchError> {
        let old = self.old;
        let wanted = hunk.position().map(|at| at.saturating_add_signed(offset));
        if let Some(at) = wanted.filter(|at| *at >= from && fits(old, hunk, *at)) {
            return Ok(at);
        }
        if hunk.old_len == 0 {
            return Err(PatchError::Mismatch {
                hunk: number,
                line: wanted.unwrap_or(0),
                expected: String::new(),
                found: None,
            });
        }
        let far = old.len().saturating_sub(from);
        self.left = self.left.checked_sub(far).ok_or(PatchError::Astray { hunk: number })?;
        let want: Vec<&str> = hunk.old_lines().collect();
        match places(old, &want, from, MAX_LISTED).as_slice() {
            [only] => Ok(*only),
            [] => Err(first_mismatch(old, hunk, wanted.unwrap_or(from).max(from), number)),
            places => {
                Err(PatchError::Ambiguous { hunk: number, lines: places.iter().map(|at| at + 1).collect() })
            }
        }
    }
}

/// The first `most` places at or after `from` where the lines `want` stand in `old`, in time linear in both
/// (Knuth, Morris and Pratt): files and hunks may be long and repetitive.
fn places(old: &[&str], want: &[&str], from: usize, most: usize) -> Vec<usize> {
    // For each beginning of `want`: the length of the longest shorter beginning that it ends with.
    let mut borders = vec![0_usize; want.len()];
    let longer = |borders: &[usize], mut length: usize, line: &str| {
        while length > 0 && want.get(length).is_none_or(|next| *next != line) {
            length = borders.get(length - 1).copied().unwrap_or(0);
        }
        length + usize::from(want.get(length).is_some_and(|next| *next == line))
    };
    let mut length = 0;
    for (at, line) in want.iter().enumerate().skip(1) {
        length = longer(&borders, length, line);
        if let Some(border) = borders.get_mut(at) {
            *border = length;
        }
    }
    let mut length = 0;
    let ends = old.iter().enumerate().skip(from).filter_map(|(at, line)| {
        length = longer(&borders, length, body(line));
        (length == want.len()).then_some(at)
    });
    ends.map(|end| end + 1 - want.len()).take(most).collect()
}

fn fits(old: &[&str], hunk: &Hunk, at: usize) -> bool {
    at <= old.len()
        && old.len() - at >= hunk.old_len
        && hunk.old_lines().zip(old.iter().skip(at)).all(|(want, have)| want == body(have))
}

fn first_mismatch(old: &[&str], hunk: &Hunk, at: usize, number: usize) -> PatchError {
    let (line, expected) = hunk
        .old_lines()
        .enumerate()
        .find(|(index, want)| old.get(at + index).is_none_or(|have| body(have) != *want))
        .unwrap_or((0, ""));
    PatchError::Mismatch {
        hunk: number,
        line: at + line + 1,
        expected: expected.to_owned(),
        found: old.get(at + line).map(|have| body(have).to_owned()),
    }
}

/// Writes the new side of `hunk`; context keeps its bytes, an added line takes the ending of its neighbour.
fn append_hunk(out: &mut Vec<String>, old: &[&str], hunk: &Hunk, at: usize, default: Ending) {
    let mut source = old.iter().skip(at);
    let mut ending = old.get(at).and_then(|line| Ending::of(line)).unwrap_or(default);
    let old_ends_bare =
        at + hunk.old_len == old.len() && old.last().is_some_and(|line| !line.ends_with('\n'));
    let written = out.len();
    for line in &hunk.lines {
        match line {
            Line::Context(_) => {
                if let Some(have) = source.next() {
                    ending = Ending::of(have).unwrap_or(ending);
                    out.push((*have).to_owned());
                }
            }
            Line::Removed(_) => {
                ending = source.next().and_then(|have| Ending::of(have)).unwrap_or(ending);
            }
            Line::Added(text) => out.push(format!("{text}{}", ending.as_str())),
        }
    }
    let reaches_end = at + hunk.old_len == old.len();
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

/// A line that was the last one without a newline gets one when lines follow it now.
fn terminate_inner_lines(lines: &mut [String], ending: Ending) {
    if let Some((_, inner)) = lines.split_last_mut() {
        for line in inner.iter_mut().filter(|line| !line.ends_with('\n')) {
            line.push_str(ending.as_str());
        }
    }
}

/// The hunks of `patch`; anything before the first `@@` is a header and ignored.
fn parse(patch: &str) -> Result<Vec<Hunk>, PatchError> {
    if patch.trim().is_empty() {
        return Err(PatchError::Empty);
    }
    let lines: Vec<&str> = patch.split_inclusive('\n').map(body).collect();
    let mut hunks: Vec<(Hunk, Option<usize>)> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let number = hunks.len();
        if line.starts_with("@@") {
            hunks.push(header(line, number + 1)?);
            continue;
        }
        let Some((hunk, declared)) = hunks.last_mut() else { continue };
        let done = declared.is_some_and(|count| hunk.old_len >= count);
        if done && starts_other_file(&lines, index) {
            return Err(PatchError::ManyFiles);
        }
        take_line(hunk, line, number)?;
    }
    if hunks.is_empty() {
        return Err(PatchError::NoHunks);
    }
    for (index, (hunk, declared)) in hunks.iter_mut().enumerate() {
        drop_blank_tail(hunk, *declared);
        if hunk.lines.iter().all(|line| matches!(line, Line::Context(_))) {
            return Err(PatchError::NoChange { hunk: index + 1 });
        }
    }
    Ok(hunks.into_iter().map(|(hunk, _)| hunk).collect())
}

fn starts_other_file(lines: &[&str], index: usize) -> bool {
    let at = |offset: usize| lines.get(index + offset).copied().unwrap_or_default();
    at(0).starts_with("diff --git ") || (at(0).starts_with("--- ") && at(1).starts_with("+++ "))
}

fn take_line(hunk: &mut Hunk, line: &str, number: usize) -> Result<(), PatchError> {
    let text = || line.get(1..).unwrap_or_default().to_owned();
    match line.chars().next() {
        None => hunk.push(Line::Context(String::new())),
        Some(' ') => hunk.push(Line::Context(text())),
        Some('-') => hunk.push(Line::Removed(text())),
        Some('+') => hunk.push(Line::Added(text())),
        Some('\\') => match hunk.lines.last() {
            Some(Line::Removed(_)) => hunk.old_without_newline = true,
            Some(_) => hunk.new_without_newline = true,
            None => {}
        },
        Some('`') if line.trim_end() == "```" => {}
        Some(_) => return Err(PatchError::BadLine { hunk: number, line: quoted(line) }),
    }
    Ok(())
}

/// Blank lines after a hunk belong to it only as far as its header counts them.
fn drop_blank_tail(hunk: &mut Hunk, declared: Option<usize>) {
    let blank = |line: Option<&Line>| matches!(line, Some(Line::Context(text)) if text.is_empty());
    while blank(hunk.lines.last()) && declared.is_none_or(|count| hunk.old_len > count) {
        hunk.lines.pop();
        hunk.old_len -= 1;
    }
}

/// Reads `@@ -a,b +c,d @@`, or a bare `@@` whose place the context decides; also says how many old lines it counts.
fn header(line: &str, number: usize) -> Result<(Hunk, Option<usize>), PatchError> {
    let bad = || PatchError::BadHeader { hunk: number, line: quoted(line) };
    let empty = Hunk {
        start: None,
        inserts: false,
        lines: Vec::new(),
        old_len: 0,
        new_without_newline: false,
        old_without_newline: false,
    };
    let rest = line.trim_start_matches('@').trim_start();
    let Some(old) = rest.strip_prefix('-') else { return Ok((empty, None)) };
    let range = old.split_whitespace().next().ok_or_else(bad)?;
    let (start, count) = range.split_once(',').unwrap_or((range, "1"));
    let start: usize = start.parse().map_err(|_| bad())?;
    let count: usize = count.parse().map_err(|_| bad())?;
    // No file has more lines than this, and sums of it cannot overflow.
    if start > u32::MAX as usize || count > u32::MAX as usize {
        return Err(bad());
    }
    Ok((Hunk { start: Some(start), inserts: count == 0, ..empty }, Some(count)))
}

#[cfg(test)]
mod tests;
