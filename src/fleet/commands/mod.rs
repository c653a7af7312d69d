//! The commands of `agent-fleet`, which `agent` starts for its own of the same names.

mod attempt;
mod attempt_directory;
mod bundle;
pub mod claim;
pub mod context;
pub mod executor;
pub mod hub;
mod long_prompt;
pub mod monitor;
pub mod readiness;
pub mod records;
mod shared_budget;
pub mod stored_session;
pub mod submit;
mod task_metrics;
pub mod tasks;
mod top;
pub mod worker;
mod worker_args;
mod worker_lock;
mod worker_name;

use crate::commands::hub::HubCommand;
use crate::commands::readiness::ReadinessArgs;
use crate::commands::submit::SubmitArgs;
use crate::commands::tasks::TasksArgs;
use crate::commands::worker_args::WorkerArgs;
use agent_cli::described::Described;
use agent_run::app::App;
use agent_run::error::AppResult;
use clap::Subcommand;

/// The commands of the queue.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum FleetCommand {
    /// Add tasks to the queue
    Submit(Described<Box<SubmitArgs>>),
    /// List, show, wait for, cancel or remove the tasks of the queue
    Tasks(Described<TasksArgs>),
    /// Do the tasks of the queue, each in a worktree of its own
    Worker(Described<Box<WorkerArgs>>),
    /// Activate agents on a Hub: feed the queue with what it has for them
    Hub {
        /// The subcommand.
        #[command(subcommand)]
        command: Described<HubCommand>,
    },
    /// Print what `agent doctor` shows about the queue and the Hub
    #[command(hide = true)]
    Readiness(ReadinessArgs),
}

/// Runs a command of the queue, and returns its exit code.
///
/// # Errors
/// Fails when it cannot do what it is asked for.
pub fn fleet(app: &App, command: FleetCommand) -> AppResult<u8> {
    match command {
        FleetCommand::Submit(Described(args)) => submit::submit(app, &args),
        FleetCommand::Tasks(Described(args)) => tasks::tasks(app, args),
        FleetCommand::Worker(Described(args)) => worker::worker(app, *args),
        FleetCommand::Hub { command: Described(command) } => hub::hub(app, command),
        FleetCommand::Readiness(args) => readiness::readiness(app, &args),
    }
}
