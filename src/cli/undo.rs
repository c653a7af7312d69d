//! `agent undo`: files as they were before what a session did to them.

use crate::cli::app::App;
use crate::cli::args::UndoArgs;
use crate::cli::error::CliResult;
use crate::cli::restore::restore;
use crate::event::Way;

/// Puts back what the session changed, or what it changed after a step.
///
/// # Errors
/// When files cannot be put back: see [`restore`].
pub fn undo(app: &App, args: &UndoArgs) -> CliResult<()> {
    restore(app, &args.restore, Way::Undo, args.to_step)
}
