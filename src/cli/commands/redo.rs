//! `agent redo`: reverts the last `agent undo`.

use crate::cli::args::RestoreArgs;
use crate::cli::commands::restore::restore;
use crate::core::file_change::RestoreDirection;
use crate::run::app::App;
use crate::run::error::CliResult;

/// Restores the files to their state before the last undo.
///
/// # Errors
/// Fails for an unknown session, a file that someone else changed since, and a file that cannot be written.
pub fn redo(app: &App, args: &RestoreArgs) -> CliResult<()> {
    restore(app, args, RestoreDirection::Redo, 0)
}
