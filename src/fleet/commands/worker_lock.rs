//! Tells which workers of this machine are alive: each holds a lock on a file of its name.

use agent_core::fleet::check_id;
use agent_runtime::private_file::{create_new, open, try_lock};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Content of the file of a worker that has ended by itself, but could not record how its tasks ended.
const NOT_RECORDED: &[u8] = b"not recorded";

/// The lock of a worker, which ends with its process.
pub struct WorkerLock {
    directory: PathBuf,
    path: PathBuf,
    locked: File,
    is_kept: Cell<bool>,
}

/// How a worker has left its tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedWorker {
    /// It was killed.
    Killed,
    /// It could not record how they ended.
    NotRecorded,
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
        Ok(Self { directory: directory.to_owned(), path, locked: file, is_kept: Cell::default() })
    }

    /// Keeps the file: the next worker of this machine goes on with the tasks, and records how they have ended.
    ///
    /// # Errors
    /// Fails when the file cannot be written.
    pub fn keep(&self) -> io::Result<()> {
        self.is_kept.set(true);
        (&self.locked).write_all(NOT_RECORDED)
    }

    /// Checks whether the worker `name` runs on this machine.
    pub fn is_alive(&self, name: &str) -> bool {
        let path = self.directory.join(name);
        check_id(name).is_ok() && path.exists() && unlocked(&path).is_none()
    }

    /// Returns how the worker `name` has left its tasks, if it ran on this machine and has not settled them.
    pub fn ended(&self, name: &str) -> Option<EndedWorker> {
        // A name of a record, which others may have written.
        let path = check_id(name).is_ok().then(|| self.directory.join(name))?;
        let mut content = Vec::new();
        unlocked(&path)?.take(64).read_to_end(&mut content).ok()?;
        Some(if content == NOT_RECORDED { EndedWorker::NotRecorded } else { EndedWorker::Killed })
    }

    /// Removes the files of killed workers, except those that are `needed`.
    pub fn remove_left(&self, needed: impl Fn(&str) -> bool) {
        let files = self.directory.read_dir().into_iter().flatten().flatten();
        for file in files {
            let name = file.file_name();
            if !name.to_str().is_none_or(&needed) && unlocked(&file.path()).is_some() {
                // Another worker may have removed it.
                let _ = rustix::fs::unlink(file.path());
            }
        }
    }
}

impl Drop for WorkerLock {
    fn drop(&mut self) {
        if !self.is_kept.get() {
            // A later worker removes it otherwise.
            let _ = rustix::fs::unlink(&self.path);
        }
    }
}

/// Opens a file; `None` if it does not exist, or a process has locked it.
fn unlocked(path: &Path) -> Option<File> {
    let (file, _) = open(path).ok()?;
    // Without locks no worker could have been started.
    try_lock(&file).is_ok_and(|is_free| is_free).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_has_left_tasks_if_its_file_exists_and_is_not_locked() {
        let directory = tempfile::tempdir().unwrap();
        let lock = WorkerLock::new(directory.path(), "mine").unwrap();
        drop(create_new(&directory.path().join("killed"), true).unwrap());
        let kept = WorkerLock::new(directory.path(), "kept").unwrap();
        kept.keep().unwrap();
        let left = ["mine", "killed", "kept", "unknown", "../x"].map(|name| lock.ended(name));
        assert_eq!(left, [None, Some(EndedWorker::Killed), None, None, None]);
        drop(kept);
        assert_eq!(lock.ended("kept"), Some(EndedWorker::NotRecorded));
        lock.remove_left(|name| name == "killed");
        assert_eq!((lock.ended("killed"), lock.ended("kept")), (Some(EndedWorker::Killed), None));
        lock.remove_left(|_| false);
        assert_eq!(lock.ended("killed"), None);
        let path = directory.path().join("mine");
        assert!(path.exists());
        drop(lock);
        assert!(!path.exists());
    }
}
