//! Reads the files in git's index, without git and within limits. An index that is not well-formed is refused as a whole.
//!
//! Format: <https://git-scm.com/docs/index-format>

use agent_process::sandbox::repositories::{GIT, resolve_git_link};
use agent_runtime::private_file;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Largest index to read, in bytes: some 700,000 files.
const MAX_BYTES: u64 = 64 << 20;

/// Longest path in bytes (`PATH_MAX` of Linux).
const MAX_PATH_BYTES: usize = 4096;

/// Bytes of an object id: SHA-1 and SHA-256. The index does not contain which it is; with the wrong one it is not well-formed.
pub(super) const HASH_BYTES: [usize; 2] = [20, 32];

/// Bytes of signature, version and number of entries.
const HEADER_BYTES: u64 = 12;

/// Bytes of the times, ids, mode and size of an entry.
const STAT_BYTES: usize = 40;

/// Flag of an entry with further flags.
const EXTENDED: u16 = 0x4000;

/// Further flag of a file that a sparse checkout leaves out.
const SKIP_WORKTREE: u16 = 0x4000;

/// Bits of `st_mode` with the kind of an entry, and the value for a regular file.
const KIND_BITS: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;

/// Extension of an index that contains only the difference to another one.
const SPLIT_INDEX: [u8; 4] = *b"link";

/// Open index of a repository.
pub(super) struct GitIndex {
    file: File,
    length: u64,
    version: u32,
    count: u32,
    /// Path of the workspace in the working tree, with a final slash unless it is empty.
    prefix: Vec<u8>,
}

/// Start of an entry.
struct EntryHead {
    mode: u32,
    size: u32,
    flags: u16,
    is_skipped: bool,
    /// Bytes of the entry before its path.
    bytes: usize,
}

impl GitIndex {
    /// Opens the index of the working tree that contains `root`. `None` if there is none of this user, or it is too large.
    pub(super) fn open(root: &Path) -> Option<Self> {
        let tree = root.ancestors().find(|above| above.join(GIT).symlink_metadata().is_ok())?;
        let git = tree.join(GIT);
        let is_plain = git.symlink_metadata().is_ok_and(|git| git.is_dir());
        let directory = if is_plain { git } else { resolve_git_link(&git)?.directory };
        let (mut file, metadata) = private_file::open(&directory.join("index")).ok()?;
        if !private_file::is_own(&metadata, 0) || metadata.len() > MAX_BYTES {
            return None;
        }
        let mut header = [0; 12];
        file.read_exact(&mut header).ok()?;
        let (version, count) = (number(&header, 4), number(&header, 8));
        if !header.starts_with(b"DIRC") || !(2..=4).contains(&version) {
            return None;
        }
        let mut prefix = root.strip_prefix(tree).ok()?.as_os_str().as_bytes().to_vec();
        if !prefix.is_empty() {
            prefix.push(b'/');
        }
        Some(Self { file, length: metadata.len(), version, count, prefix })
    }

    /// Returns the number of entries, according to the index.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Calls `visit` with the path and size of each regular file below the workspace, in the order of their paths, until it
    /// returns `false`. `None` if the index is not well-formed with ids of `hash_bytes`, or not complete by itself.
    pub(super) fn visit(&self, hash_bytes: usize, visit: &mut dyn FnMut(&[u8], u32) -> bool) -> Option<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(HEADER_BYTES)).ok()?;
        let mut reader = BufReader::with_capacity(1 << 16, file.take(self.length));
        let (mut path, mut before) = (Vec::new(), Vec::new());
        let (mut position, mut stage_before) = (HEADER_BYTES, 0);
        for _ in 0..self.count {
            let head = EntryHead::read(&mut reader, hash_bytes, self.version)?;
            position += (head.bytes + self.read_path(&mut reader, &head, &before, &mut path)?) as u64;
            let stage = head.flags >> 12 & 3;
            if (&path, stage) <= (&before, stage_before) && !before.is_empty() {
                return None;
            }
            let is_listed = head.mode & KIND_BITS == REGULAR && !head.is_skipped && path != before;
            if is_listed && !is_plain_path(&path) {
                return None;
            }
            if let Some(below) = path.strip_prefix(&self.prefix[..]).filter(|_| is_listed)
                && !visit(below, head.size)
            {
                return Some(());
            }
            (path, before) = (before, path);
            stage_before = stage;
        }
        self.check_extensions(&mut reader, position, hash_bytes as u64)
    }

    /// Reads the path of an entry into `path`, and the zero bytes after it. Returns the number of bytes.
    fn read_path(
        &self,
        reader: &mut impl BufRead,
        head: &EntryHead,
        before: &[u8],
        path: &mut Vec<u8>,
    ) -> Option<usize> {
        path.clear();
        let mut bytes = 0;
        if self.version == 4 {
            let (removed, read) = read_varint(reader)?;
            path.extend_from_slice(before.get(..before.len().checked_sub(removed)?)?);
            bytes += read;
        }
        let shared = path.len();
        reader.take(MAX_PATH_BYTES as u64).read_until(0, path).ok()?;
        bytes += path.len() - shared;
        if path.pop()? != 0 || path.is_empty() || usize::from(head.flags & 0xfff) != path.len().min(0xfff) {
            return None;
        }
        if self.version < 4 {
            let padding = 7 - (head.bytes + path.len()) % 8;
            let mut zeros = [1; 8];
            let zeros = zeros.get_mut(..padding)?;
            reader.read_exact(zeros).ok()?;
            bytes += padding;
            return zeros.iter().all(|byte| *byte == 0).then_some(bytes);
        }
        Some(bytes)
    }

    /// Checks that extensions and checksum fill the rest of the file, and that none refers to another index.
    fn check_extensions(&self, reader: &mut impl Read, mut position: u64, hash_bytes: u64) -> Option<()> {
        let end = self.length.checked_sub(hash_bytes)?;
        while position < end {
            let mut head = [0; 8];
            reader.read_exact(&mut head).ok()?;
            let size = u64::from(number(&head, 4));
            position = position.checked_add(8)?.checked_add(size)?;
            if head.starts_with(&SPLIT_INDEX) || position > end {
                return None;
            }
            std::io::copy(&mut reader.take(size), &mut std::io::sink()).ok()?;
        }
        (position == end).then_some(())
    }
}

impl EntryHead {
    fn read(reader: &mut impl Read, hash_bytes: usize, version: u32) -> Option<Self> {
        let mut head = [0; STAT_BYTES + 32 + 2];
        let head = head.get_mut(..STAT_BYTES + hash_bytes + 2)?;
        reader.read_exact(head).ok()?;
        let flags = u16::from_be_bytes(*head.last_chunk()?);
        let mut further = [0; 2];
        if flags & EXTENDED != 0 {
            if version < 3 {
                return None;
            }
            reader.read_exact(&mut further).ok()?;
        }
        let is_skipped = u16::from_be_bytes(further) & SKIP_WORKTREE != 0;
        let bytes = head.len() + if flags & EXTENDED == 0 { 0 } else { 2 };
        Some(Self { mode: number(head, 24), size: number(head, 36), flags, is_skipped, bytes })
    }
}

/// Returns the big-endian number at `at`.
fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// Reads the number of bytes that a path does not share with the one before, and returns it with the number of bytes read.
fn read_varint(reader: &mut impl Read) -> Option<(usize, usize)> {
    let mut value = 0_usize;
    for count in 1..=4 {
        let mut byte = [0];
        reader.read_exact(&mut byte).ok()?;
        value = value << 7 | usize::from(byte[0] & 0x7f);
        if byte[0] & 0x80 == 0 {
            return Some((value, count));
        }
        value += 1;
    }
    None
}

/// Checks whether `path` stays below the working tree and outside the repository.
fn is_plain_path(path: &[u8]) -> bool {
    let is_plain =
        |part: &[u8]| !matches!(part, b"" | b"." | b"..") && !part.eq_ignore_ascii_case(GIT.as_bytes());
    path.split(|byte| *byte == b'/').all(is_plain)
}

#[cfg(test)]
#[path = "git_index_tests.rs"]
mod tests;
