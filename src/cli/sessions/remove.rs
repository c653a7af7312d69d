//! `agent sessions rm` and `agent sessions cleanup`: sessions that nobody needs any more.

use super::Archive;
use crate::cli::error::{CliError, CliResult};
use crate::cli::output::print;
use crate::failure::ErrorKind;
use crate::journal::retention::{Cleaned, clean, older};
use std::fmt::Write;
use std::time::Duration;

/// Removes the sessions `ids`: all that are there, whatever becomes of the others.
///
/// # Errors
/// When one of them is not there, another process works on it, or it cannot be removed.
pub fn rm(archive: &Archive<'_>, ids: &[String]) -> CliResult<()> {
    let problems: Vec<String> =
        ids.iter().filter_map(|id| archive.store.remove(id).err()).map(|error| error.to_string()).collect();
    if problems.is_empty() {
        return Ok(());
    }
    Err(CliError::new(ErrorKind::Session, problems.join("\n")))
}

/// Removes the sessions in which nothing has happened for `days`, or only names them.
///
/// # Errors
/// When nobody said for how many days, or the sessions cannot be listed.
pub fn cleanup(archive: &Archive<'_>, days: Option<u32>, now: Duration, dry_run: bool) -> CliResult<()> {
    let Some(days) = days else {
        let message = "how old must a session be? `--older-than DAYS`, or `sessions.cleanup_after_days` in the configuration";
        return Err(CliError::new(ErrorKind::Usage, message));
    };
    let mut text = String::new();
    if dry_run {
        for id in older(&archive.store, days, now)? {
            let _infallible = writeln!(text, "{id}");
        }
        return print(archive.terminal, &text);
    }
    let Cleaned { removed, kept } = clean(&archive.store, days, now)?;
    let noun = if removed == 1 { "session" } else { "sessions" };
    let _infallible = writeln!(text, "{removed} {noun} removed");
    for error in kept {
        let _infallible = writeln!(text, "kept: {error}");
    }
    print(archive.terminal, &text)
}
