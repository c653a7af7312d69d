//! Reads a journal; skips damaged lines and reports them.

use crate::blobs::{BlobPointers, BlobStore};
use agent_core::event::{EVENT_SCHEMA_VERSION, Record};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Maximum bytes of a line; a longer one is skipped as damaged.
pub const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// Content of a journal.
#[derive(Debug, Default, PartialEq)]
pub struct JournalContents {
    /// The intact records, in order.
    pub records: Vec<Record>,
    /// Line numbers (from 1) of damaged lines.
    pub damaged: Vec<usize>,
    /// Line numbers of records with a text that is missing from the blob store.
    pub incomplete: Vec<usize>,
    /// Whether a later version of this program has written to the journal.
    pub is_newer_version: bool,
}

/// Why a line contains no readable record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineError {
    /// The line is not as it was written.
    Damaged,
    /// A later version of this program has written the line.
    NewerVersion,
}

#[derive(Deserialize)]
struct JournalLine<'a> {
    crc: &'a str,
    #[serde(borrow)]
    record: &'a RawValue,
    #[serde(borrow)]
    blobs: Option<&'a RawValue>,
}

/// The part of a record that is the same in every version.
#[derive(Deserialize)]
struct Version {
    v: u32,
}

impl JournalContents {
    /// Returns the sequence number of the next record.
    pub fn next_seq(&self) -> u64 {
        self.records.last().map_or(0, |record| record.seq.saturating_add(1))
    }
}

/// Reads the whole journal at `path`. Lines after a damaged line are read too.
///
/// # Errors
/// When the file cannot be opened or read.
pub fn read(path: &Path) -> io::Result<JournalContents> {
    let (mut reading, blobs) = (JournalContents::default(), BlobStore::for_journal(path));
    for_each_line(path, |number, line| {
        for_each_intact_part(line, |line| {
            let found = decode_with_blobs(line, &blobs);
            reading.is_newer_version |= found
                .as_ref()
                .map_or_else(|fault| *fault == LineError::NewerVersion, |(it, _)| is_newer_version(it));
            match found {
                Ok((record, all)) => {
                    reading.records.push(record);
                    reading.incomplete.extend((!all).then_some(number));
                }
                Err(_) => reading.damaged.push(number),
            }
            true
        })
    })?;
    Ok(reading)
}

/// Calls `f` with each line's number and its record, `None` for a damaged line, until `f` returns `false`.
///
/// # Errors
/// When the file cannot be opened or read.
pub fn for_each_record(path: &Path, mut f: impl FnMut(usize, Option<Record>) -> bool) -> io::Result<()> {
    let blobs = BlobStore::for_journal(path);
    for_each_part(path, |number, line| {
        f(number, decode_with_blobs(line, &blobs).ok().map(|(record, _)| record))
    })
}

/// Calls `f` with the number and the bytes of each line that is not blank, until `f` returns `false`. For a line that
/// contains zero bytes, calls it with each intact part.
///
/// # Errors
/// When the file cannot be opened or read.
pub fn for_each_part(path: &Path, mut f: impl FnMut(usize, &[u8]) -> bool) -> io::Result<()> {
    for_each_line(path, |number, line| for_each_intact_part(line, |part| f(number, part)))
}

/// Calls `f` with the number and the bytes of each line that is not blank, until `f` returns `false`.
///
/// # Errors
/// When the file cannot be opened or read.
pub fn for_each_line(path: &Path, mut f: impl FnMut(usize, &[u8]) -> bool) -> io::Result<()> {
    let mut input = BufReader::with_capacity(1 << 16, File::open(path)?);
    let (mut line, mut number) = (Vec::new(), 0_usize);
    while next_line(&mut input, &mut line, MAX_LINE_BYTES)? {
        number = number.saturating_add(1);
        if !line.iter().all(u8::is_ascii_whitespace) && !f(number, &line) {
            break;
        }
    }
    Ok(())
}

/// Calls `f` with `line`. A crash may leave zero bytes in the middle of a line; then `f` is called with one zero byte, for
/// the damage, and with the intact parts before and after it.
fn for_each_intact_part(line: &[u8], mut f: impl FnMut(&[u8]) -> bool) -> bool {
    let (Some(first), Some(last)) = (memchr::memchr(0, line), memchr::memrchr(0, line)) else {
        return f(line);
    };
    let ends = [line.get(..first), line.get(last.saturating_add(1)..)];
    f(&[0]) && ends.into_iter().flatten().filter(|end| parse(end).is_ok()).all(f)
}

/// Reads the next line into `line`, without a line end if the line is longer than `limit`; the rest of such a line is
/// skipped. Returns `false` at the end of the file.
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

/// Checks whether a later version of this program has written `record`.
pub fn is_newer_version(record: &Record) -> bool {
    record.v > EVENT_SCHEMA_VERSION
}

/// Decodes the record of a line without its blobs; long texts are cut to their prefixes.
///
/// # Errors
/// When the line is damaged, or only a later version can read it.
pub fn decode_inline(line: &[u8]) -> Result<Record, LineError> {
    let (raw, _) = parse(line)?;
    serde_json::from_str(raw).map_err(|_| line_error(raw))
}

/// Decodes the record of a line without blobs.
///
/// # Errors
/// As [`decode_inline`], and when the record has blobs.
pub fn decode(line: &[u8]) -> Result<Record, LineError> {
    let (raw, pointers) = parse(line)?;
    match pointers {
        None => serde_json::from_str(raw).map_err(|_| line_error(raw)),
        Some(_) => Err(LineError::Damaged),
    }
}

/// Decodes the record of a line with its blobs; returns whether all blobs were found.
fn decode_with_blobs(line: &[u8], blobs: &BlobStore) -> Result<(Record, bool), LineError> {
    let (raw, Some(pointers)) = parse(line)? else { return decode(line).map(|record| (record, true)) };
    let pointers: BlobPointers = serde_json::from_str(pointers).map_err(|_| LineError::Damaged)?;
    let mut value: Value = serde_json::from_str(raw).map_err(|_| LineError::Damaged)?;
    let all = blobs.restore_blobs(&mut value, &pointers).ok_or(LineError::Damaged)?;
    serde_json::from_value(value).map(|record| (record, all)).map_err(|_| line_error(raw))
}

/// Returns the JSON of the record and of its blob pointers, as they were written.
fn parse(line: &[u8]) -> Result<(&str, Option<&str>), LineError> {
    let parsed: JournalLine<'_> = serde_json::from_slice(line).map_err(|_| LineError::Damaged)?;
    let (record, pointers) = (parsed.record.get(), parsed.blobs.map(RawValue::get));
    let mut crc = crc32fast::Hasher::new();
    crc.update(record.as_bytes());
    crc.update(pointers.unwrap_or_default().as_bytes());
    let is_intact = u32::from_str_radix(parsed.crc, 16) == Ok(crc.finalize());
    if is_intact { Ok((record, pointers)) } else { Err(LineError::Damaged) }
}

/// Returns why an intact record cannot be decoded.
fn line_error(raw: &str) -> LineError {
    match serde_json::from_str::<Version>(raw) {
        Ok(Version { v }) if v > EVENT_SCHEMA_VERSION => LineError::NewerVersion,
        _ => LineError::Damaged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::encode;
    use agent_core::event::{EVENT_SCHEMA_VERSION, Event, NoticeLevel};
    use proptest::prelude::*;

    fn record(seq: u64, text: &str) -> Record {
        Record {
            v: EVENT_SCHEMA_VERSION,
            seq,
            run: "r".into(),
            step: 0,
            wall_ms: 1,
            mono_us: 2,
            event: Event::Notice { level: NoticeLevel::Info, text: text.into() },
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
    fn read_bytes(bytes: &[u8]) -> JournalContents {
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

    fn guarded(record: &str) -> Vec<u8> {
        let crc = crc32fast::hash(record.as_bytes());
        format!("{{\"crc\":\"{crc:08x}\",\"record\":{record}}}\n").into_bytes()
    }

    #[test]
    fn what_a_later_version_wrote_is_not_taken_for_damage() {
        let known = serde_json::to_string(&Record { v: EVENT_SCHEMA_VERSION + 1, ..record(0, "a") }).unwrap();
        let unknown = known.replace("notice", "an unknown type of event");
        for (line, records) in [(guarded(&known), 1), (guarded(&unknown), 0)] {
            let reading = read_bytes(&line);
            assert!(reading.is_newer_version && reading.records.len() == records, "{reading:?}");
        }
        let unknown = unknown.replace(&format!("\"v\":{}", EVENT_SCHEMA_VERSION + 1), "\"v\":1");
        let reading = read_bytes(&guarded(&unknown));
        assert_eq!((reading.is_newer_version, reading.damaged), (false, vec![1]));
    }

    #[test]
    fn zeros_anywhere_hide_no_record_that_stands_whole_beside_them() {
        let lines: Vec<Vec<u8>> = (0..)
            .zip(["a", "b", "c"])
            .map(|(seq, text)| {
                let mut line = Vec::new();
                encode(&record(seq, text), &mut line).unwrap();
                line
            })
            .collect();
        let [a, b, c] = &lines[..] else { panic!() };
        let zeros = [0; 4096];
        let seqs = |parts: &[&[u8]]| {
            let reading = read_bytes(&parts.concat());
            assert_eq!(reading.damaged.len(), 1, "{reading:?}");
            reading.records.iter().map(|record| record.seq).collect::<Vec<_>>()
        };
        assert_eq!(seqs(&[a, &zeros, b, c]), [0, 1, 2], "between lines");
        assert_eq!(seqs(&[a, &b[..20], &zeros, &b[30..], c]), [0, 2], "in a line");
        assert_eq!(seqs(&[&a[..a.len() - 1], &zeros, &b[10..], c]), [0, 2], "over the end of a line");
        assert_eq!(seqs(&[a, &b[..20], &zeros, c]), [0, 2], "up to a line");
        assert_eq!(seqs(&[&zeros, a, b, c]), [0, 1, 2], "at the beginning");
        assert_eq!(seqs(&[a, b, c, &zeros]), [0, 1, 2], "at the end");
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
            let complete = whole[..cut].split(|byte| *byte == b'\n').filter(|line| line.ends_with(b"}}}")).count();
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
