//! A temporary file beside the file that it is to become.

use rustix::fd::BorrowedFd;
use rustix::fs::AtFlags;

/// A temporary file, unlinked when dropped unless it was kept or has become something else.
pub(super) struct TempFile<'a> {
    /// The directory that it lies in.
    pub directory: BorrowedFd<'a>,
    /// Its name there.
    pub name: String,
    /// Whether it stays.
    pub persist: bool,
}

impl Drop for TempFile<'_> {
    fn drop(&mut self) {
        if !self.persist {
            // A leftover is harmless, hidden, and recognisable by its name.
            let _ = rustix::fs::unlinkat(self.directory, &self.name, AtFlags::empty());
        }
    }
}
