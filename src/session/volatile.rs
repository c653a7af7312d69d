//! Removes volatile parts of outputs (durations, names of temporary files and, on request, timestamps) before a comparison.

use regex::Regex;
use std::borrow::Cow;
use std::sync::OnceLock;

/// Durations as test runners, compilers and our own tools write them, and the names that `mktemp` and Python's `tempfile` generate. Digits and
/// words are ASCII, which makes the pattern compile several times faster.
const DURATIONS_AND_TEMP_NAMES: &str = r"(?-u:\b)(?:[0-9]+\s?(?:h|m|min)\s?)*[0-9]+(?:\.[0-9]+)?\s?(?:ns|µs|us|ms|s|secs?|seconds?)(?-u:\b)|/tmp/tmp(?:\.[A-Za-z0-9]{10}|[a-z0-9_]{8})(?-u:\b)";

/// Dates and times of day as logs write them.
const TIMESTAMPS: &str = r"(?-u:\b)[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?(?-u:\b)|(?-u:\b)[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?-u:\b)";

/// Names of our own stored outputs, which differ from call to call. A separate pattern, because combined with the timestamps, which begin with
/// digits, the search would stop at each `o`.
const OUTPUT_NAMES: &str = r"(?-u:\b)output:[A-Za-z0-9_.-]+";

/// A volatile pattern. It is compiled (half a millisecond) for the first text that may contain a match.
struct VolatilePattern {
    may_match: fn(&[u8]) -> bool,
    pattern: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

static DURATION_OR_NAME: VolatilePattern =
    VolatilePattern::new(has_duration_or_name, DURATIONS_AND_TEMP_NAMES);
static TIMESTAMP: VolatilePattern = VolatilePattern::new(has_timestamp, TIMESTAMPS);
static OUTPUT: VolatilePattern = VolatilePattern::new(has_output, OUTPUT_NAMES);

/// Replaces durations, temporary names, timestamps and names of stored outputs in `text` with `…`.
pub fn strip_volatile_and_times(text: &str) -> String {
    let text = strip_volatile(text);
    let text = TIMESTAMP.replace_in(&text);
    OUTPUT.replace_in(&text).into_owned()
}

/// Replaces durations and temporary names in `text` with `…`.
pub fn strip_volatile(text: &str) -> Cow<'_, str> {
    DURATION_OR_NAME.replace_in(text)
}

impl VolatilePattern {
    const fn new(may_match: fn(&[u8]) -> bool, pattern: &'static str) -> Self {
        Self { may_match, pattern, compiled: OnceLock::new() }
    }

    fn replace_in<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let regex = || self.compiled.get_or_init(|| Regex::new(self.pattern).ok()).as_ref();
        match (self.may_match)(text.as_bytes()).then(regex).flatten() {
            Some(regex) => regex.replace_all(text, "…"),
            None => Cow::Borrowed(text),
        }
    }
}

/// Whether `text` has a digit followed by the start of a unit, with at most one space between them, or may contain a temporary name. Of the
/// non-ASCII characters, `µ` and the spaces are recognised by their first byte in UTF-8.
fn has_duration_or_name(text: &[u8]) -> bool {
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'\x0b';
    let starts_unit = |rest: &[u8]| {
        matches!(rest, [b'h' | b'm' | b'n' | b'u' | b's' | 0xc2, ..])
            || matches!(rest, [0xe1, 0x9a, ..] | [0xe2, 0x80 | 0x81, ..] | [0xe3, 0x80, ..])
    };
    let has_unit = |rest: &[u8]| match rest {
        [first, behind @ ..] if is_space(first) => starts_unit(behind),
        rest => starts_unit(rest),
    };
    let mut behind_digits = text.iter().enumerate().filter(|(_, byte)| byte.is_ascii_digit());
    behind_digits.any(|(at, _)| text.get(at + 1..).is_some_and(has_unit)) || contains_bytes(text, b"/tmp/tmp")
}

/// Whether digits occur next to a separator of a date or a time.
fn has_timestamp(text: &[u8]) -> bool {
    let is_of_one = |part: &[u8]| match part {
        [before, b'-', middle @ .., b'-', after] | [before, b':', middle @ .., b':', after] => {
            [before, after].into_iter().chain(middle).all(u8::is_ascii_digit)
        }
        _ => false,
    };
    text.windows(6).any(is_of_one)
}

fn has_output(text: &[u8]) -> bool {
    contains_bytes(text, b"output:")
}

fn contains_bytes(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PIECES: &[&str] = &[
        "0",
        "1",
        "12",
        "2026",
        "-",
        ":",
        ".",
        " ",
        "\t",
        "\u{a0}",
        "\u{1680}",
        "\u{2003}",
        "\u{205f}",
        "\u{3000}",
        "→",
        "\u{b}",
        "T",
        "Z",
        "h",
        "min",
        "ns",
        "µs",
        "us",
        "ms",
        "s",
        "secs",
        "x",
        "output:",
        "/tmp/tmp",
        "/tmp/tmp.",
        "abcdefgh",
        "Ab3dEf6hIj",
        "\n",
    ];

    proptest! {
        /// Pieces of text from which the patterns can match.
        #[test]
        fn texts_skipped_by_the_quick_check_contain_nothing_volatile(
            text in proptest::collection::vec(proptest::sample::select(PIECES), 0..12),
        ) {
            let text = text.concat();
            for kind in [&DURATION_OR_NAME, &TIMESTAMP, &OUTPUT] {
                let is_in = Regex::new(kind.pattern).unwrap().is_match(&text);
                prop_assert!(!is_in || (kind.may_match)(text.as_bytes()), "{text:?}");
            }
        }
    }

    #[test]
    fn timestamps_are_removed_on_request() {
        for (text, rest) in [
            ("[2026-03-04 10:11:07] ok", "[…] ok"),
            ("2026-03-04T10:11:07.5Z: 3 passed in 0.03s", "…: 3 passed in …"),
            ("10:11:07,123 INFO", "… INFO"),
            (
                "All of the output: read_file with path \"output:call_5_1\"",
                "All of the output: read_file with path \"…\"",
            ),
            ("a.rs:10:12 size 2026-03 v1.2s1", "a.rs:10:12 size 2026-03 v1.2s1"),
        ] {
            assert_eq!(strip_volatile_and_times(text), rest);
        }
    }

    #[test]
    fn only_durations_and_temporary_names_are_removed() {
        for (text, rest) in [
            ("2 passed in 0.03s", "2 passed in …"),
            ("Stopped bg1 after 12 s: sh", "Stopped bg1 after …: sh"),
            ("real 1m30.5s, user 7ms", "real …, user …"),
            ("ok 1 min 3 seconds", "ok …"),
            ("made /tmp/tmp.aB3dE6gH9j/x and /tmp/tmpab_d3f5h", "made …/x and …"),
        ] {
            assert_eq!(strip_volatile(text), rest);
        }
        for text in ["3 passed", "line 12 says", "3 steps", "0x3s", "12 sheep", "/tmp/tmp.old", "tmpab_d3f5h"]
        {
            assert_eq!(strip_volatile(text), text);
        }
    }
}
