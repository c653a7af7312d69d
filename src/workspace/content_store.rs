//! Store of replaced file contents outside the workspace, addressed by hash, so that changes can be undone.
//!
//! A process appends contents to a pack of its own, and adds an entry to the pack's index once a content is complete. A killed
//! process therefore loses no content that was reported as stored. Nothing is synced, which would double the cost of an edit. A
//! content damaged by a power failure is detected by its hash and handled as missing.

use crate::redactor::Redactor;
use crate::runtime::clock::Clock;
use crate::runtime::private_file::{self, create_private_dir};
use crate::workspace::file::{HASH_DIGITS, HashedContent, hash};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW};
use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Largest file whose content is stored, in bytes. Larger files are usually generated data or stored elsewhere.
pub const MAX_FILE_BYTES: u64 = 32 << 20;

/// Maximum number of bytes that one run stores, so that it does not fill the disk.
const MAX_RUN_BYTES: u64 = 512 << 20;

/// Maximum number of bytes of all packs after pruning the oldest.
const MAX_BYTES: u64 = 1 << 30;

/// Maximum number of packs after pruning the oldest.
const MAX_PACKS: usize = 1_000;

/// Maximum number of bytes read of an index: a million contents.
const MAX_INDEX_BYTES: u64 = 64 << 20;

/// Bytes of an index line: hash, offset and length in hexadecimal digits.
const LINE_BYTES: usize = HASH_DIGITS + 1 + 16 + 1 + 16 + 1;

/// File name extension of a pack.
const PACK: &str = "pack";

/// File name extension of an index.
const INDEX: &str = "index";

/// Reasons why a content was not stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It is too large.
    #[error("it is larger than {} MiB", MAX_FILE_BYTES >> 20)]
    TooLarge,
    /// The run has reached its limit.
    #[error("this run has already stored {} MiB", MAX_RUN_BYTES >> 20)]
    Full,
    /// The replaced content differs from the one that had just been stored.
    #[error("it was changed at that moment")]
    Changed,
    /// It contains a key or token of this process.
    #[error("it contains a secret, which is not copied")]
    Secret,
    /// Pipes, devices and sockets have no content to store.
    #[error("it is neither a regular file nor a link")]
    NotAFile,
    /// The operating system returned an error.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Store of one workspace, shared by its sessions. Clones share its state.
#[derive(Clone)]
pub struct ContentStore {
    dir: PathBuf,
    redactor: Arc<Redactor>,
    /// Opened packs. `None` before the first use.
    packs: Arc<Mutex<Option<Packs>>>,
}

/// State of the packs.
struct Packs {
    dir: PathBuf,
    locations: HashMap<String, ContentLocation>,
    /// Packs that this process has used, whose modification time was updated for pruning.
    used: HashSet<Arc<Path>>,
    /// Pack of this process, created with the first stored content.
    own: Option<OwnPack>,
    /// Bytes that this process has added.
    added: u64,
}

/// Location of a content.
#[derive(Clone)]
struct ContentLocation {
    pack: Arc<Path>,
    offset: u64,
    length: u64,
}

/// Pack that this process appends to.
struct OwnPack {
    path: Arc<Path>,
    pack: File,
    index: File,
    length: u64,
}

impl ContentStore {
    /// Creates a store in `dir`, which is created with the first content. It stores no content with a secret known to
    /// `redactor`.
    pub fn new(dir: PathBuf, redactor: Arc<Redactor>) -> Self {
        Self { dir, redactor, packs: Arc::default() }
    }

    /// Stores the content of `file` and returns its hash.
    ///
    /// # Errors
    /// Fails if it is too large, contains a secret, or cannot be read or written.
    pub fn store(&self, file: &File) -> Result<String, StoreError> {
        let metadata = file.metadata()?;
        let size = metadata.len();
        if !metadata.is_file() {
            return Err(StoreError::NotAFile);
        }
        if size > MAX_FILE_BYTES {
            return Err(StoreError::TooLarge);
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        // The file may grow during the read.
        if file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)? as u64 > MAX_FILE_BYTES {
            return Err(StoreError::TooLarge);
        }
        self.store_bytes(&bytes)
    }

    /// Stores a content and returns its hash.
    ///
    /// # Errors
    /// Fails if it is too large, contains a secret, or cannot be written.
    pub fn store_bytes(&self, bytes: &[u8]) -> Result<String, StoreError> {
        let hash = hash(bytes);
        self.store_hashed(HashedContent { bytes, hash: &hash }).map(|()| hash)
    }

    /// Stores a content whose hash is known.
    ///
    /// # Errors
    /// Fails if it is too large, contains a secret, or cannot be written.
    pub fn store_hashed(&self, HashedContent { bytes, hash }: HashedContent<'_>) -> Result<(), StoreError> {
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(StoreError::TooLarge);
        }
        if self.redactor.contains_known(bytes) {
            return Err(StoreError::Secret);
        }
        self.with_packs(|packs| if packs.touch(hash) { Ok(()) } else { packs.add(hash, bytes) })
    }

    /// Checks whether the content with this hash is stored, and marks its pack as used so that it is pruned last.
    pub fn contains(&self, hash: &str) -> bool {
        self.with_packs(|packs| packs.touch(hash))
    }

    /// Returns the content with this hash. `None` if it was not stored, was pruned or is damaged.
    pub fn get(&self, hash: &str) -> Option<Vec<u8>> {
        let location = self.with_packs(|packs| packs.locations.get(hash).cloned())?;
        let length = usize::try_from(location.length.min(MAX_FILE_BYTES)).ok()?;
        let mut bytes = vec![0; length];
        open_own(&location.pack).ok()?.read_exact_at(&mut bytes, location.offset).ok()?;
        (crate::workspace::file::hash(&bytes) == hash).then_some(bytes)
    }

    /// Removes the oldest packs beyond the limits if this process has added to them.
    pub fn prune(&self) {
        let packs = self.packs.lock().unwrap_or_else(PoisonError::into_inner);
        if packs.as_ref().is_some_and(|packs| packs.added > 0) {
            prune(&self.dir, MAX_BYTES, MAX_PACKS);
        }
    }

    fn with_packs<T>(&self, f: impl FnOnce(&mut Packs) -> T) -> T {
        let mut packs = self.packs.lock().unwrap_or_else(PoisonError::into_inner);
        f(packs.get_or_insert_with(|| Packs::of(&self.dir)))
    }
}

impl Packs {
    /// Reads the indexes in `dir`.
    fn of(dir: &Path) -> Self {
        let mut locations = HashMap::new();
        for index in files(dir, INDEX) {
            let pack: Arc<Path> = index.with_extension(PACK).into();
            let Ok(size) = pack.symlink_metadata().map(|file| file.len()) else { continue };
            let mut lines = Vec::new();
            if open_own(&index).and_then(|file| file.take(MAX_INDEX_BYTES).read_to_end(&mut lines)).is_err() {
                continue;
            }
            for line in lines.chunks_exact(LINE_BYTES) {
                let Some((hash, offset, length)) = read_line(line) else { continue };
                if offset.checked_add(length).is_some_and(|end| end <= size) {
                    locations
                        .insert(hash.to_owned(), ContentLocation { pack: Arc::clone(&pack), offset, length });
                }
            }
        }
        Self { dir: dir.to_owned(), locations, used: HashSet::new(), own: None, added: 0 }
    }

    /// Checks whether a content is stored, and marks its pack as used.
    fn touch(&mut self, hash: &str) -> bool {
        let Some(location) = self.locations.get(hash) else { return false };
        if self.used.contains(&location.pack) {
            return true;
        }
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        let pack = Arc::clone(&location.pack);
        // The pack may have been removed since the index was read.
        if rustix::fs::utimensat(CWD, &*pack, &times, AtFlags::SYMLINK_NOFOLLOW).is_err() {
            self.locations.retain(|_, location| location.pack != pack);
            return false;
        }
        self.used.insert(pack)
    }

    fn add(&mut self, hash: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let length = bytes.len() as u64;
        if self.added.saturating_add(length) > MAX_RUN_BYTES {
            return Err(StoreError::Full);
        }
        let mut own = match self.own.take() {
            Some(own) => own,
            None => OwnPack::create(&self.dir)?,
        };
        let location = ContentLocation { pack: Arc::clone(&own.path), offset: own.length, length };
        // After an incomplete write, the pack is not written to again.
        own.pack.write_all(bytes)?;
        own.index.write_all(line(hash, location.offset, length).as_bytes())?;
        own.length = own.length.saturating_add(length);
        self.used.insert(Arc::clone(&own.path));
        self.own = Some(own);
        self.added = self.added.saturating_add(length.max(1));
        self.locations.insert(hash.to_owned(), location);
        Ok(())
    }
}

impl OwnPack {
    fn create(dir: &Path) -> io::Result<Self> {
        create_private_dir(dir)?;
        let name = Clock::new().short_id();
        let make = |extension: &str| {
            let path = dir.join(&name).with_extension(extension);
            let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path)?;
            Ok::<_, io::Error>((path, file))
        };
        let ((path, pack), (_, index)) = (make(PACK)?, make(INDEX)?);
        Ok(Self { path: path.into(), pack, index, length: 0 })
    }
}

fn line(hash: &str, offset: u64, length: u64) -> String {
    format!("{hash} {offset:016x} {length:016x}\n")
}

fn read_line(line: &[u8]) -> Option<(&str, u64, u64)> {
    let mut words = std::str::from_utf8(line).ok()?.strip_suffix('\n')?.split(' ');
    let hash = words.next()?;
    let mut number = || u64::from_str_radix(words.next()?, 16).ok();
    Some((hash, number()?, number()?))
}

/// Opens a regular file for reading without following a link.
fn open_own(path: &Path) -> io::Result<File> {
    let (file, metadata) = private_file::open(path)?;
    if private_file::is_own(&metadata, 0) { Ok(file) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// Lists the files in `dir` with the extension `extension`.
fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = dir.read_dir().into_iter().flatten().filter_map(Result::ok);
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|it| it == extension)).collect()
}

/// Removes the oldest packs beyond `bytes` or `packs`.
#[expect(clippy::disallowed_methods, reason = "stored contents are removed only here")]
fn prune(dir: &Path, bytes: u64, packs: usize) {
    let aged = |path: PathBuf| {
        let metadata = path.symlink_metadata().ok()?;
        Some((metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), metadata.len(), path))
    };
    let mut found: Vec<_> = files(dir, PACK).into_iter().filter_map(aged).collect();
    found.sort_by_key(|(modified, ..)| std::cmp::Reverse(*modified));
    let mut total = 0u64;
    for (number, (_, size, path)) in found.iter().enumerate() {
        total = total.saturating_add(*size);
        if number >= packs || total > bytes {
            // If removal fails, the next run tries again.
            let _ = std::fs::remove_file(path.with_extension(INDEX));
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
#[path = "content_store_tests.rs"]
mod tests;
