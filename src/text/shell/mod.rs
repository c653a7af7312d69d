//! Parses shell commands as bash does, in linear time and with limited depth; unsupported syntax is an error.
//!
//! Has its own grammar, because no tested library was exact, fast and safe with hostile input at the same time.

mod compounds;
mod expansions;
mod grammar;
mod reader;
mod redirections;
mod script;
mod words;

pub use script::{Direction, Redirection, Script, ShellParseError, SimpleCommand, Word};
pub use words::is_assignment;

use reader::Reader;

/// Maximum length of a parsed text, in bytes.
const MAX_BYTES: usize = 10_000;

/// Parses `text`.
///
/// # Errors
/// When `text` is too long, nested too deeply, has too many commands, or has invalid or unsupported syntax.
pub fn parse(text: &str) -> Result<Script, ShellParseError> {
    if text.len() > MAX_BYTES {
        return Err(ShellParseError::TooLong);
    }
    Reader::new(text).script()
}

#[cfg(test)]
mod tests;
