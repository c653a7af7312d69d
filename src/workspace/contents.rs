//! Contents that changes displaced, outside of the workspace under the names of their hashes, so that changes can be undone.
//!
//! A content is written beside its name and renamed: a kill leaves it whole or not at all. It is not synced, so that a change
//! costs little more than without; one that a power failure tore is noticed by its hash and is as if it had not been kept.

use crate::redactor::Redactor;
use crate::workspace::file::{HASH_DIGITS, hash};
use rustix::fs::{AtFlags, CWD, OFlags, Timespec, Timestamps, UTIME_NOW};
use rustix::process::geteuid;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// Largest file whose content is kept; a larger one is data that can be made again, or is kept elsewhere.
pub const MAX_FILE_BYTES: u64 = 32 << 20;

/// Bytes that one run keeps; more would fill a disk before anybody looks.
const MAX_RUN_BYTES: u64 = 512 << 20;

/// Bytes that stay when the oldest go.
const MAX_BYTES: u64 = 1 << 30;

/// Files that stay when the oldest go.
const MAX_FILES: usize = 50_000;

/// Why a content was not kept.
#[derive(Debug, thiserror::Error)]
pub enum Unkept {
    /// It is too large.
    #[error("it is larger than {} MiB", MAX_FILE_BYTES >> 20)]
    TooLarge,
    /// The run has kept as much as it may.
    #[error("this run has kept {} MiB already", MAX_RUN_BYTES >> 20)]
    Full,
    /// Another content was displaced than the one that had just been kept.
    #[error("it was changed at that moment")]
    Changed,
    /// A key or token of this process stands in it.
    #[error("it holds a secret, of which no copy is made")]
    Secret,
    /// A link is not kept.
    #[error("it was a symbolic link")]
    Link,
    /// The system said no.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The contents of one workspace, shared by its sessions; a clone is the same.
#[derive(Clone)]
pub struct Contents {
    dir: PathBuf,
    redactor: Arc<Redactor>,
    /// Bytes that this process has added.
    added: Arc<AtomicU64>,
}

impl Contents {
    /// Those in `dir`, which is made when the first is kept. None of them holds a secret that `redactor` knows.
    pub fn new(dir: PathBuf, redactor: Arc<Redactor>) -> Self {
        Self { dir, redactor, added: Arc::default() }
    }

    /// Keeps all of `file`; returns its hash.
    ///
    /// # Errors
    /// When it is too large, holds a secret, or cannot be read or written.
    pub fn keep(&self, file: &File) -> Result<String, Unkept> {
        let size = file.metadata()?.len();
        if size > MAX_FILE_BYTES {
            return Err(Unkept::TooLarge);
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        // It may grow meanwhile.
        if file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)? as u64 > MAX_FILE_BYTES {
            return Err(Unkept::TooLarge);
        }
        if self.redactor.is_known_in(&bytes) {
            return Err(Unkept::Secret);
        }
        let hash = hash(&bytes);
        if !self.renew(&hash, bytes.len()) {
            self.add(&hash, &bytes)?;
        }
        Ok(hash)
    }

    /// The content with this hash; none when it was not kept, has gone or is damaged.
    pub fn get(&self, hash: &str) -> Option<Vec<u8>> {
        let path = self.path(hash)?;
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(i32::try_from(flags).unwrap_or_default())
            .open(path)
            .ok()?;
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || metadata.uid() != geteuid().as_raw() {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).ok()?;
        (crate::workspace::file::hash(&bytes) == hash).then_some(bytes)
    }

    /// Lets the oldest go where there are too many, if this process has added any.
    pub fn prune(&self) {
        if self.added.load(Ordering::Relaxed) > 0 {
            self.prune_to(MAX_BYTES, MAX_FILES);
        }
    }

    /// The file of a hash; none for what is no hash and could be a path.
    fn path(&self, hash: &str) -> Option<PathBuf> {
        let plain = hash.len() == HASH_DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        plain.then(|| self.dir.join(hash))
    }

    /// Whether it is there already, with its size; it is among the newest then.
    fn renew(&self, hash: &str, size: usize) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        let Some(path) = self.path(hash) else { return false };
        path.symlink_metadata().is_ok_and(|file| file.is_file() && file.len() == size as u64)
            && rustix::fs::utimensat(CWD, &path, &times, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    fn add(&self, hash: &str, bytes: &[u8]) -> Result<(), Unkept> {
        let size = bytes.len() as u64;
        if self.added.load(Ordering::Relaxed).saturating_add(size) > MAX_RUN_BYTES {
            return Err(Unkept::Full);
        }
        if let Err(error) = self.write(hash, bytes) {
            if error.kind() != io::ErrorKind::NotFound {
                return Err(error.into());
            }
            DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
            self.write(hash, bytes)?;
        }
        self.added.fetch_add(size.max(1), Ordering::Relaxed);
        Ok(())
    }

    fn write(&self, hash: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.dir)?;
        file.write_all(bytes)?;
        file.persist(self.dir.join(hash))?;
        Ok(())
    }

    #[expect(clippy::disallowed_methods, reason = "this is the address of kept contents")]
    fn prune_to(&self, bytes: u64, files: usize) {
        let mut found = found(&self.dir);
        found.sort_by_key(|file| std::cmp::Reverse(file.0));
        let mut total = 0u64;
        for (number, (_, size, path)) in found.iter().enumerate() {
            total = total.saturating_add(*size);
            if number >= files || total > bytes {
                // One that stays is found again by the next run.
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

/// The files in `dir`, unfinished ones too, with when they were last kept and their sizes.
fn found(dir: &Path) -> Vec<(SystemTime, u64, PathBuf)> {
    let Ok(entries) = dir.read_dir() else { return Vec::new() };
    let files = entries.filter_map(Result::ok).filter_map(|entry| {
        let metadata = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some((metadata.modified().ok()?, metadata.len(), entry.path()))
    });
    files.collect()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make and damage files of their own")]
mod tests {
    use super::*;
    use crate::redactor::NamedSecret;
    use crate::secret::Secret;
    use std::os::unix::fs::PermissionsExt;

    fn contents() -> (tempfile::TempDir, Contents) {
        let dir = tempfile::tempdir().unwrap();
        let secret = NamedSecret { name: "X_TOKEN".to_owned(), value: Secret::new("correct-horse-battery") };
        let contents = Contents::new(dir.path().join("contents"), Arc::new(Redactor::new([secret])));
        (dir, contents)
    }

    fn keep(contents: &Contents, bytes: &[u8]) -> String {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        contents.keep(&File::open(file.path()).unwrap()).unwrap()
    }

    #[test]
    fn what_was_kept_is_found_by_its_hash_and_private() {
        let (_dir, contents) = contents();
        assert_eq!(contents.get(&hash(b"a")), None);
        let kept = keep(&contents, b"a");
        assert_eq!(kept, hash(b"a"));
        assert_eq!(keep(&contents, b"a"), kept, "once more");
        assert_eq!(contents.get(&kept), Some(b"a".to_vec()));
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&contents.dir), mode(&contents.dir.join(&kept))), (0o700, 0o600));
        assert_eq!(found(&contents.dir).len(), 1, "nothing is left beside it");
    }

    #[test]
    fn what_is_damaged_a_link_or_no_hash_is_none() {
        let (dir, contents) = contents();
        let kept = keep(&contents, b"abc");
        let path = contents.dir.join(&kept);
        std::fs::write(&path, b"abd").unwrap();
        assert_eq!(contents.get(&kept), None);
        std::fs::write(dir.path().join("other"), b"abc").unwrap();
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(dir.path().join("other"), &path).unwrap();
        assert_eq!(contents.get(&kept), None);
        assert_eq!(keep(&contents, b"abc"), kept, "the link is replaced");
        assert_eq!(contents.get(&kept), Some(b"abc".to_vec()));
        assert_eq!(contents.get("../other"), None);
    }

    #[test]
    fn a_file_that_is_too_large_is_not_kept() {
        let (dir, contents) = contents();
        let file = File::create_new(dir.path().join("large")).unwrap();
        file.set_len(MAX_FILE_BYTES + 1).unwrap();
        let file = File::open(dir.path().join("large")).unwrap();
        assert!(matches!(contents.keep(&file), Err(Unkept::TooLarge)));
    }

    #[test]
    fn a_secret_is_not_kept() {
        let (_dir, contents) = contents();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"token: correct-horse-battery").unwrap();
        assert!(matches!(contents.keep(&File::open(file.path()).unwrap()), Err(Unkept::Secret)));
        assert!(found(&contents.dir).is_empty());
    }

    #[test]
    fn a_run_keeps_no_more_than_it_may() {
        let (_dir, contents) = contents();
        contents.added.store(MAX_RUN_BYTES - 1, Ordering::Relaxed);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"ab").unwrap();
        assert!(matches!(contents.keep(&File::open(file.path()).unwrap()), Err(Unkept::Full)));
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let (_dir, contents) = contents();
        let [old, new] = [&b"old"[..], b"new"].map(|bytes| keep(&contents, bytes));
        let file = File::options().write(true).open(contents.dir.join(&old)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        contents.prune_to(100, 1);
        assert_eq!((contents.get(&old), contents.get(&new)), (None, Some(b"new".to_vec())));
        contents.prune_to(2, 1);
        assert_eq!(contents.get(&new), None);
    }
}
