//! The `agent` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    // `None` is an ordinary start, whose arguments `cli` reads; `Some` is the end of a launcher of child processes, which is this program too.
    agent_process::launch::launcher_main(std::env::args_os()).unwrap_or_else(agent_cli::main)
}
