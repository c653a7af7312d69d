//! `agent diff`: what a session did to files, as a unified diff between what they were before and what they are now.

use crate::change::FileState;
use crate::cli::app::App;
use crate::cli::args::DiffArgs;
use crate::cli::error::{CliError, CliResult};
use crate::cli::output::print;
use crate::cli::past::Past;
use crate::failure::ErrorKind;
use crate::journal::history::Restoration;
use crate::messages;
use crate::terminal::{Stdout, Style};
use crate::text::diff;
use crate::workspace::contents::MAX_FILE_BYTES;

/// Prints the diffs by path: cut for a person at a terminal, whole for a file or a program.
///
/// # Errors
/// When there is no such session, a file cannot be read, or standard output cannot be written.
pub fn diff(app: &App, args: &DiffArgs) -> CliResult<()> {
    let past = Past::look(app, &args.place, args.session.as_deref())?;
    let file = args.file.as_deref().map(|file| past.name_of(file)).transpose()?;
    let changed = past.history.undo(args.since_step, file.as_deref());
    if changed.is_empty() {
        return print(&app.terminal, messages::NOTHING_CHANGED);
    }
    let for_person = app.terminal.facts().stdout != Stdout::Elsewhere;
    for restoration in changed {
        let whole = past.clean(&one(&past, &restoration)?);
        let text = if for_person { diff::cut(&whole) } else { whole };
        let lines: Vec<(Style, &str)> = text.lines().map(|line| (style(line), line)).collect();
        app.terminal.print_lines(&lines).map_err(|error| {
            CliError::new(ErrorKind::Internal, format!("cannot write to standard output: {error}"))
        })?;
    }
    Ok(())
}

/// What happened to one file, with a line before it where it is not what the session left.
fn one(past: &Past, Restoration { path, left, wanted, .. }: &Restoration) -> CliResult<String> {
    let now = past.state_of(path)?;
    let mut note = if now.agrees(left) { String::new() } else { messages::changed_by_others(path) };
    if now.agrees(wanted) {
        return Ok(note);
    }
    if let (Some(old), Some(new)) = (wanted.mode(), now.mode())
        && old != new
    {
        note.push_str(&messages::modes(path, old, new));
    }
    let new = match &now {
        FileState::Absent => Some(Vec::new()),
        FileState::Content { .. } | FileState::Unknown => {
            past.workspace.content_of(&past.path(path)?, MAX_FILE_BYTES).ok()
        }
    };
    let old = match wanted {
        FileState::Absent => Some(Vec::new()),
        FileState::Content { hash, .. } => past.contents.get(hash),
        FileState::Unknown => None,
    };
    let text = |bytes: Option<Vec<u8>>| bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    Ok(match (text(old), text(new)) {
        (Some(old), Some(new)) => format!("{note}{}", diff::whole(path, &old, &new)),
        _ => format!("{note}{}", messages::no_diff(path)),
    })
}

/// How a line of a diff looks.
fn style(line: &str) -> Style {
    match line.as_bytes().first() {
        _ if line.starts_with("+++ ") || line.starts_with("--- ") => Style::Bold,
        Some(b'+') => Style::Good,
        Some(b'-') => Style::Bad,
        Some(b'@') => Style::Dim,
        _ => Style::Plain,
    }
}
