//! Commands that another program of this project performs: it stands beside this one, or on the search path.

use crate::described::Described;
use agent_core::failure::FailureKind;
use agent_messages as messages;
use agent_process::program;
use agent_run::app::App;
use agent_run::code_health::HEALTH;
use agent_run::error::{AppError, AppResult};
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// The program of the queue and of the Hub.
pub const FLEET: &str = "agent-fleet";

/// Arguments for the other program.
#[derive(Debug, Args)]
pub struct ProgramArgs {
    /// Arguments of the command; `--help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, num_args = 0.., value_name = "ARGS")]
    pub words: Vec<OsString>,
}

/// The commands of the queue, which `agent-fleet` performs.
#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    /// Add tasks to the queue
    #[command(disable_help_flag = true)]
    Submit(Described<ProgramArgs>),
    /// List, show, wait for, cancel or remove the tasks of the queue
    #[command(disable_help_flag = true)]
    Tasks(Described<ProgramArgs>),
    /// Do the tasks of the queue, each in a worktree of its own
    #[command(disable_help_flag = true)]
    Worker(Described<ProgramArgs>),
    /// Activate agents on a Hub: feed the queue with what it has for them
    #[command(disable_help_flag = true)]
    Hub(Described<ProgramArgs>),
}

/// Has `agent-fleet` perform a command of the queue.
///
/// # Errors
/// When the program is not installed, or cannot be started.
pub fn fleet(app: &App, command: FleetCommand) -> AppResult<u8> {
    let (name, args) = match command {
        FleetCommand::Submit(Described(args)) => ("submit", args),
        FleetCommand::Tasks(Described(args)) => ("tasks", args),
        FleetCommand::Worker(Described(args)) => ("worker", args),
        FleetCommand::Hub(Described(args)) => ("hub", args),
    };
    perform(app, FLEET, name, args)
}

/// Has `agent-health` measure the code.
///
/// # Errors
/// When the program is not installed, or cannot be started.
pub fn health(app: &App, args: ProgramArgs) -> AppResult<u8> {
    perform(app, HEALTH, "health", args)
}

/// Replaces this program with `name`, which performs `command`.
///
/// # Errors
/// When the program is not installed, or cannot be started.
fn perform(app: &App, name: &str, command: &str, args: ProgramArgs) -> AppResult<u8> {
    let path = find(app, name).ok_or_else(|| {
        AppError::new(
            FailureKind::Config,
            messages::program_missing(
                &format!("agent {command}"),
                name,
                if name == FLEET { "fleet" } else { "health" },
            ),
        )
    })?;
    let words: Vec<OsString> = std::iter::once(command.into()).chain(args.words).collect();
    let error = program::replace_with(&path, &words);
    let message = messages::program_not_started(&path.to_string_lossy(), &error);
    Err(AppError::new(FailureKind::Config, message))
}

/// Returns where the program `name` is.
pub fn find(app: &App, name: &str) -> Option<PathBuf> {
    program::find(name, app.environment.get("PATH"), app.environment.current_dir())
}
