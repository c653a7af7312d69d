//! The program `agent-health`: measures source code: length and cyclomatic complexity of functions, and repeated blocks, in seven languages.

pub mod around_run;
pub mod blocks;
pub mod command;
pub mod earlier_files;
pub mod functions;
pub mod language;
pub mod project;
pub mod scope;

use agent_cli::run_program;
use agent_process::program::end_with_parent;
use agent_run::exit_code::ExitCode;
use clap::{Parser, Subcommand};
use command::HealthArgs;

/// Measures the code of a project: length and complexity of functions, repeated blocks.
#[derive(Debug, Parser)]
#[command(
    name = "agent-health",
    bin_name = "agent",
    version,
    disable_help_subcommand = true,
    max_term_width = 110
)]
struct Cli {
    #[command(subcommand)]
    command: HealthCommand,
}

#[derive(Debug, Subcommand)]
enum HealthCommand {
    /// Measure the code: complexity and length of functions, repeated blocks
    Health(HealthArgs),
    /// Measure the code before and after a run
    #[command(hide = true)]
    AroundRun,
}

/// Runs the program and returns its exit code.
pub fn main() -> std::process::ExitCode {
    run_program(|app, Cli { command }| match command {
        HealthCommand::Health(args) => command::health(app, &args),
        HealthCommand::AroundRun => {
            end_with_parent();
            around_run::around_run(app).map(|()| ExitCode::Success.code())
        }
    })
}
