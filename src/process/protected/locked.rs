//! Directories whose owner's rights a command has taken away: opened for us, and left as the command wanted them.

use super::place::{self, RIGHTS};
use rustix::fs::Stat;
use std::os::fd::OwnedFd;

/// What the owner of a directory needs to work in it: to list, to change, and to search it.
const OWNERS_RIGHTS: u32 = 0o700;

/// The directories that were opened, and the rights that they had.
#[derive(Debug, Default)]
pub(super) struct Locked(Vec<(OwnedFd, u32)>);

impl Locked {
    /// Lets us work in `directory`, which is what `now` says.
    pub(super) fn unlock(&mut self, directory: &OwnedFd, now: &Stat) {
        let mode = now.st_mode & RIGHTS;
        if mode & OWNERS_RIGHTS != OWNERS_RIGHTS
            && let Ok(handle) = directory.try_clone()
            && place::set_mode(&handle, mode | OWNERS_RIGHTS).is_ok()
        {
            self.0.push((handle, mode));
        }
    }

    /// Gives them the rights that they had, the innermost first.
    pub(super) fn lock_again(&mut self) {
        for (directory, mode) in std::mem::take(&mut self.0).into_iter().rev() {
            let _ours_to_change = place::set_mode(&directory, mode);
        }
    }
}
