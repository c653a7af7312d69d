//! The ids of the tasks that wait, are claimed or of which something is left to do. Workers look at them every few seconds, and at all records
//! once a day. A key without such a task is removed then, and one that is missing added: a process may be killed between two writes.

use crate::core::fleet::TaskRecord;
use crate::fleet::error::QueueError;
use crate::fleet::nats::buckets::{Buckets, CONCURRENCY, away};
use crate::fleet::nats::records::Stored;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::collections::BTreeSet;

/// First part of the keys, in the bucket of shared values.
const OPEN: &str = "open";

/// Checks whether something is left to do for a task.
pub(super) fn is_open(task: &TaskRecord) -> bool {
    !task.state.has_ended() || !task.settled
}

impl Buckets {
    /// Notes that a task is open; before its record says so.
    pub(super) async fn mark_open(&self, id: &str) -> Result<(), QueueError> {
        self.values().await?.put(format!("{OPEN}.{id}"), Bytes::new()).await.map(drop).map_err(away)
    }

    /// Notes that nothing is left to do for a task; after its record says so.
    pub(super) async fn mark_closed(&self, id: &str) -> Result<(), QueueError> {
        let values = self.values().await?;
        let subject = format!("$KV.{}.{OPEN}.{id}", values.name);
        values.stream.purge().filter(subject).await.map_err(away).map(drop)
    }

    /// Returns the ids of the open tasks.
    pub(super) async fn open_ids(&self) -> Result<BTreeSet<String>, QueueError> {
        let values = self.values().await?;
        let prefix = format!("$KV.{}.{OPEN}.", values.name);
        let mut subjects = values.stream.info_with_subjects(format!("{prefix}>")).await.map_err(away)?;
        let mut ids = BTreeSet::new();
        while let Some((subject, _)) = subjects.try_next().await.map_err(away)? {
            ids.extend(subject.strip_prefix(&prefix).map(str::to_owned));
        }
        Ok(ids)
    }

    /// Returns the records of the open tasks. Those that cannot be read are noted.
    pub(super) async fn open_records(&self) -> Result<Vec<Stored>, QueueError> {
        let ids = self.open_ids().await?;
        let read = stream::iter(&ids).map(|id| self.readable(id)).buffered(CONCURRENCY);
        let read: Vec<Option<(Stored, u64)>> = read.try_collect().await?;
        Ok(read.into_iter().flatten().map(|(stored, _)| stored).collect())
    }
}
