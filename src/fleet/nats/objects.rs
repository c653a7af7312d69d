//! Objects that are too long for a record, beside the results of runs.

use crate::fleet::error::QueueError;
use crate::fleet::nats::NatsStore;
use crate::fleet::nats::buckets::away;
use async_nats::jetstream::object_store::GetErrorKind;
use tokio::io::AsyncReadExt;

/// Directory of the names of objects.
const OBJECTS: &str = "objects";

impl NatsStore {
    /// Stores an object under a name that tells its content.
    pub(in crate::fleet) async fn put_object(&self, name: &str, bytes: &[u8]) -> Result<(), QueueError> {
        let (name, mut bytes) = (format!("{OBJECTS}/{name}"), bytes);
        self.buckets.results.put(name.as_str(), &mut bytes).await.map(drop).map_err(away)
    }

    /// Returns an object of up to `most` bytes.
    pub(in crate::fleet) async fn object(
        &self,
        name: &str,
        most: u64,
    ) -> Result<Option<Vec<u8>>, QueueError> {
        let object = match self.buckets.results.get(format!("{OBJECTS}/{name}")).await {
            Err(error) if error.kind() == GetErrorKind::NotFound => return Ok(None),
            object => object.map_err(away)?,
        };
        let mut bytes = Vec::new();
        object.take(most).read_to_end(&mut bytes).await.map_err(away)?;
        Ok(Some(bytes))
    }
}
