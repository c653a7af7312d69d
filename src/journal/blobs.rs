//! What is too long for a line of a journal: kept beside it, each value under the hash of its JSON.

use crate::core::event::Record;
use crate::messages;
use rustix::fs::{Mode, OFlags};
use serde_json::Value;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes of a line that holds its record whole; of a longer record only what is short stays in the line.
pub const MAX_INLINE_RECORD_BYTES: usize = 64 << 10;

/// Bytes of a value, as JSON, that stays in the line of a longer record.
const MAX_INLINE_VALUE_BYTES: usize = 4 << 10;

/// Characters of a text that stay in the line, for those who look at it.
const PREFIX_CHARS: usize = 200;

/// Bytes that are put together to one record.
const MAX_RECORD_BYTES: u64 = 64 << 20;

/// Hexadecimal digits of a hash.
const HASH_DIGITS: usize = 64;

/// The keys of what is no type of ours, and is taken out as a whole: opaque data of a provider, a structured answer.
const OPAQUE_KEYS: [&str; 2] = ["data", "output"];

/// Where in a record a value belongs, as a JSON pointer, and the hash of its JSON. What holds another stands before it.
pub type BlobPointers = Vec<(String, String)>;

/// The directory of one session's long values.
#[derive(Debug, Clone)]
pub struct BlobStore {
    dir: PathBuf,
}

impl BlobStore {
    /// That of the journal at `path`.
    pub fn for_journal(path: &Path) -> Self {
        Self { dir: path.with_file_name("texts") }
    }

    /// Takes what is too long out of `record` and keeps it, durably.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn extract_blobs(&self, record: &Record) -> io::Result<(Value, BlobPointers)> {
        let (mut value, mut taken) = (serde_json::to_value(record)?, Vec::new());
        if let Some(event) = value.get_mut("event") {
            for (key, field) in event.as_object_mut().into_iter().flatten() {
                extract_long_values(field, format!("/event/{key}"), &mut taken);
            }
        }
        let kept = taken
            .into_iter()
            .rev()
            .map(|(place, value)| Ok((place, self.store(&serde_json::to_vec(&value)?)?)));
        let places = kept.collect::<io::Result<BlobPointers>>()?;
        Ok((value, places))
    }

    /// Puts the values of `places` back into `record`. A text that is not there any more, or not as it was, is replaced by its
    /// beginning and a note. Returns whether all were there; nothing when anything else is missing.
    pub fn restore_blobs(&self, record: &mut Value, places: &BlobPointers) -> Option<bool> {
        let (mut left, mut all) = (MAX_RECORD_BYTES, true);
        for (place, hash) in places {
            let missing = record.pointer_mut(place)?;
            match (self.get(hash, left), missing) {
                (Ok(bytes), missing) => {
                    left = left.saturating_sub(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
                    *missing = serde_json::from_slice(&bytes).ok()?;
                }
                (Err(_), Value::String(text)) => {
                    all = false;
                    text.push_str(&messages::blob_missing(hash));
                }
                (Err(_), _) => return None,
            }
        }
        Some(all)
    }

    /// Keeps `bytes` durably; returns their hash.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn store(&self, bytes: &[u8]) -> io::Result<String> {
        let hash = blake3::hash(bytes).to_hex().to_string();
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        // One process at a time has the journal, and what another left of this name is not whole.
        let part = self.dir.join(format!("{hash}.part"));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        rustix::fs::rename(&part, self.path(&hash))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::fsync(rustix::fs::open(&self.dir, flags, Mode::empty())?)?;
        Ok(hash)
    }

    /// At most `most` bytes that have this hash.
    ///
    /// # Errors
    /// When there are none.
    pub fn get(&self, hash: &str, most: u64) -> io::Result<Vec<u8>> {
        let is_hash = hash.len() == HASH_DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let path = if is_hash { self.path(hash) } else { return Err(io::ErrorKind::InvalidInput.into()) };
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let mut bytes = Vec::new();
        File::take(file, most).read_to_end(&mut bytes)?;
        let is_it = blake3::hash(&bytes).to_hex().as_str() == hash;
        if is_it { Ok(bytes) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    /// Removes what is kept under `hash`.
    #[expect(clippy::disallowed_methods, reason = "this is the address of what lies beside journals")]
    pub fn remove(&self, hash: &str) {
        // What stays is of no use and goes with the session.
        let _ = std::fs::remove_file(self.path(hash));
    }

    fn path(&self, hash: &str) -> PathBuf {
        self.dir.join(format!("{hash}.json"))
    }
}

/// Takes out of `value`, which is at `place`, what keeps it from being short; what is inside of another stands before it.
fn extract_long_values(value: &mut Value, place: String, taken: &mut Vec<(String, Value)>) {
    if is_short(value) {
        return;
    }
    match value {
        Value::String(text) => {
            let beginning = Value::String(text.chars().take(PREFIX_CHARS).collect());
            taken.push((place, std::mem::replace(value, beginning)));
        }
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                extract_long_values(item, format!("{place}/{at}"), taken);
            }
            if !is_short(value) {
                taken.push((place, std::mem::replace(value, Value::Array(Vec::new()))));
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                let inside = format!("{place}/{key}");
                if OPAQUE_KEYS.contains(&key.as_str()) && field.is_object() && !is_short(field) {
                    taken.push((inside, field.take()));
                } else {
                    extract_long_values(field, inside, taken);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_short(value: &Value) -> bool {
    serde_json::to_vec(value).is_ok_and(|bytes| bytes.len() <= MAX_INLINE_VALUE_BYTES)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests lose and alter what was kept")]
#[path = "blobs_tests.rs"]
mod tests;
