//! The queue of tasks: what can be done with it, over one of its stores.

use crate::boot_clock::BootTime;
use crate::error::QueueError;
use crate::nats::NatsStore;
use crate::retention;
use crate::selection::Selection;
use crate::sqlite::SqliteStore;
use agent_core::fleet::{Priority, TaskRecord, TaskSpec, TaskState};
use agent_core::hub::{Lane, OutboxPost};
use agent_core::run_result::RunResult;
use agent_core::task_transitions::{Change, Ending};
use std::time::Duration;
use strum::IntoEnumIterator;

/// Maximum number of tasks.
const MAX_TASKS: u64 = 1_000_000;
/// Maximum bytes of a task.
pub const MAX_TASK_BYTES: usize = 256 << 10;
/// Maximum bytes of the document of a run in a record; a longer one is kept with the beginning of its answer, or not at all.
const MAX_RESULT_BYTES: usize = 1 << 20;
/// Bytes of that beginning: JSON needs up to six for one of them.
const CUT_ANSWER_BYTES: usize = 128 << 10;
/// Time between two looks at all records of a server.
const CLEANING_INTERVAL: Duration = Duration::from_hours(24);
/// Key of the value with the time of the last such look.
const CLEANED: &str = "cleaned";

/// A queue. Times are seconds since the Unix epoch.
pub enum Queue {
    /// On one machine.
    Sqlite(SqliteStore),
    /// On a server.
    Nats(Box<NatsStore>),
}

impl Queue {
    /// Returns the id of the queue, which tells its worktrees from those of others.
    pub fn id(&self) -> &str {
        match self {
            Self::Sqlite(store) => &store.id,
            Self::Nats(store) => &store.id,
        }
    }

    /// Returns the time after which a claim ends that is not renewed.
    pub fn lease(&self) -> Duration {
        match self {
            Self::Sqlite(store) => store.lease,
            Self::Nats(store) => store.lease(),
        }
    }

    /// Sets how long a change of a database waits for those of other processes, for a caller that repeats it.
    ///
    /// # Errors
    /// Fails when the store cannot be used.
    pub fn set_patience(&self, patience: Duration) -> Result<(), QueueError> {
        match self {
            Self::Sqlite(store) => store.set_patience(patience),
            Self::Nats(_) => Ok(()),
        }
    }

    /// Checks whether workers of other machines use the queue too.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Nats(_))
    }

    /// Makes sure that every task that waits is found, and removes those that ended 30 days before. Does nothing if another worker has just
    /// done so.
    ///
    /// # Errors
    /// Fails when the store cannot be used.
    pub async fn sweep(&self, now: u64) -> Result<(), QueueError> {
        match self {
            // It finds each task itself, and removes ended ones when others are added.
            Self::Sqlite(_) => Ok(()),
            Self::Nats(store) => {
                store.sweep(now).await?;
                let last = self.change_value(CLEANED, |last: &mut u64| *last).await?;
                if now.abs_diff(last) < CLEANING_INTERVAL.as_secs() {
                    return Ok(());
                }
                store.clean(now, now.saturating_sub(retention::ENDED_TASKS.as_secs())).await?;
                self.change_value(CLEANED, |last: &mut u64| *last = now).await
            }
        }
    }

    /// Adds tasks, all or none, and in a database removes those that ended 30 days before. A task that exists with the same spec stays as it is.
    ///
    /// # Errors
    /// Fails for a task that is too long, if one with the same id has another spec, and for a full queue.
    pub async fn submit(&self, tasks: &[(String, TaskSpec)], now: u64) -> Result<(), QueueError> {
        for (id, spec) in tasks {
            if serde_json::to_vec(spec)?.len() > MAX_TASK_BYTES {
                return Err(QueueError::TooLong(id.clone(), MAX_TASK_BYTES));
            }
        }
        let oldest = now.saturating_sub(retention::ENDED_TASKS.as_secs());
        match self {
            Self::Sqlite(store) => {
                store.submit(tasks, now, oldest, MAX_TASKS).map_err(QueueError::none_stored)
            }
            Self::Nats(store) => store.submit(tasks, now, MAX_TASKS).await,
        }
    }

    /// Claims the next task of `lane` for `worker`, and returns it. Claims that have ended are taken back before. A worker has one lane.
    ///
    /// # Errors
    /// Fails when the store cannot be used.
    pub async fn claim(&self, lane: Lane, worker: &str, now: u64) -> Result<Option<TaskRecord>, QueueError> {
        match self {
            Self::Sqlite(store) => store.claim(lane, None, worker, &BootTime::now(), now),
            Self::Nats(store) => Box::pin(store.claim(lane, worker, now)).await,
        }
    }

    /// Claims the activation with this id for `worker`, and returns it, if it waits.
    ///
    /// # Errors
    /// Fails when the store cannot be used.
    pub async fn claim_activation(
        &self,
        id: &str,
        worker: &str,
        now: u64,
    ) -> Result<Option<TaskRecord>, QueueError> {
        match self {
            Self::Sqlite(store) => store.claim(Lane::Hub(None), Some(id), worker, &BootTime::now(), now),
            Self::Nats(store) => Box::pin(store.claim_one(id, worker, now)).await,
        }
    }

    /// Extends the claim of the attempt `task`; returns whether the task is still its own.
    ///
    /// # Errors
    /// Fails when the store cannot be used.
    pub async fn renew(&self, task: &TaskRecord) -> Result<bool, QueueError> {
        match self {
            Self::Sqlite(store) => store.renew(task, &BootTime::now()),
            Self::Nats(store) => store.renew(task).await,
        }
    }

    /// Records how the attempt `task` ended; returns whether the task was still its own.
    ///
    /// # Errors
    /// Fails when the store cannot be used.
    pub async fn finish(
        &self,
        task: &TaskRecord,
        ending: &Ending,
        result: Option<&RunResult>,
        now: u64,
    ) -> Result<bool, QueueError> {
        let result = result.map(bounded).transpose()?.flatten();
        let ended =
            |record: &mut TaskRecord| Change::WriteAndWait(record.finish(ending, result.clone(), now));
        self.change_own(task, now, &ended).await
    }

    /// Gives the task of an attempt back, which does not count as failed.
    ///
    /// # Errors
    /// Fails when the store cannot be used.
    pub async fn give_back(&self, task: &TaskRecord, now: u64) -> Result<bool, QueueError> {
        let given_back = |record: &mut TaskRecord| {
            record.give_back(now);
            Change::WriteAndWait(Duration::ZERO)
        };
        self.change_own(task, now, &given_back).await
    }

    /// Changes the record of an attempt without its state; returns whether the task is still its own.
    ///
    /// # Errors
    /// Fails when the store cannot be used.
    pub async fn update(
        &self,
        task: &TaskRecord,
        update: impl Fn(&mut TaskRecord),
    ) -> Result<bool, QueueError> {
        let updated = |record: &mut TaskRecord| {
            update(record);
            Change::Write
        };
        self.change_own(task, 0, &updated).await
    }

    /// Records a post of an attempt, in place of one with the same key; returns whether the task is still its own.
    ///
    /// # Errors
    /// Fails when the store cannot be used.
    pub async fn set_post(&self, task: &TaskRecord, post: &OutboxPost) -> Result<bool, QueueError> {
        let set = |record: &mut TaskRecord| match record.posts.iter_mut().find(|known| known.key == post.key)
        {
            Some(known) => *known = post.clone(),
            None => record.posts.push(post.clone()),
        };
        self.update(task, set).await
    }

    /// Lets `worker` go on with the attempt `task` of a worker that has ended, which counts as a failed attempt if it `has_failed`; returns its
    /// record, unless another attempt has begun or the task has failed too often.
    ///
    /// # Errors
    /// Fails when the store cannot be used.
    pub async fn adopt(
        &self,
        task: &TaskRecord,
        worker: &str,
        has_failed: bool,
    ) -> Result<Option<TaskRecord>, QueueError> {
        let Self::Nats(store) = self else { return self.adopt_alive(task, worker, has_failed).await };
        store.renew_lease(worker).await?;
        let adopted = self.adopt_alive(task, worker, has_failed).await;
        if adopted.is_err() {
            store.doubt(task, worker);
        }
        adopted
    }

    async fn adopt_alive(
        &self,
        task: &TaskRecord,
        worker: &str,
        has_failed: bool,
    ) -> Result<Option<TaskRecord>, QueueError> {
        let adopted = |record: &mut TaskRecord| {
            if record.adopt(worker, has_failed) { Change::Write } else { Change::Keep }
        };
        if !self.change_own(task, 0, &adopted).await? {
            return Ok(None);
        }
        let task = self.record(&task.id).await?;
        Ok(self.renew(&task).await?.then_some(task))
    }

    /// Records that the task has its branch, and that nothing is left of the attempt `task`.
    ///
    /// # Errors
    /// Fails when the store cannot be used.
    pub async fn set_settled(&self, task: &TaskRecord) -> Result<(), QueueError> {
        self.change_ended(task, TaskRecord::settle).await
    }

    /// Records that the end of the activation `task` is still to be reported to the Hub.
    ///
    /// # Errors
    /// Fails when the store cannot be used.
    pub async fn set_unreported(&self, task: &TaskRecord) -> Result<(), QueueError> {
        self.change_ended(task, |record| record.settled &= !record.state.has_ended()).await
    }

    async fn change_ended(
        &self,
        task: &TaskRecord,
        change: impl Fn(&mut TaskRecord),
    ) -> Result<(), QueueError> {
        let changed = |record: &mut TaskRecord| {
            if record.newest_attempt() != task.newest_attempt() {
                return Change::Keep;
            }
            change(record);
            Change::Write
        };
        match self.change_all(std::slice::from_ref(&task.id), 0, &|record| Ok(changed(record))).await {
            Ok(_) | Err(QueueError::Unknown(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns the selected tasks, in the order of their submission, without the documents of their runs.
    ///
    /// # Errors
    /// Fails when the store cannot be used.
    pub async fn select(&self, selection: Selection) -> Result<Vec<TaskRecord>, QueueError> {
        match self {
            Self::Sqlite(store) => store.select(selection, &BootTime::now()),
            Self::Nats(store) => store.select(selection).await,
        }
    }

    /// Returns how many tasks are in each state.
    ///
    /// # Errors
    /// Fails when the store cannot be used.
    pub async fn counts(&self) -> Result<Vec<(TaskState, u64)>, QueueError> {
        let found = match self {
            Self::Sqlite(store) => store.counts()?,
            Self::Nats(store) => by_priority(&store.select(Selection::All).await?),
        };
        let count = |state: TaskState| {
            let of_state = found.iter().filter(|(known, ..)| *known == state);
            (state, of_state.map(|(.., count)| count).sum())
        };
        Ok(TaskState::iter().map(count).collect())
    }

    /// Returns how many tasks of each priority are queued.
    ///
    /// # Errors
    /// Fails when the store cannot be used.
    pub async fn depths(&self) -> Result<Vec<(Priority, u64)>, QueueError> {
        let found = match self {
            Self::Sqlite(store) => store.counts()?,
            Self::Nats(store) => by_priority(&store.select(Selection::InState(TaskState::Queued)).await?),
        };
        let depth = |wanted: Priority| {
            let queued = found
                .iter()
                .filter(|(state, priority, _)| *state == TaskState::Queued && *priority == wanted);
            (wanted, queued.map(|(.., count)| count).sum())
        };
        Ok(Priority::iter().map(depth).collect())
    }

    /// Checks whether a task of `lane` waits, or is claimed.
    ///
    /// # Errors
    /// Fails when the store cannot be used.
    pub async fn has_open_tasks(&self, lane: Lane) -> Result<bool, QueueError> {
        match self {
            Self::Sqlite(store) => store.has_open_tasks(lane),
            Self::Nats(store) => store.has_open_tasks(lane).await,
        }
    }

    /// Returns the task with this id, on a server without the document of its run.
    ///
    /// # Errors
    /// Fails if there is none.
    pub async fn record(&self, id: &str) -> Result<TaskRecord, QueueError> {
        match self {
            Self::Sqlite(store) => store.get(id),
            Self::Nats(store) => store.record(id).await,
        }
    }

    /// Returns and forgets what could not be read of the queue, and was left out.
    pub fn take_unreadable(&self) -> Vec<String> {
        match self {
            Self::Sqlite(store) => store.unreadable.take(),
            Self::Nats(store) => store.take_unreadable(),
        }
    }

    /// Returns the task with this id, with the document of its run.
    ///
    /// # Errors
    /// Fails if there is none.
    pub async fn get(&self, id: &str) -> Result<TaskRecord, QueueError> {
        match self {
            Self::Sqlite(store) => store.get(id),
            Self::Nats(store) => store.get(id).await,
        }
    }

    /// Returns the states of tasks, in the order of `ids`.
    ///
    /// # Errors
    /// Fails if one does not exist.
    pub async fn states(&self, ids: &[String]) -> Result<Vec<TaskState>, QueueError> {
        match self {
            Self::Sqlite(store) => store.states(ids),
            Self::Nats(store) => store.states(ids).await,
        }
    }

    /// Cancels tasks, all or none. Their workers end the runs when they next renew their claims.
    ///
    /// # Errors
    /// Fails if one does not exist, or has ended.
    pub async fn cancel(&self, ids: &[String], now: u64) -> Result<(), QueueError> {
        self.change_all(ids, now, &|task| Ok(task.cancel(now).map(|()| Change::Write)?)).await.map(drop)
    }

    /// Queues tasks again that ended without success, all or none; their attempts may fail as often as before.
    ///
    /// # Errors
    /// Fails if one does not exist, or is queued, claimed or done.
    pub async fn retry(&self, ids: &[String], now: u64) -> Result<(), QueueError> {
        let change =
            |task: &mut TaskRecord| Ok(task.retry(now).map(|()| Change::WriteAndWait(Duration::ZERO))?);
        self.change_all(ids, now, &change).await.map(drop)
    }

    /// Removes tasks that have ended, all or none.
    ///
    /// # Errors
    /// Fails if one does not exist, or has not ended.
    pub async fn remove(&self, ids: &[String]) -> Result<(), QueueError> {
        match self {
            Self::Sqlite(store) => store.remove(ids),
            Self::Nats(store) => store.remove(ids).await,
        }
    }

    /// Changes the task of an attempt, if it is still its own; returns whether it was, and was written.
    async fn change_own(
        &self,
        task: &TaskRecord,
        now: u64,
        change: &dyn Fn(&mut TaskRecord) -> Change,
    ) -> Result<bool, QueueError> {
        let change =
            |record: &mut TaskRecord| Ok(if record.belongs_to(task) { change(record) } else { Change::Keep });
        match self.change_all(std::slice::from_ref(&task.id), now, &change).await {
            Err(QueueError::Unknown(_)) => Ok(false),
            changed => changed,
        }
    }

    async fn change_all(
        &self,
        ids: &[String],
        now: u64,
        change: &dyn Fn(&mut TaskRecord) -> Result<Change, QueueError>,
    ) -> Result<bool, QueueError> {
        match self {
            Self::Sqlite(store) => store.change_all(ids, &BootTime::now(), change),
            Self::Nats(store) => Box::pin(store.change_all(ids, now, change)).await,
        }
    }
}

/// Returns the states and priorities of tasks, for each a count of one.
fn by_priority(tasks: &[TaskRecord]) -> Vec<(TaskState, Priority, u64)> {
    tasks.iter().map(|task| (task.state, task.spec.priority, 1)).collect()
}

/// Returns the document of a run for a record, if it is short enough: with its answer, or the beginning of it.
fn bounded(result: &RunResult) -> Result<Option<RunResult>, serde_json::Error> {
    let is_short = |result: &RunResult| Ok(serde_json::to_vec(result)?.len() <= MAX_RESULT_BYTES);
    if is_short(result)? {
        return Ok(Some(result.clone()));
    }
    let answer = result.output.text();
    let (bytes, beginning) = (answer.len(), &answer[..answer.floor_char_boundary(CUT_ANSWER_BYTES)]);
    let cut = format!(
        "{beginning}\n[The first {} KiB of {} KiB; the session has all of it.]",
        beginning.len() >> 10,
        bytes >> 10
    );
    let cut = RunResult { output: cut.into(), ..result.clone() };
    Ok(is_short(&cut)?.then_some(cut))
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
