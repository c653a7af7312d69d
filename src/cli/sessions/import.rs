//! `agent sessions import`: takes over an exported session. The file may come from anybody.

use super::exported::{EXPORT_VERSION, Header, KeptOutput, cannot};
use super::{Archive, private_dir};
use crate::cli::error::CliResult;
use crate::cli::output::print;
use crate::event::Record;
use crate::journal::copy::renamed;
use crate::journal::read::{Fault, MAX_LINE_BYTES, decode, is_later, next_line};
use crate::journal::store::SessionError;
use crate::tools::outputs::is_file_name;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fs::OpenOptions;
use std::io::{self, BufRead, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Bytes of a file that are read.
const MAX_FILE_BYTES: u64 = 4 << 30;

/// Takes over the session in `file` as one of this workspace, under its own id where that is free, else under `new`.
///
/// # Errors
/// When the file cannot be read or holds something else, or the session cannot be made.
pub fn import(archive: &Archive<'_>, file: &Path, new: &str, workspace: &str) -> CliResult<()> {
    let brought = open(file).and_then(|mut input| Brought::read(&mut *input));
    let brought = brought.map_err(|error| cannot(&format!("read {}", file.display()), error))?;
    let make = |id: &str| {
        let records = renamed(brought.records.clone(), id, Some(workspace));
        archive.store.adopt(id, &records, |dir| brought.keep_outputs(&dir.join("outputs")))
    };
    let id = match make(&brought.id) {
        Err(SessionError::Exists(_) | SessionError::BadId(_)) => make(new).map(|()| new),
        made => made.map(|()| brought.id.as_str()),
    }?;
    print(archive.terminal, &format!("{id}\n"))
}

/// What a file holds.
struct Brought {
    id: String,
    records: Vec<Record>,
    outputs: Vec<(String, Vec<u8>)>,
}

impl Brought {
    fn read(input: &mut dyn BufRead) -> io::Result<Self> {
        let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let (mut bytes, mut input) = (Vec::new(), input);
        next_line(&mut input, &mut bytes, MAX_LINE_BYTES)?;
        let header =
            serde_json::from_slice::<Header>(&bytes).map_err(|_| wrong("it is no exported session"))?;
        if header.agent_session > EXPORT_VERSION {
            return Err(wrong("a later version of agent has written it"));
        }
        let mut brought = Self { id: header.session_id, records: Vec::new(), outputs: Vec::new() };
        let mut number = 1;
        while next_line(&mut input, &mut bytes, MAX_LINE_BYTES.saturating_mul(2))? {
            number += 1;
            let found = decode(&bytes);
            if found.as_ref().map_or_else(|fault| *fault == Fault::Later, is_later) {
                return Err(wrong("a later version of agent has written to it"));
            }
            if let Ok(record) = found {
                brought.records.push(record);
            } else if let Ok(kept) = serde_json::from_slice::<KeptOutput>(&bytes) {
                let content = STANDARD.decode(kept.base64).ok().filter(|_| is_file_name(&kept.output));
                let content = content.ok_or_else(|| wrong(&format!("line {number} is no kept output")))?;
                brought.outputs.push((kept.output, content));
            } else {
                return Err(wrong(&format!("line {number} is damaged")));
            }
        }
        if brought.records.is_empty() {
            return Err(wrong("it holds no record"));
        }
        Ok(brought)
    }

    fn keep_outputs(&self, dir: &Path) -> io::Result<()> {
        if self.outputs.is_empty() {
            return Ok(());
        }
        private_dir(dir)?;
        for (name, content) in &self.outputs {
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(dir.join(name))?;
            file.write_all(content)?;
        }
        Ok(())
    }
}

fn open(file: &Path) -> io::Result<Box<dyn BufRead>> {
    if file == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(file)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    Ok(Box::new(io::BufReader::new(io::Read::take(file, MAX_FILE_BYTES))))
}
