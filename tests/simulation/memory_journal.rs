//! A journal in memory, written and read back as the real one is, on a disk that may fail under a process that may die.

use super::scenario::Fault;
use crate::core::event::{Event, EventSink, Record};
use crate::journal::read::decode;
use crate::journal::write::encode;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use tokio_util::sync::CancellationToken;

/// What survives a process.
#[derive(Debug, Default)]
pub struct Disk {
    /// The records as they are read back, or would be.
    pub records: Vec<Record>,
    /// The checksum of all lines.
    pub checksum: crc32fast::Hasher,
    line: Vec<u8>,
}

/// The journal of one run.
pub struct Journal {
    /// Where it is written.
    pub disk: Rc<RefCell<Disk>>,
    /// What goes wrong with it.
    pub fault: Option<Fault>,
    /// What it must not hold, nor anybody be told.
    pub secret: Option<String>,
    /// The end of what was told in pieces.
    pub told: String,
    /// Fires when the process is gone.
    pub gone: CancellationToken,
    /// Whether nothing is written any more.
    pub is_broken: bool,
    /// One record is read back out of so many: what is written of it depends on nothing but itself.
    pub read_back: u32,
    /// What the person fires.
    pub interrupt: CancellationToken,
}

impl Journal {
    fn piece(&mut self, text: &str) {
        let Some(secret) = &self.secret else { return };
        self.told.push_str(text);
        assert!(!self.told.contains(secret.as_str()), "a secret was told in pieces: {}", self.told);
        let keep = self.told.len().saturating_sub(secret.len());
        self.told.drain(..keep);
    }
}

impl EventSink for Journal {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        if let Event::TextDelta { text } | Event::ThinkingDelta { text } = &record.event {
            if record.event.is_delta() {
                self.piece(text);
                return Ok(());
            }
            panic!("a piece of an answer is recorded");
        }
        self.told.clear();
        self.is_broken |=
            self.fault.is_some_and(|fault| matches!(fault, Fault::Full(at) if at <= record.seq));
        if self.is_broken {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let Disk { records, checksum, line } = &mut *self.disk.borrow_mut();
        line.clear();
        encode(record, line)?;
        checksum.update(line);
        if let Some(secret) = &self.secret {
            let found = memchr::memmem::find(line, secret.as_bytes());
            assert!(found.is_none(), "a secret is told: {record:?}");
        }
        if checksum.clone().finalize().is_multiple_of(self.read_back) {
            let read = decode(line.trim_ascii_end()).expect("what was written can be read");
            assert_eq!(&read, record, "what was written is not what is read");
        }
        let next = records.last().map_or(0, |last| last.seq + 1);
        assert_eq!(record.seq, next, "a record has another number than the next");
        records.push(record.clone());
        match self.fault {
            Some(Fault::Crash(at)) if at <= record.seq => {
                self.is_broken = true;
                self.gone.cancel();
                Ok(())
            }
            Some(Fault::Interrupt(at)) if at <= record.seq => {
                self.interrupt.cancel();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn is_required(&self) -> bool {
        true
    }
}
