//! The program `agent-health`: measures source code: length and cyclomatic complexity of functions, and repeated blocks, in seven languages.

pub mod around_run;
pub mod blocks;
pub mod command;
pub mod earlier_files;
pub mod functions;
pub mod language;
pub mod project;
pub mod scope;

use agent_cli::{code, print_parse_error};
use agent_run::exit_code::ExitCode;
use agent_run::program;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
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
    let app = program::start();
    let parsed = Cli::command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let code = match parsed {
        Ok(Cli { command: HealthCommand::Health(args) }) => code(&app, command::health(&app, &args)),
        Ok(Cli { command: HealthCommand::AroundRun }) => {
            agent_process::program::end_with_parent();
            code(&app, around_run::around_run(&app).map(|()| ExitCode::Success.code()))
        }
        Err(error) => print_parse_error(&app, &error),
    };
    code.into()
}
