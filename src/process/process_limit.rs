//! The limit on the processes of one command: what holds it, which depends on the tier, the kernel and the user.

#[cfg(target_os = "linux")]
use super::pids_cgroup::PidsCgroup;
use super::tier::Tier;

/// How many processes and threads the user of a watched command may have beyond those of the machine and those of the command:
/// what the user starts elsewhere meanwhile is not to make the kernel refuse the command its own.
#[cfg(target_os = "linux")]
const MORE_PROCESSES: u64 = 128;

/// What limits the number of processes and threads of a command.
#[derive(Debug)]
pub enum ProcessLimit {
    /// The kernel, which counts those of the command's own user namespace.
    #[cfg(target_os = "linux")]
    UserNamespace,
    /// The kernel, which counts those of the command's own cgroup.
    #[cfg(target_os = "linux")]
    Cgroup(PidsCgroup),
    /// The launcher process, which counts them at intervals.
    #[cfg(target_os = "linux")]
    Watched,
    /// Nothing.
    Unlimited,
}

#[cfg(target_os = "linux")]
impl ProcessLimit {
    /// The limit on a command that this process starts in `tier`, where it may have `most` processes and threads.
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

    /// Puts this process, and all that it will start, under the limit of `most`. For the first process in the namespaces of
    /// a command; besides it only the guard counts in its user namespace.
    ///
    /// # Errors
    /// When the kernel refuses.
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

    /// Takes this process out of what [`enter`](Self::enter) put it into, where that is possible.
    pub(super) fn leave(&self) {
        if let Self::Cgroup(cgroup) = self {
            cgroup.leave();
        }
    }

    /// Whether the kernel itself refuses the command more processes.
    pub(super) fn is_exact(&self) -> bool {
        matches!(self, Self::UserNamespace | Self::Cgroup(_))
    }

    /// Whether the kernel is known to have refused the command a process.
    pub(super) fn was_reached(&self) -> bool {
        matches!(self, Self::Cgroup(cgroup) if cgroup.was_full())
    }
}

#[cfg(not(target_os = "linux"))]
impl ProcessLimit {
    /// Without a launcher process there is none.
    pub fn new(_tier: Tier, _most: u64) -> Self {
        Self::Unlimited
    }
}

impl ProcessLimit {
    /// What it does with a command that starts more, for people.
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

/// Lowers a limit to `most`, where it is not lower already.
#[cfg(target_os = "linux")]
pub(super) fn lower_one(resource: rustix::process::Resource, most: u64) -> std::io::Result<()> {
    let now = rustix::process::getrlimit(resource);
    let lowered = |limit: Option<u64>| Some(limit.map_or(most, |limit| limit.min(most)));
    let limit = rustix::process::Rlimit { current: lowered(now.current), maximum: lowered(now.maximum) };
    Ok(rustix::process::setrlimit(resource, limit)?)
}

/// Whether this release of Linux counts the processes of a user for each user namespace: since 5.14. Older ones count all
/// processes that the user has on the machine.
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
