//! A child from outside: what to start, and what became of it.

use super::capture::{Captured, StoredOutput};
use super::limits::ExceededLimit;
use super::protected::ProtectedChange;
use super::recent_output::RecentOutput;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// What to start and how far it may go.
#[derive(Debug, Clone)]
pub struct CommandSpec {
    /// Program and arguments; no shell is involved unless it is named here.
    pub argv: Vec<String>,
    /// Working directory, absolute.
    pub cwd: PathBuf,
    /// Variables on top of the launcher's allow-listed environment.
    pub env: BTreeMap<String, String>,
    /// Bytes for standard input; empty means `/dev/null`.
    pub stdin: Vec<u8>,
    /// Wall time after which the tree is ended.
    pub timeout: Duration,
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitReason {
    /// It exited with this code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// Its time was up; the tree was killed.
    TimedOut,
    /// It wrote nothing for as long as it may; the tree was killed.
    Idle,
    /// It took too much of the machine; the tree was killed.
    Exceeded(ExceededLimit),
    /// The run was interrupted or ended; the tree was killed.
    Cancelled,
}

/// What else is wanted of a child's output.
#[derive(Debug)]
pub struct OutputOptions<Open> {
    /// Makes the file for an output too long for memory.
    pub open_file: Option<Open>,
    /// How long it may write nothing before it is ended; without it, as long as it runs.
    pub idle_timeout: Option<Duration>,
    /// Where the output can be read while it runs.
    pub recent: Option<RecentOutput>,
}

/// What became of a child.
#[derive(Debug)]
pub struct CommandOutcome {
    /// How it ended.
    pub reason: ExitReason,
    /// What it wrote to standard output.
    pub stdout: Captured,
    /// What it wrote to standard error.
    pub stderr: Captured,
    /// What the file of a long output holds.
    pub stored: StoredOutput,
    /// The protected files that it did not leave as they were, which have been put back.
    pub protected_changes: Vec<ProtectedChange>,
    /// How long it ran.
    pub duration: Duration,
}

/// Nothing is known of how a child ended.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// It could not be started.
    #[error("cannot start {program}: {reason}")]
    NotStarted {
        /// The program.
        program: String,
        /// Why.
        reason: String,
    },
    /// Its launcher process was killed.
    #[error("{program} was ended with everything it started, because its launcher process was killed")]
    Orphaned {
        /// The program.
        program: String,
    },
}
