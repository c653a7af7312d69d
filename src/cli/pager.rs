//! Shows text that is longer than the screen with the user's pager.

use agent_core::failure::FailureKind;
use agent_process::pager::replace_with_pager;
use agent_process::program;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use agent_terminal::preview::Row;
use agent_terminal::{Style, TerminalSize};
use std::path::Path;

/// The pager of those who have not chosen one.
const DEFAULT_PAGER: &str = "less";
/// The pager that shows a text at once, as no pager does.
const NO_PAGER: &str = "cat";

/// Prints rows on a terminal of `size`: where they do not fit on its screen, with the pager that `PAGER` names, else with `less`, if there is one. A pager
/// takes the place of this program.
///
/// # Errors
/// When standard output cannot be written.
pub fn print_page(app: &App, rows: &[Row], size: TerminalSize) -> AppResult<()> {
    // One row is for the prompt of the shell.
    if rows.len() >= size.height
        && let Some(pager) = pager(app)
    {
        let text = app.terminal.painted(rows);
        // Only a pager that cannot be started comes back.
        let _error = replace_with_pager(&pager, &text, app.environment.variables());
    }
    app.terminal.print_rows(rows).map(drop).map_err(|error| {
        AppError::new(FailureKind::Internal, format!("cannot write to standard output: {error}"))
    })
}

/// Prints lines: on a terminal with a pager if they do not fit on its screen.
///
/// # Errors
/// When standard output cannot be written.
pub fn print_long(app: &App, text: &str) -> AppResult<()> {
    let Some(size) = app.terminal.output_size() else { return print(&app.terminal, text) };
    let row = |line: &str| vec![(if is_heading(line) { Style::Bold } else { Style::Plain }, line.to_owned())];
    print_page(app, &text.lines().map(row).collect::<Vec<Row>>(), size)
}

/// Checks whether a line of a list is the name of the rows below it.
fn is_heading(line: &str) -> bool {
    line.ends_with(':') && !line.starts_with(' ')
}

fn pager(app: &App) -> Option<String> {
    let variables = app.environment.variables();
    if variables.get("TERM").is_some_and(|term| term == "dumb") {
        return None;
    }
    if let Some(chosen) = variables.get("PAGER") {
        let chosen = chosen.trim();
        let program = shlex::split(chosen).and_then(|words| words.into_iter().next()).unwrap_or_default();
        // The shell would say that it is missing, and the text would not be seen.
        let found = program::find(&program, app.environment.get("PATH"), Path::new("."));
        return found.filter(|_| chosen != NO_PAGER).map(|_| chosen.to_owned());
    }
    let found = program::find(DEFAULT_PAGER, app.environment.get("PATH"), Path::new("."))?;
    Some(format!("{} -FRX", shlex::try_quote(found.to_str()?).ok()?))
}
