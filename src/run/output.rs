//! Writes the standard output of commands.

use crate::error::{AppError, AppResult};
use agent_core::failure::FailureKind;
use agent_terminal::Terminal;

/// Prints `text` on standard output; a closed pipe is not an error.
///
/// # Errors
/// Fails when standard output cannot be written for another reason.
pub fn print(terminal: &Terminal, text: &str) -> AppResult<()> {
    terminal.print(text).map(drop).map_err(|error| {
        AppError::new(FailureKind::Internal, format!("cannot write to standard output: {error}"))
    })
}
