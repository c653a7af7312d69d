//! `agent sessions export`: writes a session to one file, for archiving or sharing.

use super::export_format::{EXPORT_VERSION, ExportHeader, ExportedImage, ExportedOutput, io_failure};
use super::{CommandContext, read_session};
use agent_core::event::{Event, Record};
use agent_core::failure::FailureKind;
use agent_core::image::{Image, ImageSource};
use agent_journal::images::ImageDir;
use agent_journal::session_store::SessionStore;
use agent_journal::write::encode;
use agent_redactor::Redactor;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use agent_text::invisible::escape_json;
use agent_tools::outputs::MAX_OUTPUT_BYTES;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Replacements for paths that may identify the user.
#[derive(Default)]
pub struct PathReplacements {
    /// The paths and their replacements, in order.
    pub pairs: Vec<(String, &'static str)>,
}

impl PathReplacements {
    fn apply_to_text(&self, text: &str) -> String {
        self.pairs.iter().fold(text.to_owned(), |text, (name, other)| text.replace(name, other))
    }

    fn apply_to_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.apply_to_text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.apply_to_value(item)),
            Value::Object(keys) => keys.values_mut().for_each(|value| self.apply_to_value(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn apply_to_record(&self, record: &Record) -> serde_json::Result<Record> {
        let mut value = serde_json::to_value(record)?;
        self.apply_to_value(&mut value);
        serde_json::from_value(value)
    }
}

/// Writes session `id` to `output`, which must not exist yet, or to standard output.
///
/// # Errors
/// Fails for an unknown or unreadable session, and when the file cannot be written.
pub(super) fn export(
    context: &CommandContext<'_>,
    id: &str,
    output: Option<&Path>,
    path_replacements: &PathReplacements,
) -> AppResult<()> {
    let (store, redactor) = (&context.store, &*context.redactor);
    let Some(path) = output else {
        let mut text = Vec::new();
        write_session(&mut text, store, redactor, id, path_replacements)?;
        return print(context.terminal, &escape_json(&String::from_utf8_lossy(&text)));
    };
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    if file.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
        let message = format!("{} already exists and is not overwritten: name another file", path.display());
        return Err(AppError::new(FailureKind::Session, message));
    }
    let mut file = file.map_err(|error| io_failure(&format!("write {}", path.display()), error))?;
    write_session(&mut file, store, redactor, id, path_replacements)
}

/// Writes session `id` without the secrets that `redactor` knows.
///
/// # Errors
/// Fails for an unknown or unreadable session, and when it cannot be written.
pub fn write_session(
    to: &mut dyn Write,
    store: &SessionStore,
    redactor: &Redactor,
    id: &str,
    path_replacements: &PathReplacements,
) -> AppResult<()> {
    let records = read_session(store, id)?.records;
    let images = images_of(&records);
    let header = ExportHeader { agent_session: EXPORT_VERSION, session_id: id.to_owned() };
    let (image_dir, outputs) = (ImageDir::new(store.images_dir(id)?), store.outputs_dir(id)?);
    let written = (|| -> io::Result<()> {
        write_json_line(to, &header)?;
        let mut bytes = Vec::new();
        let mut other = false;
        for record in records {
            let mut clean = record.clone();
            redactor.redact_event(&mut clean.event);
            let mut clean = path_replacements.apply_to_record(&clean)?;
            other |= is_conversation_event(&record.event) && clean.event != record.event;
            if let (true, Event::StepStart { digest, .. }) = (other, &mut clean.event) {
                // The digest belongs to the original conversation.
                *digest = None;
            }
            bytes.clear();
            encode(&clean, &mut bytes)?;
            to.write_all(&bytes)?;
        }
        for path in files(&outputs) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let mut content = Vec::new();
            File::open(&path)?.take(MAX_OUTPUT_BYTES).read_to_end(&mut content)?;
            let mut clean = redactor.bytes(&content).into_owned();
            if let Ok(text) = std::str::from_utf8(&clean) {
                clean = path_replacements.apply_to_text(text).into_bytes();
            }
            write_json_line(to, &ExportedOutput { output: name, base64: STANDARD.encode(clean) })?;
        }
        for image in &images {
            // The line in the conversation remains of an image whose content is lost.
            if let Ok(content) = image_dir.load(image) {
                let mut image = image.clone();
                image.name = redactor.text(&image.name).into_owned();
                write_json_line(to, &ExportedImage { image, base64: STANDARD.encode(content) })?;
            }
        }
        to.flush()
    })();
    written.map_err(|error| io_failure("write the session", error))
}

/// Returns the images of `records`, each once.
fn images_of(records: &[Record]) -> Vec<Image> {
    let images = records.iter().flat_map(|record| record.event.images());
    let by_hash: BTreeMap<&str, &Image> = images.map(|image| (image.hash.as_str(), image)).collect();
    by_hash.into_values().cloned().collect()
}

/// Checks whether `event` is part of the conversation.
fn is_conversation_event(event: &Event) -> bool {
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
            | Event::ToolCallEnd { .. }
    )
}

/// Returns the files of a directory, sorted by name.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = dir.read_dir().into_iter().flatten().filter_map(Result::ok);
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

fn write_json_line(to: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *to, value)?;
    to.write_all(b"\n")
}
