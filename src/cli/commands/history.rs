//! `agent history`: the steps of a session that changed files, each a point that `agent undo --to-step` goes back to.

use crate::cli::args::HistoryArgs;
use crate::cli::compose::app::App;
use crate::cli::compose::output::print;
use crate::cli::compose::session_history::SessionHistory;
use crate::cli::error::CliResult;
use crate::messages;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Characters of the name of a commit, as git itself shortens it.
const COMMIT_CHARS: usize = 7;

/// Prints the steps, oldest first, with the commits that were made of them.
///
/// # Errors
/// When there is no such session, it cannot be read, or standard output cannot be written.
pub fn history(app: &App, args: &HistoryArgs) -> CliResult<()> {
    let loaded_session = SessionHistory::open_read_only(app, &args.common, args.session.as_deref())?;
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

/// Each file once.
fn distinct(files: &[String]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    files.iter().map(String::as_str).filter(|file| seen.insert(*file)).collect()
}
