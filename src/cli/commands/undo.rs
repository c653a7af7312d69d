//! `agent undo`: restores files to their state before changes of a session.

use crate::args::UndoArgs;
use agent_core::file_change::RestoreDirection;
use agent_run::app::App;
use agent_run::error::AppResult;
use agent_run::restore::restore;

/// Reverts all changes of the session, or those after a step.
///
/// # Errors
/// Fails for an unknown session, a file that someone else changed since, and a file that cannot be written.
pub fn undo(app: &App, args: &UndoArgs) -> AppResult<()> {
    restore(app, &args.restore.request(RestoreDirection::Undo, args.to_step))
}
