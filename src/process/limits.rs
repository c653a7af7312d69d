//! What a command may take of the machine: limits that the kernel holds, and those for which its tree is watched.
//!
//! The number of processes is held by the kernel where it can count those of one command ([`ProcessLimit`]). Memory it counts
//! for each process and not for a tree. So the launcher process looks at the tree too, and ends it when it is too much.

#[cfg(target_os = "linux")]
use super::process_limit::{ProcessLimit, lower_one};
#[cfg(target_os = "linux")]
use super::tier::Tier;
use serde::{Deserialize, Serialize};

/// Files that one process may have open.
#[cfg(target_os = "linux")]
const OPEN_FILES: u64 = 65_536;

/// The longest file that a command may write, in bytes.
pub const FILE_BYTES: u64 = 8 << 30;

/// Parts of a hundred of the memory that is free when a command begins: the rest is for the person's own programs.
#[cfg(target_os = "linux")]
const MEMORY_SHARE: u64 = 80;

/// What one command, with everything it starts, may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandLimits {
    /// Processes and threads at the same time.
    pub processes: u64,
    /// Bytes of memory; without a number most of what is free when it begins.
    pub memory_bytes: Option<u64>,
}

impl Default for CommandLimits {
    fn default() -> Self {
        Self { processes: 512, memory_bytes: None }
    }
}

/// What a command took too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExceededLimit {
    /// Processes and threads.
    Processes,
    /// Memory.
    Memory,
}

impl ExceededLimit {
    /// Its number on the way to the agent.
    pub(super) fn code(self) -> i32 {
        match self {
            Self::Processes => 1,
            Self::Memory => 2,
        }
    }

    /// The excess with this number.
    pub(super) fn from_code(code: i32) -> Option<Self> {
        [Self::Processes, Self::Memory].into_iter().find(|excess| excess.code() == code)
    }

    /// What happened, and what to do about it, for the model and for people.
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

/// Lowers what the kernel holds this process to, and all that it will start.
///
/// # Errors
/// When the kernel refuses.
#[cfg(target_os = "linux")]
pub(super) fn apply() -> std::io::Result<()> {
    use rustix::process::Resource;
    lower_one(Resource::Core, 0)?;
    lower_one(Resource::Nofile, OPEN_FILES)?;
    lower_one(Resource::Fsize, FILE_BYTES)
}

/// The limits in figures, and how close a tree is to them.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(super) struct LimitMonitor {
    processes: u64,
    memory_bytes: u64,
    /// What holds the number of processes besides.
    pub(super) process_limit: ProcessLimit,
    /// Processes and threads of the machine when it was made.
    tasks_before: u16,
}

/// What a tree takes at a moment.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Processes and threads.
    pub(super) tasks: u64,
    /// Bytes of memory that are its own and no file's.
    pub(super) memory_bytes: u64,
}

/// What a look at the tree says.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitStatus {
    /// Less than half of each limit.
    Below,
    /// More than half of one: worth another look soon.
    Near,
    /// At the limit on processes, or beyond that on memory.
    Exceeded(ExceededLimit),
}

#[cfg(target_os = "linux")]
impl LimitMonitor {
    /// The figures of `limits` now, before the command takes anything, with what holds it to them in `tier`.
    pub(super) fn new(limits: &CommandLimits, tier: Tier) -> Self {
        let free = || memory_available().map_or(u64::MAX, |bytes| bytes / 100 * MEMORY_SHARE);
        Self {
            processes: limits.processes,
            memory_bytes: limits.memory_bytes.unwrap_or_else(free),
            process_limit: ProcessLimit::new(tier, limits.processes),
            tasks_before: rustix::system::sysinfo().procs,
        }
    }

    /// Puts this process, and all that it will start, under the limits that the kernel holds.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn enter(&self) -> std::io::Result<()> {
        self.process_limit.enter(self.processes)
    }

    /// Whether so many processes were started on this machine that the tree may be near its limit. That is one system call.
    pub(super) fn may_be_near(&self) -> bool {
        let more = rustix::system::sysinfo().procs.saturating_sub(self.tasks_before);
        u64::from(more) > self.processes / 4
    }

    /// How close `usage` is.
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

/// Bytes that programs can have without others being pushed out; `None` where the kernel does not say.
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
        let gauge =
            LimitMonitor::new(&CommandLimits { processes: 10, memory_bytes: Some(1000) }, Tier::Group);
        let read = |tasks, memory_bytes| gauge.check(Usage { tasks, memory_bytes });
        assert_eq!(
            (read(5, 500), read(6, 0), read(9, 1000)),
            (LimitStatus::Below, LimitStatus::Near, LimitStatus::Near)
        );
        assert_eq!(read(10, 0), LimitStatus::Exceeded(ExceededLimit::Processes));
        assert_eq!(read(0, 1001), LimitStatus::Exceeded(ExceededLimit::Memory));
    }

    #[test]
    fn without_a_number_most_of_what_is_free_is_the_limit() {
        let gauge = LimitMonitor::new(&CommandLimits::default(), Tier::Group);
        assert!(gauge.memory_bytes > 0 && gauge.memory_bytes < memory_available().unwrap());
    }

    #[test]
    fn an_excess_survives_the_way() {
        for excess in [ExceededLimit::Processes, ExceededLimit::Memory] {
            assert_eq!(ExceededLimit::from_code(excess.code()), Some(excess));
        }
        assert_eq!(ExceededLimit::from_code(0), None);
    }
}
