//! Event sink that writes every record as a line of JSON to a log file, with rotation.

use super::json;
use crate::core::event::Record;
use crate::core::event_sink::EventSink;
use crate::messages;
use crate::terminal::{Style, Terminal};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file is rotated before a record would exceed this size: some hours of work, and any editor can open it.
const ROTATE_BYTES: u64 = 10_000_000;
/// Number of rotated files, `LOG.1` (the newest) to `LOG.3`.
const ROTATED_FILES: u32 = 3;
/// Readable by the owner only, because records contain names and contents of files.
const MODE: u32 = 0o600;

/// The log file cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("the log file {path} cannot be opened: {source}")]
pub struct LogFileError {
    /// Path of the file.
    pub path: String,
    /// The cause.
    pub source: io::Error,
}

/// Writes every record. A write error is reported once and ends the log, but not the run.
pub struct LogFile {
    path: PathBuf,
    file: File,
    /// Bytes in the current file; `None` if it is not a regular file, which is never rotated.
    size: Option<u64>,
    limit: u64,
    deltas: bool,
    terminal: Arc<Terminal>,
}

impl LogFile {
    /// Opens `path` for appending; with `deltas`, each piece of a response is also logged.
    ///
    /// # Errors
    /// When the file cannot be opened or created.
    pub fn open(path: PathBuf, deltas: bool, terminal: Arc<Terminal>) -> Result<Self, LogFileError> {
        match open_sized(&path) {
            Ok((file, size)) => Ok(Self { path, file, size, limit: ROTATE_BYTES, deltas, terminal }),
            Err(source) => Err(LogFileError { path: path.display().to_string(), source }),
        }
    }

    fn append(&mut self, record: &Record) -> io::Result<()> {
        let line = json::line(record)?;
        let length = line.len() as u64;
        if self.size.is_some_and(|size| size > 0 && size.saturating_add(length) > self.limit) {
            rotate(&self.path)?;
            (self.file, self.size) = open_sized(&self.path)?;
        }
        self.file.write_all(line.as_bytes())?;
        self.size = self.size.map(|size| size.saturating_add(length));
        Ok(())
    }
}

impl EventSink for LogFile {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        if record.event.is_delta() && !self.deltas {
            return Ok(());
        }
        self.append(record).inspect_err(|error| {
            // The emitter removes this sink after the error, so it is reported once. A failure to report it is ignored.
            drop(self.terminal.eprintln(Style::Warning, &messages::log_file_failed(&self.path, error)));
        })
    }
}

/// Opens the file and returns its size. A pipe without a reader is an error; the open does not block.
fn open_sized(path: &Path) -> io::Result<(File, Option<u64>)> {
    let non_blocking = OFlags::NONBLOCK.bits().cast_signed();
    let file =
        OpenOptions::new().append(true).create(true).mode(MODE).custom_flags(non_blocking).open(path)?;
    // Writes block, so that a slow reader loses no data.
    rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
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
    use super::super::script;
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn o21_every_record_is_a_line_and_the_file_is_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.log");
        let (terminal, _, _) = script::pipe();
        let mut log = LogFile::open(path.clone(), false, terminal).unwrap();
        let records = script::run();
        for record in &records {
            log.emit(record).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let read: Vec<Record> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let recorded: Vec<Record> = records.into_iter().filter(|record| !record.event.is_delta()).collect();
        assert_eq!(read, recorded);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn o21_a_full_file_is_put_aside_and_three_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.log");
        let (terminal, _, _) = script::pipe();
        let mut log = LogFile::open(path.clone(), true, terminal).unwrap();
        log.limit = 400;
        let records = script::run();
        for record in records.iter().cycle().take(60) {
            log.emit(record).unwrap();
        }
        let files = std::fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(files, 4);
        assert!(rotated_path(&path, 3).exists() && !rotated_path(&path, 4).exists());
        for number in 1..=3 {
            let text = std::fs::read_to_string(rotated_path(&path, number)).unwrap();
            assert!(text.lines().count() == 1 || text.len() <= 400);
        }
    }

    #[test]
    fn a_disk_without_space_ends_the_log_with_one_warning() {
        let (terminal, _, err) = script::pipe();
        let mut log = LogFile::open("/dev/full".into(), false, terminal).unwrap();
        let records = script::run();
        assert!(log.emit(records.first().unwrap()).is_err());
        let output = err.text();
        assert!(output.starts_with("Cannot write the log file /dev/full: No space left"), "{output}");
        assert_eq!(output.lines().count(), 1);
    }
}
