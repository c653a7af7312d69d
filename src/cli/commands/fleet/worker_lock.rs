//! Tells which workers of this machine are alive: each holds a lock on a file of its name.

use crate::core::fleet::check_id;
use crate::runtime::private_file::{create_new, open};
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The lock of a worker, which ends with its process.
pub struct WorkerLock {
    directory: PathBuf,
    path: PathBuf,
    _locked: File,
}

impl WorkerLock {
    /// Locks the file of the worker `name` in `directory`.
    ///
    /// # Errors
    /// Fails when it cannot be created.
    pub fn new(directory: &Path, name: &str) -> io::Result<Self> {
        let path = directory.join(name);
        let file = create_new(&path, true)?;
        file.lock()?;
        Ok(Self { directory: directory.to_owned(), path, _locked: file })
    }

    /// Checks whether the worker `name` ran on this machine and was killed.
    pub fn was_killed(&self, name: &str) -> bool {
        // A name of a record, which others may have written.
        check_id(name).is_ok() && is_left(&self.directory.join(name))
    }

    /// Removes the files of killed workers, except those that are `needed`.
    pub fn remove_left(&self, needed: impl Fn(&str) -> bool) {
        let files = self.directory.read_dir().into_iter().flatten().flatten();
        for file in files {
            let name = file.file_name();
            if !name.to_str().is_none_or(&needed) && is_left(&file.path()) {
                // Another worker may have removed it.
                let _ = rustix::fs::unlink(file.path());
            }
        }
    }
}

impl Drop for WorkerLock {
    fn drop(&mut self) {
        // A later worker removes it otherwise.
        let _ = rustix::fs::unlink(&self.path);
    }
}

/// Checks whether nobody holds the lock on a file that exists.
fn is_left(path: &Path) -> bool {
    let Ok((file, _)) = open(path) else { return false };
    match file.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_was_killed_if_its_file_exists_and_is_not_locked() {
        let directory = tempfile::tempdir().unwrap();
        let lock = WorkerLock::new(directory.path(), "mine").unwrap();
        drop(create_new(&directory.path().join("killed"), true).unwrap());
        let killed = |name| lock.was_killed(name);
        assert_eq!(
            (killed("mine"), killed("killed"), killed("unknown"), killed("../x")),
            (false, true, false, false)
        );
        lock.remove_left(|name| name == "killed");
        assert!(killed("killed"));
        lock.remove_left(|_| false);
        assert!(!killed("killed"));
        let path = directory.path().join("mine");
        assert!(path.exists());
        drop(lock);
        assert!(!path.exists());
    }
}
