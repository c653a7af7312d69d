//! Store of replaced file contents outside the workspace, addressed by hash, so that changes can be undone.
//!
//! A process appends contents to a pack of its own, and adds an entry to the pack's index once a content is complete; those of many
//! files are appended together. A killed process therefore loses no content that was reported as stored. Nothing is synced, which
//! would double the cost of an edit. A content damaged by a power failure is detected by its hash and handled as missing.

use crate::file::{ContentHash, HASH_DIGITS, HashedContent, hash, parse_hex};
use agent_redactor::Redactor;
use agent_runtime::clock::Clock;
use agent_runtime::private_file::{self, create_private_dir};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW};
use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Name of the store's directory in the state directory of a workspace.
pub const CONTENTS_DIR: &str = "displaced";

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
    paths: Vec<PathBuf>,
    locations: HashMap<ContentHash, ContentLocation>,
    /// Packs that this process has used, whose modification time was updated for pruning.
    used: HashSet<usize>,
    /// Pack of this process, created with the first stored content.
    own: Option<OwnPack>,
    /// Bytes that this process has added.
    added: u64,
}

/// Location of a content.
#[derive(Clone, Copy)]
struct ContentLocation {
    /// Index of the pack in [`Packs::paths`].
    pack: usize,
    offset: u64,
    length: u64,
}

/// Pack that this process appends to.
struct OwnPack {
    /// Index in [`Packs::paths`].
    number: usize,
    pack: File,
    index: File,
    length: u64,
    /// Contents and lines of the index that are not written yet.
    contents: Vec<u8>,
    lines: String,
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
        let hash = ContentHash::parse(hash).ok_or(io::ErrorKind::InvalidInput).map_err(io::Error::from)?;
        self.with_packs(|packs| {
            if !packs.touch(hash) {
                packs.add(hash, bytes)?;
            }
            packs.write()
        })
    }

    /// Stores small contents together, and returns for each whether it is stored.
    pub fn store_all(&self, contents: &[(ContentHash, &[u8])]) -> Vec<bool> {
        let is_secret = |bytes: &[u8]| self.redactor.contains_known(bytes);
        let allowed: Vec<bool> = contents.iter().map(|(_, bytes)| !is_secret(bytes)).collect();
        self.with_packs(|packs| {
            let mut added =
                |(hash, bytes): &(ContentHash, &[u8])| packs.touch(*hash) || packs.add(*hash, bytes).is_ok();
            let stored: Vec<bool> = contents
                .iter()
                .zip(allowed)
                .map(|(content, is_allowed)| is_allowed && added(content))
                .collect();
            let is_written = packs.write().is_ok();
            stored
                .into_iter()
                .zip(contents)
                .map(|(stored, (hash, _))| stored && (is_written || packs.touch(*hash)))
                .collect()
        })
    }

    /// Checks whether the content with this hash is stored, and marks its pack as used so that it is pruned last.
    pub fn contains(&self, hash: &str) -> bool {
        ContentHash::parse(hash).is_some_and(|hash| self.has(hash))
    }

    /// Like [`contains`](Self::contains).
    pub fn has(&self, hash: ContentHash) -> bool {
        self.with_packs(|packs| packs.touch(hash))
    }

    /// Returns the directory of the store.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the content with this hash. `None` if it was not stored, was pruned or is damaged.
    pub fn get(&self, hash: &str) -> Option<Vec<u8>> {
        let wanted = ContentHash::parse(hash)?;
        let (pack, location) = self.with_packs(|packs| {
            let location = *packs.locations.get(&wanted)?;
            Some((packs.paths.get(location.pack)?.clone(), location))
        })?;
        let length = usize::try_from(location.length.min(MAX_FILE_BYTES)).ok()?;
        let mut bytes = vec![0; length];
        open_own(&pack).ok()?.read_exact_at(&mut bytes, location.offset).ok()?;
        (crate::file::hash(&bytes) == hash).then_some(bytes)
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
        let (mut paths, mut locations) = (Vec::new(), HashMap::new());
        for index in files(dir, INDEX) {
            let path = index.with_extension(PACK);
            let Ok(size) = path.symlink_metadata().map(|file| file.len()) else { continue };
            let mut lines = Vec::new();
            if open_own(&index).and_then(|file| file.take(MAX_INDEX_BYTES).read_to_end(&mut lines)).is_err() {
                continue;
            }
            let pack = paths.len();
            locations.reserve(lines.len() / LINE_BYTES);
            for line in lines.chunks_exact(LINE_BYTES) {
                let Some((hash, offset, length)) = read_line(line) else { continue };
                if offset.checked_add(length).is_some_and(|end| end <= size) {
                    locations.insert(hash, ContentLocation { pack, offset, length });
                }
            }
            paths.push(path);
        }
        Self { dir: dir.to_owned(), paths, locations, used: HashSet::new(), own: None, added: 0 }
    }

    /// Checks whether a content is stored, and marks its pack as used.
    fn touch(&mut self, hash: ContentHash) -> bool {
        let Some(&ContentLocation { pack, .. }) = self.locations.get(&hash) else { return false };
        if self.used.contains(&pack) {
            return true;
        }
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        // The pack may have been removed since the index was read.
        let path = self.paths.get(pack);
        if path
            .is_none_or(|path| rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).is_err())
        {
            self.locations.retain(|_, location| location.pack != pack);
            return false;
        }
        self.used.insert(pack)
    }

    /// Adds a content to the pack of this process. It is stored after the next [`write`](Self::write).
    fn add(&mut self, hash: ContentHash, bytes: &[u8]) -> Result<(), StoreError> {
        let length = bytes.len() as u64;
        if self.added.saturating_add(length) > MAX_RUN_BYTES {
            return Err(StoreError::Full);
        }
        let own = match &mut self.own {
            Some(own) => own,
            None => self.own.insert(OwnPack::create(&self.dir, &mut self.paths)?),
        };
        let location = ContentLocation { pack: own.number, offset: own.length, length };
        own.contents.extend_from_slice(bytes);
        own.lines.push_str(&line(hash, location.offset, length));
        own.length = own.length.saturating_add(length);
        self.used.insert(own.number);
        self.added = self.added.saturating_add(length.max(1));
        self.locations.insert(hash, location);
        Ok(())
    }

    /// Writes the contents that were added. After an incomplete write, the pack is not written to again.
    fn write(&mut self) -> Result<(), StoreError> {
        let Some(mut own) = self.own.take() else { return Ok(()) };
        let end = own.length.saturating_sub(own.contents.len() as u64);
        let written =
            own.pack.write_all(&own.contents).and_then(|()| own.index.write_all(own.lines.as_bytes()));
        if let Err(error) = written {
            self.locations.retain(|_, location| location.pack != own.number || location.offset < end);
            return Err(error.into());
        }
        own.contents = Vec::new();
        own.lines.clear();
        self.own = Some(own);
        Ok(())
    }
}

impl OwnPack {
    fn create(dir: &Path, paths: &mut Vec<PathBuf>) -> io::Result<Self> {
        create_private_dir(dir)?;
        let name = Clock::new().short_id();
        let make = |extension: &str| {
            let path = dir.join(&name).with_extension(extension);
            let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path)?;
            Ok::<_, io::Error>((path, file))
        };
        let ((path, pack), (_, index)) = (make(PACK)?, make(INDEX)?);
        let number = paths.len();
        paths.push(path);
        Ok(Self { number, pack, index, length: 0, contents: Vec::new(), lines: String::new() })
    }
}

fn line(hash: ContentHash, offset: u64, length: u64) -> String {
    format!("{hash} {offset:016x} {length:016x}\n")
}

fn read_line(line: &[u8]) -> Option<(ContentHash, u64, u64)> {
    let mut words = line.strip_suffix(b"\n")?.split(|byte| *byte == b' ');
    let hash = ContentHash::parse(std::str::from_utf8(words.next()?).ok()?)?;
    let mut number = || u64::try_from(parse_hex(words.next()?)?).ok();
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
