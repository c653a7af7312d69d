//! Temporarily opens directories whose owner permissions a command removed.

use super::openat::{self, MODE_BITS};
use std::os::fd::OwnedFd;

/// Owner permissions needed to list a directory and traverse it.
pub(super) const LIST_MODE: u32 = 0o500;

/// Owner permissions needed to list, traverse and change a directory.
pub(super) const WRITE_MODE: u32 = 0o700;

/// Opened directories with their original modes.
#[derive(Debug, Default)]
pub(super) struct UnlockedDirs(Vec<(OwnedFd, u32)>);

impl UnlockedDirs {
    /// Adds the owner permissions `rights` to `directory` if possible.
    pub(super) fn unlock(&mut self, directory: &OwnedFd, rights: u32) {
        let Ok(stat) = rustix::fs::fstat(directory) else { return };
        let mode = stat.st_mode & MODE_BITS;
        if mode & rights != rights
            && let Ok(handle) = directory.try_clone()
            && openat::set_mode(&handle, mode | rights).is_ok()
        {
            self.0.push((handle, mode));
        }
    }

    /// Restores the original modes, the innermost first.
    pub(super) fn relock(&mut self) {
        for (directory, mode) in std::mem::take(&mut self.0).into_iter().rev() {
            let _best_effort = openat::set_mode(&directory, mode);
        }
    }
}
