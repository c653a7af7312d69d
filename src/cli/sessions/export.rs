//! `agent sessions export`: a session as one file, to keep or to hand on.

use super::Archive;
use super::exported::{EXPORT_VERSION, Header, KeptOutput, cannot};
use crate::cli::error::{CliError, CliResult};
use crate::cli::output::print;
use crate::event::{Event, Record};
use crate::failure::ErrorKind;
use crate::journal::write::encode;
use crate::tools::outputs::MAX_BYTES;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What stands for the paths that may name a person.
#[derive(Default)]
pub struct Places {
    /// What is replaced, in this order, and by what.
    pub names: Vec<(String, &'static str)>,
}

impl Places {
    fn replaced(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (name, other)| text.replace(name, other))
    }

    fn replace(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.replaced(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item)),
            Value::Object(keys) => keys.values_mut().for_each(|value| self.replace(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn of(&self, record: &Record) -> serde_json::Result<Record> {
        let mut value = serde_json::to_value(record)?;
        self.replace(&mut value);
        serde_json::from_value(value)
    }
}

/// Writes session `id` to `output`, which must not be there yet, or to standard output.
///
/// # Errors
/// When there is no such session, it cannot be read, or the file cannot be written.
pub fn export(archive: &Archive<'_>, id: &str, output: Option<&Path>, places: &Places) -> CliResult<()> {
    let records = archive.read(id)?.records;
    let header = Header { agent_session: EXPORT_VERSION, session_id: id.to_owned() };
    let write = |to: &mut dyn Write| -> io::Result<()> {
        line(to, &header)?;
        let mut bytes = Vec::new();
        let mut other = false;
        for record in records {
            let mut clean = record.clone();
            archive.redactor.event(&mut clean.event);
            let mut clean = places.of(&clean)?;
            other |= is_said(&record.event) && clean.event != record.event;
            if let (true, Event::StepStart { digest, .. }) = (other, &mut clean.event) {
                // It is that of the conversation as it was.
                *digest = None;
            }
            bytes.clear();
            encode(&clean, &mut bytes)?;
            to.write_all(&bytes)?;
        }
        for path in files(&archive.store.outputs_dir(id).map_err(io::Error::other)?) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let mut content = Vec::new();
            File::open(&path)?.take(MAX_BYTES).read_to_end(&mut content)?;
            let mut clean = archive.redactor.bytes(&content).into_owned();
            if let Ok(text) = std::str::from_utf8(&clean) {
                clean = places.replaced(text).into_bytes();
            }
            line(to, &KeptOutput { output: name, base64: STANDARD.encode(clean) })?;
        }
        to.flush()
    };
    let Some(path) = output else {
        let mut text = Vec::new();
        write(&mut text).map_err(|error| cannot("write the session", error))?;
        return print(archive.terminal, &String::from_utf8_lossy(&text));
    };
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    if file.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
        let message =
            format!("{} is there already and is not written over: name another file", path.display());
        return Err(CliError::new(ErrorKind::Session, message));
    }
    file.and_then(|mut file| write(&mut file))
        .map_err(|error| cannot(&format!("write {}", path.display()), error))
}

/// Whether `event` becomes a part of the conversation.
fn is_said(event: &Event) -> bool {
    let event = match event {
        Event::Subagent { event, .. } => event,
        event => event,
    };
    matches!(
        event,
        Event::System { .. }
            | Event::History { .. }
            | Event::UserMessage { .. }
            | Event::ModelResponse { .. }
            | Event::ToolEnd { .. }
    )
}

/// The files of a directory by their names.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = dir.read_dir().into_iter().flatten().filter_map(Result::ok);
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

fn line(to: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *to, value)?;
    to.write_all(b"\n")
}
