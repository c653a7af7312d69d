//! The `agent-health` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    agent_process::launch::launcher_main(std::env::args_os()).unwrap_or_else(agent_health::main)
}
