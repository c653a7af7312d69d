//! How protected files were before the first of the commands that run at one time, as a guard gets to know it.
//!
//! The guard of that command is split off before anybody has looked, so that the fork server, which keeps what it sees for the
//! guards to come, and the guard, while its command's view is being arranged, look at the same time. The command begins when
//! both have.

use super::snapshot::{Extent, Snapshot};
use crate::process::launch_protocol::SnapshotRequest;
use crate::process::sandbox::SandboxPolicy;
use rustix::fs::MemfdFlags;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::OwnedFd;

/// What a guard knows of protected files when it begins.
pub enum GuardSnapshot {
    /// Everything: the fork server has looked for an earlier one.
    Taken(Snapshot),
    /// Where to look, and what ends when the fork server has looked too.
    Pending(SnapshotJob, PipeReader),
}

/// What is to be looked at.
pub struct SnapshotJob {
    policy: SandboxPolicy,
    extent: Extent,
    /// Shared by all guards that put things back.
    restore_lock: OwnedFd,
}

/// A look that is due, before the process splits that takes it twice.
pub struct SharedSnapshotJob(SnapshotJob, PipeReader, PipeWriter);

impl SharedSnapshotJob {
    /// What the [`SnapshotRequest`] in `pipe` wants looked at; `None` where nobody could say what.
    pub fn read(pipe: OwnedFd) -> Option<Self> {
        let SnapshotRequest { tier, policy } =
            serde_json::from_reader(io::BufReader::new(File::from(pipe))).ok()?;
        let extent = Extent::of(tier)?;
        let restore_lock = rustix::fs::memfd_create("turn", MemfdFlags::CLOEXEC).ok()?;
        let (reader, writer) = io::pipe().ok()?;
        Some(Self(SnapshotJob { policy, extent, restore_lock }, reader, writer))
    }

    /// The part of the guard.
    pub fn of_guard(self) -> GuardSnapshot {
        GuardSnapshot::Pending(self.0, self.1)
    }

    /// The part of the fork server: it looks, and tells the guard.
    pub fn of_server(self) -> Snapshot {
        let Self(due, _of_guard, _told_when_dropped) = self;
        due.take()
    }
}

impl SnapshotJob {
    fn take(self) -> Snapshot {
        Snapshot::take(&self.policy, self.extent, self.restore_lock)
    }
}

impl GuardSnapshot {
    /// The protected files as they were, once all know it who must before the command begins.
    pub fn wait(self) -> Snapshot {
        match self {
            Self::Taken(snapshot) => snapshot,
            Self::Pending(due, mut server) => {
                let snapshot = due.take();
                // It ends without a word, be it that the fork server is no more.
                let _end = server.read_to_end(&mut Vec::new());
                snapshot
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn the_first_guard_knows_nothing_before_the_fork_server_has_looked() {
        let restore_lock = rustix::fs::memfd_create("turn", MemfdFlags::CLOEXEC).unwrap();
        let due = SnapshotJob { policy: SandboxPolicy::default(), extent: Extent::All, restore_lock };
        let (of_guard, of_server) = io::pipe().unwrap();
        let (known, knows) = mpsc::channel();
        let guard = std::thread::spawn(move || {
            let _snapshot = GuardSnapshot::Pending(due, of_guard).wait();
            known.send(()).unwrap();
        });
        assert_eq!(knows.recv_timeout(Duration::from_millis(50)), Err(mpsc::RecvTimeoutError::Timeout));
        drop(of_server);
        knows.recv().unwrap();
        guard.join().unwrap();
    }
}
