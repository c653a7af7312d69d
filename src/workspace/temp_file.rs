//! Temporary file in the directory of the file that it will become.

use rustix::fd::BorrowedFd;
use rustix::fs::AtFlags;

/// Temporary file, unlinked when dropped unless it was persisted or renamed.
pub(super) struct TempFile<'a> {
    /// Directory that contains it.
    pub directory: BorrowedFd<'a>,
    /// Name in the directory.
    pub name: String,
    /// Whether to leave it in place.
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
