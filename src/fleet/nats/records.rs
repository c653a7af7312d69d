//! The records of tasks in a bucket of NATS, and the documents of their runs beside them.

use crate::error::QueueError;
use crate::nats::buckets::{Buckets, away};
use agent_core::fleet::{TaskRecord, TaskState, check_id};
use agent_core::run_result::RunResult;
use async_nats::jetstream::kv::{CreateErrorKind, Entry, Operation, UpdateErrorKind};
use async_nats::jetstream::object_store::GetErrorKind;
use bytes::Bytes;
use futures_util::stream::StreamExt;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

/// Longest wait for the next one of many records.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// How often the list of records is read, if one is removed meanwhile.
const TRIES: u32 = 3;
/// Longest wait that a record may ask for, in seconds; after a longer one the clock has been changed.
const MAX_NOT_BEFORE: u64 = 60;
/// Most bytes of the document of a run that are read.
const MAX_RESULT_BYTES: u64 = 4 << 20;

/// A record as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Stored {
    /// The task, without the document of its run.
    pub(super) task: TaskRecord,
    /// No worker claims it before, in seconds since the Unix epoch.
    pub(super) not_before: u64,
    /// The attempt whose run has a document.
    pub(super) result_of: Option<u32>,
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    Done,
    /// Somebody else has changed the record since it was read.
    Conflict,
}

impl Stored {
    pub(super) fn new(task: TaskRecord) -> Self {
        Self { task, not_before: 0, result_of: None }
    }

    /// Returns the seconds to wait before the task is claimed.
    pub(super) fn wait(&self, now: u64) -> u64 {
        let wait = self.not_before.saturating_sub(now);
        if wait > MAX_NOT_BEFORE { 0 } else { wait }
    }

    fn object(&self, attempt: u32) -> String {
        let TaskRecord { id, number, .. } = &self.task;
        format!("{id}/{number}-{attempt}/result.json")
    }

    fn parse(entry: &Entry) -> Result<Option<(Self, u64)>, QueueError> {
        if entry.operation != Operation::Put {
            return Ok(None);
        }
        let unreadable = |why: String| QueueError::Unreadable(entry.key.clone(), why);
        let stored: Self =
            serde_json::from_slice(&entry.value).map_err(|error| unreadable(error.to_string()))?;
        // Its id is a part of the subjects of what is removed with it.
        if stored.task.id != entry.key || check_id(&stored.task.id).is_err() {
            return Err(unreadable("it has the id of another task".to_owned()));
        }
        Ok(Some((stored, entry.revision)))
    }

    fn bytes(&self) -> Result<Bytes, QueueError> {
        Ok(serde_json::to_vec(self)?.into())
    }
}

impl Buckets {
    /// Returns a record and its revision, without the document of its run.
    pub(super) async fn read(&self, id: &str) -> Result<Option<(Stored, u64)>, QueueError> {
        let entry = self.records.entry(id).await.map_err(away)?;
        entry.map_or(Ok(None), |entry| Stored::parse(&entry))
    }

    /// Returns a record and its revision, unless it does not exist or cannot be read, which is noted.
    pub(super) async fn readable(&self, id: &str) -> Result<Option<(Stored, u64)>, QueueError> {
        if check_id(id).is_err() {
            return Ok(None);
        }
        match self.read(id).await {
            Err(error @ QueueError::Unreadable(..)) => {
                self.unreadable.note(error.to_string());
                Ok(None)
            }
            read => read,
        }
    }

    /// Creates a record, unless it exists.
    pub(super) async fn create(&self, stored: &Stored) -> Result<Written, QueueError> {
        match self.records.create(&stored.task.id, stored.bytes()?).await {
            Ok(_) => Ok(Written::Done),
            Err(error) if error.kind() == CreateErrorKind::AlreadyExists => Ok(Written::Conflict),
            Err(error) => Err(away(error)),
        }
    }

    /// Writes a record whose revision must be `revision`; the document of its run before, if it has one, and that of an earlier run is removed.
    pub(super) async fn write(&self, mut stored: Stored, revision: u64) -> Result<Written, QueueError> {
        let mut unneeded = None;
        if let Some(result) = stored.task.result.take() {
            let text = serde_json::to_vec(&result)?;
            self.results
                .put(stored.object(stored.task.attempt).as_str(), &mut text.as_slice())
                .await
                .map_err(away)?;
            unneeded = stored.result_of.replace(stored.task.attempt).filter(|of| *of != stored.task.attempt);
        }
        match self.records.update(&stored.task.id, stored.bytes()?, revision).await {
            Ok(_) => {}
            Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => return Ok(Written::Conflict),
            Err(error) => return Err(away(error)),
        }
        if let Some(attempt) = unneeded {
            // Otherwise the server removes it when it is old.
            let _ = self.results.delete(stored.object(attempt)).await;
        }
        Ok(Written::Done)
    }

    /// Returns the document of the newest run of a task.
    pub(super) async fn result(&self, stored: &Stored) -> Result<Option<RunResult>, QueueError> {
        if stored.result_of != Some(stored.task.attempt) {
            return Ok(None);
        }
        let read = async {
            let object = match self.results.get(stored.object(stored.task.attempt)).await {
                Err(error) if error.kind() == GetErrorKind::NotFound => return Ok(None),
                object => object.map_err(away)?,
            };
            let mut text = Vec::new();
            object.take(MAX_RESULT_BYTES).read_to_end(&mut text).await.map_err(away)?;
            Ok(Some(serde_json::from_slice(&text)?))
        };
        // A document that has lost a part is waited for.
        timeout(MAX_WAIT, read).await.map_err(away)?
    }

    /// Removes a record and the document of its run, unless it was changed since `revision`.
    pub(super) async fn remove(&self, stored: &Stored, revision: u64) -> Result<(), QueueError> {
        if let Some(attempt) = stored.result_of {
            // Otherwise the server removes it when it is old.
            let _ = self.results.delete(stored.object(attempt)).await;
        }
        let subject = format!("$KV.{}.{}", self.records.name, stored.task.id);
        let until = revision.saturating_add(1);
        self.records.stream.purge().filter(subject).sequence(until).await.map_err(away).map(drop)
    }

    /// Returns the number of records.
    pub(super) async fn count(&self) -> Result<u64, QueueError> {
        Ok(self.records.stream.get_info().await.map_err(away)?.state.messages)
    }

    /// Returns the number of messages, which may be too high after the server was killed.
    pub(super) async fn count_hints(&self) -> Result<u64, QueueError> {
        Ok(self.hints.get_info().await.map_err(away)?.state.messages)
    }

    /// Returns all records. Those that cannot be read are noted.
    pub(super) async fn all(&self) -> Result<Vec<Stored>, QueueError> {
        let mut found = BTreeMap::new();
        self.each(&mut |stored: Stored, _| drop(found.insert(stored.task.id.clone(), stored))).await?;
        Ok(found.into_values().collect())
    }

    /// Calls `visit` with each record and its revision, perhaps more than once. Those that cannot be read are noted.
    pub(super) async fn each(&self, visit: &mut impl FnMut(Stored, u64)) -> Result<(), QueueError> {
        for _ in 0..TRIES {
            if self.count().await? == 0 || self.each_at_once(visit).await? {
                return Ok(());
            }
        }
        Err(away("the list of tasks was changed while it was read"))
    }

    /// Visits all records, unless the last one was removed while they were read; returns whether it did.
    async fn each_at_once(&self, visit: &mut impl FnMut(Stored, u64)) -> Result<bool, QueueError> {
        let mut entries = self.records.watch_with_history(">").await.map_err(away)?;
        loop {
            let Ok(Some(entry)) = timeout(MAX_WAIT, entries.next()).await else { return Ok(false) };
            let entry = entry.map_err(away)?;
            // A record that is changed meanwhile comes twice.
            match Stored::parse(&entry) {
                Ok(Some((stored, revision))) => visit(stored, revision),
                Ok(None) => {}
                Err(error) => self.unreadable.note(error.to_string()),
            }
            if entry.seen_current {
                return Ok(true);
            }
        }
    }

    /// Checks whether a worker has renewed its lease.
    pub(super) async fn is_alive(&self, worker: Option<&str>) -> Result<bool, QueueError> {
        let Some(worker) = worker.filter(|name| check_id(name).is_ok()) else { return Ok(false) };
        let entry = self.leases.entry(lease_key(worker)).await.map_err(away)?;
        Ok(entry.is_some_and(|entry| entry.operation == Operation::Put))
    }

    /// Renews the lease of a worker.
    pub(super) async fn renew(&self, worker: &str) -> Result<(), QueueError> {
        self.leases.put(lease_key(worker), Bytes::new()).await.map_err(away).map(drop)
    }

    /// Checks whether a worker may claim the task: it waits, or its worker is no longer alive, and its attempt is ended then.
    pub(super) async fn make_claimable(
        &self,
        stored: &mut Stored,
        now: u64,
    ) -> Result<Claimable, QueueError> {
        let wait = stored.wait(now);
        match stored.task.state {
            TaskState::Queued if wait > 0 => Ok(Claimable::Later(Duration::from_secs(wait))),
            TaskState::Queued => Ok(Claimable::Now),
            TaskState::Claimed if self.is_alive(stored.task.worker.as_deref()).await? => {
                Ok(Claimable::Later(self.lease))
            }
            TaskState::Claimed => {
                stored.task.take_back(now);
                Ok(if stored.task.state == TaskState::Queued { Claimable::Now } else { Claimable::Ended })
            }
            _ => Ok(Claimable::Never),
        }
    }
}

/// Whether a task can be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claimable {
    Now,
    Later(Duration),
    /// Its last attempt has ended without a result, which is to be written.
    Ended,
    Never,
}

fn lease_key(worker: &str) -> String {
    format!("worker.{worker}")
}
