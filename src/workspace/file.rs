//! Bounded reads of regular files.

use crate::Workspace;
use crate::error::FileError;
use crate::path::RelPath;
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};

/// Bytes per read of a streamed file.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// Hexadecimal digits of a content hash: 128 bits, enough to rule out accidental collisions and deliberate ones.
pub const HASH_DIGITS: usize = 32;

/// Hash of a content: the first 128 bits of BLAKE3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentHash(u128);

impl ContentHash {
    /// Returns the hash of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_bytes(blake3::hash(bytes).as_bytes().first_chunk().copied().unwrap_or_default())
    }

    /// Parses the hexadecimal form that [`hash`] returns.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() == HASH_DIGITS { parse_hex(text.as_bytes()).map(Self) } else { None }
    }

    /// Creates the hash from its bytes.
    pub fn from_bytes(bytes: [u8; HASH_DIGITS / 2]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// Returns its bytes.
    pub fn to_bytes(self) -> [u8; HASH_DIGITS / 2] {
        self.0.to_be_bytes()
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Parses at most 32 hexadecimal digits. A run reads some ten thousand hashes, for which `from_str_radix` takes several times as long.
pub(super) fn parse_hex(digits: &[u8]) -> Option<u128> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    };
    digits.iter().try_fold(0, |number, digit| Some(number << 4 | u128::from(value(*digit)?)))
}

/// Content and metadata of a file when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Real path, links resolved.
    pub path: RelPath,
    /// Complete content.
    pub bytes: Vec<u8>,
    /// [`hash`] of the content.
    pub hash: String,
    /// Permission bits.
    pub mode: Mode,
}

/// Content with a known [`hash`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashedContent<'a> {
    /// Complete content.
    pub bytes: &'a [u8],
    /// Hash of the content.
    pub hash: &'a str,
}

/// Regular file, open for reading.
#[derive(Debug)]
pub struct OpenedFile {
    /// The open file.
    pub file: File,
    /// Real path, links resolved.
    pub path: RelPath,
    /// Size in bytes when it was opened.
    pub size: u64,
    /// Permission bits.
    pub mode: Mode,
}

/// Returns the hash of `bytes` in the format of ledgers and journals: the first 128 bits of BLAKE3 in hexadecimal.
pub fn hash(bytes: &[u8]) -> String {
    digits(&blake3::hash(bytes))
}

/// Returns the [`hash`] of the data from `reader`, in constant memory.
///
/// # Errors
/// Fails if reading fails.
pub fn hash_reader(reader: impl Read) -> io::Result<String> {
    Ok(digits(&blake3::Hasher::new().update_reader(reader)?.finalize()))
}

/// Checks whether `bytes` equals the data from `reader`, in constant memory.
///
/// # Errors
/// Fails if reading fails.
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

/// Formats a finished hash in hexadecimal digits.
pub fn digits(hash: &blake3::Hash) -> String {
    let mut text = hash.to_hex().to_string();
    text.truncate(HASH_DIGITS);
    text
}

impl Workspace {
    /// Opens the regular file `path`. Never blocks on a pipe or device.
    ///
    /// # Errors
    /// Fails if it is missing, not a regular file, outside the workspace, sensitive or unreadable.
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
    /// Fails like [`open_file`](Self::open_file), and if the file is larger. It is not loaded then.
    pub fn read(&self, path: &RelPath, limit: u64) -> Result<Content, FileError> {
        let opened = self.open_file(path)?;
        let too_large = |size| FileError::TooLarge { path: path.clone(), size, limit };
        if opened.size > limit {
            return Err(too_large(opened.size));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(opened.size).unwrap_or(0));
        // Some file systems report size 0, and any file may grow during the read.
        let count = opened.file.take(limit.saturating_add(1)).read_to_end(&mut bytes);
        let count = count.map_err(|error| FileError::io(path, "read", error))?;
        if count as u64 > limit {
            return Err(too_large(count as u64));
        }
        Ok(Content { path: opened.path, hash: hash(&bytes), bytes, mode: opened.mode })
    }
}

/// Reads many files, those of one directory after each other without opening it again.
pub(super) struct BatchReader<'a> {
    workspace: &'a Workspace,
    /// Directory of the last file.
    directory: Option<(RelPath, OwnedFd)>,
}

impl<'a> BatchReader<'a> {
    pub(super) fn new(workspace: &'a Workspace) -> Self {
        Self { workspace, directory: None }
    }

    /// Appends the content of the file `path`, or with `is_link` the target of a link, to `bytes`. `None` if it is not such a file,
    /// is sensitive, unreadable or larger than `limit`, or a part of its path is a link.
    pub(super) fn read(&mut self, path: &str, is_link: bool, limit: u64, bytes: &mut Vec<u8>) -> Option<()> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        if self.directory.as_ref().is_none_or(|(directory, _)| directory.as_str() != parent) {
            let directory = RelPath::from_parts(&[parent]);
            self.directory = None;
            let opened = self.workspace.root_dir().open_directory(&directory).ok()?;
            self.directory = Some((directory, opened));
        }
        let (_, directory) = self.directory.as_ref()?;
        if is_link {
            bytes.extend_from_slice(rustix::fs::readlinkat(directory, name, Vec::new()).ok()?.to_bytes());
            return Some(());
        }
        if self.workspace.is_sensitive(path) {
            return None;
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(directory, name, flags, Mode::empty()).ok()?);
        let stat = rustix::fs::fstat(&file).ok()?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || size > limit {
            return None;
        }
        let start = bytes.len();
        let expected = usize::try_from(size).ok()?;
        bytes.resize(start + expected + 1, 0);
        let mut read = 0;
        // The file may grow during the read, and some file systems report size 0.
        loop {
            let count = file.read(bytes.get_mut(start + read..)?).ok()?;
            read += count;
            if count == 0 || read == expected && expected > 0 {
                break;
            }
            bytes.resize(start + read + expected.max(CHUNK_BYTES), 0);
            if read as u64 > limit {
                return None;
            }
        }
        bytes.truncate(start + read);
        Some(())
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
