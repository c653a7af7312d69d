//! Command-line arguments of the commands of several runs.

use crate::commands::run_args::RunOptions;
use agent_flows::work::outcome::end_command;
use agent_flows::work::request::{WorkCommand, WorkRequest, perform, resume};
use agent_flows::work::running::usage;
use agent_messages as messages;
use agent_run::app::App;
use clap::Args;

/// The word in place of a task.
const RESUME: &str = "resume";

/// Arguments that all commands of several runs have.
#[derive(Debug, Args)]
pub struct WorkArgs {
    /// The task, `-` reads it from standard input; or `resume` and the id of a record
    #[arg(value_name = "TASK | resume ID", num_args = 0..=2)]
    pub words: Vec<String>,
    /// Options shared with `run`.
    #[command(flatten)]
    pub options: RunOptions,
}

impl WorkArgs {
    /// Returns what every command is requested with.
    pub fn request(&self) -> WorkRequest {
        let task = match self.words.as_slice() {
            [task] => Some(task.clone()),
            _ => None,
        };
        WorkRequest { task, run: self.options.request(), record: None }
    }
}

/// Performs `command`, or goes on with the one that the words name; returns the exit code. More than one task is an error with the text
/// `one_task`.
pub fn perform_or_resume<C: WorkCommand>(app: &App, words: &[String], command: C, one_task: &str) -> u8 {
    match words {
        [] | [_] => perform(app, command),
        [word, id] if word == RESUME => resume(app, id, &command),
        _ => end_command(app, C::NAME, &command.work().run, Err(usage(one_task))),
    }
}

/// Performs `command`, or goes on with the one that its words name; returns the exit code.
pub fn perform_work<C: WorkCommand>(app: &App, words: &[String], command: C) -> u8 {
    perform_or_resume(app, words, command, messages::ONE_TASK)
}
