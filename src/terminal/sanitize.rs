//! Sanitizes text for a terminal: shows invisible and control characters as escapes such as `\u{202e}`.
//!
//! Each character is checked alone, so an escape sequence that is split over two pieces of a stream is harmless too:
//! its first byte is always escaped.

use agent_text::invisible::needs_escape;
use agent_text::lines::one_line;
use std::borrow::Cow;

/// The end of a line that is too long gets one part in this many of the columns, the start gets the rest.
const TAIL_SHARE: usize = 4;
/// Maximum columns of a tab.
const TAB_COLUMNS: usize = 8;

/// Escapes control bytes, bidirectional controls, zero-width and other invisible characters; leaves newline and tab. For
/// names, commands and diffs, which users base decisions on.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    apply_actions(text, |c| if needs_escape(c) { CharAction::Escape } else { CharAction::Keep })
}

/// Like [`sanitize`], for prose: also leaves the two joiners of scripts and emoji, and removes carriage returns, so that
/// text with CRLF line ends is shown as usual.
pub fn sanitize_prose(text: &str) -> Cow<'_, str> {
    apply_actions(text, |c| match c {
        '\r' => CharAction::Drop,
        '\u{200c}' | '\u{200d}' => CharAction::Keep,
        c if needs_escape(c) => CharAction::Escape,
        _ => CharAction::Keep,
    })
}

/// Returns the first non-blank line, as [`one_line`] formats it.
pub fn first_line(text: &str, max_chars: usize) -> String {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    one_line(first, max_chars)
}

/// Returns a sanitized line; if it takes more than `columns`, its start, the size of the omitted part, and its end.
pub fn truncate_middle(line: &str, columns: usize) -> String {
    let total = line.chars().count();
    if chars_that_fit(line.chars(), columns) == total {
        return sanitize(line).into_owned();
    }
    let tail = chars_that_fit(line.chars().rev(), columns / TAIL_SHARE);
    let head = chars_that_fit(line.chars(), columns - columns / TAIL_SHARE);
    let at = |count: usize| line.char_indices().nth(count).map_or(line.len(), |(at, _)| at);
    let (head_text, rest) = line.split_at(at(head));
    let tail_text = rest.get(at(total - tail) - head_text.len()..).unwrap_or_default();
    let cut = agent_messages::line_cut(total - head - tail);
    format!("{}{cut}{}", sanitize(head_text), sanitize(tail_text))
}

/// Returns the maximum number of rows that sanitized lines take on a terminal of `width` columns.
pub fn row_count(lines: &str, width: usize) -> usize {
    lines.lines().map(|line| columns(line).div_ceil(width.max(1)).max(1)).sum()
}

/// Returns sanitized lines with line breaks in place of spaces where a line takes more than `width` columns; the rest of a line has its indent.
pub fn wrap_words(text: &str, width: usize) -> Cow<'_, str> {
    if text.lines().all(|line| columns(line) <= width) {
        return Cow::Borrowed(text);
    }
    let mut wrapped = String::with_capacity(text.len() + text.len() / 16);
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let indent = line.get(..indent.min(width / 2)).unwrap_or_default();
        let mut used = 0;
        for word in line.split_inclusive(' ') {
            let size = columns(word.trim_end());
            // A word that is too long for a row begins where it stands.
            if used + size > width && used > indent.len() && indent.len() + size <= width {
                wrapped.truncate(wrapped.trim_end_matches(' ').len());
                wrapped.push('\n');
                wrapped.push_str(indent);
                used = indent.len();
            }
            wrapped.push_str(word);
            used += columns(word.trim_end_matches('\n'));
        }
    }
    Cow::Owned(wrapped)
}

/// Returns the maximum number of columns that a sanitized line takes.
pub(super) fn columns(line: &str) -> usize {
    line.chars().map(char_columns).sum()
}

/// Returns the beginning of a line that fits into `columns`, with tabs as spaces; with an ellipsis, and true, if something is left out.
pub fn truncate_end(line: &str, columns: usize) -> (String, bool) {
    let line = line.trim_end().replace('\t', "    ");
    let total = line.chars().count();
    if chars_that_fit(line.chars(), columns) == total {
        return (line, false);
    }
    let kept = chars_that_fit(line.chars(), columns.saturating_sub(1));
    (line.chars().take(kept).chain(['…']).collect(), true)
}

/// Returns how many of the first characters fit into `columns`.
fn chars_that_fit(chars: impl Iterator<Item = char>, columns: usize) -> usize {
    let mut left = columns;
    let fits = |c: char| {
        let rest = left.checked_sub(char_columns(c));
        left = rest.unwrap_or_default();
        rest
    };
    chars.map_while(fits).count()
}

/// Returns the maximum columns of a character; at least 1, because a line of combining characters could otherwise be
/// endless.
pub(super) fn char_columns(c: char) -> usize {
    match c {
        '\t' => TAB_COLUMNS,
        c if needs_escape(c) => c.escape_unicode().len(),
        c if c.is_ascii() => 1,
        c => console::measure_text_width(c.encode_utf8(&mut [0; 4])).max(1),
    }
}

/// Treatment of one character.
enum CharAction {
    Keep,
    Drop,
    Escape,
}

fn apply_actions(text: &str, action: impl Fn(char) -> CharAction) -> Cow<'_, str> {
    let Some((first, _)) = text.char_indices().find(|&(_, c)| !matches!(action(c), CharAction::Keep)) else {
        return Cow::Borrowed(text);
    };
    let (clean, rest) = text.split_at(first);
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(clean);
    for c in rest.chars() {
        match action(c) {
            CharAction::Keep => out.push(c),
            CharAction::Drop => {}
            CharAction::Escape => out.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_are_broken_between_words_and_keep_their_indent() {
        assert_eq!(wrap_words("  one two three\nfour", 10), "  one two\n  three\nfour");
        assert_eq!(wrap_words("a verylongword and", 8), "a verylongword\nand");
        assert!(matches!(wrap_words("short\n", 8), Cow::Borrowed(_)));
    }

    #[test]
    fn ordinary_text_is_not_copied() {
        assert!(matches!(sanitize("fn main() {}\n\tlet é = '⚠️';\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn escape_sequences_and_invisible_characters_are_shown() {
        assert_eq!(sanitize("\u{1b}]52;c;aGk=\u{7}"), "\\u{1b}]52;c;aGk=\\u{7}");
        assert_eq!(sanitize("a\u{9b}2J"), "a\\u{9b}2J");
        assert_eq!(sanitize("if (x\u{202e} )"), "if (x\\u{202e} )");
        assert_eq!(sanitize("x\u{e0041}\u{200b}\r"), "x\\u{e0041}\\u{200b}\\u{d}");
    }

    #[test]
    fn prose_keeps_joiners_and_ends_crlf_lines_as_usual() {
        assert_eq!(sanitize_prose("می\u{200c}خواهم\r\n👩\u{200d}💻"), "می\u{200c}خواهم\n👩\u{200d}💻");
        assert_eq!(sanitize_prose("\u{1b}[2Jx\u{202e}"), "\\u{1b}[2Jx\\u{202e}");
    }

    #[test]
    fn the_first_line_is_the_first_that_says_something() {
        assert_eq!(first_line("\n\n  broken: x \nmore", 40), "broken: x");
    }

    #[test]
    fn a_shortened_line_says_how_much_of_it_is_missing() {
        let view = truncate_middle(&format!("{}; rm -r build", "x".repeat(250)), 200);
        assert_eq!(
            view,
            format!("{} … 63 characters not shown … {}; rm -r build", "x".repeat(150), "x".repeat(37))
        );
    }

    #[test]
    fn class_49_a_line_is_measured_in_columns_and_nothing_is_free() {
        for (text, shown) in [("\t", 200 / 8), ("宽", 100), ("\u{301}", 200), ("\u{1b}", 200 / 6), ("é", 200)]
        {
            assert_eq!(truncate_middle(&text.repeat(shown), 200), sanitize(&text.repeat(shown)), "{text:?}");
            let cut = truncate_middle(&text.repeat(10_000), 200);
            let visible = cut.matches(sanitize(text).as_ref()).count();
            assert!(visible <= shown && visible + 4 > shown, "{text:?}: {visible} {cut}");
            assert!(cut.contains(" characters not shown … "), "{cut}");
            assert!(row_count(&cut, 80) <= 3, "{text:?}: {cut}");
        }
        assert_eq!(row_count("a\n\nb\t", 5), 4);
    }

    #[test]
    fn the_beginning_of_a_line_takes_one_row() {
        for (line, shown) in
            [("a\tb", "a    b"), ("宽宽宽宽宽宽", "宽宽宽宽…"), ("\u{1b}[2J more", "\u{1b}[2J…")]
        {
            let (text, is_cut) = truncate_end(line, 10);
            assert_eq!((text.as_str(), is_cut), (shown, shown.ends_with('…')));
            assert_eq!(row_count(&text, 10), 1);
        }
    }

    fn has_raw_control(text: &str) -> bool {
        text.chars().any(|c| c.is_control() && c != '\n' && c != '\t')
    }

    proptest! {
        #[test]
        fn no_raw_control_byte_ever_comes_out(text in any::<String>(), bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let from_bytes: String = bytes.iter().map(|&b| char::from(b)).collect();
            for text in [text, from_bytes] {
                prop_assert!(!has_raw_control(&sanitize(&text)));
                prop_assert!(!sanitize(&text).chars().any(needs_escape));
                prop_assert!(!has_raw_control(&sanitize_prose(&text)));
                prop_assert!(!one_line(&text, 50).chars().any(char::is_control));
                prop_assert!(row_count(&truncate_middle(&one_line(&text, 1000), 50), 25) <= 4);
                prop_assert!(!first_line(&text, 50).chars().any(char::is_control));
            }
        }

        #[test]
        fn pieces_give_the_same_as_the_whole(text in "[a-z\u{1b}\\[0-9;\r\n\u{9b}]{0,40}", cut in 0_usize..41) {
            let cut = (0..=cut.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
            let (first, second) = text.split_at(cut);
            let pieces = format!("{}{}", sanitize_prose(first), sanitize_prose(second));
            prop_assert_eq!(pieces, sanitize_prose(&text).into_owned());
        }

        #[test]
        fn harmless_text_stays_as_it_is(text in any::<String>()) {
            let once = sanitize(&text).into_owned();
            prop_assert_eq!(sanitize(&once).into_owned(), once.clone());
        }
    }
}
