//! The record of a transaction while it is under way: what undoes it, on disk before its first change, gone after its last.
//!
//! A record is locked for as long as the process lives that wrote it. One that can be locked is of a process that died.

use crate::source::Source;
use rustix::fs::{FlockOperation, Mode, OFlags};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How the name of a whole record ends.
const WHOLE: &str = "json";

/// How the name of one that is being written ends.
const PART: &str = "part";

/// Largest record that is read; the texts of all files of a transaction, escaped.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Records looked at in one go.
const MAX_RECORDS: usize = 1000;

/// A record that this process has locked; removed when dropped.
#[derive(Debug)]
pub struct Held {
    path: PathBuf,
    file: File,
}

impl Drop for Held {
    fn drop(&mut self) {
        // What stays is looked at again by the next start, and finds all files as they were or are to be.
        let _ = rustix::fs::unlink(&self.path);
    }
}

/// Writes `record` durably into `dir`, which is made.
///
/// # Errors
/// When the system refuses; nothing is left then.
pub fn write(dir: &Path, record: &impl Serialize) -> io::Result<Held> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let name = Source::new().short_id();
    let part = dir.join(format!("{name}.{PART}"));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
    let mut held = Held { path: part, file };
    rustix::fs::flock(&held.file, FlockOperation::NonBlockingLockExclusive)?;
    held.file.write_all(&serde_json::to_vec(record)?)?;
    held.file.sync_all()?;
    let whole = dir.join(format!("{name}.{WHOLE}"));
    rustix::fs::rename(&held.path, &whole)?;
    held.path = whole;
    let opened = rustix::fs::open(dir, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::fs::fsync(opened)?;
    Ok(held)
}

/// The records in `dir` of processes that died, each locked. What is none is removed: nothing was changed before a record
/// was whole.
pub fn abandoned<R: DeserializeOwned>(dir: &Path) -> Vec<(Held, R)> {
    let Ok(entries) = dir.read_dir() else { return Vec::new() };
    let paths = entries.take(MAX_RECORDS).filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .filter_map(|path| {
            let held = lock(&path)?;
            let whole = path.extension().is_some_and(|extension| extension == WHOLE);
            let record = if whole { read(&held.file) } else { None };
            record.map(|record| (held, record))
        })
        .collect()
}

fn lock(path: &Path) -> Option<Held> {
    let flags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    // Its transaction may have ended while it was opened.
    let is_there = file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.nlink() > 0);
    is_there.then(|| Held { path: path.to_owned(), file })
}

fn read<R: DeserializeOwned>(file: &File) -> Option<R> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}
