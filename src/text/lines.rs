//! Functions on lines: line endings, line numbers, and lines quoted or escaped for messages.

use super::invisible::needs_escape;
use std::borrow::Cow;

/// Characters of one line quoted in a message or summary.
pub const QUOTE_CHARS: usize = 160;

/// Byte order mark, which some editors write at the start of UTF-8 text.
pub const BOM: char = '\u{feff}';

/// Line ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnding {
    /// `\n`
    Lf,
    /// `\r\n`
    CrLf,
}

impl LineEnding {
    /// Returns the characters of the ending.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
        }
    }

    /// Returns the ending of most lines of `text`, `\n` on a tie; `None` when it has no complete line.
    pub fn dominant(text: &str) -> Option<Self> {
        let all = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        let crlf = memchr::memmem::find_iter(text.as_bytes(), "\r\n").count();
        match (all - crlf, crlf) {
            (0, 0) => None,
            (lf, crlf) if crlf > lf => Some(Self::CrLf),
            _ => Some(Self::Lf),
        }
    }

    /// Replaces every bare `\n` of `text` by this ending.
    pub fn apply(self, text: &str) -> String {
        match self {
            Self::Lf => text.to_owned(),
            Self::CrLf => {
                let mut out = String::with_capacity(text.len() + text.len() / 16);
                for line in text.split_inclusive('\n') {
                    match line.strip_suffix('\n') {
                        Some(body) if !body.ends_with('\r') => {
                            out.push_str(body);
                            out.push_str("\r\n");
                        }
                        Some(_) | None => out.push_str(line),
                    }
                }
                out
            }
        }
    }
}

/// Returns a line without its ending.
pub fn body(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

/// Returns the number of the line that contains byte `offset`, counted from 1.
pub fn line_number_at(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    memchr::memchr_iter(b'\n', before).count() + 1
}

/// Quotes a line for a message: truncated, with tabs and control characters escaped.
pub fn quoted(line: &str) -> String {
    let (mut chars, mut head, mut shown) = (line.chars(), String::new(), 0_usize);
    // Counts the characters of escapes, which are longer than the characters they represent.
    while shown < QUOTE_CHARS
        && let Some(c) = chars.next()
    {
        shown = shown.saturating_add(c.escape_debug().count());
        head.extend(c.escape_debug());
    }
    let rest = chars.count();
    if rest == 0 { format!("\"{head}\"") } else { format!("\"{head}\" and {rest} more characters") }
}

/// Formats `text` as one line of about `max_chars` characters at most: hidden characters, newline and tab as escapes, `…` at
/// a cut. Reads only the part of `text` that it shows.
pub fn one_line(text: &str, max_chars: usize) -> String {
    let mut line = String::new();
    for (shown, c) in text.chars().enumerate() {
        if shown == max_chars {
            line.push('…');
            break;
        }
        match c {
            '\n' => line.push_str("\\n"),
            '\t' => line.push_str("\\t"),
            c if needs_escape(c) => line.extend(c.escape_unicode()),
            c => line.push(c),
        }
    }
    line
}

/// Joins the words of `text` with single spaces.
pub fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns what a terminal shows of a line of output: of a line that is written again and again, such as a progress bar, the last state, and no
/// sequences of colour (SGR of ECMA-48).
pub fn as_shown(line: &str) -> String {
    let line = line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        shown.push_str(before);
        let parameters =
            after.bytes().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b';' | b':')).count();
        let is_color = after.as_bytes().get(parameters) == Some(&b'm');
        rest = after.get(if is_color { parameters + 1 } else { 0 }..).unwrap_or_default();
        if !is_color {
            shown.push_str("\u{1b}[");
        }
    }
    shown.push_str(rest);
    shown
}

/// Escapes control characters of a name in a list, such as a line break that would forge an entry.
pub fn escape_controls(name: &str) -> Cow<'_, str> {
    if !name.contains(char::is_control) {
        return Cow::Borrowed(name);
    }
    let escaped = name.chars().map(|character| {
        if character.is_control() { character.escape_debug().to_string() } else { character.to_string() }
    });
    Cow::Owned(escaped.collect())
}

/// Returns a number with its noun: `1 line`, `2 lines`.
pub fn pluralize(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

/// Lists the first `most` of `items` and the number of the others, with `separator` between them; `None` without items.
pub fn list_first(items: impl Iterator<Item = String>, most: usize, separator: &str) -> Option<String> {
    let mut items = items.fuse();
    let first: Vec<String> = items.by_ref().take(most).collect();
    let more = items.count();
    let rest = (more > 0).then(|| format!("{separator}and {more} more"));
    (!first.is_empty()).then(|| first.join(separator) + &rest.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_progress_bar_has_its_last_state_and_no_colour() {
        assert_eq!(as_shown("\u{1b}[31m10 %\r\u{1b}[1;32mdone\u{1b}[0m\r"), "done");
        assert_eq!(as_shown("a\u{1b}[2Jb"), "a\u{1b}[2Jb", "other sequences are shown as escapes");
    }

    #[test]
    fn the_ending_of_most_lines_wins_and_a_tie_is_lf() {
        assert_eq!(LineEnding::dominant("a"), None);
        assert_eq!(LineEnding::dominant("a\r\nb\r\nc\n"), Some(LineEnding::CrLf));
        assert_eq!(LineEnding::dominant("a\r\nb\n"), Some(LineEnding::Lf));
    }

    #[test]
    fn lines_are_counted_from_one() {
        assert_eq!(line_number_at("a\nb\nc", 0), 1);
        assert_eq!(line_number_at("a\nb\nc", 4), 3);
        assert_eq!(line_number_at("a", 99), 1);
    }

    #[test]
    fn quoted_line_shows_invisible_characters() {
        assert_eq!(quoted("\ta \u{7}"), r#""\ta \u{7}""#);
    }

    #[test]
    fn quoted_line_is_truncated() {
        let line = "x".repeat(QUOTE_CHARS);
        assert_eq!(quoted(&line), format!("\"{line}\""));
        assert_eq!(quoted(&format!("{line}yz")), format!("\"{line}\" and 2 more characters"));
    }

    #[test]
    fn nouns_agree_with_their_number() {
        assert_eq!([0, 1, 2].map(|count| pluralize(count, "line")), ["0 lines", "1 line", "2 lines"]);
    }

    #[test]
    fn a_long_list_ends_with_how_many_more_there_are() {
        let letters = |count: usize| ["a", "b", "c"].into_iter().take(count).map(str::to_owned);
        assert_eq!(list_first(letters(0), 2, ", "), None);
        assert_eq!(list_first(letters(2), 2, ", ").as_deref(), Some("a, b"));
        assert_eq!(list_first(letters(3), 2, ", ").as_deref(), Some("a, b, and 1 more"));
    }

    #[test]
    fn a_name_cannot_forge_another_line() {
        assert_eq!(escape_controls("a b"), "a b");
        assert_eq!(escape_controls("a\n📄 b\u{1b}[31m"), "a\\n📄 b\\u{1b}[31m");
    }

    #[test]
    fn one_line_cannot_forge_a_second() {
        assert_eq!(one_line("a\n✅ \"done\"\tb\u{1b}\u{202e}", 40), "a\\n✅ \"done\"\\tb\\u{1b}\\u{202e}");
        assert_eq!(one_line("abcdef", 3), "abc…");
        assert_eq!(one_line("abc", 3), "abc");
    }

    proptest! {
        #[test]
        fn applying_crlf_twice_is_applying_it_once(text in "[ab\r\n]{0,40}") {
            let once = LineEnding::CrLf.apply(&text);
            prop_assert_eq!(LineEnding::CrLf.apply(&once), once);
        }
    }
}
