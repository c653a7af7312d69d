//! Limit on the processes of one command, by a mechanism that depends on the tier, the kernel and the user.

#[cfg(target_os = "linux")]
use super::pids_cgroup::PidsCgroup;
use super::tier::Tier;

/// Number of processes and threads that the user of a watched command may have beyond those of the machine and of the command.
/// The margin keeps the user's other programs from using up the command's processes.
#[cfg(target_os = "linux")]
const MORE_PROCESSES: u64 = 128;

/// Mechanism that limits the number of processes and threads of a command.
#[derive(Debug)]
pub enum ProcessLimit {
    /// The kernel counts those of the command's user namespace.
    #[cfg(target_os = "linux")]
    UserNamespace,
    /// The kernel counts those of the command's cgroup.
    #[cfg(target_os = "linux")]
    Cgroup(PidsCgroup),
    /// The launcher process counts them at intervals.
    #[cfg(target_os = "linux")]
    Watched,
    /// There is no limit.
    Unlimited,
}

#[cfg(target_os = "linux")]
impl ProcessLimit {
    /// Chooses the mechanism for a command that this process starts in `tier` with at most `most` processes and threads.
    pub fn new(tier: Tier, most: u64) -> Self {
        let has_own_users = matches!(tier, Tier::Full | Tier::Bubblewrap | Tier::Namespace);
        if tier == Tier::Group {
            Self::Unlimited
        } else if rustix::process::geteuid().is_root() {
            PidsCgroup::new(most).map_or(Self::Watched, Self::Cgroup)
        } else if has_own_users && counts_per_namespace(&rustix::system::uname().release().to_string_lossy())
        {
            Self::UserNamespace
        } else {
            Self::Watched
        }
    }

    /// Applies the limit `most` to this process and everything that it starts. Must be called by the first process in the
    /// command's namespaces; only the guard also counts in its user namespace.
    ///
    /// # Errors
    /// Fails if the kernel refuses.
    pub(super) fn enter(&self, most: u64) -> std::io::Result<()> {
        let lower = |most| lower_one(rustix::process::Resource::Nproc, most);
        match self {
            Self::UserNamespace => lower(most.saturating_add(1)),
            Self::Cgroup(cgroup) => cgroup.enter(),
            Self::Watched => {
                let all = u64::from(rustix::system::sysinfo().procs);
                lower(most.saturating_add(all).saturating_add(MORE_PROCESSES))
            }
            Self::Unlimited => Ok(()),
        }
    }

    /// Reverts [`enter`](Self::enter) for this process if possible.
    pub(super) fn leave(&self) {
        if let Self::Cgroup(cgroup) = self {
            cgroup.leave();
        }
    }

    /// Checks whether the kernel itself refuses processes above the limit.
    pub(super) fn is_exact(&self) -> bool {
        matches!(self, Self::UserNamespace | Self::Cgroup(_))
    }

    /// Checks whether the kernel is known to have refused the command a process.
    pub(super) fn was_reached(&self) -> bool {
        matches!(self, Self::Cgroup(cgroup) if cgroup.was_full())
    }
}

#[cfg(not(target_os = "linux"))]
impl ProcessLimit {
    /// Returns `Unlimited`: only Linux has a launcher process.
    pub fn new(_tier: Tier, _most: u64) -> Self {
        Self::Unlimited
    }
}

impl ProcessLimit {
    /// Returns the effect on a command that starts too many processes, as text for the user.
    pub fn meaning(&self) -> &'static str {
        match self {
            #[cfg(target_os = "linux")]
            Self::UserNamespace => "the kernel refuses more (user namespace)",
            #[cfg(target_os = "linux")]
            Self::Cgroup(_) => "the kernel refuses more (pids cgroup)",
            #[cfg(target_os = "linux")]
            Self::Watched => "watched: a command can have more for a moment, until it is ended",
            Self::Unlimited => "not limited",
        }
    }
}

/// Lowers a resource limit to `most` unless it is already lower.
#[cfg(target_os = "linux")]
pub(super) fn lower_one(resource: rustix::process::Resource, most: u64) -> std::io::Result<()> {
    let now = rustix::process::getrlimit(resource);
    let lowered = |limit: Option<u64>| Some(limit.map_or(most, |limit| limit.min(most)));
    let limit = rustix::process::Rlimit { current: lowered(now.current), maximum: lowered(now.maximum) };
    Ok(rustix::process::setrlimit(resource, limit)?)
}

/// Checks whether this Linux release counts a user's processes per user namespace (since 5.14). Older ones count all processes
/// of the user on the machine.
#[cfg(target_os = "linux")]
fn counts_per_namespace(release: &str) -> bool {
    let mut numbers =
        release.split(|char: char| !char.is_ascii_digit()).map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(5), Some(14))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn processes_are_counted_per_user_namespace_since_linux_5_14() {
        for release in ["5.14.0-427.el9.x86_64", "5.15", "6.1.0-rc1", "10.0.0"] {
            assert!(counts_per_namespace(release), "{release}");
        }
        for release in ["5.13.19", "4.4.0", "3.10.0-1160.el7", "unknown", ""] {
            assert!(!counts_per_namespace(release), "{release}");
        }
    }
}
