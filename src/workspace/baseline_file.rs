//! Files with a snapshot of the workspace and the hashes of its contents: those before a command, and those that later runs compare.
//!
//! A file that is incomplete, damaged or of another version is ignored.

use crate::file::{ContentHash, HASH_DIGITS};
use crate::snapshot::{FileEntry, FileStamp, Snapshot, Timestamp};
use agent_runtime::clock::Clock;
use agent_runtime::private_file;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Maximum size in bytes. Exceeds that of a usual snapshot with the maximum number of files.
const MAX_BYTES: u64 = 64 << 20;

/// Start of each file, with the version of the format. The rest is numbers in little-endian order and texts with their length, and the
/// hash of all of it.
const MAGIC: &[u8; 16] = b"agent baseline 1";

/// Bytes of a file without its path.
const FILE_BYTES: usize = 65;

/// Bytes of the hash at the end.
const CHECKSUM_BYTES: usize = 32;

/// First characters of the name of a workspace's file for later runs, in the content store.
const SHARED_PREFIX: &str = "files-";

/// Name extension of a file that is being written.
const NEW: &str = "new";

/// Time after which a file that is being written is left over from a process that was killed.
const MAX_WRITE_TIME: Duration = Duration::from_mins(1);

/// Maximum number of files for later runs in one content store: the workspace and its worktrees.
const MAX_SHARED: usize = 16;

/// Writes `snapshot` to `path`. Neither the file nor the stored contents are synced.
pub(super) fn write(path: &Path, snapshot: &Snapshot) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(&encode(snapshot)?)
}

/// Reads the snapshot in the file `path`, which must be private to this user.
pub(super) fn read(path: &Path) -> Option<Snapshot> {
    let (file, metadata) = private_file::open(path).ok()?;
    if !private_file::is_own(&metadata, 0o077) || metadata.len() > MAX_BYTES {
        return None;
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).ok()?);
    file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    decode(&bytes)
}

/// Returns the path of the file that the runs of the workspace `root` share, in the directory of its content store. The directory is
/// known by its inode, which it keeps when it is renamed.
pub(super) fn shared_path(contents: &Path, root: &Path) -> Option<PathBuf> {
    let root = root.metadata().ok()?;
    Some(contents.join(format!("{SHARED_PREFIX}{:x}-{:x}", root.dev(), root.ino())))
}

/// Replaces the shared file `path`, unless another run is writing it.
pub(super) fn share(path: &Path, snapshot: &Snapshot) -> io::Result<()> {
    let bytes = encode(snapshot)?;
    let new = path.with_extension(NEW);
    let is_left_over = |file: &File| {
        let modified = file.metadata().and_then(|file| file.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        let age = Clock::new()
            .unix_time()
            .saturating_sub(modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default());
        age > MAX_WRITE_TIME
    };
    if private_file::open(&new).is_ok_and(|(file, _)| is_left_over(&file)) {
        rustix::fs::unlink(&new)?;
    }
    let mut file = private_file::create_new(&new, true)?;
    let written = file.write_all(&bytes).and_then(|()| Ok(rustix::fs::rename(&new, path)?));
    if written.is_err() {
        rustix::fs::unlink(&new)?;
    }
    if let Some(contents) = path.parent() {
        remove_shared(contents, MAX_SHARED);
    }
    written
}

/// Removes the files that runs share from the directory of a content store, but for the `most` that were written last.
pub fn remove_shared(contents: &Path, most: usize) {
    let entries = contents.read_dir().into_iter().flatten().filter_map(Result::ok);
    let shared = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(SHARED_PREFIX));
    let modified = |path: &Path| path.symlink_metadata().and_then(|file| file.modified()).ok();
    let mut shared: Vec<_> = shared.map(|entry| (modified(&entry.path()), entry.path())).collect();
    shared.sort_by(|a, b| b.cmp(a));
    for (_, path) in shared.into_iter().skip(most) {
        // If removal fails, the next run tries again.
        let _ = rustix::fs::unlink(path);
    }
}

fn encode(snapshot: &Snapshot) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(snapshot.files.len().saturating_mul(128));
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&snapshot.began.as_secs().to_le_bytes());
    bytes.extend_from_slice(&snapshot.began.subsec_nanos().to_le_bytes());
    push_length(&mut bytes, snapshot.directories.len())?;
    for directory in &snapshot.directories {
        push_length(&mut bytes, directory.len())?;
        bytes.extend_from_slice(directory.as_bytes());
    }
    push_length(&mut bytes, snapshot.files.len())?;
    for FileEntry { path, stamp, hash } in &snapshot.files {
        push_length(&mut bytes, path.len())?;
        bytes.extend_from_slice(path.as_bytes());
        bytes.extend_from_slice(&stamp.size.to_le_bytes());
        bytes.extend_from_slice(&stamp.mode.to_le_bytes());
        bytes.extend_from_slice(&stamp.inode.to_le_bytes());
        for time in [stamp.modified, stamp.changed] {
            bytes.extend_from_slice(&time.seconds.to_le_bytes());
            bytes.extend_from_slice(&time.nanoseconds.to_le_bytes());
        }
        bytes.push(hash.is_some().into());
        bytes.extend_from_slice(&hash.map(ContentHash::to_bytes).unwrap_or_default());
    }
    let checksum = blake3::hash(&bytes);
    bytes.extend_from_slice(checksum.as_bytes());
    if bytes.len() as u64 > MAX_BYTES { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

fn push_length(bytes: &mut Vec<u8>, length: usize) -> io::Result<()> {
    let length = u32::try_from(length).map_err(io::Error::other)?;
    bytes.extend_from_slice(&length.to_le_bytes());
    Ok(())
}

fn decode(bytes: &[u8]) -> Option<Snapshot> {
    let (body, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>()?;
    if blake3::hash(body).as_bytes() != checksum {
        return None;
    }
    let mut input = Input(body.strip_prefix(MAGIC)?);
    let began = Duration::new(input.u64()?, input.u32().filter(|nanos| *nanos < 1_000_000_000)?);
    let directories = (0..input.u32()?).map(|_| input.text().map(str::to_owned)).collect::<Option<_>>()?;
    let count = input.u32()?;
    let mut files = Vec::with_capacity((count as usize).min(body.len() / FILE_BYTES));
    for _ in 0..count {
        files.push(input.file()?);
    }
    input.0.is_empty().then_some(Snapshot { files, directories, began, left_out: Vec::new() })
}

/// Bytes to be decoded.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.u32()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    fn time(&mut self) -> Option<Timestamp> {
        Some(Timestamp { seconds: self.take().map(i64::from_le_bytes)?, nanoseconds: self.u32()? })
    }

    fn file(&mut self) -> Option<FileEntry> {
        let path = self.text()?.into();
        let (size, mode, inode) = (self.u64()?, self.u32()?, self.u64()?);
        let stamp = FileStamp { size, mode, inode, modified: self.time()?, changed: self.time()? };
        let [is_known] = self.take()?;
        let hash = self.take::<{ HASH_DIGITS / 2 }>().map(ContentHash::from_bytes)?;
        Some(FileEntry { path, stamp, hash: (is_known == 1).then_some(hash) })
    }
}
