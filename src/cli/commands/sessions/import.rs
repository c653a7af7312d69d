//! `agent sessions import`: imports an exported session. The file is untrusted input.

use super::CommandContext;
use super::export_format::{EXPORT_VERSION, ExportHeader, ExportedImage, ExportedOutput, io_failure};
use agent_core::event::Record;
use agent_core::image::{Image, ImageStore};
use agent_journal::copy::rewrite_imported;
use agent_journal::images::{IMAGES_DIR, ImageDir};
use agent_journal::read::{LineError, MAX_LINE_BYTES, decode, is_newer_version, next_line};
use agent_run::error::AppResult;
use agent_run::output::print;
use agent_runtime::private_file::create_private_dir;
use agent_tools::outputs::is_file_name;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fs::OpenOptions;
use std::io::{self, BufRead, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Maximum number of bytes read from a file.
const MAX_FILE_BYTES: u64 = 4 << 30;

/// Imports the session in `file` into this workspace as the session `new`: the id in the file could be that of another session, or
/// later than those of all others.
///
/// # Errors
/// Fails for an unreadable or invalid file, and when the session cannot be created.
pub fn import(context: &CommandContext<'_>, file: &Path, new: &str, workspace: &str) -> AppResult<()> {
    let unreadable = |error| io_failure(&format!("read {}", file.display()), error);
    let imported = open(file).and_then(|mut input| ImportedSession::read(&mut *input));
    let ImportedSession { records, outputs, images } = imported.map_err(unreadable)?;
    let records = rewrite_imported(records, new, workspace)
        .ok_or_else(|| unreadable(wrong("it does not begin with the start of a session")))?;
    context.store.create_from_records(new, &records, |dir| {
        write_outputs(&outputs, &dir.join("outputs"))?;
        let store = ImageDir::new(dir.join(IMAGES_DIR));
        images.iter().try_for_each(|(image, content)| store.store(image, content))
    })?;
    print(context.terminal, &format!("{new}\n"))
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// The contents of an exported file.
struct ImportedSession {
    records: Vec<Record>,
    outputs: Vec<(String, Vec<u8>)>,
    images: Vec<(Image, Vec<u8>)>,
}

impl ImportedSession {
    fn read(input: &mut dyn BufRead) -> io::Result<Self> {
        let (mut bytes, mut input) = (Vec::new(), input);
        next_line(&mut input, &mut bytes, MAX_LINE_BYTES)?;
        let header = serde_json::from_slice::<ExportHeader>(&bytes)
            .map_err(|_| wrong("it is not an exported session"))?;
        if header.agent_session > EXPORT_VERSION {
            return Err(wrong("a later version of agent has written it"));
        }
        let mut imported = Self { records: Vec::new(), outputs: Vec::new(), images: Vec::new() };
        let mut number = 1;
        while next_line(&mut input, &mut bytes, MAX_LINE_BYTES.saturating_mul(2))? {
            number += 1;
            let found = decode(&bytes);
            if found.as_ref().map_or_else(|fault| *fault == LineError::NewerVersion, is_newer_version) {
                return Err(wrong("a later version of agent has written to it"));
            }
            if let Ok(record) = found {
                imported.records.push(record);
            } else if let Ok(stored) = serde_json::from_slice::<ExportedOutput>(&bytes) {
                let content = STANDARD.decode(stored.base64).ok().filter(|_| is_file_name(&stored.output));
                let content =
                    content.ok_or_else(|| wrong(&format!("line {number} is not a stored output")))?;
                imported.outputs.push((stored.output, content));
            } else if let Ok(stored) = serde_json::from_slice::<ExportedImage>(&bytes) {
                let content =
                    checked_image(&stored).ok_or_else(|| wrong(&format!("line {number} is not an image")))?;
                imported.images.push((stored.image, content));
            } else {
                return Err(wrong(&format!("line {number} is damaged")));
            }
        }
        if imported.records.is_empty() {
            return Err(wrong("it contains no record"));
        }
        Ok(imported)
    }
}

fn write_outputs(outputs: &[(String, Vec<u8>)], dir: &Path) -> io::Result<()> {
    if outputs.is_empty() {
        return Ok(());
    }
    create_private_dir(dir)?;
    for (name, content) in outputs {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(dir.join(name))?;
        file.write_all(content)?;
    }
    Ok(())
}

/// Returns the content of an image if it is the one that the line describes.
fn checked_image(stored: &ExportedImage) -> Option<Vec<u8>> {
    let content = STANDARD.decode(&stored.base64).ok()?;
    let image = Image::check(&stored.image.name, &content).ok()?;
    (image == stored.image).then_some(content)
}

fn open(file: &Path) -> io::Result<Box<dyn BufRead>> {
    if file == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(file)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok(Box::new(io::BufReader::new(io::Read::take(file, MAX_FILE_BYTES))))
}
