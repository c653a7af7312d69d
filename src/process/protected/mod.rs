//! Restores protected files that the kernel cannot protect: takes a snapshot before commands, compares and restores after each.
//!
//! The fork server and the first guard take a snapshot before the first of the commands that run concurrently. Every later
//! guard compares with the fork server's snapshot, because a snapshot of its own could contain changes of an earlier command.
//! The guard compares outside the sandbox when all processes of its command are gone, so that it also happens after a time
//! limit and after a `kill -9` of the agent. Landlock rules cannot protect a file in a writable directory. A file system view
//! protects existing files but not missing ones. Every step uses the handle of a directory and follows no link, because a
//! concurrent command may create one.
//!
//! The paths of repositories and configurations that a command creates below the root are unknown before it runs. The agent
//! searches for them after it.

#[cfg(target_os = "linux")]
mod guard_snapshot;
#[cfg(target_os = "linux")]
mod new_repositories;
#[cfg(target_os = "linux")]
mod openat;
pub mod report;
#[cfg(target_os = "linux")]
mod restore;
#[cfg(target_os = "linux")]
mod safe_repository;
#[cfg(target_os = "linux")]
mod snapshot;
#[cfg(target_os = "linux")]
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "files of a test")]
mod tests;
mod tracker;
#[cfg(target_os = "linux")]
mod unlocked_dirs;
#[cfg(target_os = "linux")]
mod workspace_scan;

#[cfg(target_os = "linux")]
pub(super) use guard_snapshot::{GuardSnapshot, SharedSnapshotJob};
pub use report::{ChangeKind, ProtectedChange};
#[cfg(target_os = "linux")]
pub(super) use snapshot::Snapshot;
pub use tracker::{ActiveCommand, ProtectionTracker};
