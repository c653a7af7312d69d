//! The progress file of a loop: one entry for each iteration, which the next iteration is shown.

use agent_messages as messages;
use agent_run::app::App;
use agent_run::report_file::ReportFile;
use agent_terminal::Style;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// Bytes of the file that the model is shown, from its end.
const SHOWN_BYTES: u64 = 8_000;

/// The file.
pub struct ProgressFile {
    path: PathBuf,
    file: ReportFile,
}

impl ProgressFile {
    /// Creates the destination; the file is created with the first entry.
    pub fn at(path: PathBuf) -> Self {
        Self { file: ReportFile::at(path.clone()), path }
    }

    /// Returns the newest entries; nothing if there is no file.
    pub fn newest(&self) -> String {
        let read = || -> io::Result<Vec<u8>> {
            let mut file = File::open(&self.path)?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(SHOWN_BYTES)))?;
            let mut bytes = Vec::new();
            file.take(SHOWN_BYTES).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Adds an entry, or warns that it cannot be written.
    pub fn add(&self, app: &App, entry: &str) {
        if let Err(error) = self.file.append(entry) {
            let text = messages::progress_not_written(&self.path.display().to_string(), &error.to_string());
            app.notify(Style::Warning, &text);
        }
    }
}
