//! Appends records to a journal, one `write(2)` each, guarded by a checksum.

use crate::core::event::{EventSink, Record};
use crate::journal::blobs::{BlobStore, MAX_INLINE_RECORD_BYTES};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

/// The journal of a session, open for appending and locked against other processes.
#[derive(Debug)]
pub struct Journal {
    file: Arc<File>,
    beside: BlobStore,
    line: Vec<u8>,
    /// Why a record could not be written whole. What came after it would be glued to its remains, so nothing does.
    write_error: Option<(io::ErrorKind, String)>,
    _lock: File,
}

impl Journal {
    /// Takes over an open journal file, what lies beside it and its lock; a torn last line is closed so that nothing is glued to it.
    ///
    /// # Errors
    /// When the file cannot be read at its end or written.
    pub fn new(mut file: File, beside: BlobStore, lock: File) -> io::Result<Self> {
        if file.seek(SeekFrom::End(0))? > 0 {
            file.seek(SeekFrom::End(-1))?;
            let mut last = [0];
            file.read_exact(&mut last)?;
            if last != [b'\n'] {
                file.write_all(b"\n")?;
            }
        }
        Ok(Self { file: file.into(), beside, line: Vec::new(), write_error: None, _lock: lock })
    }
}

impl Journal {
    fn check(&self) -> io::Result<()> {
        match &self.write_error {
            Some((kind, why)) => Err(io::Error::new(*kind, why.clone())),
            None => Ok(()),
        }
    }
}

/// Appends the line of `record` to `line`: `{"crc":"…","record":{…}}`, where the CRC-32 (IEEE) covers the record's bytes.
///
/// # Errors
/// When the record cannot be written as JSON, which its types rule out.
pub fn encode(record: &Record, line: &mut Vec<u8>) -> io::Result<()> {
    append(&serde_json::to_vec(record)?, &[], line);
    Ok(())
}

/// The same for a journal that has a place beside it, where what makes a line too long is kept. Such a line is
/// `{"crc":"…","record":{…},"beside":[[PLACE,HASH],…]}`, where the CRC-32 covers the bytes of the one and then of the other.
///
/// # Errors
/// When what is too long cannot be kept.
pub fn encode_with_blobs(record: &Record, beside: &BlobStore, line: &mut Vec<u8>) -> io::Result<()> {
    let whole = serde_json::to_vec(record)?;
    if whole.len() <= MAX_INLINE_RECORD_BYTES {
        append(&whole, &[], line);
    } else {
        let (short, places) = beside.extract_blobs(record)?;
        append(&serde_json::to_vec(&short)?, &serde_json::to_vec(&places)?, line);
    }
    Ok(())
}

fn append(record: &[u8], places: &[u8], line: &mut Vec<u8>) {
    let mut crc = crc32fast::Hasher::new();
    crc.update(record);
    crc.update(places);
    line.extend_from_slice(format!("{{\"crc\":\"{:08x}\",\"record\":", crc.finalize()).as_bytes());
    line.extend_from_slice(record);
    if !places.is_empty() {
        line.extend_from_slice(b",\"beside\":");
        line.extend_from_slice(places);
    }
    line.extend_from_slice(b"}\n");
}

impl EventSink for Journal {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        if record.event.is_delta() {
            return Ok(());
        }
        self.check()?;
        self.line.clear();
        let encoded = encode_with_blobs(record, &self.beside, &mut self.line);
        let written = encoded.and_then(|()| (&*self.file).write_all(&self.line));
        self.write_error = written.as_ref().err().map(|error| (error.kind(), error.to_string()));
        written
    }

    fn is_required(&self) -> bool {
        true
    }

    fn file_to_sync(&self) -> io::Result<Option<Arc<File>>> {
        self.check()?;
        Ok(Some(Arc::clone(&self.file)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::event::{EVENT_SCHEMA_VERSION, Event};

    fn record(event: Event) -> Record {
        let run = String::new();
        Record { v: EVENT_SCHEMA_VERSION, seq: 0, run, step: 0, wall_ms: 0, mono_us: 0, event }
    }

    #[test]
    fn after_a_record_that_could_not_be_written_nothing_is_written_or_synced() {
        let full = File::options().read(true).write(true).open("/dev/full").unwrap();
        let (lock, beside) =
            (tempfile::tempfile().unwrap(), BlobStore::for_journal("/nowhere/journal".as_ref()));
        let mut journal =
            Journal { file: full.into(), beside, line: Vec::new(), write_error: None, _lock: lock };
        journal.emit(&record(Event::StepEnd)).unwrap_err();
        journal.file = tempfile::tempfile().unwrap().into();
        let why = journal.emit(&record(Event::StepEnd)).unwrap_err();
        assert!(why.to_string().contains("No space left on device"), "{why}");
        journal.file_to_sync().unwrap_err();
        assert_eq!(journal.file.metadata().unwrap().len(), 0);
    }

    #[test]
    fn where_a_long_text_cannot_be_kept_nothing_is_written_any_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        File::create(dir.path().join("texts")).unwrap();
        let (file, lock) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let mut journal = Journal::new(file, BlobStore::for_journal(&path), lock).unwrap();
        journal.emit(&record(Event::System { text: "x".repeat(MAX_INLINE_RECORD_BYTES) })).unwrap_err();
        journal.emit(&record(Event::StepEnd)).unwrap_err();
        assert_eq!(journal.file.metadata().unwrap().len(), 0);
    }
}
