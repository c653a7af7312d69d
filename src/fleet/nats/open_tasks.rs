//! The ids of the tasks that wait, are claimed or of which something is left to do. Workers look at them once per lease, and at all records
//! once a day. A key without such a task is removed then, and one that is missing added: a process may be killed between two writes.

use crate::error::QueueError;
use crate::nats::buckets::{Buckets, CONCURRENCY, away};
use crate::nats::records::Stored;
use agent_core::fleet::TaskRecord;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::collections::BTreeSet;

/// First part of the keys, in the bucket of shared values.
const OPEN: &str = "open";

/// The key of an open task.
#[derive(Debug)]
pub(super) struct Mark {
    id: String,
    revision: u64,
    /// In seconds since the Unix epoch, by the clock of the server.
    pub(super) made_at: u64,
}

/// Checks whether something is left to do for a task.
pub(super) fn is_open(task: &TaskRecord) -> bool {
    !task.state.has_ended() || !task.settled
}

impl Buckets {
    /// Notes that a task is open; before its record says so.
    pub(super) async fn mark_open(&self, id: &str) -> Result<(), QueueError> {
        self.values.put(format!("{OPEN}.{id}"), Bytes::new()).await.map(drop).map_err(away)
    }

    /// Returns the mark of an open task, which is read before its record says that nothing is left to do.
    pub(super) async fn open_mark(&self, id: &str) -> Result<Option<Mark>, QueueError> {
        let entry = self.values.entry(format!("{OPEN}.{id}")).await.map_err(away)?;
        Ok(entry.map(|entry| Mark {
            id: id.to_owned(),
            revision: entry.revision,
            made_at: entry.created.unix_timestamp().unsigned_abs(),
        }))
    }

    /// Removes a mark, but none that was made since it was read.
    pub(super) async fn remove_mark(&self, mark: &Mark) -> Result<(), QueueError> {
        let values = &self.values;
        let subject = format!("$KV.{}.{OPEN}.{}", values.name, mark.id);
        let until = mark.revision.saturating_add(1);
        values.stream.purge().filter(subject).sequence(until).await.map_err(away).map(drop)
    }

    /// Returns the ids of the open tasks.
    pub(super) async fn open_ids(&self) -> Result<BTreeSet<String>, QueueError> {
        let values = &self.values;
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
