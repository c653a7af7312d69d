//! What programs say that is never the same twice, and is no difference: how long they took, the names of temporary files, and
//! where that is asked for, when it was.

use regex::Regex;
use std::borrow::Cow;
use std::sync::OnceLock;

/// Hours, minutes and seconds or parts of seconds, as test runners, compilers and our own tools write them; and the names that
/// `mktemp` and Python's `tempfile` make up. Digits and words are those of ASCII: the pattern is made in a fraction of the time.
const PASSING: &str = r"(?-u:\b)(?:[0-9]+\s?(?:h|m|min)\s?)*[0-9]+(?:\.[0-9]+)?\s?(?:ns|µs|us|ms|s|secs?|seconds?)(?-u:\b)|/tmp/tmp(?:\.[A-Za-z0-9]{10}|[a-z0-9_]{8})(?-u:\b)";

/// Dates and times of day, as logs write them.
const MOMENTS: &str = r"(?-u:\b)[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?(?-u:\b)|(?-u:\b)[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?-u:\b)";

/// The names of our own kept outputs, each of which is another call's. Beside the moments, which begin with digits, the search
/// would stop at each `o`.
const OUTPUTS: &str = r"(?-u:\b)output:[A-Za-z0-9_.-]+";

/// `text` with `…` for each of the former, and for each moment and each name of an output too.
pub fn without_moments(text: &str) -> String {
    static MOMENT: OnceLock<Option<Regex>> = OnceLock::new();
    static OUTPUT: OnceLock<Option<Regex>> = OnceLock::new();
    let text = without_passing(text);
    let text = without(&MOMENT, MOMENTS, &text);
    without(&OUTPUT, OUTPUTS, &text).into_owned()
}

/// `text` with `…` for each time that something took and each temporary name.
pub fn without_passing(text: &str) -> Cow<'_, str> {
    static PATTERN: OnceLock<Option<Regex>> = OnceLock::new();
    without(&PATTERN, PASSING, text)
}

fn without<'a>(made: &OnceLock<Option<Regex>>, pattern: &str, text: &'a str) -> Cow<'a, str> {
    match made.get_or_init(|| Regex::new(pattern).ok()) {
        Some(pattern) => pattern.replace_all(text, "…"),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(without_moments(text), rest);
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
            assert_eq!(without_passing(text), rest);
        }
        for text in ["3 passed", "line 12 says", "3 steps", "0x3s", "12 sheep", "/tmp/tmp.old", "tmpab_d3f5h"]
        {
            assert_eq!(without_passing(text), text);
        }
    }
}
