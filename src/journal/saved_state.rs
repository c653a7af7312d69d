//! The state of a session, kept beside its journal, so that whoever goes on with it need not read what stands before.
//!
//! The journal says of each state that was kept which it is; the last such record is looked for from the end of the file.

use crate::core::event::{Event, Record};
use crate::journal::blobs::BlobStore;
use crate::journal::read::{ReadPosition, decode};
use memchr::{memchr, memmem, memrchr};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The version of the form of a state: another one is not read. It rises whenever one and the same event leads to another state.
pub const STATE_VERSION: u32 = 4;

/// Bytes of a state that are read.
const MAX_STATE_BYTES: u64 = 1 << 30;

/// Bytes by which a journal grows before a state is worth its file.
const MIN_GROWTH: u64 = 1 << 20;

/// The part of a state by which its journal grows before the next one is kept: so all of them together cost a few times what the
/// last one does, and little is left to read behind it.
const STATE_SIZE_DIVISOR: u64 = 2;

/// How every record begins that tells of a state, from its event on. In a text quotes are escaped.
const STATE_EVENT_PREFIX: &[u8] = b"\"event\":{\"type\":\"state_kept\"";

/// Bytes that are searched at a time, from the end.
const BLOCK_BYTES: u64 = 256 << 10;

/// Bytes of a line that tells of a state, at most.
const RECORD_BYTES: u64 = 4 << 10;

/// A state that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedState {
    /// The state itself, as JSON.
    pub json: Vec<u8>,
    /// What names its file.
    pub hash: String,
    /// Where the journal goes on.
    pub start: ReadPosition,
}

/// Why there is a state and it is of no use.
#[derive(Debug, thiserror::Error)]
pub enum SavedStateError {
    /// Another version wrote it.
    #[error("another version of agent has kept it")]
    Version,
    /// Its file is not there, or is not what was written.
    #[error("its file is missing or was altered")]
    Altered,
    /// It is not of the form that its version says.
    #[error("it cannot be read: {0}")]
    Form(#[from] serde_json::Error),
    /// The journal cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl SavedState {
    /// The length of the journal at which the next state is due.
    pub fn next_at(&self) -> u64 {
        next_at(self.start.offset, self.json.len())
    }
}

/// The length of the journal at which the next state is due after one of so many bytes, kept when it was `length` long; the first
/// one after nothing.
pub fn next_at(length: u64, state_bytes: usize) -> u64 {
    let share = u64::try_from(state_bytes).unwrap_or(u64::MAX) / STATE_SIZE_DIVISOR;
    length.saturating_add(share.max(MIN_GROWTH))
}

/// The last state that was kept of the session whose journal is at `path`; nothing when none was.
///
/// # Errors
/// When it is of no use.
pub fn load_last(path: &Path) -> Result<Option<SavedState>, SavedStateError> {
    let Some((record, offset)) = last_record(&File::open(path)?)? else { return Ok(None) };
    let Event::StateKept { version, hash, lines } = record.event else { return Ok(None) };
    if version != STATE_VERSION {
        return Err(SavedStateError::Version);
    }
    let json =
        BlobStore::for_journal(path).get(&hash, MAX_STATE_BYTES).map_err(|_| SavedStateError::Altered)?;
    let lines = usize::try_from(lines).unwrap_or(usize::MAX).saturating_add(1);
    Ok(Some(SavedState { json, hash, start: ReadPosition { offset, lines } }))
}

/// What tells of a state that follows from the first `lines` of a journal.
pub fn saved_event(hash: String, lines: usize) -> Event {
    Event::StateKept { version: STATE_VERSION, hash, lines: u64::try_from(lines).unwrap_or(u64::MAX) }
}

/// The last record that tells of a state, and where the line behind it begins.
fn last_record(file: &File) -> io::Result<Option<(Record, u64)>> {
    let (length, beginning) = (file.metadata()?.len(), memmem::FinderRev::new(STATE_EVENT_PREFIX));
    let (mut end, mut block) = (length, Vec::new());
    while end > 0 {
        let from = end.saturating_sub(BLOCK_BYTES);
        // A line that begins in this block may end behind it.
        let bytes = end.saturating_add(RECORD_BYTES).min(length).saturating_sub(from);
        block.resize(usize::try_from(bytes).unwrap_or(usize::MAX), 0);
        file.read_exact_at(&mut block, from)?;
        let mut rest = block.as_slice();
        while let Some(at) = beginning.rfind(rest) {
            let (before, behind) = block.split_at(at);
            let start = memrchr(b'\n', before).map_or(0, |newline| newline.saturating_add(1));
            let stop = memchr(b'\n', behind)
                .map_or(block.len(), |newline| at.saturating_add(newline).saturating_add(1));
            let record = block.get(start..stop).and_then(|line| decode(line).ok());
            if let Some(record) = record.filter(|record| matches!(record.event, Event::StateKept { .. })) {
                return Ok(Some((record, from.saturating_add(u64::try_from(stop).unwrap_or(u64::MAX)))));
            }
            rest = before;
        }
        end = from;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::event::{EVENT_SCHEMA_VERSION, NoticeLevel};
    use crate::journal::write::encode;

    fn line(event: Event) -> Vec<u8> {
        let mut line = Vec::new();
        let record = Record {
            v: EVENT_SCHEMA_VERSION,
            seq: 0,
            run: "r".into(),
            step: 0,
            wall_ms: 1,
            mono_us: 2,
            event,
        };
        encode(&record, &mut line).unwrap();
        line
    }

    fn kept(hash: &str) -> Event {
        Event::StateKept { version: STATE_VERSION, hash: hash.into(), lines: 1 }
    }

    fn notice(bytes: usize) -> Event {
        Event::Notice { level: NoticeLevel::Info, text: "x".repeat(bytes) }
    }

    #[expect(clippy::disallowed_methods, reason = "the test writes its own journal")]
    fn found(lines: &[Vec<u8>]) -> Option<(String, u64)> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), lines.concat()).unwrap();
        let (record, end) = last_record(file.as_file()).unwrap()?;
        let Event::StateKept { hash, .. } = record.event else { panic!() };
        Some((hash, end))
    }

    #[test]
    fn the_last_state_is_found_wherever_it_lies_between_blocks() {
        let block = usize::try_from(BLOCK_BYTES).unwrap();
        let (one, two) = (line(kept("one")), line(kept("two")));
        let end = (one.len() + two.len()) as u64;
        for bytes in (0..400).chain(block - 600..block + 400).step_by(7) {
            let lines = [one.clone(), two.clone(), line(notice(bytes))];
            assert_eq!(found(&lines), Some(("two".to_owned(), end)), "{bytes}");
        }
    }

    #[test]
    fn what_is_damaged_or_only_looks_like_it_is_passed_over() {
        let (one, mut damaged) = (line(kept("one")), line(kept("two")));
        damaged[20] ^= 1;
        let quoted = line(Event::Notice {
            level: NoticeLevel::Info,
            text: String::from_utf8(line(kept("three"))).unwrap(),
        });
        let end = one.len() as u64;
        assert_eq!(found(&[one, damaged.clone(), quoted.clone()]), Some(("one".to_owned(), end)));
        assert_eq!(found(&[damaged, quoted]), None);
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn states_become_rarer_as_they_grow() {
        assert_eq!(next_at(0, 0), MIN_GROWTH);
        assert_eq!(next_at(10 << 20, 1000), 11 << 20);
        assert_eq!(next_at(100 << 20, 20 << 20), 110 << 20);
    }
}
