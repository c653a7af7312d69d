//! What programs say that is never the same twice, and is no difference: how long they took, the names of temporary files, and
//! where that is asked for, when it was.

use regex::Regex;
use std::borrow::Cow;
use std::sync::OnceLock;

/// Hours, minutes and seconds or parts of seconds, as test runners, compilers and our own tools write them; and the names that
/// `mktemp` and Python's `tempfile` make up. Digits and words are those of ASCII: the pattern is made in a fraction of the time.
const DURATIONS_AND_TEMP_NAMES: &str = r"(?-u:\b)(?:[0-9]+\s?(?:h|m|min)\s?)*[0-9]+(?:\.[0-9]+)?\s?(?:ns|µs|us|ms|s|secs?|seconds?)(?-u:\b)|/tmp/tmp(?:\.[A-Za-z0-9]{10}|[a-z0-9_]{8})(?-u:\b)";

/// Dates and times of day, as logs write them.
const TIMESTAMPS: &str = r"(?-u:\b)[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?(?-u:\b)|(?-u:\b)[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?-u:\b)";

/// The names of our own kept outputs, each of which is another call's. Beside the moments, which begin with digits, the search
/// would stop at each `o`.
const OUTPUT_NAMES: &str = r"(?-u:\b)output:[A-Za-z0-9_.-]+";

/// Something to leave out of texts. Its pattern is compiled for the first text that may hold one: that takes half a millisecond.
struct VolatilePattern {
    may_be_in: fn(&[u8]) -> bool,
    pattern: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

static DURATION_OR_NAME: VolatilePattern =
    VolatilePattern::new(has_duration_or_name, DURATIONS_AND_TEMP_NAMES);
static MOMENT: VolatilePattern = VolatilePattern::new(has_moment, TIMESTAMPS);
static OUTPUT: VolatilePattern = VolatilePattern::new(has_output, OUTPUT_NAMES);

/// `text` with `…` for each of the former, and for each moment and each name of an output too.
pub fn strip_volatile_and_times(text: &str) -> String {
    let text = strip_volatile(text);
    let text = MOMENT.left_out_of(&text);
    OUTPUT.left_out_of(&text).into_owned()
}

/// `text` with `…` for each time that something took and each temporary name.
pub fn strip_volatile(text: &str) -> Cow<'_, str> {
    DURATION_OR_NAME.left_out_of(text)
}

impl VolatilePattern {
    const fn new(may_be_in: fn(&[u8]) -> bool, pattern: &'static str) -> Self {
        Self { may_be_in, pattern, compiled: OnceLock::new() }
    }

    fn left_out_of<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let regex = || self.compiled.get_or_init(|| Regex::new(self.pattern).ok()).as_ref();
        match (self.may_be_in)(text.as_bytes()).then(regex).flatten() {
            Some(regex) => regex.replace_all(text, "…"),
            None => Cow::Borrowed(text),
        }
    }
}

/// Whether a unit may follow on a digit, behind at most one space of any kind. Of the characters that are not ASCII `µ` and the
/// spaces count, by their first bytes in UTF-8.
fn has_duration_or_name(text: &[u8]) -> bool {
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'\x0b';
    let begins_unit = |rest: &[u8]| {
        matches!(rest, [b'h' | b'm' | b'n' | b'u' | b's' | 0xc2, ..])
            || matches!(rest, [0xe1, 0x9a, ..] | [0xe2, 0x80 | 0x81, ..] | [0xe3, 0x80, ..])
    };
    let has_unit = |rest: &[u8]| match rest {
        [first, behind @ ..] if is_space(first) => begins_unit(behind),
        rest => begins_unit(rest),
    };
    let mut behind_digits = text.iter().enumerate().filter(|(_, byte)| byte.is_ascii_digit());
    behind_digits.any(|(at, _)| text.get(at + 1..).is_some_and(has_unit)) || holds(text, b"/tmp/tmp")
}

/// Whether there are digits with what stands between those of dates and times.
fn has_moment(text: &[u8]) -> bool {
    let is_of_one = |part: &[u8]| match part {
        [before, b'-', middle @ .., b'-', after] | [before, b':', middle @ .., b':', after] => {
            [before, after].into_iter().chain(middle).all(u8::is_ascii_digit)
        }
        _ => false,
    };
    text.windows(6).any(is_of_one)
}

fn has_output(text: &[u8]) -> bool {
    holds(text, b"output:")
}

fn holds(text: &[u8], part: &[u8]) -> bool {
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
        /// Texts of the pieces that the patterns are made of.
        #[test]
        fn a_text_that_is_passed_over_holds_nothing_to_leave_out(
            text in proptest::collection::vec(proptest::sample::select(PIECES), 0..12),
        ) {
            let text = text.concat();
            for kind in [&DURATION_OR_NAME, &MOMENT, &OUTPUT] {
                let is_in = Regex::new(kind.pattern).unwrap().is_match(&text);
                prop_assert!(!is_in || (kind.may_be_in)(text.as_bytes()), "{text:?}");
            }
        }
    }

    #[test]
    fn moments_are_left_out_where_that_is_asked_for() {
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
    fn durations_and_temporary_names_are_left_out_and_nothing_else() {
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
