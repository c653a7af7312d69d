//! `agent hub`: feeds the queue with the activations of a Hub, which `agent worker --hub` performs.

pub mod activation;
mod agent_run;
pub mod context;
mod dev;
pub mod one_agent;
mod outbox;
mod prompt;
pub mod readiness;
mod reports;
pub mod serve;
mod skills;
mod workspace;

use crate::commands::hub::dev::DevArgs;
use crate::commands::hub::serve::ServeArgs;
use ::agent_run::app::App;
use ::agent_run::error::AppResult;
use agent_cli::described::Described;
use clap::Subcommand;

/// The commands about a Hub.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum HubCommand {
    /// Look at the Hub and feed the queue with activations
    Serve(Described<ServeArgs>),
    /// Serve a Hub on this machine, to try agents on
    Dev(Described<DevArgs>),
}

/// Runs a command about a Hub, and returns its exit code.
///
/// # Errors
/// Fails when it cannot do what it is asked for.
pub fn hub(app: &App, command: HubCommand) -> AppResult<u8> {
    match command {
        HubCommand::Serve(Described(args)) => serve::serve(app, &args),
        HubCommand::Dev(Described(args)) => dev::dev(app, &args),
    }
}
