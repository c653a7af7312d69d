//! Regular expressions of people: bounded in size, so that matching takes time linear in the text.

use regex::{Error, Regex, RegexBuilder};

/// Bytes of a compiled expression: one from a file must not eat the memory.
const MAX_BYTES: usize = 1 << 20;

/// Compiles `pattern` as it is written; `^` and `$` stand at the ends of lines, whichever endings those have.
///
/// # Errors
/// When it is no regular expression, or too large.
pub fn case_sensitive(pattern: &str) -> Result<Regex, Error> {
    compile(pattern, false)
}

/// The same without regard to upper and lower case. What this takes, [`exact`] takes too.
///
/// # Errors
/// As [`exact`].
pub fn case_insensitive(pattern: &str) -> Result<Regex, Error> {
    compile(pattern, true)
}

fn compile(pattern: &str, any_case: bool) -> Result<Regex, Error> {
    let mut builder = RegexBuilder::new(pattern);
    builder.case_insensitive(any_case).multi_line(true).crlf(true).size_limit(MAX_BYTES).build()
}
