//! Messages about the sandbox of commands.

use std::path::Path;

/// Error for a run that requires full confinement where only a weaker tier is available.
pub fn sandbox_required(tier: &str, meaning: &str) -> String {
    format!(
        "`sandbox.mode: require` needs full confinement of commands, but only `{tier}` is available: {meaning}. \
         Run `agent doctor` to see what is missing, or use `--sandbox auto` to run with the available confinement"
    )
}

/// Warning of a run whose commands are not confined.
pub fn not_confined(meaning: &str) -> String {
    format!("commands are NOT confined: {meaning}; run `agent doctor` for the cause")
}

/// Line of `agent doctor` above the results of each tier that it tried.
pub fn no_sandbox(meaning: &str) -> String {
    format!("none: commands are NOT confined, {meaning}. Tried:")
}

/// Warning that a command changed protected files.
pub fn command_damage(command: &str, what: &str) -> String {
    format!("the command `{command}` broke a rule: {what}")
}

/// Warning of a run with `--sandbox off`.
pub const SANDBOX_OFF: &str = "commands are NOT confined (--sandbox off): they can do what you can";

/// Notice that commands have network access.
pub const NETWORK_ALLOWED: &str = "commands can access the network";

/// Notice that commands reach some hosts.
pub fn hosts_allowed(hosts: &str) -> String {
    format!("commands can reach {hosts} through a proxy")
}

/// Error for allowed hosts where commands have no network of their own.
pub fn allowed_hosts_need_sandbox(tier: &str) -> String {
    format!(
        "commands can be limited to the hosts of --allow-host and sandbox.allowed_hosts only in the sandbox `full` or `bubblewrap`, \
         and here it is `{tier}` (agent doctor says why): remove the hosts, or allow the whole network with --allow-net"
    )
}

/// Warning that the proxy refused requests of commands.
pub fn hosts_refused(reasons: &[String]) -> String {
    format!("the proxy refused requests of commands: {}", reasons.join("; "))
}

/// Warning about a directory of `sandbox.writable` that does not exist.
pub fn writable_dir_missing(place: &str) -> String {
    format!("sandbox.writable: {place} is not a directory, so commands cannot write there")
}

/// Warning that hiding paths in a writable directory also denies listing and changing that directory's own entries.
pub fn hidden_directory_notice(place: &Path) -> String {
    format!(
        "commands can neither list {} nor create or remove entries directly in it, because paths below it are hidden and \
         this sandbox (`rules`) cannot hide them otherwise; its other subdirectories are not affected",
        place.display()
    )
}

/// Error for a limit on open files that is too low.
pub fn too_many_open_files(error: &impl std::fmt::Display) -> String {
    format!(
        "the limit on open files (`ulimit -n`) is too low: {error}. Raise it, for example with `ulimit -n 1024`"
    )
}

/// Error for a state directory in which nothing can be stored.
pub fn state_directory_unusable(directory: &Path, error: &impl std::fmt::Display) -> String {
    format!(
        "the state directory {} cannot be used: {error}. Fix the cause, or name another one in AGENT_HOME or XDG_STATE_HOME",
        directory.display()
    )
}

/// Error for a launcher of commands that cannot be started, without a sandbox.
pub fn commands_not_startable(error: &impl std::fmt::Display) -> String {
    format!("commands cannot be started: {error}. Fix the cause and try again")
}

/// Error for a failed probe of the sandbox.
pub fn sandbox_probe_failed(error: &impl std::fmt::Display) -> String {
    format!(
        "the sandbox could not be tried: {error}. Fix the cause and try again, or run without a \
         sandbox with `--sandbox off`"
    )
}
