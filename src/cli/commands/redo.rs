//! `agent redo`: reverts the last `agent undo`.

use crate::args::RestoreArgs;
use agent_core::file_change::RestoreDirection;
use agent_run::app::App;
use agent_run::error::AppResult;
use agent_run::restore::restore;

/// Restores the files to their state before the last undo.
///
/// # Errors
/// Fails for an unknown session, a file that someone else changed since, and a file that cannot be written.
pub fn redo(app: &App, args: &RestoreArgs) -> AppResult<()> {
    restore(app, &args.request(RestoreDirection::Redo, 0))
}
