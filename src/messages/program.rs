//! Messages about programs that belong to this one.

use std::fmt::Display;

/// Error that the program that performs a command is not installed.
pub fn program_missing(command: &str, program: &str) -> String {
    format!(
        "`{command}` needs the program {program}, which is neither beside agent nor on PATH: `agent help fleet` says how to install it"
    )
}

/// Error that the program at `path` cannot be started.
pub fn program_not_started(path: &str, why: impl Display) -> String {
    format!("cannot start {path}: {why}")
}
