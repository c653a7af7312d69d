//! `agent diff`: prints a session's changes to files as a unified diff between the earlier and the current content.

use crate::args::DiffArgs;
use agent_core::failure::FailureKind;
use agent_journal::file_history::Restoration;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::file_diff::file_diff;
use agent_run::output::print;
use agent_run::session_history::SessionHistory;
use agent_terminal::{Style, diff_style};
use agent_text::diff;

/// Prints the diffs by path: truncated at a terminal, complete for a file or a pipe.
///
/// # Errors
/// Fails for an unknown session or an unreadable file, and when standard output cannot be written.
pub fn diff(app: &App, args: &DiffArgs) -> AppResult<()> {
    let loaded_session =
        SessionHistory::open_read_only(app, &args.common.overrides(), args.session.as_deref())?;
    let file = args.file.as_deref().map(|file| loaded_session.history_path(file)).transpose()?;
    let changed = loaded_session.history.undo(args.since_step, file.as_deref());
    if changed.is_empty() {
        return print(&app.terminal, messages::NO_FILE_CHANGES);
    }
    let for_person = app.terminal.stream_info().stdout.is_terminal();
    for restoration in changed {
        let whole = loaded_session.redact(&session_diff(&loaded_session, &restoration)?);
        let text = if for_person { diff::truncate(&whole) } else { whole };
        let lines: Vec<(Style, &str)> = text.lines().map(|line| (diff_style(line), line)).collect();
        app.terminal.print_lines(&lines).map_err(|error| {
            AppError::new(FailureKind::Internal, format!("cannot write to standard output: {error}"))
        })?;
    }
    Ok(())
}

/// Returns the diff of one file, with a note first if the file differs from what the session left.
fn session_diff(loaded_session: &SessionHistory, restoration: &Restoration) -> AppResult<String> {
    let Restoration { path, left, wanted, .. } = restoration;
    let now = loaded_session.state_of(path)?;
    let note = if now.is_consistent_with(left) { String::new() } else { messages::changed_by_others(path) };
    if now.is_consistent_with(wanted) {
        return Ok(note);
    }
    let at = loaded_session.path(path)?;
    let SessionHistory { workspace, contents, .. } = loaded_session;
    Ok(format!("{note}{}", file_diff(workspace, contents, restoration, &at, &now)))
}
