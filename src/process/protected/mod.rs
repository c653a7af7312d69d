//! Keeps protected files as they are where the kernel cannot: looked at before commands, compared and put back after each.
//!
//! The fork server looks before the first of the commands that run at one time, and so does the guard of that one; every guard
//! that is split off later compares with what the fork server saw: one that looked for itself would take for good what an
//! earlier command has just done. The guard does it outside the
//! sandbox and when nothing of its command lives any more, so that it also happens after a time limit and after a `kill -9` of
//! the agent. Rules cannot hold a file in a writable directory; a view of the file system holds what there is, but not what there
//! is not yet. Every step goes through the handle of a directory and follows no link, because a command that runs at the same
//! time may put one there.
//!
//! Repositories and configurations that a command makes below the root cannot be named before it runs. The agent looks for them
//! after it.

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
