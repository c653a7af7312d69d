//! Bounded reads of regular files.

use crate::workspace::Workspace;
use crate::workspace::error::FileError;
use crate::workspace::path::RelPath;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};

/// Bytes read at a time where a file is streamed.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// Hexadecimal digits of a content hash: 128 bits, beyond any collision by accident or by intent.
pub const HASH_DIGITS: usize = 32;

/// The content of a file and what it was when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Where it really is, links resolved.
    pub path: RelPath,
    /// All of it.
    pub bytes: Vec<u8>,
    /// Its [`hash`].
    pub hash: String,
    /// Its permission bits.
    pub mode: Mode,
}

/// A content whose [`hash`] is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashedContent<'a> {
    /// All of it.
    pub bytes: &'a [u8],
    /// Its hash.
    pub hash: &'a str,
}

/// A regular file, open for reading.
#[derive(Debug)]
pub struct OpenedFile {
    /// The open file.
    pub file: File,
    /// Where it really is, links resolved.
    pub path: RelPath,
    /// Its size in bytes when it was opened.
    pub size: u64,
    /// Its permission bits.
    pub mode: Mode,
}

/// The hash of `bytes` as ledgers and journals write it: the first 128 bits of BLAKE3 in hexadecimal.
pub fn hash(bytes: &[u8]) -> String {
    digits(&blake3::hash(bytes))
}

/// The [`hash`] of all that `reader` gives, in constant memory.
///
/// # Errors
/// When reading fails.
pub fn hash_reader(mut reader: impl Read) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match reader.read(&mut chunk) {
            Ok(0) => return Ok(digits(&hasher.finalize())),
            Ok(count) => {
                hasher.update(chunk.get(..count).unwrap_or_default());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Whether `bytes` is all that `reader` gives, in constant memory.
///
/// # Errors
/// When reading fails.
pub fn equals_reader(mut bytes: &[u8], mut reader: impl Read) -> io::Result<bool> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match reader.read(&mut chunk) {
            Ok(0) => return Ok(bytes.is_empty()),
            Ok(count) => match chunk.get(..count).and_then(|read| bytes.strip_prefix(read)) {
                Some(rest) => bytes = rest,
                None => return Ok(false),
            },
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The digits of a finished hash.
pub fn digits(hash: &blake3::Hash) -> String {
    let mut text = hash.to_hex().to_string();
    text.truncate(HASH_DIGITS);
    text
}

impl Workspace {
    /// Opens the regular file `path`; never blocks on a pipe or device.
    ///
    /// # Errors
    /// When it is absent, not a regular file, outside, sensitive or unreadable.
    pub fn open_file(&self, path: &RelPath) -> Result<OpenedFile, FileError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let (fd, real) = self.root_dir().open(path, flags).map_err(|error| match error {
            // A socket cannot be opened at all.
            super::root_dir::ResolveError::Io(Errno::NXIO | Errno::NODEV) => FileError::Special(path.clone()),
            error => FileError::at(path, error),
        })?;
        if self.is_protected(&real, false) {
            return Err(FileError::ProtectedFile(path.clone()));
        }
        let stat = rustix::fs::fstat(&fd).map_err(|error| FileError::io(path, "read", error.into()))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(OpenedFile {
                file: File::from(fd),
                path: real,
                size: u64::try_from(stat.st_size).unwrap_or(0),
                mode: Mode::from_raw_mode(stat.st_mode),
            }),
            FileType::Directory => Err(FileError::Directory(path.clone())),
            _ => Err(FileError::Special(path.clone())),
        }
    }

    /// Reads the regular file `path` of at most `limit` bytes.
    ///
    /// # Errors
    /// As [`open_file`](Self::open_file), and when it is larger; nothing is loaded then.
    pub fn read(&self, path: &RelPath, limit: u64) -> Result<Content, FileError> {
        let opened = self.open_file(path)?;
        let too_large = |size| FileError::TooLarge { path: path.clone(), size, limit };
        if opened.size > limit {
            return Err(too_large(opened.size));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(opened.size).unwrap_or(0));
        // Files of some file systems say size 0, and any file may grow meanwhile.
        let count = opened.file.take(limit.saturating_add(1)).read_to_end(&mut bytes);
        let count = count.map_err(|error| FileError::io(path, "read", error))?;
        if count as u64 > limit {
            return Err(too_large(count as u64));
        }
        Ok(Content { path: opened.path, hash: hash(&bytes), bytes, mode: opened.mode })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_is_compared_to_its_end() {
        for length in [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, 2 * CHUNK_BYTES + 1] {
            let bytes: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect();
            assert!(equals_reader(&bytes, bytes.as_slice()).unwrap(), "{length}");
            let longer = [&bytes[..], b"x"].concat();
            assert!(
                !equals_reader(&bytes, longer.as_slice()).unwrap()
                    && !equals_reader(&longer, &*bytes).unwrap()
            );
            for at in [0, length / 2, length.saturating_sub(1)].into_iter().filter(|at| *at < length) {
                let mut other = bytes.clone();
                other[at] ^= 1;
                assert!(!equals_reader(&bytes, other.as_slice()).unwrap(), "{length}: {at}");
            }
        }
    }
}
