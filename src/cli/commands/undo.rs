//! `agent undo`: files as they were before what a session did to them.

use crate::cli::args::UndoArgs;
use crate::cli::commands::restore::restore;
use crate::cli::compose::app::App;
use crate::cli::error::CliResult;
use crate::core::file_change::RestoreDirection;

/// Puts back what the session changed, or what it changed after a step.
///
/// # Errors
/// When there is no such session, somebody else changed one of the files since, or one cannot be written.
pub fn undo(app: &App, args: &UndoArgs) -> CliResult<()> {
    restore(app, &args.restore, RestoreDirection::Undo, args.to_step)
}
