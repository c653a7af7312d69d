//! Directories whose owner's rights a command has taken away: opened for us, and left as the command wanted them.

use super::openat::{self, MODE_BITS};
use std::os::fd::OwnedFd;

/// What the owner of a directory needs to list it and to go on from it.
pub(super) const LIST_MODE: u32 = 0o500;

/// The same, and to change it.
pub(super) const WRITE_MODE: u32 = 0o700;

/// The directories that were opened, and the rights that they had.
#[derive(Debug, Default)]
pub(super) struct UnlockedDirs(Vec<(OwnedFd, u32)>);

impl UnlockedDirs {
    /// Gives us these rights to `directory`, as far as it is ours.
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

    /// Gives them the rights that they had, the innermost first.
    pub(super) fn relock(&mut self) {
        for (directory, mode) in std::mem::take(&mut self.0).into_iter().rev() {
            let _ours_to_change = openat::set_mode(&directory, mode);
        }
    }
}
