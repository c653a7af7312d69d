//! Private temporary directory of one run, removed with it, or after a `kill -9` by the next run that starts a command.

use agent_runtime::private_file::{create_private_dir, try_lock};
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use tempfile::{NamedTempFile, TempDir};

/// Prefix of the names of the directories.
const RUN: &str = "run-";
/// Suffix of the names of the locks.
const LOCK: &str = ".lock";
/// Maximum attempts to create a lock. A run that starts at the same time may mistake an unlocked new lock for that of a dead
/// run.
const LOCK_TRIES: usize = 20;

/// Temporary directory of a run, with the lock that marks it as in use. Dropping it removes both.
#[derive(Debug)]
pub struct ScratchDir {
    dir: TempDir,
    /// Dropped last, because a directory without a lock is never removed.
    lock: NamedTempFile,
}

impl Drop for ScratchDir {
    #[expect(clippy::disallowed_methods, reason = "this module made it")]
    fn drop(&mut self) {
        // What cannot be removed now is tried again by the next run.
        let is_left = std::fs::remove_dir_all(self.dir.path()).is_err() && self.dir.path().exists();
        self.lock.disable_cleanup(is_left);
    }
}

impl ScratchDir {
    /// Creates a directory below `parent`, creating `parent` if missing. Removes the directories of dead runs.
    ///
    /// # Errors
    /// Fails if it cannot be created.
    pub fn new(parent: &Path) -> io::Result<Self> {
        create_private_dir(parent)?;
        remove_abandoned(parent);
        let lock = held_lock(parent)?;
        let dir = lock.path().with_extension("");
        let name = dir.file_name().unwrap_or_default();
        let dir = private_temp_dir(tempfile::Builder::new().prefix(name).rand_bytes(0), parent)?;
        Ok(Self { dir, lock })
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Creates a lock with a unique name below `parent`, locked by this process.
fn held_lock(parent: &Path) -> io::Result<NamedTempFile> {
    for _ in 0..LOCK_TRIES {
        let lock = tempfile::Builder::new().prefix(RUN).suffix(LOCK).tempfile_in(parent)?;
        // A process that considered the lock abandoned holds it until it is removed.
        if try_lock(lock.as_file())? && lock.as_file().metadata()?.nlink() > 0 {
            return Ok(lock);
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// Creates a directory in `parent` with a name from `name`, private to the user under any umask.
///
/// # Errors
/// Fails if it cannot be created.
pub fn private_temp_dir(name: &mut tempfile::Builder<'_, '_>, parent: &Path) -> io::Result<TempDir> {
    name.permissions(Permissions::from_mode(0o700)).tempdir_in(parent)
}

/// Removes the directories below `parent` whose lock no process holds.
#[expect(clippy::disallowed_methods, reason = "this module made them")]
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    let locks = entries.flatten().map(|entry| entry.path());
    for lock in locks.filter(|path| path.to_string_lossy().ends_with(LOCK)) {
        let Ok(file) = File::open(&lock) else { continue };
        if !try_lock(&file).unwrap_or(false) {
            continue;
        }
        match std::fs::remove_dir_all(lock.with_extension("")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {}
            // If removal fails, the next run retries.
            Ok(()) | Err(_) => drop(std::fs::remove_file(&lock)),
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "files of a test")]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_use_stays_and_what_a_dead_run_left_goes() {
        let parent = tempfile::tempdir().unwrap();
        let first = ScratchDir::new(parent.path()).unwrap();
        std::fs::write(first.path().join("kept"), "x").unwrap();
        let left = parent.path().join("run-dead");
        std::fs::create_dir(&left).unwrap();
        let locks = ["run-dead.lock", "run-never-made.lock"].map(|name| parent.path().join(name));
        for lock in &locks {
            std::fs::write(lock, "").unwrap();
        }
        let second = ScratchDir::new(parent.path()).unwrap();
        assert!(first.path().join("kept").exists() && second.path().is_dir());
        assert!(!left.exists() && locks.iter().all(|lock| !lock.exists()));
        drop((first, second));
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn class_65_runs_that_begin_at_once_do_not_take_each_other_for_dead() {
        let parent = tempfile::tempdir().unwrap();
        let begin_often = || {
            for _ in 0..200 {
                let scratch = ScratchDir::new(parent.path()).unwrap();
                std::fs::write(scratch.path().join("kept"), "x").unwrap();
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(begin_often);
            }
        });
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
