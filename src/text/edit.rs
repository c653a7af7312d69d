//! Replaces one unique passage of a text and leaves every other byte as it is.

use crate::text::lines::{Ending, body, number_at, quoted};
use std::ops::Range;

/// Occurrences counted before giving up; "more than this" is enough to say that a passage is not unique.
const MAX_COUNT: usize = 1000;

/// Line numbers listed for a passage that occurs more than once.
const MAX_LISTED: usize = 10;

/// Lines of the file compared when looking for the nearest passage.
const MAX_NEAR_LINES: usize = 20_000;

/// Lines of `old_str` compared when looking for the nearest passage.
const MAX_WANTED_LINES: usize = 200;

/// Characters of a line compared when looking for the nearest passage.
const MAX_NEAR_CHARS: usize = 200;

/// Similarity (0 to 1, Sørensen–Dice) below which a line is not called near.
const NEAR: f64 = 0.5;

/// Why a text was not edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// There is no passage to look for.
    #[error(
        "old_str is empty. To add text at the end use write_file with mode append; to insert lines use apply_patch"
    )]
    EmptyOld,
    /// Old and new passage are the same.
    #[error("old_str and new_str are the same, so nothing would change")]
    Same,
    /// The passage does not occur.
    #[error("old_str not found{}. Check spaces, indentation, and line breaks.{}", in_file(.path), near(.hint.as_ref()))]
    NotFound {
        /// The file, for the message; empty when unknown.
        path: String,
        /// Where something similar is and how it differs.
        hint: Option<String>,
    },
    /// The passage occurs more than once.
    #[error("old_str appears {} times{} (lines {}). Add more context lines to make it unique.", at_least(*.count), in_file(.path), listed(.lines, *.count))]
    NotUnique {
        /// The file, for the message; empty when unknown.
        path: String,
        /// How often, at most 1000.
        count: usize,
        /// Where the first ones start, counted from 1.
        lines: Vec<usize>,
    },
}

fn in_file(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" in {path}") }
}

fn near(hint: Option<&String>) -> String {
    hint.map_or_else(String::new, |hint| format!(" {hint}"))
}

fn at_least(count: usize) -> String {
    if count >= MAX_COUNT { format!("at least {count}") } else { count.to_string() }
}

fn listed(lines: &[usize], count: usize) -> String {
    let names: Vec<String> = lines.iter().map(usize::to_string).collect();
    let more = if count > lines.len() { ", ..." } else { "" };
    format!("{}{more}", names.join(", "))
}

/// `text` with its only occurrence of `old` replaced by `new`; `path` is named in errors.
///
/// A passage written with `\n` also matches lines that end in `\r\n`; the new passage then gets their ending.
///
/// # Errors
/// When `old` is empty, equal to `new`, absent or not unique.
pub fn replace_once(path: &str, text: &str, old: &str, new: &str) -> Result<String, EditError> {
    if old.is_empty() {
        return Err(EditError::EmptyOld);
    }
    if old == new {
        return Err(EditError::Same);
    }
    if old.contains('\n') && !old.contains('\r') && text.contains("\r\n") {
        return replace_across_endings(path, text, old, new);
    }
    let found = occurrences(text, old);
    if found.is_empty() {
        return Err(not_found(path, text, old));
    }
    let range = only(path, text, &found, old.len())?;
    let ending = Ending::of(text).filter(|_| !old.contains('\n') && !new.contains('\r'));
    let new = ending.map_or_else(|| new.to_owned(), |ending| ending.apply(new));
    Ok(spliced(text, range, &new))
}

/// Matches `old` against `text` with every `\r\n` read as `\n`, and maps the match back.
fn replace_across_endings(path: &str, text: &str, old: &str, new: &str) -> Result<String, EditError> {
    let plain = text.replace("\r\n", "\n");
    let found = occurrences(&plain, old);
    if found.is_empty() {
        return Err(not_found(path, text, old));
    }
    let range = only(path, &plain, &found, old.len())?;
    let range = original_offset(text, range.start)..original_offset(text, range.end);
    let passage = text.get(range.clone()).unwrap_or_default();
    let ending = Ending::of(passage).unwrap_or(Ending::CrLf);
    Ok(spliced(text, range, &ending.apply(new)))
}

/// The offset in `text` of what stands at `plain` once every `\r\n` is read as `\n`.
fn original_offset(text: &str, plain: usize) -> usize {
    let bytes = text.as_bytes();
    let (mut original, mut seen) = (0, 0);
    while seen < plain && original < bytes.len() {
        original += if bytes.get(original..original + 2) == Some(b"\r\n") { 2 } else { 1 };
        seen += 1;
    }
    original
}

fn spliced(text: &str, range: Range<usize>, new: &str) -> String {
    let mut out = String::with_capacity(text.len() - range.len() + new.len());
    out.push_str(text.get(..range.start).unwrap_or_default());
    out.push_str(new);
    out.push_str(text.get(range.end..).unwrap_or_default());
    out
}

/// Where `old` starts, overlapping occurrences included: "aa" is not unique in "aaa".
fn occurrences(text: &str, old: &str) -> Vec<usize> {
    let step = old.chars().next().map_or(1, char::len_utf8);
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(old)) {
        found.push(from + at);
        if found.len() >= MAX_COUNT {
            break;
        }
        from += at + step;
    }
    found
}

fn only(path: &str, text: &str, found: &[usize], length: usize) -> Result<Range<usize>, EditError> {
    match found {
        [start] => Ok(*start..*start + length),
        _ => Err(EditError::NotUnique {
            path: path.to_owned(),
            count: found.len(),
            lines: found.iter().take(MAX_LISTED).map(|at| number_at(text, *at)).collect(),
        }),
    }
}

fn not_found(path: &str, text: &str, old: &str) -> EditError {
    EditError::NotFound { path: path.to_owned(), hint: nearest(text, old) }
}

/// Where the passage most like `old` is, and its first difference.
fn nearest(text: &str, old: &str) -> Option<String> {
    let have: Vec<&str> = text.lines().take(MAX_NEAR_LINES).collect();
    let want: Vec<&str> = old.lines().take(MAX_WANTED_LINES).collect();
    let start = best_start(&have, &want)?;
    let end = (start + want.len()).min(have.len());
    let different = want.iter().enumerate().find_map(|(offset, wanted)| {
        let found = have.get(start + offset).copied();
        (found != Some(*wanted)).then_some((start + offset, found, *wanted))
    });
    let place = if end <= start + 1 {
        format!("The nearest passage is line {}", start + 1)
    } else {
        format!("The nearest passage is lines {}-{end}", start + 1)
    };
    Some(match different {
        Some((line, Some(found), wanted)) => format!(
            "{place}; the first difference is in line {}: the file has {}, old_str has {}.",
            line + 1,
            quoted(found),
            quoted(wanted)
        ),
        Some((_, None, wanted)) => {
            format!("{place}; the file ends there, old_str goes on with {}.", quoted(wanted))
        }
        None => format!("{place}; its lines are equal, so only a line break or the place it starts differs."),
    })
}

/// The start of the passage that shares most lines with `want`, else the line most like its longest line.
fn best_start(have: &[&str], want: &[&str]) -> Option<usize> {
    let anchor = want.iter().enumerate().max_by_key(|(_, line)| line.trim().len())?;
    let mut best: Option<(usize, usize)> = None;
    for (at, _) in have.iter().enumerate().filter(|(_, line)| line.trim() == anchor.1.trim()) {
        let Some(start) = at.checked_sub(anchor.0) else { continue };
        let equal = want.iter().zip(have.iter().skip(start)).filter(|(a, b)| a.trim() == b.trim()).count();
        if best.is_none_or(|(most, _)| equal > most) {
            best = Some((equal, start));
        }
    }
    if anchor.1.trim().is_empty() {
        return None;
    }
    best.map(|(_, start)| start).or_else(|| {
        let wanted = clipped(anchor.1);
        let mut near: Option<(f64, usize)> = None;
        // Lines of quite another length are not near, and comparing is what takes time.
        let similar = |line: &str| line.len() / 2 <= wanted.len() && wanted.len() / 2 <= line.len();
        for (at, line) in have.iter().enumerate().filter(|(_, line)| similar(clipped(line))) {
            let likeness = strsim::sorensen_dice(wanted, clipped(line));
            if likeness >= NEAR && near.is_none_or(|(most, _)| likeness > most) {
                near = Some((likeness, at));
            }
        }
        near.map(|(_, at)| at.saturating_sub(anchor.0))
    })
}

fn clipped(line: &str) -> &str {
    let line = body(line).trim();
    line.char_indices().nth(MAX_NEAR_CHARS).and_then(|(end, _)| line.get(..end)).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edit(text: &str, old: &str, new: &str) -> Result<String, EditError> {
        replace_once("a.txt", text, old, new)
    }

    #[test]
    fn t04_a_unique_passage_is_replaced() {
        assert_eq!(edit("one two three", "two", "2"), Ok("one 2 three".to_owned()));
    }

    #[test]
    fn t04_an_empty_passage_gets_a_hint() {
        let message = edit("x", "", "y").unwrap_err().to_string();
        assert!(message.contains("write_file") && message.contains("apply_patch"), "{message}");
    }

    #[test]
    fn t04_a_missing_passage_names_the_nearest_and_the_first_difference() {
        let message = edit("a\nfn main() {\n\tcall(1);\n}\n", "fn main() {\n    call(1);", "x").unwrap_err();
        let text = message.to_string();
        assert!(text.starts_with("old_str not found in a.txt. Check spaces, indentation, and line breaks."));
        assert!(
            text.contains("lines 2-3") && text.contains("line 3") && text.contains("\\tcall(1);"),
            "{text}"
        );
    }

    #[test]
    fn t04_a_passage_that_occurs_often_is_counted_with_its_lines() {
        let text = edit("x\ny\nx\n", "x", "z").unwrap_err().to_string();
        assert!(text.starts_with("old_str appears 2 times in a.txt (lines 1, 3)."), "{text}");
        assert!(edit("aaa", "aa", "b").is_err(), "overlapping occurrences are not unique");
    }

    #[test]
    fn lines_of_a_crlf_file_match_a_passage_written_with_lf() {
        assert_eq!(edit("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n"), Ok("x\r\ny\r\nz\r\nc\r\n".to_owned()));
        assert_eq!(edit("a\r\nb\r\n", "b", "b\nc"), Ok("a\r\nb\r\nc\r\n".to_owned()));
    }

    #[test]
    fn other_endings_of_a_mixed_file_stay() {
        assert_eq!(edit("a\nb\r\nc\nd\r\n", "b\nc", "b\nX"), Ok("a\nb\r\nX\nd\r\n".to_owned()));
        assert!(edit("a\r\nb\na\nb\n", "a\nb", "x").is_err(), "the model cannot tell the two apart");
    }

    #[test]
    fn bom_and_missing_final_newline_stay() {
        assert_eq!(edit("\u{feff}a\nb", "a", "c"), Ok("\u{feff}c\nb".to_owned()));
    }

    proptest! {
        #[test]
        fn everything_outside_the_passage_keeps_its_bytes(
            before in "[a-c\r\n\t é]{0,40}", after in "[a-c\r\n\t é]{0,40}", new in "[x\n]{0,5}"
        ) {
            let text = format!("{before}ONLY{after}");
            let edited = edit(&text, "ONLY", &new).unwrap();
            prop_assert!(edited.starts_with(&before) && edited.ends_with(&after));
        }

        #[test]
        fn an_edit_is_undone_by_its_reverse(lines in prop::collection::vec("[a-z]{1,6}", 1..10), crlf: bool) {
            let ending = if crlf { "\r\n" } else { "\n" };
            let text = format!("{}{ending}HERE{ending}THERE{ending}", lines.join(ending));
            let there = edit(&text, "HERE\nTHERE\n", "ONE\nTWO\nTHREE\n").unwrap();
            prop_assert_eq!(edit(&there, "ONE\nTWO\nTHREE\n", "HERE\nTHERE\n").unwrap(), text);
        }

        #[test]
        fn nothing_panics(text in "(\\PC|[\r\n]){0,60}", old in "(\\PC|[\r\n]){0,8}", new in "(\\PC|[\r\n]){0,8}") {
            let _ = edit(&text, &old, &new);
        }
    }
}
