//! What programs say that is never the same twice, and is no difference: how long they took, and the names of temporary files.

use regex::Regex;
use std::borrow::Cow;
use std::sync::OnceLock;

/// Hours, minutes and seconds or parts of seconds, as test runners, compilers and our own tools write them; and the names that
/// `mktemp` and Python's `tempfile` make up.
const PASSING: &str = r"\b(?:\d+\s?(?:h|m|min)\s?)*\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|secs?|seconds?)\b|/tmp/tmp(?:\.[A-Za-z0-9]{10}|[a-z0-9_]{8})\b";

/// `text` with `…` for each of them.
pub fn without_passing(text: &str) -> Cow<'_, str> {
    static PATTERN: OnceLock<Option<Regex>> = OnceLock::new();
    match PATTERN.get_or_init(|| Regex::new(PASSING).ok()) {
        Some(pattern) => pattern.replace_all(text, "…"),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
