//! Appends records to a journal, one `write(2)` each, guarded by a checksum.

use crate::event::{EventSink, Record};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// The journal of a session, open for appending and locked against other processes.
#[derive(Debug)]
pub struct Journal {
    file: File,
    line: Vec<u8>,
    /// A record could not be written whole. What came after it would be glued to its remains, so nothing does.
    is_broken: bool,
    _lock: File,
}

impl Journal {
    /// Takes over an open journal file and its lock; a torn last line is closed so that nothing is glued to it.
    ///
    /// # Errors
    /// When the file cannot be read at its end or written.
    pub fn new(mut file: File, lock: File) -> io::Result<Self> {
        if file.seek(SeekFrom::End(0))? > 0 {
            file.seek(SeekFrom::End(-1))?;
            let mut last = [0];
            file.read_exact(&mut last)?;
            if last != [b'\n'] {
                file.write_all(b"\n")?;
            }
        }
        Ok(Self { file, line: Vec::new(), is_broken: false, _lock: lock })
    }
}

impl Journal {
    fn check(&self) -> io::Result<()> {
        if self.is_broken { Err(io::Error::other("an earlier record could not be written")) } else { Ok(()) }
    }
}

/// Appends the line of `record` to `line`: `{"crc":"…","record":{…}}`, where the CRC-32 (IEEE) covers the record's bytes.
///
/// # Errors
/// When the record cannot be written as JSON, which its types rule out.
pub fn encode(record: &Record, line: &mut Vec<u8>) -> io::Result<()> {
    const CRC: std::ops::Range<usize> = 8..16;
    line.extend_from_slice(b"{\"crc\":\"00000000\",\"record\":");
    let start = line.len();
    serde_json::to_writer(&mut *line, record)?;
    let crc = crc32fast::hash(line.get(start..).unwrap_or_default());
    line.extend_from_slice(b"}\n");
    let offset = start - b"{\"crc\":\"00000000\",\"record\":".len();
    if let Some(field) = line.get_mut(offset + CRC.start..offset + CRC.end) {
        field.copy_from_slice(format!("{crc:08x}").as_bytes());
    }
    Ok(())
}

impl EventSink for Journal {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        if record.event.is_delta() {
            return Ok(());
        }
        self.check()?;
        self.line.clear();
        encode(record, &mut self.line)?;
        let written = self.file.write_all(&self.line);
        self.is_broken = written.is_err();
        written
    }

    fn required(&self) -> bool {
        true
    }

    fn sync(&mut self) -> io::Result<()> {
        self.check()?;
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, SCHEMA_VERSION};

    #[test]
    fn after_a_record_that_could_not_be_written_nothing_is_written_or_synced() {
        let full = File::options().read(true).write(true).open("/dev/full").unwrap();
        let mut journal =
            Journal { file: full, line: Vec::new(), is_broken: false, _lock: tempfile::tempfile().unwrap() };
        let record = Record {
            v: SCHEMA_VERSION,
            seq: 0,
            run: String::new(),
            step: 0,
            wall_ms: 0,
            mono_us: 0,
            event: Event::StepEnd,
        };
        journal.emit(&record).unwrap_err();
        journal.file = tempfile::tempfile().unwrap();
        journal.emit(&record).unwrap_err();
        journal.sync().unwrap_err();
        assert_eq!(journal.file.metadata().unwrap().len(), 0);
    }
}
