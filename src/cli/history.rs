//! `agent history`: the steps of a session that changed files, each a point that `agent undo --to-step` goes back to.

use crate::cli::app::App;
use crate::cli::args::HistoryArgs;
use crate::cli::error::CliResult;
use crate::cli::output::print;
use crate::cli::past::Past;
use crate::messages;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Prints the steps, oldest first.
///
/// # Errors
/// When there is no such session, it cannot be read, or standard output cannot be written.
pub fn history(app: &App, args: &HistoryArgs) -> CliResult<()> {
    let past = Past::look(app, &args.place, args.session.as_deref())?;
    if past.history.steps().is_empty() {
        return print(&app.terminal, messages::NOTHING_CHANGED);
    }
    let mut text = format!("session {}\n{:>5}  {:<16}  FILES\n", past.id, "STEP", "TIME (UTC)");
    for step in past.history.steps() {
        let (time, files) = (messages::minute(step.wall_ms), messages::named(&distinct(&step.files)));
        let _infallible = writeln!(text, "{:>5}  {time:<16}  {files}", step.number);
    }
    print(&app.terminal, &past.clean(&text))
}

/// Each file once.
fn distinct(files: &[String]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    files.iter().map(String::as_str).filter(|file| seen.insert(*file)).collect()
}
