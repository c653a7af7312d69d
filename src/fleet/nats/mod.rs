//! The tasks of many machines, on a NATS server with `JetStream`.
//!
//! The record of a task is a key whose changes depend on its revision. A message in a work queue is a hint that there is something to do: it
//! is held while a worker does the task, and one that is missing is published again. Leases go by the clock of the server.

mod buckets;
mod cleaning;
pub mod connection;
mod hints;
mod objects;
mod open_tasks;
mod records;
mod values;

use crate::error::QueueError;
use crate::nats::buckets::{Buckets, CONCURRENCY, away};
use crate::nats::connection::NatsServer;
use crate::nats::hints::{Hints, postpone};
use crate::nats::open_tasks::is_open;
use crate::nats::records::{Claimable, Stored, Written};
use crate::selection::Selection;
use agent_core::fleet::{TaskRecord, TaskSpec, TaskState};
use agent_core::hub::Lane;
use agent_core::task_transitions::Change;
use agent_runtime::clock::Clock;
use async_nats::jetstream::kv::CreateErrorKind;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use tokio::time::Instant;

/// Most messages that are looked at for one claim.
const MAX_HINTS: u32 = 100;
/// The key of the worker that publishes missing messages, in the bucket of leases.
const SWEEP: &str = "sweep";
/// Bits of the number of a task that are not its time.
const NUMBER_BITS: u32 = 20;

/// What became of a claim.
enum Claim {
    Made(Box<TaskRecord>),
    /// The task may be claimed then.
    Later(Duration),
    /// It has ended, or does not exist.
    Never,
}

/// The server.
pub struct NatsStore {
    /// The prefix of its streams, and a random id: no other queue has the same, so that their worktrees have different names.
    pub id: String,
    buckets: Buckets,
    hints: Hints,
    clock: Rc<Clock>,
    /// When the lease of this worker was last renewed.
    renewed: Cell<Option<Instant>>,
    /// Claims of this worker whose confirmation was lost, if the server has written them.
    doubtful: RefCell<Vec<TaskRecord>>,
    /// When all records were last searched for open tasks.
    searched: Cell<Option<Instant>>,
}

impl NatsStore {
    /// Connects, and creates on the server what is missing; claims that are not renewed end after `lease`, unless the server has another time.
    ///
    /// # Errors
    /// Fails when the server does not answer within ten seconds, or refuses it.
    pub async fn open(server: &NatsServer, lease: Duration, clock: Rc<Clock>) -> Result<Self, QueueError> {
        let buckets = Box::pin(Buckets::open(server.connect().await?, server, lease)).await?;
        let id = format!("{}-{}", server.prefix.to_ascii_lowercase(), buckets.random_id(&clock).await?);
        let (hints, renewed, doubtful, searched) = Default::default();
        Ok(Self { id, buckets, hints, clock, renewed, doubtful, searched })
    }

    /// Returns and forgets why tasks could not be read.
    pub fn take_unreadable(&self) -> Vec<String> {
        self.buckets.unreadable.take()
    }

    /// Returns the time after which a claim ends that is not renewed.
    pub fn lease(&self) -> Duration {
        self.buckets.lease
    }

    /// Adds tasks, up to `most` on the server. One that exists with the same spec stays as it is.
    ///
    /// # Errors
    /// Fails if a task with one of the ids has another spec and for a full queue, before any is added; and when the server does not answer,
    /// with the number of tasks that are stored.
    pub async fn submit(&self, tasks: &[(String, TaskSpec)], now: u64, most: u64) -> Result<(), QueueError> {
        let first = self.first_number();
        let new: Vec<Stored> = tasks
            .iter()
            .zip(first..)
            .map(|((id, spec), number)| Stored::new(TaskRecord::new(id, number, spec, now)))
            .collect();
        let known = stream::iter(&new).map(|stored| self.known(&stored.task)).buffered(CONCURRENCY);
        let known: Result<Vec<Option<TaskRecord>>, QueueError> = known.try_collect().await;
        let known = known.map_err(QueueError::none_stored)?;
        let is_new = known.iter().map(Option::is_none);
        let new: Vec<&Stored> =
            new.iter().zip(is_new).filter(|(_, is_new)| *is_new).map(|(stored, _)| stored).collect();
        let count = self.buckets.count().await.map_err(QueueError::none_stored)?;
        if count.saturating_add(new.len() as u64) > most {
            return Err(QueueError::Full(most));
        }
        let added = Cell::new(0_usize);
        // The messages of known ones are missing if an earlier submission was interrupted.
        let waiting: Vec<&TaskRecord> =
            known.iter().flatten().filter(|task| task.state == TaskState::Queued).collect();
        let done = self.add(&new, &waiting, &added).await;
        done.map_err(|error| {
            error.with_stored(format!("this command stored at least {} of {} tasks", added.get(), new.len()))
        })
    }

    async fn add(
        &self,
        new: &[&Stored],
        waiting: &[&TaskRecord],
        added: &Cell<usize>,
    ) -> Result<(), QueueError> {
        let created = stream::iter(new).map(|stored| async {
            let stored: &Stored = stored;
            self.buckets.mark_open(&stored.task.id).await?;
            let is_created = self.buckets.create(stored).await? == Written::Done;
            if !is_created && self.known(&stored.task).await?.is_none() {
                return Err(away("the task was removed"));
            }
            added.set(added.get() + 1);
            Ok(())
        });
        created.buffered(CONCURRENCY).try_collect::<()>().await?;
        self.buckets.publish_missing(waiting).await?;
        self.buckets.publish_new(&new.iter().map(|stored| &stored.task).collect::<Vec<_>>()).await
    }

    /// Returns the task if it exists.
    ///
    /// # Errors
    /// Fails if it has another spec.
    async fn known(&self, task: &TaskRecord) -> Result<Option<TaskRecord>, QueueError> {
        match self.buckets.read(&task.id).await? {
            Some((known, _)) if known.task.spec == task.spec => Ok(Some(known.task)),
            Some(_) => Err(QueueError::Different(task.id.clone())),
            None => Ok(None),
        }
    }

    /// Returns the number of the next task: the time, and random digits. An earlier task with the same id has another one.
    fn first_number(&self) -> u64 {
        let millis = u64::try_from(self.clock.unix_time().as_millis()).unwrap_or_default();
        (millis << NUMBER_BITS) | (self.clock.random() >> (64 - NUMBER_BITS + 1))
    }

    /// Claims the next task of `lane` for `worker`, and returns it. A claim whose worker is no longer alive is taken back.
    ///
    /// # Errors
    /// Fails when the server does not answer.
    pub async fn claim(&self, lane: Lane, worker: &str, now: u64) -> Result<Option<TaskRecord>, QueueError> {
        self.renew_lease(worker).await?;
        Box::pin(self.give_doubtful_back(now)).await?;
        for _ in 0..MAX_HINTS {
            let Some(message) = self.hints.next(&self.buckets, lane).await? else { break };
            let id = String::from_utf8_lossy(&message.payload);
            match self.claim_record(&id, worker, now).await? {
                Claim::Made(task) => {
                    self.hints.hold(task.newest_attempt(), message);
                    return Ok(Some(*task));
                }
                Claim::Later(wait) => postpone(&message, wait).await?,
                Claim::Never => message.ack().await.map_err(away)?,
            }
        }
        Ok(None)
    }

    /// Claims the task with this id for `worker`, and returns it, if it waits.
    ///
    /// # Errors
    /// Fails when the server does not answer.
    pub async fn claim_one(
        &self,
        id: &str,
        worker: &str,
        now: u64,
    ) -> Result<Option<TaskRecord>, QueueError> {
        self.renew_lease(worker).await?;
        Box::pin(self.give_doubtful_back(now)).await?;
        // The message about it is deferred by the worker that receives it.
        Ok(match self.claim_record(id, worker, now).await? {
            Claim::Made(task) => Some(*task),
            Claim::Later(_) | Claim::Never => None,
        })
    }

    /// Gives back tasks that the server has given to this worker without its knowledge.
    async fn give_doubtful_back(&self, now: u64) -> Result<(), QueueError> {
        let next = || self.doubtful.borrow().last().cloned();
        while let Some(claim) = next() {
            let given_back = |task: &mut TaskRecord| {
                let is_own = task.belongs_to(&claim);
                Ok(if is_own {
                    task.give_back(now);
                    Change::WriteAndWait(Duration::ZERO)
                } else {
                    Change::Keep
                })
            };
            match self.change(&claim.id, now, &given_back).await {
                Ok(_) | Err(QueueError::Unknown(_)) => drop(self.doubtful.borrow_mut().pop()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn claim_record(&self, id: &str, worker: &str, now: u64) -> Result<Claim, QueueError> {
        loop {
            let Some((mut stored, revision)) = self.buckets.readable(id).await? else {
                return Ok(Claim::Never);
            };
            let claimable = self.buckets.make_claimable(&mut stored, now).await?;
            match claimable {
                Claimable::Later(wait) => return Ok(Claim::Later(wait)),
                Claimable::Never => return Ok(Claim::Never),
                Claimable::Now => stored.task.claim(worker, now),
                Claimable::Ended => {}
            }
            stored.not_before = 0;
            let task = stored.task.clone();
            let written = self.buckets.write(stored, revision).await;
            if written.is_err() && claimable == Claimable::Now {
                self.doubt(&task, worker);
            }
            match (written?, claimable) {
                (Written::Conflict, _) => {}
                (Written::Done, Claimable::Now) => return Ok(Claim::Made(Box::new(task))),
                (Written::Done, _) => return Ok(Claim::Never),
            }
        }
    }

    /// Renews the lease of the worker of an attempt; returns whether the task is still its own.
    ///
    /// # Errors
    /// Fails when the server does not answer.
    pub async fn renew(&self, task: &TaskRecord) -> Result<bool, QueueError> {
        self.renew_lease(task.worker.as_deref().unwrap_or_default()).await?;
        self.hints.renew(task.newest_attempt()).await?;
        let read = self.buckets.read(&task.id).await?;
        let is_own = read.is_some_and(|(stored, _)| stored.task.belongs_to(task));
        if !is_own {
            self.hints.forget(task.newest_attempt());
        }
        Ok(is_own)
    }

    /// Notes that the server may have given an attempt to `worker` although it did not answer: it is given back before the next claim.
    pub fn doubt(&self, attempt: &TaskRecord, worker: &str) {
        let claim = TaskRecord { worker: Some(worker.to_owned()), ..attempt.clone() };
        self.doubtful.borrow_mut().push(claim);
    }

    /// Renews the lease of a worker, unless that was done a moment ago.
    ///
    /// # Errors
    /// Fails when the server does not answer.
    pub async fn renew_lease(&self, worker: &str) -> Result<(), QueueError> {
        let now = Instant::now();
        // A third of the lease is the time between two renewals.
        let is_due = self.renewed.get().is_none_or(|last| now.duration_since(last) >= self.buckets.lease / 4);
        if is_due {
            self.buckets.renew(worker).await?;
            self.renewed.set(Some(now));
        }
        Ok(())
    }

    /// Changes tasks as `change` says; returns whether all were written. If it fails for one of them, none is changed.
    ///
    /// # Errors
    /// Fails if one does not exist, when `change` fails, and when the server does not answer.
    pub async fn change_all(
        &self,
        ids: &[String],
        now: u64,
        change: &dyn Fn(&mut TaskRecord) -> Result<Change, QueueError>,
    ) -> Result<bool, QueueError> {
        if ids.len() > 1 {
            for id in ids {
                change(&mut self.existing(id).await?.0.task)?;
            }
        }
        let mut all = true;
        for id in ids {
            all &= self.change(id, now, change).await?;
        }
        Ok(all)
    }

    async fn change(
        &self,
        id: &str,
        now: u64,
        change: &dyn Fn(&mut TaskRecord) -> Result<Change, QueueError>,
    ) -> Result<bool, QueueError> {
        loop {
            let (mut stored, revision) = self.existing(id).await?;
            let (before, was_open) = (stored.task.state, is_open(&stored.task));
            match change(&mut stored.task)? {
                Change::Keep => return Ok(false),
                Change::Write => {}
                Change::WriteAndWait(wait) => stored.not_before = now.saturating_add(wait.as_secs()),
            }
            let task = stored.task.clone();
            if is_open(&task) && !was_open {
                self.buckets.mark_open(id).await?;
            }
            let is_closed = was_open && !is_open(&task);
            let mark = if is_closed { self.buckets.open_mark(id).await? } else { None };
            if self.buckets.write(stored, revision).await? == Written::Conflict {
                continue;
            }
            if let Some(mark) = mark {
                // If this fails, it is removed when all records are looked at.
                let _ = self.buckets.remove_mark(&mark).await;
            }
            if task.state != before {
                // If this fails, the message is delivered or published again later.
                let _ = self.update_hint(&task).await;
            }
            return Ok(true);
        }
    }

    async fn update_hint(&self, task: &TaskRecord) -> Result<(), QueueError> {
        let was_held = self.hints.release(task.newest_attempt()).await?;
        match task.state {
            TaskState::Queued => self.buckets.publish_again(&[task]).await,
            _ if was_held => Ok(()),
            _ => self.buckets.remove_hint(task).await,
        }
    }

    async fn existing(&self, id: &str) -> Result<(Stored, u64), QueueError> {
        self.buckets.read(id).await?.ok_or_else(|| QueueError::Unknown(id.to_owned()))
    }

    /// Removes tasks that have ended; if one has not, none is removed.
    ///
    /// # Errors
    /// Fails if one does not exist, or has not ended, and when the server does not answer.
    pub async fn remove(&self, ids: &[String]) -> Result<(), QueueError> {
        let mut ended = Vec::new();
        for id in ids {
            let (stored, revision) = self.existing(id).await?;
            stored.task.check_removable()?;
            ended.push((stored, revision, self.buckets.open_mark(id).await?));
        }
        for (stored, revision, mark) in &ended {
            self.buckets.remove_hint(&stored.task).await?;
            self.buckets.remove(stored, *revision).await?;
            if let Some(mark) = mark {
                self.buckets.remove_mark(mark).await?;
            }
        }
        Ok(())
    }

    /// Returns the task with this id.
    ///
    /// # Errors
    /// Fails if there is none, and when the server does not answer.
    pub async fn record(&self, id: &str) -> Result<TaskRecord, QueueError> {
        Ok(self.existing(id).await?.0.task)
    }

    /// Returns the task with this id, and the document of its run.
    ///
    /// # Errors
    /// Fails if there is none, and when the server does not answer.
    pub async fn get(&self, id: &str) -> Result<TaskRecord, QueueError> {
        let (stored, _) = self.existing(id).await?;
        let result = self.buckets.result(&stored).await?;
        Ok(TaskRecord { result, ..stored.task })
    }

    /// Returns the states of tasks, in the order of `ids`.
    ///
    /// # Errors
    /// Fails if one does not exist, and when the server does not answer.
    pub async fn states(&self, ids: &[String]) -> Result<Vec<TaskState>, QueueError> {
        stream::iter(ids)
            .map(|id| async { Ok(self.existing(id).await?.0.task.state) })
            .buffered(CONCURRENCY)
            .try_collect()
            .await
    }

    /// Returns the selected tasks, in the order of their submission.
    ///
    /// # Errors
    /// Fails when the server does not answer.
    pub async fn select(&self, selection: Selection) -> Result<Vec<TaskRecord>, QueueError> {
        let found = match selection {
            Selection::All => self.buckets.all().await?,
            Selection::InState(state) if state.has_ended() => self.buckets.all().await?,
            Selection::InState(_) | Selection::Unsettled { .. } => self.buckets.open_records().await?,
        };
        let mut tasks = Vec::new();
        for Stored { task, .. } in found {
            let is_selected = match selection {
                Selection::All => true,
                Selection::InState(state) => task.state == state,
                Selection::Unsettled { until } => {
                    let is_other = task.settled || task.changed_at > until || !task.state.has_ended();
                    let is_cancelled = task.state == TaskState::Cancelled;
                    // The worker of a cancelled task may still be at work.
                    let may_work = is_cancelled
                        && (task.attempt == 0 || self.buckets.is_alive(task.worker.as_deref()).await?);
                    !is_other && !may_work
                }
            };
            if is_selected {
                tasks.push(task);
            }
        }
        tasks.sort_by_key(|task| task.number);
        Ok(tasks)
    }

    /// Checks whether a task of `lane` waits, or is claimed. The records are searched only if no message is left, or once in the time of a lease: after a
    /// server was killed, its number of messages may be too high.
    ///
    /// # Errors
    /// Fails when the server does not answer.
    pub async fn has_open_tasks(&self, lane: Lane) -> Result<bool, QueueError> {
        let is_recent = self.searched.get().is_some_and(|last| last.elapsed() < self.buckets.lease);
        if is_recent && self.buckets.count_hints().await? > 0 {
            return Ok(true);
        }
        self.searched.set(Some(Instant::now()));
        let waits = |task: &TaskRecord| !task.state.has_ended() && task.spec.is_of(lane);
        Ok(self.buckets.open_records().await?.iter().any(|stored| waits(&stored.task)))
    }

    /// Publishes messages about tasks that can be claimed. One worker does so within the time of a lease, when it has found no message: one that
    /// exists is not delivered, as happens after a server was killed.
    ///
    /// # Errors
    /// Fails when the server does not answer.
    pub async fn sweep(&self, now: u64) -> Result<(), QueueError> {
        match self.buckets.leases.create(SWEEP, Bytes::new()).await {
            Ok(_) => {}
            Err(error) if error.kind() == CreateErrorKind::AlreadyExists => return Ok(()),
            Err(error) => return Err(away(error)),
        }
        let mut claimable = Vec::new();
        for mut stored in self.buckets.open_records().await? {
            match self.buckets.make_claimable(&mut stored, now).await? {
                Claimable::Now | Claimable::Ended => claimable.push(stored.task),
                Claimable::Later(_) | Claimable::Never => {}
            }
        }
        claimable.sort_by_key(|task| task.number);
        self.buckets.publish_again(&claimable.iter().collect::<Vec<_>>()).await
    }
}

#[cfg(test)]
#[path = "nats_tests.rs"]
mod tests;
