//! `agent completions`: prints a completion script generated from the definition of the command line.

use crate::args::Cli;
use agent_run::error::AppResult;
use agent_run::output::print;
use agent_terminal::Terminal;
use clap::CommandFactory;
use clap_complete::Shell;

/// Prints the completion script for `shell`.
///
/// # Errors
/// Fails when standard output cannot be written.
pub fn completions(terminal: &Terminal, shell: Shell) -> AppResult<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "agent", &mut script);
    print(terminal, &String::from_utf8_lossy(&script))
}
