//! A journal in memory, encoded and decoded as the real one, with simulated disk failures and crashes.

use super::scenario::Fault;
use agent_core::event::{Event, Record};
use agent_core::event_sink::EventSink;
use agent_journal::read::decode;
use agent_journal::write::encode;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use tokio_util::sync::CancellationToken;

/// State that survives a process.
#[derive(Debug, Default)]
pub struct Disk {
    /// The records as decoded.
    pub records: Vec<Record>,
    /// Checksum of all lines.
    pub checksum: crc32fast::Hasher,
    line: Vec<u8>,
}

/// The journal of one run.
pub struct Journal {
    /// The simulated disk.
    pub disk: Rc<RefCell<Disk>>,
    /// The fault of this run.
    pub fault: Option<Fault>,
    /// The secret that must not be recorded or emitted.
    pub secret: Option<String>,
    /// The end of the text emitted in pieces.
    pub emitted_text: String,
    /// Fires when the process crashes.
    pub crashed: CancellationToken,
    /// Whether writing has failed.
    pub is_broken: bool,
    /// One in how many records is decoded again; records do not depend on each other.
    pub read_back: u32,
    /// Fires when the user interrupts the run.
    pub interrupt: CancellationToken,
}

impl Journal {
    fn piece(&mut self, text: &str) {
        let Some(secret) = &self.secret else { return };
        self.emitted_text.push_str(text);
        assert!(
            !self.emitted_text.contains(secret.as_str()),
            "a secret was emitted in pieces: {}",
            self.emitted_text
        );
        let keep = self.emitted_text.len().saturating_sub(secret.len());
        self.emitted_text.drain(..keep);
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
        self.emitted_text.clear();
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
            assert!(found.is_none(), "a secret is recorded: {record:?}");
        }
        if checksum.clone().finalize().is_multiple_of(self.read_back) {
            let read = decode(line.trim_ascii_end()).expect("an encoded record can be decoded");
            assert_eq!(&read, record, "the decoded record differs from the encoded one");
        }
        let next = records.last().map_or(0, |last| last.seq + 1);
        assert_eq!(record.seq, next, "a record has a wrong sequence number");
        // What a disk holds has no arguments but those that were written.
        records.push(match record.event {
            Event::ModelResponse { .. } => {
                decode(line.trim_ascii_end()).expect("an encoded record can be decoded")
            }
            _ => record.clone(),
        });
        match self.fault {
            Some(Fault::Crash(at)) if at <= record.seq => {
                self.is_broken = true;
                self.crashed.cancel();
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
