//! Compiles regular expressions of users with a size limit; matching is linear in the length of the text.

use regex::{Error, Regex, RegexBuilder};

/// Maximum bytes of a compiled expression, so that an expression cannot exhaust memory.
const MAX_BYTES: usize = 1 << 20;

/// Compiles `pattern` case-sensitively; `^` and `$` match at the start and end of lines with any line ending.
///
/// # Errors
/// When `pattern` is not a regular expression, or too large.
pub fn case_sensitive(pattern: &str) -> Result<Regex, Error> {
    compile(pattern, false)
}

/// Compiles `pattern` case-insensitively. Accepts only patterns that [`case_sensitive`] accepts too.
///
/// # Errors
/// As [`case_sensitive`].
pub fn case_insensitive(pattern: &str) -> Result<Regex, Error> {
    compile(pattern, true)
}

fn compile(pattern: &str, any_case: bool) -> Result<Regex, Error> {
    let mut builder = RegexBuilder::new(pattern);
    builder.case_insensitive(any_case).multi_line(true).crlf(true).size_limit(MAX_BYTES).build()
}
