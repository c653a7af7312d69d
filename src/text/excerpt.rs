//! Shortens a long text to its head and tail, with a marker for the omitted part.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Lines retained from the start when a text is cut by lines.
pub const HEAD_LINES: usize = 40;

/// Lines retained from the end when a text is cut by lines.
pub const TAIL_LINES: usize = 20;

/// Smallest effective limit; with a smaller one, the marker would fill most of the result.
const MIN_CHARS: usize = 400;

/// Maximum length of the marker for omitted characters, in characters.
const MARKER_CHARS: usize = 60;

/// End of every marker.
const MARKER_END: &str = " omitted ...]";

/// Returns `at least ` if `omitted` contains the marker of an earlier cut: more is missing than can be counted.
pub fn at_least(omitted: &str) -> &'static str {
    if omitted.contains(MARKER_END) { "at least " } else { "" }
}

/// Returns how many lines the marker `line` stands for; `None` if it is none.
pub fn omitted_lines(line: &str) -> Option<usize> {
    let count = line.strip_suffix(MARKER_END)?.strip_prefix("[... ")?.strip_suffix(" lines")?;
    count.strip_prefix("at least ").unwrap_or(count).parse().ok()
}

/// Cuts `text` to `head` lines from its start and `tail` from its end around `[... N lines omitted ...]`.
///
/// Cuts nothing when only one line would be omitted, so that a second cut changes nothing.
pub fn by_lines(text: &str, head: usize, tail: usize) -> Cow<'_, str> {
    let total = text.split_inclusive('\n').count();
    let kept = head.saturating_add(tail);
    if total <= kept.saturating_add(1) {
        return Cow::Borrowed(text);
    }
    let mut out: String = text.split_inclusive('\n').take(head).collect();
    let omitted =
        text.split_inclusive('\n').skip(head).take(total - kept).map(at_least).max().unwrap_or_default();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "[... {omitted}{} lines{MARKER_END}", total - kept);
    out.extend(text.split_inclusive('\n').skip(total - tail));
    Cow::Owned(out)
}

/// Cuts `text` to at most `limit` characters: half of them from its start, a quarter from its end, around
/// `[... N characters omitted ...]`.
pub fn by_chars(text: &str, limit: usize) -> Cow<'_, str> {
    let total = text.chars().count();
    if total <= limit {
        return Cow::Borrowed(text);
    }
    let room = limit.saturating_sub(MARKER_CHARS);
    let (head, tail) = (room.min(limit / 2), (limit / 4).min(room - room.min(limit / 2)));
    let byte_of = |char: usize| text.char_indices().nth(char).map_or(text.len(), |(at, _)| at);
    let (head_text, rest) = text.split_at(byte_of(head));
    let (omitted, tail_text) = rest.split_at(byte_of(total - tail) - head_text.len());
    let (at_least, count) = (at_least(omitted), total - head - tail);
    Cow::Owned(format!("{head_text}\n[... {at_least}{count} characters{MARKER_END}\n{tail_text}"))
}

/// Shortens `text` to about `limit` characters if it is longer: by lines when it has many, else by characters.
/// `limit` 0 means no limit; a value below 400 is treated as 400.
pub fn fit(text: &str, limit: usize) -> Cow<'_, str> {
    if limit == 0 {
        return Cow::Borrowed(text);
    }
    let limit = limit.max(MIN_CHARS);
    if text.len() <= limit || text.chars().count() <= limit {
        return Cow::Borrowed(text);
    }
    match by_lines(text, HEAD_LINES, TAIL_LINES) {
        Cow::Borrowed(whole) => by_chars(whole, limit),
        Cow::Owned(lines) if lines.chars().count() <= limit => Cow::Owned(lines),
        Cow::Owned(_) => by_chars(text, limit),
    }
}

/// Counts the whole lines of `text` before the first marker in `cut`; `None` when nothing was cut.
pub fn whole_lines_of_head(text: &str, cut: &str) -> Option<usize> {
    let same = text.bytes().zip(cut.bytes()).take_while(|(a, b)| a == b);
    (text.len() != cut.len()).then(|| same.filter(|(byte, _)| *byte == b'\n').count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numbered(count: usize) -> String {
        (1..=count).map(|line| format!("line {line}\n")).collect::<Vec<_>>().concat()
    }

    #[test]
    fn k1_a_long_text_keeps_forty_lines_of_head_and_twenty_of_tail() {
        let text = numbered(500);
        let cut = by_lines(&text, HEAD_LINES, TAIL_LINES);
        assert!(cut.contains("line 40\n[... 440 lines omitted ...]\nline 481\n"), "{cut}");
        assert!(cut.ends_with("line 500\n"));
    }

    #[test]
    fn k1_few_long_lines_are_cut_by_characters_and_zero_is_off() {
        let text = "é".repeat(10_000);
        let cut = fit(&text, 1000);
        assert!(cut.contains("characters omitted"));
        assert!(cut.chars().count() <= 1000);
        assert_eq!(fit(&text, 0), text);
    }

    #[test]
    fn a_marker_says_how_many_lines_it_stands_for() {
        let text = numbered(500);
        let marked = |text: &str| by_lines(text, 10, 5).lines().find_map(omitted_lines);
        assert_eq!(marked(&text), Some(485));
        assert_eq!(marked(&by_lines(&text, 40, 20)), Some(46));
        assert_eq!(omitted_lines("[... 12 characters omitted ...]"), None);
    }

    #[test]
    fn first_omitted_line_is_found() {
        let text = numbered(500);
        assert_eq!(whole_lines_of_head(&text, &by_lines(&text, 40, 20)), Some(40));
        assert_eq!(whole_lines_of_head(&text, &fit(&text, 0)), None);
        let wide = format!("{}\n", "x".repeat(300)).repeat(10);
        assert_eq!(whole_lines_of_head(&wide, &by_chars(&wide, 1000)), Some(1));
    }

    // Fault B4: the marker counted what a first cut had left.
    #[test]
    fn many_long_lines_are_cut_once_and_all_that_is_missing_is_counted() {
        let text = format!("{}\n", "x".repeat(500)).repeat(100);
        let cut = fit(&text, 2000).into_owned();
        assert!(cut.chars().count() <= 2000);
        let (head, rest) = cut.split_once("\n[... ").unwrap();
        let (count, tail) = rest.split_once(" characters omitted ...]\n").unwrap();
        assert_eq!(head.len() + count.parse::<usize>().unwrap() + tail.len(), text.len(), "{cut}");
    }

    // Fault B4
    #[test]
    fn a_cut_that_hides_the_marker_of_an_earlier_one_claims_no_exact_number() {
        let once = by_lines(&numbered(1000), 40, 20).into_owned();
        assert!(by_lines(&once, 10, 5).contains("\n[... at least 46 lines omitted ...]\n"));
        assert!(by_chars(&once, 400).contains("\n[... at least "));
        assert!(by_lines(&once, 40, 20).contains("\n[... 940 lines omitted ...]\n"));
    }

    proptest! {
        #[test]
        fn cutting_twice_is_cutting_once(lines in 0_usize..200, head in 0_usize..50, tail in 0_usize..50) {
            let text = numbered(lines);
            let once = by_lines(&text, head, tail).into_owned();
            prop_assert_eq!(by_lines(&once, head, tail).into_owned(), once);
        }

        #[test]
        fn the_limit_holds_for_any_text(text in "(\\PC|\n){0,400}", limit in MARKER_CHARS..300_usize) {
            let once = by_chars(&text, limit).into_owned();
            prop_assert!(once.chars().count() <= limit);
            prop_assert_eq!(by_chars(&once, limit).into_owned(), once);
        }
    }
}
