//! `agent diff`: prints a session's changes to files as a unified diff between the earlier and the current content.

use crate::cli::args::DiffArgs;
use crate::cli::compose::app::App;
use crate::cli::compose::output::print;
use crate::cli::compose::session_history::SessionHistory;
use crate::cli::error::{CliError, CliResult};
use crate::core::failure::FailureKind;
use crate::core::file_change::FileState;
use crate::journal::file_history::Restoration;
use crate::messages;
use crate::terminal::{StdoutTarget, Style, diff_style};
use crate::text::diff;
use crate::workspace::content_store::MAX_FILE_BYTES;

/// Prints the diffs by path: truncated at a terminal, complete for a file or a pipe.
///
/// # Errors
/// Fails for an unknown session or an unreadable file, and when standard output cannot be written.
pub fn diff(app: &App, args: &DiffArgs) -> CliResult<()> {
    let loaded_session = SessionHistory::open_read_only(app, &args.common, args.session.as_deref())?;
    let file = args.file.as_deref().map(|file| loaded_session.history_path(file)).transpose()?;
    let changed = loaded_session.history.undo(args.since_step, file.as_deref());
    if changed.is_empty() {
        return print(&app.terminal, messages::NO_FILE_CHANGES);
    }
    let for_person = app.terminal.stream_info().stdout != StdoutTarget::Elsewhere;
    for restoration in changed {
        let whole = loaded_session.redact(&file_diff(&loaded_session, &restoration)?);
        let text = if for_person { diff::truncate(&whole) } else { whole };
        let lines: Vec<(Style, &str)> = text.lines().map(|line| (diff_style(line), line)).collect();
        app.terminal.print_lines(&lines).map_err(|error| {
            CliError::new(FailureKind::Internal, format!("cannot write to standard output: {error}"))
        })?;
    }
    Ok(())
}

/// Returns the diff of one file, with a note first if the file differs from what the session left.
fn file_diff(
    loaded_session: &SessionHistory,
    Restoration { path, left, wanted, .. }: &Restoration,
) -> CliResult<String> {
    let now = loaded_session.state_of(path)?;
    let mut note =
        if now.is_consistent_with(left) { String::new() } else { messages::changed_by_others(path) };
    if now.is_consistent_with(wanted) {
        return Ok(note);
    }
    if let (Some(old), Some(new)) = (wanted.mode(), now.mode())
        && old != new
    {
        note.push_str(&messages::mode_changed(path, old, new));
    }
    let new = match &now {
        FileState::Absent => Some(Vec::new()),
        FileState::Content { .. } | FileState::Unknown => {
            loaded_session.workspace.content_of(&loaded_session.path(path)?, MAX_FILE_BYTES).ok()
        }
    };
    let old = match wanted {
        FileState::Absent => Some(Vec::new()),
        FileState::Content { hash, .. } => loaded_session.contents.get(hash),
        FileState::Unknown => None,
    };
    let text = |bytes: Option<Vec<u8>>| bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    Ok(match (text(old), text(new)) {
        (Some(old), Some(new)) => format!("{note}{}", diff::unified_full(path, &old, &new)),
        _ => format!("{note}{}", messages::no_diff(path)),
    })
}
