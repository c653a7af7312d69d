//! Writer of a journal: appends each record with one `write(2)` and a checksum.

use crate::blobs::{BlobStore, MAX_INLINE_RECORD_BYTES};
use agent_core::event::Record;
use agent_core::event_sink::EventSink;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

/// The journal of a session, open for appending and locked against other processes.
#[derive(Debug)]
pub struct Journal {
    file: Arc<File>,
    blobs: BlobStore,
    line: Vec<u8>,
    /// The error of a record that was written in part. Nothing is written after it, because it would become part of the
    /// same line.
    write_error: Option<(io::ErrorKind, String)>,
    lock: File,
}

impl Drop for Journal {
    /// Unlocks the session for whoever resumes it at once: a child that another thread has just forked has a copy of the descriptor until it becomes
    /// another program, and a file that is only closed stays locked as long.
    fn drop(&mut self) {
        let _closed_anyway = self.lock.unlock();
    }
}

impl Journal {
    /// Creates a journal from an open file, its blob store and its lock. An incomplete last line is ended first.
    ///
    /// # Errors
    /// When the end of the file cannot be read, or the file cannot be written.
    pub fn new(mut file: File, blobs: BlobStore, lock: File) -> io::Result<Self> {
        if file.seek(SeekFrom::End(0))? > 0 {
            file.seek(SeekFrom::End(-1))?;
            let mut last = [0];
            file.read_exact(&mut last)?;
            if last != [b'\n'] {
                file.write_all(b"\n")?;
            }
        }
        Ok(Self { file: file.into(), blobs, line: Vec::new(), write_error: None, lock })
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

/// Appends the line of `record` to `line`: `{"crc":"…","record":{…}}`, with the CRC-32 (IEEE) of the record's bytes.
///
/// # Errors
/// When the record cannot be serialized, which cannot happen for its types.
pub fn encode(record: &Record, line: &mut Vec<u8>) -> io::Result<()> {
    append(&serde_json::to_vec(record)?, &[], line);
    Ok(())
}

/// Like [`encode`], but stores long values in `blobs`. The line of such a record is
/// `{"crc":"…","record":{…},"beside":[[POINTER,HASH],…]}`, where the CRC-32 covers the bytes of the record and then those
/// of the list.
///
/// # Errors
/// When a long value cannot be stored.
pub fn encode_with_blobs(record: &Record, blobs: &BlobStore, line: &mut Vec<u8>) -> io::Result<()> {
    let whole = serde_json::to_vec(record)?;
    if whole.len() <= MAX_INLINE_RECORD_BYTES {
        append(&whole, &[], line);
    } else {
        let (short, pointers) = blobs.extract_blobs(record)?;
        append(&serde_json::to_vec(&short)?, &serde_json::to_vec(&pointers)?, line);
    }
    Ok(())
}

fn append(record: &[u8], pointers: &[u8], line: &mut Vec<u8>) {
    let mut crc = crc32fast::Hasher::new();
    crc.update(record);
    crc.update(pointers);
    line.extend_from_slice(format!("{{\"crc\":\"{:08x}\",\"record\":", crc.finalize()).as_bytes());
    line.extend_from_slice(record);
    if !pointers.is_empty() {
        line.extend_from_slice(b",\"blobs\":");
        line.extend_from_slice(pointers);
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
        let encoded = encode_with_blobs(record, &self.blobs, &mut self.line);
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
    use agent_core::event::{EVENT_SCHEMA_VERSION, Event};

    fn record(event: Event) -> Record {
        let run = String::new();
        Record { v: EVENT_SCHEMA_VERSION, seq: 0, run, step: 0, wall_ms: 0, mono_us: 0, event }
    }

    #[test]
    fn after_a_record_that_could_not_be_written_nothing_is_written_or_synced() {
        let full = File::options().read(true).write(true).open("/dev/full").unwrap();
        let (lock, blobs) =
            (tempfile::tempfile().unwrap(), BlobStore::for_journal("/nowhere/journal".as_ref()));
        let mut journal = Journal { file: full.into(), blobs, line: Vec::new(), write_error: None, lock };
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

    #[test]
    fn a_session_is_free_when_its_journal_is_dropped_although_a_child_holds_the_descriptor() {
        let lock = tempfile::NamedTempFile::new().unwrap();
        lock.as_file().try_lock().unwrap();
        let (file, blobs) =
            (tempfile::tempfile().unwrap(), BlobStore::for_journal("/nowhere/journal".as_ref()));
        let held_by_a_child = lock.as_file().try_clone().unwrap();
        let path = lock.path().to_owned();
        let (lock, path_kept) = lock.into_parts();
        drop(Journal::new(file, blobs, lock).unwrap());
        File::open(path).unwrap().try_lock().unwrap();
        drop((held_by_a_child, path_kept));
    }
}
