//! Snapshot of protected files for a guard, taken by the guard and by the fork server at the same time.
//!
//! The guard is forked before the snapshot is taken. The fork server, which stores its snapshot for later guards, and the
//! guard, while its command's view is being set up, then take it concurrently. The command starts when both are done.

use super::snapshot::{Extent, Snapshot};
use crate::launch_protocol::SnapshotRequest;
use crate::sandbox::SandboxPolicy;
use rustix::fs::MemfdFlags;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::OwnedFd;

/// Snapshot with which a guard starts.
pub enum GuardSnapshot {
    /// Complete snapshot, taken by the fork server for an earlier guard.
    Taken(Snapshot),
    /// Snapshot to take, with a pipe that closes when the fork server has taken its own.
    Pending(SnapshotJob, PipeReader),
}

/// Files to include in a snapshot.
pub struct SnapshotJob {
    policy: SandboxPolicy,
    extent: Extent,
    /// Lock shared by all guards that restore files.
    restore_lock: OwnedFd,
}

/// Pending snapshot before the fork, taken on both sides of it.
pub struct SharedSnapshotJob(SnapshotJob, PipeReader, PipeWriter);

impl SharedSnapshotJob {
    /// Reads the [`SnapshotRequest`] in `pipe`. `None` if it cannot be read.
    pub fn read(pipe: OwnedFd) -> Option<Self> {
        let SnapshotRequest { tier, policy } =
            serde_json::from_reader(io::BufReader::new(File::from(pipe))).ok()?;
        let extent = Extent::of(tier)?;
        let restore_lock = rustix::fs::memfd_create("turn", MemfdFlags::CLOEXEC).ok()?;
        let (reader, writer) = io::pipe().ok()?;
        Some(Self(SnapshotJob { policy, extent, restore_lock }, reader, writer))
    }

    /// Converts the job into the guard's part.
    pub fn of_guard(self) -> GuardSnapshot {
        GuardSnapshot::Pending(self.0, self.1)
    }

    /// Takes the fork server's snapshot and notifies the guard by closing the pipe.
    pub fn of_server(self) -> Snapshot {
        let Self(due, _of_guard, _closes_on_drop) = self;
        due.take()
    }
}

impl SnapshotJob {
    fn take(self) -> Snapshot {
        Snapshot::take(&self.policy, self.extent, self.restore_lock)
    }
}

impl GuardSnapshot {
    /// Returns the snapshot once both the guard and the fork server have taken it.
    pub fn wait(self) -> Snapshot {
        match self {
            Self::Taken(snapshot) => snapshot,
            Self::Pending(due, mut server) => {
                let snapshot = due.take();
                // The pipe closes without data, also if the fork server is dead.
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
