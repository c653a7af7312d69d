//! Event sink that writes every record as a line of JSON to a log file, with rotation.

use super::json;
use super::rotating_file::{RotatingFile, Writes};
use agent_core::event::Record;
use agent_core::event_sink::EventSink;
use agent_messages as messages;
use agent_terminal::{Style, Terminal};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

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
    file: RotatingFile,
    deltas: bool,
    terminal: Arc<Terminal>,
}

impl LogFile {
    /// Opens `path` for appending; with `deltas`, each piece of a response is also logged.
    ///
    /// # Errors
    /// When the file cannot be opened or created.
    pub fn open(path: PathBuf, deltas: bool, terminal: Arc<Terminal>) -> Result<Self, LogFileError> {
        let shown = path.display().to_string();
        match RotatingFile::open(path, Writes::Block) {
            Ok(file) => Ok(Self { file, deltas, terminal }),
            Err(source) => Err(LogFileError { path: shown, source }),
        }
    }

    fn append(&mut self, record: &Record) -> io::Result<()> {
        self.file.append(json::line(record)?.as_bytes())
    }
}

impl EventSink for LogFile {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        if record.event.is_delta() && !self.deltas {
            return Ok(());
        }
        self.append(record).inspect_err(|error| {
            // The emitter removes this sink after the error, so it is reported once. A failure to report it is ignored.
            drop(self.terminal.eprintln(Style::Warning, &messages::log_file_failed(self.file.path(), error)));
        })
    }
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
