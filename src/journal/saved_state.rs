//! Saved state of a session: resuming from it avoids reading the whole journal.
//!
//! Each saved state is a blob, and a journal record names it. The last such record is searched for from the end of the file.

use crate::blobs::BlobStore;
use crate::read::{ReadPosition, decode};
use agent_core::event::{Event, Record};
use memchr::{memchr, memmem, memrchr};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Version of the state format; a state of another version is not read. Increase it whenever the same event leads to a
/// different state.
pub const STATE_VERSION: u32 = 1;

/// Maximum bytes of a state.
const MAX_STATE_BYTES: u64 = 1 << 30;

/// Minimum growth of the journal, in bytes, before another state is saved.
const MIN_GROWTH: u64 = 1 << 20;

/// A state is saved when the journal has grown by the size of the last state divided by this number. So all states together
/// cost a few times the last one, and little of the journal has to be read after it.
const STATE_SIZE_DIVISOR: u64 = 2;

/// Start of the event in every record of a saved state. It cannot occur in a text, where quotes are escaped.
const STATE_EVENT_PREFIX: &[u8] = b"\"event\":{\"type\":\"state_saved\"";

/// Bytes that are searched at a time, from the end.
const BLOCK_BYTES: u64 = 256 << 10;

/// Maximum bytes of the journal line of a saved state.
const RECORD_BYTES: u64 = 4 << 10;

/// A saved state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedState {
    /// The state, as JSON.
    pub json: Vec<u8>,
    /// Hash that names its file.
    pub hash: String,
    /// Where the journal continues after the state.
    pub start: ReadPosition,
}

/// Why a saved state is unusable.
#[derive(Debug, thiserror::Error)]
pub enum SavedStateError {
    /// Another version saved it.
    #[error("it was saved by another version of agent")]
    Version,
    /// Its file is missing or was altered.
    #[error("its file is missing or was altered")]
    Altered,
    /// It does not have the format of its version.
    #[error("it cannot be read: {0}")]
    Form(#[from] serde_json::Error),
    /// The journal cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl SavedState {
    /// Returns the length of the journal at which the next state is saved.
    pub fn next_at(&self) -> u64 {
        next_at(self.start.offset, self.json.len())
    }
}

/// Returns the length of the journal at which the next state is saved, after one of `state_bytes` saved at `length`; zeros
/// for the first state.
pub fn next_at(length: u64, state_bytes: usize) -> u64 {
    let share = u64::try_from(state_bytes).unwrap_or(u64::MAX) / STATE_SIZE_DIVISOR;
    length.saturating_add(share.max(MIN_GROWTH))
}

/// Loads the last saved state of the session whose journal is at `path`; `None` if there is none.
///
/// # Errors
/// When the state is unusable.
pub fn load_last(path: &Path) -> Result<Option<SavedState>, SavedStateError> {
    let Some((record, offset)) = last_record(&File::open(path)?)? else { return Ok(None) };
    let Event::StateSaved { version, hash, lines } = record.event else { return Ok(None) };
    if version != STATE_VERSION {
        return Err(SavedStateError::Version);
    }
    let json =
        BlobStore::for_journal(path).get(&hash, MAX_STATE_BYTES).map_err(|_| SavedStateError::Altered)?;
    let lines = usize::try_from(lines).unwrap_or(usize::MAX).saturating_add(1);
    Ok(Some(SavedState { json, hash, start: ReadPosition { offset, lines } }))
}

/// Creates the event for a state that follows from the first `lines` of a journal.
pub fn saved_event(hash: String, lines: usize) -> Event {
    Event::StateSaved { version: STATE_VERSION, hash, lines: u64::try_from(lines).unwrap_or(u64::MAX) }
}

/// Finds the last record of a saved state, and the offset of the line after it.
fn last_record(file: &File) -> io::Result<Option<(Record, u64)>> {
    let (length, beginning) = (file.metadata()?.len(), memmem::FinderRev::new(STATE_EVENT_PREFIX));
    let (mut end, mut block) = (length, Vec::new());
    while end > 0 {
        let from = end.saturating_sub(BLOCK_BYTES);
        // A line that starts in this block may end after it.
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
            if let Some(record) = record.filter(|record| matches!(record.event, Event::StateSaved { .. })) {
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
    use crate::write::encode;
    use agent_core::event::{EVENT_SCHEMA_VERSION, NoticeLevel};

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

    fn saved(hash: &str) -> Event {
        Event::StateSaved { version: STATE_VERSION, hash: hash.into(), lines: 1 }
    }

    fn notice(bytes: usize) -> Event {
        Event::Notice { level: NoticeLevel::Info, text: "x".repeat(bytes) }
    }

    #[expect(clippy::disallowed_methods, reason = "the test writes its own journal")]
    fn found(lines: &[Vec<u8>]) -> Option<(String, u64)> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), lines.concat()).unwrap();
        let (record, end) = last_record(file.as_file()).unwrap()?;
        let Event::StateSaved { hash, .. } = record.event else { panic!() };
        Some((hash, end))
    }

    #[test]
    fn the_last_state_is_found_wherever_it_lies_between_blocks() {
        let block = usize::try_from(BLOCK_BYTES).unwrap();
        let (one, two) = (line(saved("one")), line(saved("two")));
        let end = (one.len() + two.len()) as u64;
        for bytes in (0..400).chain(block - 600..block + 400).step_by(7) {
            let lines = [one.clone(), two.clone(), line(notice(bytes))];
            assert_eq!(found(&lines), Some(("two".to_owned(), end)), "{bytes}");
        }
    }

    #[test]
    fn what_is_damaged_or_only_looks_like_it_is_passed_over() {
        let (one, mut damaged) = (line(saved("one")), line(saved("two")));
        damaged[20] ^= 1;
        let quoted = line(Event::Notice {
            level: NoticeLevel::Info,
            text: String::from_utf8(line(saved("three"))).unwrap(),
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
