//! Objects that are too long for a record, beside the results of runs.

use crate::error::QueueError;
use crate::nats::NatsStore;
use crate::nats::buckets::away;
use crate::retention;
use async_nats::jetstream::object_store::GetErrorKind;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

/// Longest wait for the next part of an object.
const MAX_SILENCE: Duration = Duration::from_secs(10);
/// Directory of the names of objects.
const OBJECTS: &str = "objects";

impl NatsStore {
    /// Stores an object under a name that is the hash of its content.
    pub(crate) async fn put_object(&self, name: &str, bytes: &[u8], now: u64) -> Result<(), QueueError> {
        let (name, mut bytes) = (format!("{OBJECTS}/{name}"), bytes);
        if let Ok(known) = self.buckets.results.info(name.as_str()).await {
            let stored_at = known.modified.map_or(0, |modified| modified.unix_timestamp().unsigned_abs());
            let is_recent = now.abs_diff(stored_at) < retention::OBJECTS.as_secs() / 2;
            // Storing it again would take it from those who read it.
            if is_recent && !known.deleted && known.size == bytes.len() {
                return Ok(());
            }
        }
        self.buckets.results.put(name.as_str(), &mut bytes).await.map(drop).map_err(away)
    }

    /// Returns an object of up to `most` bytes.
    pub(crate) async fn object(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, QueueError> {
        let object = match self.buckets.results.get(format!("{OBJECTS}/{name}")).await {
            Err(error) if error.kind() == GetErrorKind::NotFound => return Ok(None),
            object => object.map_err(away)?,
        };
        let (mut bytes, mut object) = (Vec::new(), object.take(most));
        // A chunk that was removed meanwhile never comes.
        while timeout(MAX_SILENCE, object.read_buf(&mut bytes)).await.map_err(away)?.map_err(away)? > 0 {}
        Ok(Some(bytes))
    }
}
