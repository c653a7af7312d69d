//! `agent undo`: restores files to their state before changes of a session.

use crate::cli::args::UndoArgs;
use crate::cli::commands::restore::restore;
use crate::core::file_change::RestoreDirection;
use crate::run::app::App;
use crate::run::error::CliResult;

/// Reverts all changes of the session, or those after a step.
///
/// # Errors
/// Fails for an unknown session, a file that someone else changed since, and a file that cannot be written.
pub fn undo(app: &App, args: &UndoArgs) -> CliResult<()> {
    restore(app, &args.restore, RestoreDirection::Undo, args.to_step)
}
