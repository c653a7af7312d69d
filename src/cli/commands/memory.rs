//! `agent memory`: lists and changes what is stored for later sessions of the workspace.

use crate::commands::common_args::CommonArgs;
use agent_core::failure::FailureKind;
use agent_journal::memory::{Memory, MemoryError, MemoryKind};
use agent_messages as messages;
use agent_process::editor::run_editor;
use agent_run::app::App;
use agent_run::directories;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use clap::Subcommand;
use std::fmt::Write as _;

/// Subcommands of `agent memory`.
#[derive(Debug, Subcommand)]
pub enum MemoryCommand {
    /// List the entries with their numbers
    List,
    /// Add a fact
    Add {
        /// One sentence, at most 300 characters
        #[arg(required = true)]
        fact: Vec<String>,
    },
    /// Remove the entry with this number
    Rm {
        /// Its number in the list
        number: usize,
    },
    /// Edit the file in $VISUAL or $EDITOR
    Edit,
    /// Remove all entries
    Clear,
}

/// Runs a subcommand; without one, lists the entries.
///
/// # Errors
/// Fails for an invalid configuration, an unusable entry, and when the file cannot be read or written.
pub fn memory(app: &App, command: Option<MemoryCommand>, common: &CommonArgs) -> AppResult<()> {
    let settings = app.load_and_notify(&common.overrides())?.settings;
    let memory = Memory::new(&settings.state);
    let removed = |number: usize| print(&app.terminal, &messages::memory_removed(number));
    match command {
        None | Some(MemoryCommand::List) => list(app, &memory),
        Some(MemoryCommand::Add { fact }) => {
            directories::prepare(&settings)?;
            let redactor = app.redactor(&settings);
            let has_secret = |text: &str| redactor.text(text) != text;
            let day = messages::day(u64::try_from(app.source.unix_time().as_millis()).unwrap_or(u64::MAX));
            memory
                .add(&day, MemoryKind::Fact, &fact.join(" "), has_secret)
                .map_err(|error| failed(&error))?;
            list(app, &memory)
        }
        Some(MemoryCommand::Rm { number }) => {
            match memory.remove(|at, _| at == number).map_err(|error| failed(&error))? {
                0 => Err(AppError::new(FailureKind::Request, format!("there is no entry {number}"))),
                one => removed(one),
            }
        }
        Some(MemoryCommand::Clear) => removed(memory.remove(|_, _| true).map_err(|error| failed(&error))?),
        Some(MemoryCommand::Edit) => edit(app, &memory),
    }
}

fn list(app: &App, memory: &Memory) -> AppResult<()> {
    let entries = memory.entries().map_err(|error| failed(&error.into()))?;
    if entries.is_empty() {
        return print(&app.terminal, messages::NO_MEMORY);
    }
    let mut text = format!("{}\n", memory.path().display());
    for (entry, number) in entries.iter().zip(1..) {
        let _infallible = writeln!(text, "{number:>4}  [{}] {}: {}", entry.day, entry.kind, entry.text);
    }
    print(&app.terminal, &text)
}

fn edit(app: &App, memory: &Memory) -> AppResult<()> {
    let variable = |name| app.environment.get(name).filter(|value| !value.trim().is_empty());
    let Some(editor) = variable("VISUAL").or_else(|| variable("EDITOR")) else {
        return Err(AppError::new(
            FailureKind::Usage,
            "agent memory edit needs an editor: export VISUAL or EDITOR",
        ));
    };
    let status = run_editor(editor, &memory.path(), app.environment.variables());
    match status {
        Ok(status) if status.success() => list(app, memory),
        Ok(status) => {
            Err(AppError::new(FailureKind::Request, format!("the editor `{editor}` failed ({status})")))
        }
        Err(error) => Err(failed(&error.into())),
    }
}

fn failed(error: &MemoryError) -> AppError {
    let kind = match error {
        MemoryError::Length | MemoryError::Secret => FailureKind::Usage,
        MemoryError::Io(_) => FailureKind::Request,
    };
    AppError::new(kind, error.to_string())
}
