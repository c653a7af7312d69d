//! Blob store of a journal: values too long for a journal line, stored in files named after the hash of their JSON.

use agent_core::event::Record;
use agent_messages as messages;
use agent_runtime::private_file::{self, create_private_dir};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Maximum bytes of a record that is written as a whole; long values of a longer record become blobs.
pub const MAX_INLINE_RECORD_BYTES: usize = 64 << 10;

/// Maximum bytes of a value, as JSON, that stays in the line of a longer record.
const MAX_INLINE_VALUE_BYTES: usize = 4 << 10;

/// Characters of a long text that stay in the line, for readers of the file.
const PREFIX_CHARS: usize = 200;

/// Maximum bytes of a record that is put together from blobs.
const MAX_RECORD_BYTES: u64 = 64 << 20;

/// Hexadecimal digits of a hash.
const HASH_DIGITS: usize = 64;

/// Keys of untyped values, which are extracted as a whole: opaque data of a provider, a structured answer.
const OPAQUE_KEYS: [&str; 2] = ["data", "output"];

/// JSON pointer of each blob in its record, and the hash of its JSON. A value comes before the values inside it.
pub type BlobPointers = Vec<(String, String)>;

/// Directory with the long values of one session.
#[derive(Debug, Clone)]
pub struct BlobStore {
    dir: PathBuf,
    /// Extension of the files.
    extension: &'static str,
}

impl BlobStore {
    /// Returns the blob store of the journal at `path`.
    pub fn for_journal(path: &Path) -> Self {
        Self::new(path.with_file_name("texts"), "json")
    }

    /// Returns the blob store in `dir`, whose files have this extension.
    pub fn new(dir: PathBuf, extension: &'static str) -> Self {
        Self { dir, extension }
    }

    /// Extracts long values from `record` and stores them durably.
    ///
    /// # Errors
    /// When a value cannot be written.
    pub fn extract_blobs(&self, record: &Record) -> io::Result<(Value, BlobPointers)> {
        let (mut value, mut taken) = (serde_json::to_value(record)?, Vec::new());
        if let Some(event) = value.get_mut("event") {
            for (key, field) in event.as_object_mut().into_iter().flatten() {
                extract_long_values(field, format!("/event/{key}"), &mut taken);
            }
        }
        let stored = taken
            .into_iter()
            .rev()
            .map(|(pointer, value)| Ok((pointer, self.store(&serde_json::to_vec(&value)?)?)));
        let pointers = stored.collect::<io::Result<BlobPointers>>()?;
        Ok((value, pointers))
    }

    /// Restores the values of `pointers` in `record`. A text whose blob is missing or altered is replaced by its prefix and a
    /// note. Returns whether all blobs were found; `None` if another value is missing.
    pub fn restore_blobs(&self, record: &mut Value, pointers: &BlobPointers) -> Option<bool> {
        let (mut left, mut all) = (MAX_RECORD_BYTES, true);
        for (pointer, hash) in pointers {
            let missing = record.pointer_mut(pointer)?;
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

    /// Stores `bytes` durably and returns their hash.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn store(&self, bytes: &[u8]) -> io::Result<String> {
        let hash = blake3::hash(bytes).to_hex().to_string();
        create_private_dir(&self.dir)?;
        // The journal is locked, so a part file of this name was left by a process that crashed.
        let part = self.dir.join(format!("{hash}.part"));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
        file.write_all(bytes)?;
        private_file::synced(file.sync_data())?;
        rustix::fs::rename(&part, self.path(&hash))?;
        private_file::synced(File::open(&self.dir)?.sync_all())?;
        Ok(hash)
    }

    /// Returns the blob with this hash, at most `most` bytes.
    ///
    /// # Errors
    /// When there is no such blob, or its content does not match the hash.
    pub fn get(&self, hash: &str, most: u64) -> io::Result<Vec<u8>> {
        let is_hash = hash.len() == HASH_DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        let path = if is_hash { self.path(hash) } else { return Err(io::ErrorKind::InvalidInput.into()) };
        let (file, _) = private_file::open(&path)?;
        let mut bytes = Vec::new();
        File::take(file, most).read_to_end(&mut bytes)?;
        let is_it = blake3::hash(&bytes).to_hex().as_str() == hash;
        if is_it { Ok(bytes) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    fn path(&self, hash: &str) -> PathBuf {
        self.dir.join(format!("{hash}.{}", self.extension))
    }
}

/// Extracts long values from `value`, whose JSON pointer is `pointer`; inner values come before the values that contain them.
fn extract_long_values(value: &mut Value, pointer: String, taken: &mut Vec<(String, Value)>) {
    if is_short(value) {
        return;
    }
    match value {
        Value::String(text) => {
            let prefix = Value::String(text.chars().take(PREFIX_CHARS).collect());
            taken.push((pointer, std::mem::replace(value, prefix)));
        }
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                extract_long_values(item, format!("{pointer}/{at}"), taken);
            }
            if !is_short(value) {
                taken.push((pointer, std::mem::replace(value, Value::Array(Vec::new()))));
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                let inside = format!("{pointer}/{key}");
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
#[expect(clippy::disallowed_methods, reason = "the tests delete and alter blobs")]
#[path = "blobs_tests.rs"]
mod tests;
