//! `agent redo`: takes back the last `agent undo`.

use crate::cli::args::RestoreArgs;
use crate::cli::commands::restore::restore;
use crate::cli::compose::app::App;
use crate::cli::error::CliResult;
use crate::core::file_change::RestoreDirection;

/// Puts files back to what they were before the last undo that stands.
///
/// # Errors
/// When there is no such session, somebody else changed one of the files since, or one cannot be written.
pub fn redo(app: &App, args: &RestoreArgs) -> CliResult<()> {
    restore(app, args, RestoreDirection::Redo, 0)
}
