//! Values that all workers share: the leader among the leases, all others in a bucket of their own.

use crate::error::QueueError;
use crate::leader;
use crate::nats::NatsStore;
use crate::nats::buckets::away;
use async_nats::jetstream::kv::{CreateErrorKind, Operation, Store, UpdateErrorKind};
use bytes::Bytes;

impl NatsStore {
    fn bucket_of(&self, key: &str) -> &Store {
        if key == leader::KEY { &self.buckets.leases } else { &self.buckets.values }
    }

    /// Returns a value and its revision.
    pub(crate) async fn value(&self, key: &str) -> Result<Option<(String, u64)>, QueueError> {
        let entry = self.bucket_of(key).entry(key).await.map_err(away)?;
        let entry = entry.filter(|entry| entry.operation == Operation::Put);
        Ok(entry.map(|entry| (String::from_utf8_lossy(&entry.value).into_owned(), entry.revision)))
    }

    /// Writes a value, if its revision is still `revision`, or it still does not exist; returns whether it was written.
    pub(crate) async fn write_value(
        &self,
        key: &str,
        value: String,
        revision: Option<u64>,
    ) -> Result<bool, QueueError> {
        let (values, value) = (self.bucket_of(key), Bytes::from(value));
        match revision {
            Some(revision) => match values.update(key, value, revision).await {
                Ok(_) => Ok(true),
                Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(false),
                Err(error) => Err(away(error)),
            },
            None => match values.create(key, value).await {
                Ok(_) => Ok(true),
                Err(error) if error.kind() == CreateErrorKind::AlreadyExists => Ok(false),
                Err(error) => Err(away(error)),
            },
        }
    }
}
