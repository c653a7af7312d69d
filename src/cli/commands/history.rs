//! `agent history`: lists the steps of a session that changed files, each usable with `agent undo --to-step`.

use crate::args::HistoryArgs;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::error::AppResult;
use agent_run::output::print;
use agent_run::session_history::SessionHistory;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Length of an abbreviated commit hash in characters, as in git.
const COMMIT_CHARS: usize = 7;

/// Prints the steps, oldest first, with their checkpoint commits.
///
/// # Errors
/// Fails for an unknown or unreadable session, and when standard output cannot be written.
pub fn history(app: &App, args: &HistoryArgs) -> AppResult<()> {
    let loaded_session =
        SessionHistory::open_read_only(app, &args.common.overrides(), args.session.as_deref())?;
    if loaded_session.history.steps().is_empty() {
        return print(&app.terminal, messages::NO_FILE_CHANGES);
    }
    let steps = loaded_session.history.steps();
    let has_commits = steps.iter().any(|step| step.checkpoint.is_some());
    let column =
        |commit: &str| if has_commits { format!("{commit:<COMMIT_CHARS$}  ") } else { String::new() };
    let commits = column("COMMIT");
    let mut text =
        format!("session {}\n{:>5}  {:<16}  {commits}FILES\n", loaded_session.id, "STEP", "TIME (UTC)");
    for step in steps {
        let (time, files) = (messages::minute(step.wall_ms), messages::list_paths(&distinct(&step.files)));
        let commit =
            column(step.checkpoint.as_deref().and_then(|it| it.get(..COMMIT_CHARS)).unwrap_or_default());
        let _infallible = writeln!(text, "{:>5}  {time:<16}  {commit}{files}", step.number);
    }
    print(&app.terminal, &loaded_session.redact(&text))
}

/// Returns the files without duplicates.
fn distinct(files: &[String]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    files.iter().map(String::as_str).filter(|file| seen.insert(*file)).collect()
}
