//! The temporary directory of one run: private, random, gone with it, and after a `kill -9` with the next run that starts a command.

use std::fs::{File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use tempfile::{NamedTempFile, TempDir};

/// What the names of the directories begin with.
const RUN: &str = "run-";
/// What the names of the locks end with.
const LOCK: &str = ".lock";
/// Locks tried: one that is not held yet may be taken for that of a run that is over, by a run that begins meanwhile.
const LOCK_TRIES: usize = 20;

/// A directory that nobody else looks into, and the lock that says that it is in use. Dropping it removes both.
#[derive(Debug)]
pub struct ScratchDir {
    place: TempDir,
    /// Goes last: what has no lock any more is never removed.
    _lock: NamedTempFile,
}

impl ScratchDir {
    /// A new one below `parent`, which is made where it is missing; those whose run is over are removed.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(parent: &Path) -> io::Result<Self> {
        create_private_dir(parent)?;
        remove_abandoned(parent);
        let lock = held_lock(parent)?;
        let place = lock.path().with_extension("");
        let name = place.file_name().unwrap_or_default();
        let place = private_temp_dir(tempfile::Builder::new().prefix(name).rand_bytes(0), parent)?;
        Ok(Self { place, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.place.path()
    }
}

/// A new lock below `parent`, held by this process, with a name that nobody else has.
fn held_lock(parent: &Path) -> io::Result<NamedTempFile> {
    for _ in 0..LOCK_TRIES {
        let lock = tempfile::Builder::new().prefix(RUN).suffix(LOCK).tempfile_in(parent)?;
        // Whoever took it for abandoned holds it until it is gone.
        if lock.as_file().try_lock().is_ok() && lock.as_file().metadata()?.nlink() > 0 {
            return Ok(lock);
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// Makes `directory` with all above it, for this user alone.
///
/// # Errors
/// When it cannot be made.
pub fn create_private_dir(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// A new directory in `parent`, called as `name` says, for this user alone under any umask.
///
/// # Errors
/// When it cannot be made.
pub fn private_temp_dir(name: &mut tempfile::Builder<'_, '_>, parent: &Path) -> io::Result<TempDir> {
    name.permissions(Permissions::from_mode(0o700)).tempdir_in(parent)
}

/// Removes the directories below `parent` whose lock nobody holds.
#[expect(clippy::disallowed_methods, reason = "this module made them")]
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    let locks = entries.flatten().map(|entry| entry.path());
    for lock in locks.filter(|path| path.to_string_lossy().ends_with(LOCK)) {
        let Ok(file) = File::open(&lock) else { continue };
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            continue;
        }
        match std::fs::remove_dir_all(lock.with_extension("")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {}
            // What cannot be removed is left for the next run.
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
