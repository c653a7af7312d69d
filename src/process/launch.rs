//! Starts a child through our own launcher, limits it, and ends its whole tree.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What to start and how far it may go.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Program and arguments; no shell is involved unless it is named here.
    pub argv: Vec<String>,
    /// Working directory, absolute.
    pub cwd: PathBuf,
    /// Variables on top of the launcher's allow-listed environment.
    pub env: BTreeMap<String, String>,
    /// Bytes for standard input; empty means that it is closed at once (`/dev/null`).
    pub stdin: Vec<u8>,
    /// Wall time after which the tree is ended.
    pub timeout: Duration,
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// Its time was up; the tree was killed.
    TimedOut,
    /// The run was interrupted or ended; the tree was killed.
    Cancelled,
}

/// One captured stream: bounded in memory, complete (up to a limit) in `kept`.
#[derive(Debug, Default)]
pub struct Captured {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes, when there were more than fit into the head.
    pub tail: Vec<u8>,
    /// All bytes the child wrote.
    pub total: u64,
}

/// What became of a child.
#[derive(Debug)]
pub struct Exit {
    /// How it ended.
    pub ended: Ended,
    /// What it wrote to standard output.
    pub stdout: Captured,
    /// What it wrote to standard error.
    pub stderr: Captured,
    /// How long it ran.
    pub duration: Duration,
}

/// A child could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {program}: {reason}")]
pub struct LaunchError {
    /// The program.
    pub program: String,
    /// Why.
    pub reason: String,
}

/// Starts children. One per process.
#[derive(Debug)]
pub struct Launcher {}

impl Launcher {
    /// Runs `spec` to its end, its time limit or `cancel`, whichever is first; nothing of its tree survives.
    ///
    /// # Errors
    /// When the program could not be started.
    pub async fn launch(&self, _spec: Spec, _cancel: &CancellationToken) -> Result<Exit, LaunchError> {
        Err(LaunchError { program: String::new(), reason: String::new() })
    }
}
