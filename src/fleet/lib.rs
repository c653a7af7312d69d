//! The program `agent-fleet`: the queue of tasks and the agents of a Hub. Tasks are submitted by anyone, done by workers, kept in an `SQLite` database or on a NATS server.

pub mod backoff;
pub mod boot_clock;
pub mod commands;
pub mod day_budget;
pub mod error;
pub mod hub;
pub mod leader;
pub mod location;
pub mod metrics;
pub mod nats;
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test starts the server")]
#[path = "../../tests/nats_server.rs"]
mod nats_server;
pub mod objects;
pub mod queue;
#[cfg(test)]
#[path = "../../tests/it/support/random.rs"]
mod random;
mod retention;
pub mod selection;
pub mod shared_values;
#[cfg(test)]
mod simulation_tests;
pub mod sqlite;
pub mod unreadable;

use agent_cli::run_program;
use clap::Parser;
use commands::FleetCommand;

/// The queue of tasks of the terminal coding agent.
#[derive(Debug, Parser)]
#[command(
    name = "agent-fleet",
    bin_name = "agent",
    version,
    disable_help_subcommand = true,
    max_term_width = 110
)]
struct Cli {
    #[command(subcommand)]
    command: FleetCommand,
}

/// Runs the program and returns its exit code.
pub fn main() -> std::process::ExitCode {
    run_program(|app, Cli { command }| commands::fleet(app, command))
}
