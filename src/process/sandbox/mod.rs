//! Sandbox around a command: the policy, and the kernel mechanisms that enforce it.
//!
//! `mounts` creates a separate view of the file system. `landlock` and `seccomp` are the second layer, and the only one if the
//! kernel refuses namespaces. `privileges` drops the capabilities with which root could bypass them. `probe` tries to break
//! out.

#[cfg(target_os = "linux")]
pub(super) mod bubblewrap;
pub mod confinement;
mod credentials;
mod git_config;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod mount_plan;
#[cfg(target_os = "linux")]
pub(super) mod mounts;
pub mod policy;
#[cfg(target_os = "linux")]
mod privileges;
#[cfg(target_os = "linux")]
pub(super) mod probe;
pub mod protected_names;
pub mod repositories;
mod seccomp;
#[cfg(target_os = "linux")]
mod seccomp_program;
pub mod settings;
#[cfg(target_os = "linux")]
pub(super) mod signal_filter;

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Directories for temporary files of all programs.
pub const SHARED_TEMP_DIRS: [&str; 2] = ["/tmp", "/var/tmp"];

/// Access policy of a command. All paths are absolute and without symbolic links.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxPolicy {
    /// Directories that the command may change.
    pub writable: Vec<PathBuf>,
    /// Unchangeable paths inside of them. The launcher compares those that do not exist yet afterwards.
    pub read_only: Vec<PathBuf>,
    /// Paths that are unchangeable as long as their parent directory exists. They are compared afterwards, because a mount
    /// would also pin the parent directory.
    pub compared: Vec<PathBuf>,
    /// Directories that are visible inside of covered ones, such as those of programs, and inside of hidden ones, such as the worktree of a
    /// run.
    pub visible: Vec<PathBuf>,
    /// Files and directories that the command cannot see.
    pub hidden: Vec<PathBuf>,
    /// Directory mounted at `/tmp`, unless the command may change `/tmp` itself.
    pub temporary: PathBuf,
    /// Whether the command shares the host's network.
    pub network: bool,
}

impl SandboxPolicy {
    /// Checks whether the shared temporary directory `dir` can be replaced for the command. It cannot if it is, or is below,
    /// a writable directory.
    fn is_private(&self, dir: &Path) -> bool {
        !self.writable.iter().any(|root| dir.starts_with(root))
    }
}

/// Harmless stand-ins for protected and unprotected resources. The agent creates and watches them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SandboxProbe {
    /// Writable directory. `protected/file` in it is read-only.
    pub inside: PathBuf,
    /// Another writable directory. `deep/hidden/file` in it is hidden.
    pub around: PathBuf,
    /// Visible read-only directory with `file`.
    pub outside: PathBuf,
    /// Hidden directory with `file` and the socket `socket`.
    pub hidden: PathBuf,
    /// Address on which the agent listens.
    pub tcp: SocketAddr,
    /// Address on which the agent receives datagrams.
    pub udp: SocketAddr,
    /// Name of the agent's abstract socket.
    pub name: String,
    /// Process id of the agent.
    pub agent: i32,
    /// Start time of the agent from `/proc`. In a namespace its id may belong to another process.
    pub agent_started: u64,
}

/// Failed checks of a probe as bits: an action that was possible and must not be, or the reverse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaches(pub i32);

/// The actions, in the order of their bits.
const BREACH_DESCRIPTIONS: [&str; 18] = [
    "writes a file outside",
    "creates a file outside",
    "changes the rights of a file outside",
    "changes a protected file",
    "replaces the directory of a protected file",
    "reads a hidden file",
    "connects over TCP",
    "connects to a socket in the file system",
    "connects to an abstract socket",
    "reads the agent's environment",
    "signals the agent",
    "makes itself root of a namespace",
    "cannot write inside",
    "cannot start a process",
    "cannot write to /dev/null",
    "empties a file outside",
    "reaches a hidden file inside",
    "sends over UDP",
];

/// Actions that Landlock without a separate view cannot prevent: the launcher compares afterwards, and Landlock has no right
/// for changing a file's mode.
pub(super) const UNCHECKED_WITHOUT_VIEW: [usize; 3] = [2, 3, 4];

impl Breaches {
    /// Adds the breach of a datagram that arrived.
    pub(super) fn with_datagram(self) -> Self {
        Self(self.0 | 1 << BREACH_DESCRIPTIONS.len().saturating_sub(1))
    }

    /// Checks whether the tier confines as promised.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the descriptions of the breaches.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        BREACH_DESCRIPTIONS
            .into_iter()
            .enumerate()
            .filter(move |(bit, _)| self.0 & (1 << bit) != 0)
            .map(|(_, act)| act)
    }
}

/// Returns the start time of a process in clock ticks since boot: field 22 of `/proc/PID/stat`, the 20th after the name.
#[expect(clippy::disallowed_methods, reason = "a small file of the kernel")]
pub fn start_time(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// File system view of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg(target_os = "linux")]
pub(super) enum View {
    /// A separate view, created by [`mounts::apply`].
    Own,
    /// The host's view, restricted only by Landlock.
    Shared,
}

/// Confines this process and everything that it starts, permanently.
#[cfg(target_os = "linux")]
pub(super) fn confine(policy: &SandboxPolicy, view: View) -> std::io::Result<()> {
    privileges::drop_privileges()?;
    landlock::restrict(policy, view)?;
    seccomp::restrict(policy.network, view)
}
