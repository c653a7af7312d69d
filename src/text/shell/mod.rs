//! Takes shell texts apart as bash reads them: linear in time, bounded in depth, and whatever is not understood is an error.
//!
//! A grammar of our own, because no library that was measured was at once exact, fast and safe with hostile texts.

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

/// The longest text that is looked through (security.md 4.5).
const MAX_BYTES: usize = 10_000;

/// Takes `text` apart.
///
/// # Errors
/// When it is too long, too deep or has too many commands, or is not understood.
pub fn parse(text: &str) -> Result<Script, ShellParseError> {
    if text.len() > MAX_BYTES {
        return Err(ShellParseError::TooLong);
    }
    Reader::new(text).script()
}

#[cfg(test)]
mod tests;
