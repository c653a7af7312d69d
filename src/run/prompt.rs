//! Reads the task of a run from the command line or standard input.

use crate::error::{AppError, AppResult};
use agent_core::failure::FailureKind;
use agent_terminal::Terminal;
use std::io::Read;

/// Maximum size of the prompt in bytes; a longer one should be a file of the workspace.
const MAX_PROMPT_BYTES: u64 = 1 << 20;

/// Reads the prompt. Standard input is read for `-`, or when it is a pipe and no prompt was given.
///
/// # Errors
/// Fails for a missing or empty prompt, one that is too long, and one that is not UTF-8.
pub fn read_prompt(terminal: &Terminal, argument: Option<String>) -> AppResult<String> {
    let text = match argument {
        Some(text) if text != "-" => text,
        None if terminal.stream_info().stdin => {
            return Err(usage("no task: `agent run \"what to do\"`, or `-` to read it from standard input"));
        }
        Some(_) | None => from_stdin()?,
    };
    if text.trim().is_empty() {
        return Err(usage("the task is empty: describe what to do"));
    }
    Ok(text)
}

fn from_stdin() -> AppResult<String> {
    let text = read_stdin(MAX_PROMPT_BYTES)?;
    text.ok_or_else(|| {
        usage("the task on standard input is over 1 MiB: put it into a file of the workspace and name that file")
    })
}

/// Reads standard input; `None` if it has more than `limit` bytes.
///
/// # Errors
/// Fails when it cannot be read, and for one that is not UTF-8.
pub fn read_stdin(limit: u64) -> AppResult<Option<String>> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| usage(format!("cannot read standard input: {error}")))?;
    if bytes.len() as u64 > limit {
        return Ok(None);
    }
    String::from_utf8(bytes).map(Some).map_err(|_| usage("the task on standard input is not UTF-8 text"))
}

fn usage(message: impl Into<String>) -> AppError {
    AppError::new(FailureKind::Usage, message)
}
