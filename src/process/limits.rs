//! Resource limits of a command: those enforced by the kernel, and those enforced by watching its process tree.
//!
//! The kernel limits the number of processes if it can count those of one command ([`ProcessLimit`]). It counts memory per
//! process and not per tree, so the launcher process checks the tree's memory and ends a tree that exceeds its limit.

#[cfg(target_os = "linux")]
use super::process_limit::{ProcessLimit, lower_one};
#[cfg(target_os = "linux")]
use super::tier::Tier;
use serde::{Deserialize, Serialize};

/// Maximum number of files that one process may have open.
#[cfg(target_os = "linux")]
const OPEN_FILES: u64 = 65_536;

/// Longest file that a command may write, in bytes.
pub const FILE_BYTES: u64 = 8 << 30;

/// Percentage of the memory available at the command's start that it may use. The rest is for the user's other programs.
#[cfg(target_os = "linux")]
const MEMORY_SHARE: u64 = 80;

/// Limits of one command with everything it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandLimits {
    /// Maximum number of concurrent processes and threads.
    pub processes: u64,
    /// Maximum memory in bytes. `None` allows most of the memory available at the start.
    pub memory_bytes: Option<u64>,
}

impl Default for CommandLimits {
    fn default() -> Self {
        Self { processes: 512, memory_bytes: None }
    }
}

/// Limit that a command exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExceededLimit {
    /// Number of processes and threads.
    Processes,
    /// Memory.
    Memory,
}

impl ExceededLimit {
    /// Returns the number that encodes the limit in a reply.
    pub(super) fn code(self) -> i32 {
        match self {
            Self::Processes => 1,
            Self::Memory => 2,
        }
    }

    /// Decodes a limit from its number.
    pub(super) fn from_code(code: i32) -> Option<Self> {
        [Self::Processes, Self::Memory].into_iter().find(|excess| excess.code() == code)
    }

    /// Returns what happened and how to avoid it, for the model and the user.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Processes => {
                "it had as many processes and threads as `commands.max_processes` allows. Start fewer at a time (a \
                 smaller `-j`), and look for something that starts itself again and again"
            }
            Self::Memory => {
                "it took more memory than `commands.max_memory_mib` allows, by default 80 % of what was free. Work on \
                 less data or with fewer jobs at a time"
            }
        }
    }
}

/// Lowers the kernel's resource limits of this process and everything that it starts.
///
/// # Errors
/// Fails if the kernel refuses.
#[cfg(target_os = "linux")]
pub(super) fn apply() -> std::io::Result<()> {
    use rustix::process::Resource;
    lower_one(Resource::Core, 0)?;
    lower_one(Resource::Nofile, OPEN_FILES)?;
    lower_one(Resource::Fsize, FILE_BYTES)
}

/// Limits of one command as numbers, with checks of the tree against them.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(super) struct LimitMonitor {
    processes: u64,
    memory_bytes: u64,
    /// Mechanism that also limits the number of processes.
    pub(super) process_limit: ProcessLimit,
    /// Number of processes and threads of the machine when the monitor was created.
    tasks_before: u16,
}

/// Resources in use by a tree at one time.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Number of processes and threads.
    pub(super) tasks: u64,
    /// Bytes of memory without file-backed pages.
    pub(super) memory_bytes: u64,
}

/// Result of a check of the tree.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitStatus {
    /// Below half of each limit.
    Below,
    /// Above half of one limit. The next check should follow soon.
    Near,
    /// At the process limit or above the memory limit.
    Exceeded(ExceededLimit),
}

#[cfg(target_os = "linux")]
impl LimitMonitor {
    /// Computes the limits before the command starts, with the process limit that works in `tier`.
    pub(super) fn new(limits: &CommandLimits, tier: Tier) -> Self {
        let free = || memory_available().map_or(u64::MAX, |bytes| bytes / 100 * MEMORY_SHARE);
        Self {
            processes: limits.processes,
            memory_bytes: limits.memory_bytes.unwrap_or_else(free),
            process_limit: ProcessLimit::new(tier, limits.processes),
            tasks_before: rustix::system::sysinfo().procs,
        }
    }

    /// Applies the kernel's limits to this process and everything that it starts.
    ///
    /// # Errors
    /// Fails if the kernel refuses.
    pub(super) fn enter(&self) -> std::io::Result<()> {
        self.process_limit.enter(self.processes)
    }

    /// Checks whether enough processes were started on this machine for the tree to be near its limit. Costs one system call.
    pub(super) fn may_be_near(&self) -> bool {
        let more = rustix::system::sysinfo().procs.saturating_sub(self.tasks_before);
        u64::from(more) > self.processes / 4
    }

    /// Compares `usage` with the limits.
    pub(super) fn check(&self, usage: Usage) -> LimitStatus {
        if usage.tasks >= self.processes || self.process_limit.was_reached() {
            LimitStatus::Exceeded(ExceededLimit::Processes)
        } else if usage.memory_bytes > self.memory_bytes {
            LimitStatus::Exceeded(ExceededLimit::Memory)
        } else if usage.tasks > self.processes / 2 || usage.memory_bytes > self.memory_bytes / 2 {
            LimitStatus::Near
        } else {
            LimitStatus::Below
        }
    }
}

/// Returns the bytes of memory available without swapping. `None` if the kernel does not report it.
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "a small file of the kernel")]
fn memory_available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kibibytes.saturating_mul(1024))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_far_near_or_beyond() {
        let monitor =
            LimitMonitor::new(&CommandLimits { processes: 10, memory_bytes: Some(1000) }, Tier::Group);
        let read = |tasks, memory_bytes| monitor.check(Usage { tasks, memory_bytes });
        assert_eq!(
            (read(5, 500), read(6, 0), read(9, 1000)),
            (LimitStatus::Below, LimitStatus::Near, LimitStatus::Near)
        );
        assert_eq!(read(10, 0), LimitStatus::Exceeded(ExceededLimit::Processes));
        assert_eq!(read(0, 1001), LimitStatus::Exceeded(ExceededLimit::Memory));
    }

    #[test]
    fn without_a_number_most_of_what_is_free_is_the_limit() {
        let monitor = LimitMonitor::new(&CommandLimits::default(), Tier::Group);
        assert!(monitor.memory_bytes > 0 && monitor.memory_bytes < memory_available().unwrap());
    }

    #[test]
    fn an_exceeded_limit_is_decoded_as_encoded() {
        for excess in [ExceededLimit::Processes, ExceededLimit::Memory] {
            assert_eq!(ExceededLimit::from_code(excess.code()), Some(excess));
        }
        assert_eq!(ExceededLimit::from_code(0), None);
    }
}
