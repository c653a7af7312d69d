//! A file for lines that are appended, private to the user and rotated when it is full.

use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file is rotated before a line would exceed this size: some hours of work, and any editor can open it.
const ROTATE_BYTES: u64 = 10_000_000;
/// Number of rotated files, `FILE.1` (the newest) to `FILE.3`.
const ROTATED_FILES: u32 = 3;
/// Readable by the owner only, because the lines contain names and contents of files.
const MODE: u32 = 0o600;

/// Effect of a write to a pipe whose reader is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writes {
    /// The write waits, so that no data is lost.
    Block,
    /// The write fails.
    Fail,
}

/// A file for lines that is open for appending.
#[derive(Debug)]
pub(super) struct RotatingFile {
    path: PathBuf,
    file: File,
    /// Bytes in the current file; `None` if it is not a regular file, which is never rotated.
    size: Option<u64>,
    limit: u64,
    writes: Writes,
}

impl RotatingFile {
    /// Opens `path` for appending, and creates it if it is missing.
    ///
    /// # Errors
    /// When the file cannot be opened or created.
    pub(super) fn open(path: PathBuf, writes: Writes) -> io::Result<Self> {
        let (file, size) = open_sized(&path, writes)?;
        Ok(Self { path, file, size, limit: ROTATE_BYTES, writes })
    }

    /// Returns the path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line, which ends with a line break.
    ///
    /// # Errors
    /// When the file cannot be written or rotated.
    pub(super) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let length = line.len() as u64;
        if self.size.is_some_and(|size| size > 0 && size.saturating_add(length) > self.limit) {
            rotate(&self.path)?;
            (self.file, self.size) = open_sized(&self.path, self.writes)?;
        }
        self.file.write_all(line)?;
        self.size = self.size.map(|size| size.saturating_add(length));
        Ok(())
    }
}

/// Opens the file and returns its size. A pipe without a reader is an error; the open does not block.
fn open_sized(path: &Path, writes: Writes) -> io::Result<(File, Option<u64>)> {
    let non_blocking = OFlags::NONBLOCK.bits().cast_signed();
    let file =
        OpenOptions::new().append(true).create(true).mode(MODE).custom_flags(non_blocking).open(path)?;
    if writes == Writes::Block {
        rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
    }
    let metadata = file.metadata()?;
    Ok((file, metadata.is_file().then_some(metadata.len())))
}

fn rotated_path(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// Renames `LOG.2` to `LOG.3`, `LOG.1` to `LOG.2` and `LOG` to `LOG.1`; the oldest file is replaced.
#[expect(clippy::disallowed_methods, reason = "this module owns the log files")]
fn rotate(path: &Path) -> io::Result<()> {
    for number in (1..ROTATED_FILES).rev() {
        match std::fs::rename(rotated_path(path, number), rotated_path(path, number + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    std::fs::rename(path, rotated_path(path, 1))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests read the files")]
mod tests {
    use super::*;

    #[test]
    fn o21_a_full_file_is_put_aside_and_three_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.log");
        let mut log = RotatingFile::open(path.clone(), Writes::Block).unwrap();
        log.limit = 400;
        for number in 0..60 {
            log.append(format!("{number:099}\n").as_bytes()).unwrap();
        }
        let files = std::fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(files, 4);
        assert!(rotated_path(&path, 3).exists() && !rotated_path(&path, 4).exists());
        for number in 1..=3 {
            let text = std::fs::read_to_string(rotated_path(&path, number)).unwrap();
            assert_eq!(text.len(), 400);
        }
    }
}
