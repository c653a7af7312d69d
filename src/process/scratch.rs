//! The temporary directory of one run: private, random, gone with it, and after a `kill -9` with the next run.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What the names of the locks end with.
const LOCK: &str = "lock";

/// A directory that nobody else looks into, and the lock that says that it is in use. Dropping it removes both.
#[derive(Debug)]
pub struct Scratch {
    place: TempDir,
    lock: PathBuf,
    _held: File,
}

impl Scratch {
    /// A new one below `parent`, which is made where it is missing; those whose run is over are removed.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(parent: &Path) -> io::Result<Self> {
        make_private(parent)?;
        remove_abandoned(parent);
        let place = tempfile::Builder::new().prefix("run-").tempdir_in(parent)?;
        let lock = place.path().with_extension(LOCK);
        let held = File::create_new(&lock)?;
        held.try_lock()?;
        Ok(Self { place, lock, _held: held })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.place.path()
    }
}

impl Drop for Scratch {
    #[expect(clippy::disallowed_methods, reason = "this module made it")]
    fn drop(&mut self) {
        let _already_gone = std::fs::remove_file(&self.lock);
    }
}

/// Makes `directory` with all above it, for this user alone.
///
/// # Errors
/// When it cannot be made.
pub fn make_private(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

#[expect(clippy::disallowed_methods, reason = "this module made them")]
/// Removes the directories below `parent` whose lock nobody holds.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for lock in entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == LOCK))
    {
        let Ok(file) = File::open(&lock) else { continue };
        if !matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            let _left_for_the_next_run =
                std::fs::remove_dir_all(lock.with_extension("")).and_then(|()| std::fs::remove_file(&lock));
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
        let first = Scratch::new(parent.path()).unwrap();
        std::fs::write(first.path().join("kept"), "x").unwrap();
        let left = parent.path().join("run-dead");
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.with_extension(LOCK), "").unwrap();
        let second = Scratch::new(parent.path()).unwrap();
        assert!(first.path().join("kept").exists() && second.path().is_dir());
        assert!(!left.exists() && !left.with_extension(LOCK).exists());
        drop((first, second));
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
