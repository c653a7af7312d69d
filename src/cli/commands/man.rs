//! `agent man`: prints the manual page, or writes one page per command, generated from the definition of the command line.

use crate::args::Cli;
use agent_core::failure::FailureKind;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Date of this version in the pages; changed with the version.
const DATE: &str = "2026-11-25";

/// Columns of a line of text in the source of a page, as `mandoc -T lint` recommends.
const COLUMNS: usize = 78;

/// Prints the page of `agent`, or writes a page for each command to `directory`, which is created; existing pages are replaced.
///
/// # Errors
/// Fails when the directory, a page or standard output cannot be written.
pub fn man(app: &App, directory: Option<&Path>) -> AppResult<()> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let command = with_all_options(command);
    let Some(directory) = directory else { return print(&app.terminal, &page(&command)) };
    let written = std::fs::create_dir_all(directory).and_then(|()| write_pages(&command, directory));
    written.map_err(|error| {
        let message = format!("cannot write the pages to {}: {error}", directory.display());
        AppError::new(FailureKind::Request, message)
    })?;
    print(&app.terminal, &format!("the pages are in {0}: man -l {0}/agent.1", directory.display()))
}

/// Returns a command with the descriptions of all options, also of those that `-h` leaves out.
fn with_all_options(command: Command) -> Command {
    command.mut_args(|arg| arg.hide_short_help(false)).mut_subcommands(with_all_options)
}

/// Writes the pages of `command` and of its subcommands.
fn write_pages(command: &Command, directory: &Path) -> io::Result<()> {
    command.get_subcommands().try_for_each(|command| write_pages(command, directory))?;
    File::create(directory.join(format!("{}.1", name(command))))?.write_all(page(command).as_bytes())
}

fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// Returns the page of a command, with lines as `mandoc -T lint` wants them.
fn page(command: &Command) -> String {
    let man = Man::new(command.clone())
        .title(name(command).to_uppercase())
        .date(DATE)
        .source(concat!("agent ", env!("CARGO_PKG_VERSION")))
        .manual("agent manual");
    let mut page = Vec::new();
    // Writing to memory does not fail.
    let _infallible = man.render(&mut page);
    let lines: String = String::from_utf8_lossy(&page).lines().map(wrapped).collect();
    lines.replace("\n.br\n\n.br\n", "\n.sp\n")
}

/// Returns a line without trailing spaces; a long line of text is broken, which changes nothing on the page.
fn wrapped(line: &str) -> String {
    let line = line.trim_end();
    if line.starts_with('.') || line.len() <= COLUMNS {
        return format!("{line}\n");
    }
    let mut text = String::new();
    let mut column = 0;
    for word in line.split(' ') {
        // A line that begins with a dot or an apostrophe would be a request.
        let may_break = !word.starts_with(['.', '\'']) && !word.is_empty();
        if column > 0 && column + word.len() >= COLUMNS && may_break {
            text.push('\n');
            column = 0;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += word.len();
    }
    text + "\n"
}
