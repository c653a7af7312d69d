//! The record of a transaction while it is under way: what undoes it, on disk before its first change, gone after its last.
//!
//! A record is locked for as long as the process lives that wrote it. One that can be locked is of a process that died. One
//! that could not undo everything is set aside, not removed: it holds what the files were.

use crate::runtime::clock::Clock;
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How the name of a whole record ends.
const COMPLETE_EXTENSION: &str = "json";

/// How the name of one that is being written ends.
const PARTIAL_EXTENSION: &str = "part";

/// How the name of one ends that is set aside.
const SET_ASIDE_EXTENSION: &str = "aside";

/// Largest record that is written or read; the texts of all files of a transaction, escaped.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Records looked at in one go.
const MAX_RECORDS: usize = 1000;

/// A record that this process has locked; removed when dropped, unless it was set aside.
#[derive(Debug)]
pub struct LockedRecord {
    path: PathBuf,
    file: File,
    is_aside: bool,
}

impl LockedRecord {
    /// Lets it stay, under a name that no start looks at; says where.
    pub fn set_aside(&mut self) -> PathBuf {
        self.is_aside = true;
        let aside = self.path.with_extension(SET_ASIDE_EXTENSION);
        // Where it keeps its name the next start says so again.
        if rustix::fs::renameat_with(CWD, &self.path, CWD, &aside, RenameFlags::NOREPLACE).is_ok() {
            self.path = aside;
        }
        self.path.clone()
    }
}

impl Drop for LockedRecord {
    fn drop(&mut self) {
        if !self.is_aside {
            // What stays is looked at again by the next start, and finds all files as they were or are to be.
            let _ = rustix::fs::unlink(&self.path);
        }
    }
}

/// What a process that died has left.
#[derive(Debug)]
pub enum AbandonedRecord<R> {
    /// A record, locked.
    Record(LockedRecord, R),
    /// A whole record that cannot be read, which stays.
    Unreadable(UnreadableRecord),
}

/// A whole record that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub struct UnreadableRecord {
    /// Where it lies now.
    pub path: PathBuf,
    /// Why it cannot be read.
    pub why: String,
}

/// Writes `record` durably into `dir`, which is made.
///
/// # Errors
/// When it is larger than what is read again, or the system refuses; nothing is left then.
pub fn write(dir: &Path, record: &impl Serialize) -> io::Result<LockedRecord> {
    write_up_to(MAX_BYTES, dir, record)
}

fn write_up_to(limit: u64, dir: &Path, record: &impl Serialize) -> io::Result<LockedRecord> {
    let text = serde_json::to_vec(record)?;
    if text.len() as u64 > limit {
        let message = format!("{}: change fewer in one call.", too_large(limit));
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let name = Clock::new().short_id();
    let part = dir.join(format!("{name}.{PARTIAL_EXTENSION}"));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
    let mut held = LockedRecord { path: part, file, is_aside: false };
    rustix::fs::flock(&held.file, FlockOperation::NonBlockingLockExclusive)?;
    held.file.write_all(&text)?;
    held.file.sync_all()?;
    let whole = dir.join(format!("{name}.{COMPLETE_EXTENSION}"));
    rustix::fs::rename(&held.path, &whole)?;
    held.path = whole;
    let opened = rustix::fs::open(dir, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::fs::fsync(opened)?;
    Ok(held)
}

fn too_large(limit: u64) -> String {
    format!("the texts of its files, as they are recorded, are together larger than {} MiB", limit >> 20)
}

/// What processes that died have left in `dir`. Half a record is removed: nothing was changed before it was whole.
pub fn abandoned<R: DeserializeOwned>(dir: &Path) -> Vec<AbandonedRecord<R>> {
    let Ok(entries) = dir.read_dir() else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let ends = |path: &Path, end: &str| path.extension().is_some_and(|extension| extension == end);
    let paths = paths
        .filter(|path| ends(path, COMPLETE_EXTENSION) || ends(path, PARTIAL_EXTENSION))
        .take(MAX_RECORDS);
    paths
        .filter_map(|path| {
            let is_whole = ends(&path, COMPLETE_EXTENSION);
            let mut held = match lock(&path) {
                Ok(held) => held?,
                Err(error) => {
                    return is_whole.then(|| {
                        AbandonedRecord::Unreadable(UnreadableRecord { path, why: error.to_string() })
                    });
                }
            };
            Some(match is_whole.then(|| read(&held.file))? {
                Ok(record) => AbandonedRecord::Record(held, record),
                Err(error) => AbandonedRecord::Unreadable(UnreadableRecord {
                    path: held.set_aside(),
                    why: error.to_string(),
                }),
            })
        })
        .collect()
}

/// Locks what nobody else holds; nothing where somebody does, or where it has gone.
fn lock(path: &Path) -> io::Result<Option<LockedRecord>> {
    let flags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Ok(None),
        locked => locked?,
    }
    // Its transaction may have ended, or another start have set it aside, while it was opened.
    let opened = file.metadata()?;
    let is_it = |there: Metadata| (there.dev(), there.ino()) == (opened.dev(), opened.ino());
    let is_there = path.symlink_metadata().is_ok_and(is_it);
    Ok(is_there.then(|| LockedRecord { path: path.to_owned(), file, is_aside: false }))
}

fn read<R: DeserializeOwned>(file: &File) -> io::Result<R> {
    let mut bytes = Vec::new();
    if file.take(MAX_BYTES + 1).read_to_end(&mut bytes)? as u64 > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, too_large(MAX_BYTES)));
    }
    Ok(serde_json::from_slice(&bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_larger_than_what_is_read_again_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let records = dir.path().join("records");
        let error = write_up_to(7, &records, &"four\u{1}").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(!records.exists());
        drop(write_up_to(8, &records, &"\u{1}").unwrap());
    }
}
