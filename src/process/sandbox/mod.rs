//! The sandbox around a command: what it may reach, and the layers of the kernel that hold it to that.
//!
//! `mounts` gives it a view of the file system of its own, `landlock` and `system_calls` are the floor below that
//! and all there is where namespaces are refused, `rights` takes away what root could climb over them with, and
//! `trial` tries to get through.

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

/// Where all programs of a machine keep temporary files.
const SHARED_TEMP_DIRS: [&str; 2] = ["/tmp", "/var/tmp"];

/// What a command may reach. All paths are absolute and without symbolic links.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxPolicy {
    /// Directories that it may change.
    pub writable: Vec<PathBuf>,
    /// What stays as it is inside of them; what does not exist yet is for the launcher to compare afterwards.
    pub read_only: Vec<PathBuf>,
    /// What stays as it is while the directory that it is in does, and is compared afterwards: a mount would keep that directory
    /// in its place too.
    pub compared: Vec<PathBuf>,
    /// Directories that it sees although others that are beside them are covered, such as those of its programs.
    pub visible: Vec<PathBuf>,
    /// Files and directories that it does not see.
    pub hidden: Vec<PathBuf>,
    /// The directory that it finds at `/tmp`, unless it may change that itself.
    pub temporary: PathBuf,
    /// Whether it shares our network.
    pub network: bool,
}

impl SandboxPolicy {
    /// Whether a place where all programs keep temporary files can be another one for the command: not when that is, or is
    /// a part of, what it may change.
    fn is_private(&self, place: &Path) -> bool {
        !self.writable.iter().any(|root| place.starts_with(root))
    }
}

/// Harmless stand-ins for what must be out of reach, and for what must not. The agent makes and watches them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SandboxProbe {
    /// A directory that can be changed; `protected/file` in it cannot.
    pub inside: PathBuf,
    /// Another one; `deep/hidden/file` in it cannot be seen.
    pub around: PathBuf,
    /// A directory that can be seen and not changed; it holds `file`.
    pub outside: PathBuf,
    /// A directory that cannot be seen; it holds `file` and the socket `socket`.
    pub hidden: PathBuf,
    /// Where the agent listens.
    pub tcp: SocketAddr,
    /// Where the agent looks for what arrives.
    pub udp: SocketAddr,
    /// The name of the agent's abstract socket.
    pub name: String,
    /// The agent.
    pub agent: i32,
    /// When it started, as `/proc` has it: in a namespace its number may be another's.
    pub agent_started: u64,
}

/// What went wrong in a trial, as bits: an act that was possible and must not be, or the reverse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaches(pub i32);

/// The acts, in the order of their bits.
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

/// The acts that rules without a view of the command's own cannot prevent: the launcher compares afterwards, and no rule
/// of Landlock knows the rights of a file.
pub(super) const UNCHECKED_WITHOUT_VIEW: [usize; 3] = [2, 3, 4];

impl Breaches {
    /// With a datagram that arrived.
    pub(super) fn with_datagram(self) -> Self {
        Self(self.0 | 1 << BREACH_DESCRIPTIONS.len().saturating_sub(1))
    }

    /// Whether the tier holds what it claims.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// In words.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        BREACH_DESCRIPTIONS
            .into_iter()
            .enumerate()
            .filter(move |(bit, _)| self.0 & (1 << bit) != 0)
            .map(|(_, act)| act)
    }
}

/// When a process started, in clock ticks since the machine did: field 22 of `/proc/PID/stat`, the 20th after the name.
#[expect(clippy::disallowed_methods, reason = "a small file of the kernel")]
pub fn start_time(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Whether the file system is a view of the command's own, or ours behind rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg(target_os = "linux")]
pub(super) enum View {
    /// [`mounts::apply`] has made it.
    Own,
    /// Only Landlock stands between.
    Shared,
}

/// Confines this process and all it will start, for good.
#[cfg(target_os = "linux")]
pub(super) fn confine(policy: &SandboxPolicy, view: View) -> std::io::Result<()> {
    privileges::drop_privileges()?;
    landlock::restrict(policy, view)?;
    seccomp::restrict(policy.network, view)
}
