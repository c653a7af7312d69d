//! What is said about the confinement of commands.

use std::path::Path;

/// Why a run that requires confinement does not begin.
pub fn sandbox_required(tier: &str, meaning: &str) -> String {
    format!(
        "`sandbox.mode: require` demands the full confinement of commands, and here there is `{tier}`: {meaning}. \
         `agent doctor` says what is missing; `--sandbox auto` goes on with what there is"
    )
}

/// The warning of a run whose commands are not confined.
pub fn not_confined(meaning: &str) -> String {
    format!("commands are NOT confined: {meaning}; `agent doctor` says why")
}

/// What `agent doctor` says of it, above what became of each kind of confinement that it tried.
pub fn no_sandbox(meaning: &str) -> String {
    format!("none: commands are NOT confined, {meaning}. What was tried:")
}

/// Tells people what a command did to protected files.
pub fn command_damage(command: &str, what: &str) -> String {
    format!("the command `{command}` went too far: {what}")
}

/// The warning of a run that was told to confine nothing.
pub const SANDBOX_OFF: &str = "commands are NOT confined (--sandbox off): they can do what you can";

/// Said where commands share the network.
pub const NETWORK_ALLOWED: &str = "commands reach the network";

/// The warning of a run whose configuration lets commands change a directory that is not there.
pub fn writable_dir_missing(place: &str) -> String {
    format!("sandbox.writable: {place} is no directory, so commands cannot write there")
}

/// The warning of a run whose rules can hide something in a directory that commands may change by narrowing that only.
pub fn hidden_directory_notice(place: &Path) -> String {
    format!(
        "commands can neither list {} nor make or remove anything directly in it, because something is hidden below and \
         only rules hold that; in its other directories they can",
        place.display()
    )
}

/// Why a run does not begin whose confinement could not be tried.
pub fn sandbox_probe_failed(error: &impl std::fmt::Display) -> String {
    format!(
        "what confines commands here could not be tried: {error}. Nothing runs on a guess: mend that and try again, or \
         go without with `--sandbox off`"
    )
}
