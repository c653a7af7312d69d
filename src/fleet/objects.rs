//! Objects of a queue: bytes that are too long for a record, by the hash of their content. They are removed after 60 days.

use crate::error::QueueError;
use crate::queue::Queue;
use crate::retention;
use rusqlite::{OptionalExtension, params};

/// Maximum bytes of an object.
pub const MAX_OBJECT_BYTES: usize = 64 << 20;

/// The table of a database. `stored_at`: in seconds since the Unix epoch.
const TABLE: &str = "
CREATE TABLE IF NOT EXISTS object (name TEXT PRIMARY KEY, stored_at INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS object_stored ON object (stored_at);";

impl Queue {
    /// Stores an object, and in a database removes those that were stored 60 days before; returns its name.
    ///
    /// # Errors
    /// Fails for one that is too long, and when the store cannot be used.
    pub async fn put_object(&self, bytes: &[u8], now: u64) -> Result<String, QueueError> {
        let name = blake3::hash(bytes).to_hex().to_string();
        if bytes.len() > MAX_OBJECT_BYTES {
            let (has, most) = (bytes.len() >> 20, MAX_OBJECT_BYTES >> 20);
            return Err(QueueError::State(format!(
                "what is to be stored has {has} MiB, and may have {most}"
            )));
        }
        match self {
            Self::Sqlite(store) => store.transaction(|change| {
                let (now, oldest) = (signed(now), signed(now.saturating_sub(retention::OBJECTS.as_secs())));
                change.execute_batch(TABLE)?;
                change.execute("DELETE FROM object WHERE stored_at < ?1", [oldest])?;
                let put =
                    "INSERT INTO object VALUES (?1, ?2, ?3) ON CONFLICT (name) DO UPDATE SET stored_at = ?2";
                Ok(change.execute(put, params![name, now, bytes]).map(drop)?)
            })?,
            Self::Nats(store) => store.put_object(&name, bytes, now).await?,
        }
        Ok(name)
    }

    /// Returns the object with this name; `None` if it was removed.
    ///
    /// # Errors
    /// Fails when the store cannot be used, and for one with another content than its name says.
    pub async fn object(&self, name: &str) -> Result<Option<Vec<u8>>, QueueError> {
        let found = match self {
            Self::Sqlite(store) => store.transaction(|change| {
                change.execute_batch(TABLE)?;
                let query = "SELECT bytes FROM object WHERE name = ?1";
                Ok(change.query_row(query, [name], |row| row.get(0)).optional()?)
            })?,
            Self::Nats(store) => store.object(name, MAX_OBJECT_BYTES as u64).await?,
        };
        match &found {
            Some(bytes) if *blake3::hash(bytes).to_hex() != *name => {
                Err(QueueError::Storage(format!("the object {name} has another content")))
            }
            _ => Ok(found),
        }
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
