//! Messages about programs that belong to this one.

use std::fmt::Display;

/// Tip for a first word that is no command, where the user may have meant `text` as a message.
pub fn no_such_command(text: &str) -> String {
    format!("a message is `agent chat \"{text}\"`, a task is `agent run \"{text}\"`")
}

/// Error that the program that performs a command is not installed; the page `topic` of the manual says how to install it.
pub fn program_missing(command: &str, program: &str, topic: &str) -> String {
    format!(
        "`{command}` needs the program {program}, which is neither beside agent nor on PATH: `agent help {topic}` says how to install it"
    )
}

/// Error that the program at `path` cannot be started.
pub fn program_not_started(path: &str, why: impl Display) -> String {
    format!("cannot start {path}: {why}")
}

/// Why the code was not measured: the program that measures ended without an answer.
pub fn health_program_ended() -> String {
    "agent-health ended without an answer".to_owned()
}
