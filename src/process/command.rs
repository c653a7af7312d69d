//! Types for a command to start, its options and its result.

use super::capture::{Captured, StoredOutput};
use super::limits::ExceededLimit;
use super::protected::ProtectedChange;
use super::recent_output::RecentOutput;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Command to start, with its time limit.
#[derive(Debug, Clone)]
pub struct CommandSpec {
    /// Program and arguments. No shell is involved unless it is the program.
    pub argv: Vec<String>,
    /// Working directory, absolute.
    pub cwd: PathBuf,
    /// Variables added to the launcher's allow-listed environment.
    pub env: BTreeMap<String, String>,
    /// Bytes of standard input. Empty means `/dev/null`.
    pub stdin: Vec<u8>,
    /// Wall-clock time after which the process tree is killed.
    pub timeout: Duration,
}

/// What a server gets that a command does not.
pub(super) struct ServerInput {
    /// Standard input.
    pub(super) stdin: io::PipeReader,
    /// Variables that the user has mapped for it. They may contain secrets.
    pub(super) env: BTreeMap<String, String>,
}

/// Reason for the end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitReason {
    /// It exited with this code.
    Code(i32),
    /// A signal with this number ended it.
    Signal(i32),
    /// It exceeded its time limit, and its tree was killed.
    TimedOut,
    /// It wrote nothing for the idle timeout, and its tree was killed.
    Idle,
    /// It exceeded a resource limit, and its tree was killed.
    Exceeded(ExceededLimit),
    /// The run was interrupted or ended, and the tree was killed.
    Cancelled,
}

/// Returns the end of a sentence such as "it was ended by signal 15". A command that ran out of memory is ended by signal 9, also in a
/// container, and the system reports nothing else.
pub fn ended_by_signal(signal: i32) -> String {
    let is_kill = signal == rustix::process::Signal::KILL.as_raw();
    let cause = if is_kill { ", which the system sends when memory runs out" } else { "" };
    format!("ended by signal {signal}{cause}")
}

/// Handling of a command's output.
#[derive(Debug)]
pub struct OutputOptions<Open> {
    /// Creates the file for output that exceeds the memory limit.
    pub open_file: Option<Open>,
    /// Time without output after which the command is killed. `None` disables the limit.
    pub idle_timeout: Option<Duration>,
    /// Buffer from which the output can be read while the command runs.
    pub recent: Option<RecentOutput>,
}

/// Result of a command.
#[derive(Debug)]
pub struct CommandOutcome {
    /// Reason for its end.
    pub reason: ExitReason,
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
    /// State of the output file.
    pub stored: StoredOutput,
    /// Protected files that the command changed and that were restored.
    pub protected_changes: Vec<ProtectedChange>,
    /// Wall-clock time of the command.
    pub duration: Duration,
    /// Number of processes that it left running, which were ended.
    pub left_running: usize,
}

/// Reasons why the result of a command is unknown.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The command could not be started.
    #[error("cannot start {program}: {reason}")]
    NotStarted {
        /// Program of the command.
        program: String,
        /// Reason, as text.
        reason: String,
    },
    /// The launcher process was killed.
    #[error("{program} was ended with everything it started, because its launcher process was killed")]
    Orphaned {
        /// Program of the command.
        program: String,
    },
}
