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
mod arrivals;
mod held;
#[cfg(target_os = "linux")]
mod locked;
#[cfg(target_os = "linux")]
mod place;
#[cfg(target_os = "linux")]
mod plain_repository;
pub mod report;
#[cfg(target_os = "linux")]
mod restore;
#[cfg(target_os = "linux")]
mod sight;
#[cfg(target_os = "linux")]
mod snapshot;
#[cfg(target_os = "linux")]
mod survey;
#[cfg(target_os = "linux")]
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "files of a test")]
mod tests;

pub use held::{ActiveCommand, ProtectionTracker};
pub use report::{ChangeKind, ProtectedChange};
#[cfg(target_os = "linux")]
pub(super) use sight::{GuardSnapshot, SharedSnapshotJob};
#[cfg(target_os = "linux")]
pub(super) use snapshot::Snapshot;
