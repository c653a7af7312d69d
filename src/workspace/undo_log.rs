//! Undo record of a running transaction, on disk before its first change and removed after its last.
//!
//! A record is locked while the process that wrote it runs, so a record that can be locked belongs to a dead process. A record
//! whose changes could not all be undone is set aside and not removed, because it contains the earlier contents.

use agent_runtime::clock::Clock;
use agent_runtime::private_file::{self, create_private_dir};
use rustix::fs::{CWD, FlockOperation, RenameFlags};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Extension of a complete record.
const COMPLETE_EXTENSION: &str = "json";

/// Extension of a record that is being written.
const PARTIAL_EXTENSION: &str = "part";

/// Extension of a record that is set aside.
const SET_ASIDE_EXTENSION: &str = "aside";

/// Largest record to write or read, in bytes. It contains the texts of all files of a transaction, escaped.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Maximum number of records to check at a time.
const MAX_RECORDS: usize = 1000;

/// Record locked by this process. Dropping it removes it unless it was set aside.
#[derive(Debug)]
pub struct LockedRecord {
    path: PathBuf,
    file: File,
    is_aside: bool,
}

impl LockedRecord {
    /// Renames the record so that no later start reads it, and returns its path.
    pub fn set_aside(&mut self) -> PathBuf {
        self.is_aside = true;
        let aside = self.path.with_extension(SET_ASIDE_EXTENSION);
        // If the rename fails, the next start reports it again.
        if rustix::fs::renameat_with(CWD, &self.path, CWD, &aside, RenameFlags::NOREPLACE).is_ok() {
            self.path = aside;
        }
        self.path.clone()
    }
}

impl Drop for LockedRecord {
    fn drop(&mut self) {
        if !self.is_aside {
            // If removal fails, the next start checks the record again and finds all files in one of the two states.
            let _ = rustix::fs::unlink(&self.path);
        }
    }
}

/// Record of a dead process.
#[derive(Debug)]
pub enum AbandonedRecord<R> {
    /// Complete record, locked.
    Record(LockedRecord, R),
    /// Complete record that cannot be read. It remains on disk.
    Unreadable(UnreadableRecord),
}

/// Complete record that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub struct UnreadableRecord {
    /// Current path.
    pub path: PathBuf,
    /// Reason.
    pub why: String,
}

/// Writes `record` durably into `dir`, which is created if missing.
///
/// # Errors
/// Fails if it is larger than the read limit or the system refuses. Nothing is left then.
pub fn write(dir: &Path, record: &impl Serialize) -> io::Result<LockedRecord> {
    write_up_to(MAX_BYTES, dir, record)
}

fn write_up_to(limit: u64, dir: &Path, record: &impl Serialize) -> io::Result<LockedRecord> {
    let text = serde_json::to_vec(record)?;
    if text.len() as u64 > limit {
        let message = format!("{}: change fewer in one call.", too_large(limit));
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    create_private_dir(dir)?;
    let name = Clock::new().short_id();
    let part = dir.join(format!("{name}.{PARTIAL_EXTENSION}"));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
    let mut held = LockedRecord { path: part, file, is_aside: false };
    rustix::fs::flock(&held.file, FlockOperation::NonBlockingLockExclusive)?;
    held.file.write_all(&text)?;
    private_file::synced(held.file.sync_all())?;
    let whole = dir.join(format!("{name}.{COMPLETE_EXTENSION}"));
    rustix::fs::rename(&held.path, &whole)?;
    held.path = whole;
    private_file::synced(File::open(dir)?.sync_all())?;
    Ok(held)
}

fn too_large(limit: u64) -> String {
    format!("the recorded texts of its files are together larger than {} MiB", limit >> 20)
}

/// Returns the records of dead processes in `dir`. Removes incomplete ones, because nothing was changed before a record was
/// complete.
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

/// Locks a record. `None` if another process has locked it or it is gone.
fn lock(path: &Path) -> io::Result<Option<LockedRecord>> {
    let (file, opened) = match private_file::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Ok(None),
        locked => locked?,
    }
    // While it was opened, its transaction may have ended or another start may have set it aside.
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
