//! Unified diffs, whole for approvals and truncated for the model, with a time limit.

use crate::lines::one_line;
use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{DiffOp, group_diff_ops};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Time limit for the smallest diff; after that, a larger but correct one is used.
const DEADLINE: Duration = Duration::from_millis(200);

/// Unchanged lines shown before and after each change, as by `diff -u`.
const CONTEXT_LINES: usize = 3;

/// Bytes per comparison in the search for common parts.
const CHUNK: usize = 4096;

/// Equal lines retained on either side of the compared parts; more than a diff shows.
const MARGIN_LINES: usize = 8;

/// Maximum lines of a truncated diff; the number of omitted lines follows.
pub const MAX_LINES: usize = 200;

/// Maximum characters of a line of a truncated diff, for minified files.
const MAX_LINE_CHARS: usize = 500;

/// Returns the truncated unified diff between two versions of `path`; empty when they are equal.
pub fn unified(path: &str, old: &str, new: &str) -> String {
    truncate(&unified_full(path, old, new))
}

/// Returns the whole unified diff between two versions of `path`; empty when they are equal. May be as long as both texts.
pub fn unified_full(path: &str, old: &str, new: &str) -> String {
    let (before, old, new) = trim_common_lines(old, new);
    let (old, new) = (lines(old), lines(new));
    let mut diff = String::new();
    for hunk in group_diff_ops(compare_lines(&old, &new), CONTEXT_LINES) {
        if diff.is_empty() {
            // A name with a line break would forge a line.
            let path = one_line(path, usize::MAX);
            let _ = write!(diff, "--- a/{path}\n+++ b/{path}\n");
        }
        push_hunk(&mut diff, &hunk, before, &old, &new);
    }
    diff
}

/// Appends a hunk to a unified diff. Its line numbers are counted after `before` lines.
fn push_hunk(diff: &mut String, hunk: &[DiffOp], before: usize, old: &[&str], new: &[&str]) {
    let Some((first, last)) = hunk.first().zip(hunk.last()) else { return };
    let old_lines = hunk_range(before, first.old_range().start..last.old_range().end);
    let new_lines = hunk_range(before, first.new_range().start..last.new_range().end);
    let _ = writeln!(diff, "@@ -{old_lines} +{new_lines} @@");
    let mut push = |sign: char, lines: &[&str]| {
        for line in lines {
            let end = if line.ends_with('\n') { "" } else { "\n\\ No newline at end of file\n" };
            let _ = write!(diff, "{sign}{line}{end}");
        }
    };
    for op in hunk {
        let (old, new) = (old.get(op.old_range()), new.get(op.new_range()));
        if matches!(op, DiffOp::Equal { .. }) {
            push(' ', old.unwrap_or_default());
        } else {
            push('-', old.unwrap_or_default());
            push('+', new.unwrap_or_default());
        }
    }
}

/// Formats a range of lines for the header of a hunk: without a length of 1, and an empty range by the line before it.
fn hunk_range(before: usize, lines: Range<usize>) -> String {
    let start = before + lines.start;
    match lines.len() {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        length => format!("{},{length}", start + 1),
    }
}

/// Range of lines replaced by another range, counted from 0. Either range may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineReplacement {
    /// Lines in the old text.
    pub old: Range<usize>,
    /// Lines in the new text.
    pub new: Range<usize>,
}

/// Returns the lines that differ, in order.
pub fn changed_lines(old: &str, new: &str) -> Vec<LineReplacement> {
    let (before, old, new) = trim_common_lines(old, new);
    let ops = compare_lines(&lines(old), &lines(new));
    let shift = |lines: Range<usize>| lines.start + before..lines.end + before;
    let differs = ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. }));
    differs.map(|op| LineReplacement { old: shift(op.old_range()), new: shift(op.new_range()) }).collect()
}

/// Returns the operations that change the lines `old` into the lines `new`. They are not the fewest when the search for those
/// takes longer than 200 ms.
#[expect(clippy::disallowed_methods, reason = "the library compares the time limit with this clock")]
pub fn compare_lines(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    // Numbers instead of lines: comparisons take constant time, and the code of the library exists once.
    let mut numbers = HashMap::new();
    let mut number = |line| {
        let next = numbers.len();
        *numbers.entry(line).or_insert(next)
    };
    let old: Vec<usize> = old.iter().map(|line| number(*line)).collect();
    let new: Vec<usize> = new.iter().map(|line| number(*line)).collect();
    let mut ops = Compact::new(Replace::new(Capture::new()), &old, &new);
    let deadline = Instant::now().checked_add(DEADLINE);
    let Ok(()) = myers::diff_deadline(&mut ops, &old, 0..old.len(), &new, 0..new.len(), deadline);
    ops.into_inner().into_inner().into_ops()
}

/// Splits a text into lines with their endings.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Trims the common start and end of both texts, except `MARGIN_LINES` lines of context; returns the number of lines removed
/// from the start and both remaining parts. This makes small changes of large files fast.
fn trim_common_lines<'a>(old: &'a str, new: &'a str) -> (usize, &'a str, &'a str) {
    let front = equal(old.as_bytes().chunks(CHUNK).zip(new.as_bytes().chunks(CHUNK)), |(a, b)| {
        a.iter().zip(b).take_while(|(a, b)| a == b).count()
    });
    let (_, old_rest) = old.as_bytes().split_at(front);
    let (_, new_rest) = new.as_bytes().split_at(front);
    let back = equal(old_rest.rchunks(CHUNK).zip(new_rest.rchunks(CHUNK)), |(a, b)| {
        a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
    });
    let is_break = |byte: &u8| *byte == b'\n';
    let start = old.as_bytes().get(..front).unwrap_or_default();
    let breaks = start.iter().enumerate().rev().filter(|(_, byte)| is_break(byte));
    let start = breaks.map(|(at, _)| at + 1).nth(MARGIN_LINES).unwrap_or(0);
    let end = old.as_bytes().get(old.len() - back..).unwrap_or_default();
    let mut breaks = end.iter().enumerate().filter(|(_, byte)| is_break(byte));
    let left_out = breaks.nth(MARGIN_LINES).map_or(0, |(at, _)| end.len() - at - 1);
    let part = |text: &'a str| text.get(start..text.len() - left_out);
    let Some((old_part, new_part)) = part(old).zip(part(new)) else { return (0, old, new) };
    let left_out = old.as_bytes().get(..start).unwrap_or_default();
    let before = memchr::memchr_iter(b'\n', left_out).count();
    (before, old_part, new_part)
}

/// Counts equal bytes in pairs of chunks up to the first different pair; `inside` counts the equal bytes of that pair.
fn equal<'a>(
    pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    inside: impl Fn((&[u8], &[u8])) -> usize,
) -> usize {
    let mut count = 0;
    for (a, b) in pairs {
        if a != b {
            return count + inside((a, b));
        }
        count += a.len();
    }
    count
}

/// Truncates a diff to `MAX_LINES` lines, followed by the number of omitted lines.
pub fn truncate(whole: &str) -> String {
    let total = whole.lines().count();
    let mut out = String::with_capacity(whole.len().min(MAX_LINES * 80));
    for line in whole.split_inclusive('\n').take(MAX_LINES) {
        match line.char_indices().nth(MAX_LINE_CHARS) {
            Some((end, _)) => {
                out.push_str(line.get(..end).unwrap_or(line));
                out.push_str(" [... line cut ...]\n");
            }
            None => out.push_str(line),
        }
    }
    if total > MAX_LINES {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "[... {} more diff lines ...]", total - MAX_LINES);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::match_level::MatchLevel;
    use crate::patch;
    use proptest::prelude::*;

    #[test]
    fn a_diff_names_the_file_and_the_lines() {
        let diff = unified("a.txt", "one\ntwo\n", "one\n2\n");
        assert_eq!(diff, "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n");
    }

    #[test]
    fn equal_texts_have_no_diff() {
        assert_eq!(unified("a", "x\n", "x\n"), "");
    }

    #[test]
    fn long_diff_is_truncated_with_a_marker() {
        let new = (0..1000).map(|n| format!("{n}\n")).collect::<Vec<_>>().concat();
        let diff = unified("a", "", &new);
        assert!(diff.lines().count() <= MAX_LINES + 1);
        assert!(diff.contains("more diff lines"));
        assert!(unified("a", "", &"x".repeat(100_000)).len() < 1000);
    }

    proptest! {
        #[test]
        fn common_lines_on_both_sides_change_only_line_numbers(
            old in prop::collection::vec("[ab]{0,2}|é|è", 0..40), new in prop::collection::vec("[ab]{0,2}|é|è", 0..40),
            front in 0usize..3, back in 0usize..30, newline: bool
        ) {
            let (front, back) = ("x\n".repeat(front * 20), "y\n".repeat(back));
            let text = |lines: &[String]| {
                let text = format!("{front}{}\n{back}", lines.join("\n"));
                if newline { text } else { text.trim_end_matches('\n').to_owned() }
            };
            let (old, new) = (text(&old), text(&new));
            let patch = unified_full("f", &old, &new);
            if patch.is_empty() {
                prop_assert_eq!(&old, &new);
            } else {
                let sections = patch::parse(&patch, Some("f")).unwrap();
                let patched = patch::apply::apply(&old, sections[0].hunks()).unwrap();
                prop_assert_eq!(&patched.text, &new);
                prop_assert!(patched.match_levels.iter().all(|rung| *rung == MatchLevel::Exact));
            }
            let (was, is): (Vec<_>, Vec<_>) = (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
            let (mut made, mut at) = (Vec::<&str>::new(), 0);
            for part in changed_lines(&old, &new) {
                made.extend(&was[at..part.old.start]);
                made.extend(&is[part.new]);
                at = part.old.end;
            }
            made.extend(&was[at..]);
            prop_assert_eq!(made, is);
        }
    }

    #[test]
    fn a_small_change_of_a_large_text_has_the_right_line_numbers() {
        let text = |line: &str| format!("{}{line}\n{}", "x\n".repeat(1000), "y\n".repeat(1000));
        let diff = unified_full("f", &text("old"), &text("new"));
        assert_eq!(diff, "--- a/f\n+++ b/f\n@@ -998,7 +998,7 @@\n x\n x\n x\n-old\n+new\n y\n y\n y\n");
    }
}
