//! Reads a journal back: skips what a crash tore, and says so.

use crate::event::Record;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// The longest line that is taken for a record; a longer one is skipped like a damaged one.
pub const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// What a journal held.
#[derive(Debug, Default, PartialEq)]
pub struct Reading {
    /// The intact records, in order.
    pub records: Vec<Record>,
    /// Line numbers (from 1) that could not be read.
    pub damaged: Vec<usize>,
}

#[derive(Deserialize)]
struct Line<'a> {
    crc: &'a str,
    #[serde(borrow)]
    record: &'a RawValue,
}

impl Reading {
    /// The number that the next record gets.
    pub fn next_seq(&self) -> u64 {
        self.records.last().map_or(0, |record| record.seq.saturating_add(1))
    }
}

/// Reads the whole journal at `path`. A damaged line never hides those after it.
///
/// # Errors
/// When the file cannot be opened or read.
pub fn read(path: &Path) -> io::Result<Reading> {
    let mut reading = Reading::default();
    visit(path, |number, record| {
        match record {
            Some(record) => reading.records.push(record),
            None => reading.damaged.push(number),
        }
        true
    })?;
    Ok(reading)
}

/// Calls `f` with each line's number and its record, `None` for a damaged line, until `f` says `false`.
///
/// # Errors
/// When the file cannot be opened or read.
pub fn visit(path: &Path, mut f: impl FnMut(usize, Option<Record>) -> bool) -> io::Result<()> {
    let mut input = BufReader::with_capacity(1 << 16, File::open(path)?);
    let mut line = Vec::new();
    for number in 1.. {
        if !next_line(&mut input, &mut line, MAX_LINE_BYTES)? {
            break;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        if !f(number, decode(&line)) {
            break;
        }
    }
    Ok(())
}

/// Reads the next line into `line`, which gets no line end when the line is longer than `limit`; the rest of such a line
/// is skipped. `false` at the end of the file.
///
/// # Errors
/// When the input cannot be read.
pub fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>, limit: usize) -> io::Result<bool> {
    line.clear();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    input.by_ref().take(most).read_until(b'\n', line)?;
    if line.len() > limit && !line.ends_with(b"\n") {
        input.skip_until(b'\n')?;
    }
    Ok(!line.is_empty())
}

/// The record of a line with its end; nothing when it is damaged.
pub fn decode(line: &[u8]) -> Option<Record> {
    let line = line.strip_suffix(b"\n")?;
    let parsed: Line<'_> = serde_json::from_slice(line).ok()?;
    let crc = u32::from_str_radix(parsed.crc, 16).ok()?;
    let raw = parsed.record.get();
    if crc32fast::hash(raw.as_bytes()) != crc {
        return None;
    }
    serde_json::from_str(raw).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, Level, SCHEMA_VERSION};
    use crate::journal::write::encode;
    use proptest::prelude::*;

    fn record(seq: u64, text: &str) -> Record {
        Record {
            v: SCHEMA_VERSION,
            seq,
            run: "r".into(),
            step: 0,
            wall_ms: 1,
            mono_us: 2,
            event: Event::Notice { level: Level::Info, text: text.into() },
        }
    }

    fn journal(texts: &[&str]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (seq, text) in (0..).zip(texts) {
            encode(&record(seq, text), &mut bytes).unwrap();
        }
        bytes
    }

    #[expect(clippy::disallowed_methods, reason = "the test writes its own journal")]
    fn read_bytes(bytes: &[u8]) -> Reading {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        read(file.path()).unwrap()
    }

    #[test]
    fn what_was_written_is_read() {
        let reading = read_bytes(&journal(&["a", "b\nc"]));
        assert_eq!(reading.records, vec![record(0, "a"), record(1, "b\nc")]);
        assert_eq!(reading.next_seq(), 2);
        assert!(reading.damaged.is_empty());
    }

    #[test]
    fn calls_of_earlier_versions_are_read() {
        let start = r#"{"v":1,"seq":0,"run":"r","step":1,"wall_ms":1,"mono_us":2,"event":{"type":"tool_start","call":{"id":"c","name":"grep","arguments":"{}"},"summary":"s"}}"#;
        let end = r#"{"v":1,"seq":1,"run":"r","step":1,"wall_ms":1,"mono_us":2,"event":{"type":"tool_end","name":"grep","summary":"s","result":{"call_id":"c","text":"t","is_error":false},"duration_ms":1}}"#;
        let line = |record: &str| {
            format!("{{\"crc\":\"{:08x}\",\"record\":{record}}}\n", crc32fast::hash(record.as_bytes()))
        };
        let reading = read_bytes((line(start) + &line(end)).as_bytes());
        assert!(matches!(reading.records[0].event, Event::ToolStart { .. }), "{reading:?}");
        assert!(matches!(reading.records[1].event, Event::ToolEnd { .. }), "{reading:?}");
    }

    #[test]
    fn damage_in_the_middle_hides_nothing_after_it() {
        let mut bytes = journal(&["a"]);
        bytes.extend_from_slice(&[0; 300]);
        bytes.push(b'\n');
        bytes.extend_from_slice(&journal(&["a", "b"]));
        let reading = read_bytes(&bytes);
        assert_eq!(reading.damaged, vec![2]);
        assert_eq!(reading.records.len(), 3);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_not_loaded() {
        let (mut input, mut line) = (&b"1234\n12345\n1\n12345678"[..], Vec::new());
        let mut lines = Vec::new();
        while next_line(&mut input, &mut line, 4).unwrap() {
            lines.push(String::from_utf8(line.clone()).unwrap());
        }
        assert_eq!(lines, ["1234\n", "12345", "1\n", "12345"]);
    }

    proptest! {
        #[test]
        fn a_journal_cut_anywhere_loses_only_its_last_record(cut in 1usize..200) {
            let whole = journal(&["first", "second", "third"]);
            let cut = whole.len().saturating_sub(cut.min(whole.len()));
            let reading = read_bytes(&whole[..cut]);
            let complete = whole[..cut].split(|byte| *byte == b'\n').count() - 1;
            prop_assert_eq!(reading.records.len(), complete);
        }

        #[test]
        fn a_flipped_byte_is_noticed(at in 0usize..100, flip in 1u8..=255) {
            let mut bytes = journal(&["first"]);
            let at = at % (bytes.len() - 1);
            bytes[at] ^= flip;
            let reading = read_bytes(&bytes);
            prop_assert!(reading.records.iter().all(|r| *r == record(0, "first")));
        }
    }
}
