//! The queue in an `SQLite` database. Each change of a task is one transaction, and depends on the attempt that makes it.

use crate::core::fleet::{AttemptKey, TaskRecord, TaskSpec, TaskState, branch_name};
use crate::core::run_result::RunResult;
use crate::fleet::boot_clock::BootTime;
use crate::fleet::error::QueueError;
use crate::runtime::private_file::{create_new, create_private_dir};
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Version of the tables, in `PRAGMA user_version`.
const VERSION: i64 = 1;
/// Maximum number of tasks.
const MAX_TASKS: u64 = 1_000_000;
/// Maximum bytes of a task.
pub const MAX_TASK_BYTES: usize = 256 << 10;
/// Maximum bytes of the document of a run in a record; a longer one is kept without its answer, or not at all.
const MAX_RESULT_BYTES: usize = 1 << 20;
/// Time after which ended tasks are removed.
const RETENTION: Duration = Duration::from_hours(30 * 24);
/// Longest wait after a failed attempt; the first one is 2 seconds, and each further one twice as long.
const MAX_WAIT: Duration = Duration::from_mins(1);
/// How long a change waits for those of other processes.
const BUSY: Duration = Duration::from_secs(10);

/// The tables. `number`: the order of submission. `wait_until`: when a claim, or the wait after a failed attempt, ends, in milliseconds since
/// the boot with the id `boot`. `is_settled`: an ended task has its branch, and nothing is left of its newest attempt.
const TABLES: &str = "
CREATE TABLE task (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  priority INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  state TEXT NOT NULL,
  attempt INTEGER NOT NULL DEFAULT 0,
  failed_attempts INTEGER NOT NULL DEFAULT 0,
  worker TEXT,
  boot TEXT,
  wait_until INTEGER,
  cause TEXT,
  commit_id TEXT,
  is_settled INTEGER NOT NULL DEFAULT 0,
  submitted_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  spec TEXT NOT NULL,
  result TEXT
) STRICT;
CREATE INDEX task_order ON task (state, priority, number);
CREATE INDEX task_settled ON task (is_settled, state);
CREATE INDEX task_changed ON task (changed_at);
CREATE TABLE queue (id TEXT NOT NULL) STRICT;
INSERT INTO queue VALUES (lower(hex(randomblob(4))));";

/// Columns of a record, in the order in which [`record`] reads them.
const COLUMNS: &str = "id, spec, state, attempt, failed_attempts, worker, cause, commit_id, submitted_at, changed_at, result, number, is_settled";

/// File systems of other machines, on which the locks of `SQLite` do not hold (`statfs(2)`).
#[cfg(target_os = "linux")]
const NETWORK_FILE_SYSTEMS: [(i64, &str); 8] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x0102_1997, "9P"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x5346_414f, "AFS"),
];

/// How an attempt ended.
#[derive(Debug, Clone)]
pub enum Ending {
    /// The run succeeded; with the commit of its changes.
    Done(Option<String>),
    /// The run ended otherwise, and another attempt would end the same way.
    Failed(String),
    /// The attempt failed, and another one may succeed.
    Retry(String),
}

/// The queue.
pub struct Queue {
    connection: Connection,
    /// Random id, which tells the worktrees of this queue from those of others.
    pub id: String,
}

impl Queue {
    /// Opens the database at `path`, which is created with its directory, readable for the user only.
    ///
    /// # Errors
    /// Fails when it cannot be used, and on a file system of another machine.
    pub fn open(path: &Path) -> Result<Self, QueueError> {
        let failed = |error: std::io::Error| QueueError::Storage(format!("{}: {error}", path.display()));
        let directory = path.parent().unwrap_or(Path::new("/"));
        create_private_dir(directory).map_err(failed)?;
        check_file_system(directory)?;
        match create_new(path, true) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        match change.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))? {
            0 => {
                change.execute_batch(TABLES)?;
                change.pragma_update(None, "user_version", VERSION)?;
            }
            VERSION => {}
            version => {
                let why = format!("{} is of a later version ({version})", path.display());
                return Err(QueueError::Storage(why));
            }
        }
        let id = change.query_row("SELECT id FROM queue", [], |row| row.get(0))?;
        change.commit()?;
        Ok(Self { connection, id })
    }

    /// Adds tasks, all or none, at `now` (seconds since the Unix epoch), and removes those that ended 30 days before. A task that exists with
    /// the same spec stays as it is.
    ///
    /// # Errors
    /// Fails if a task with one of the ids has another spec, and for a full queue.
    pub fn submit(&mut self, tasks: &[(String, TaskSpec)], now: u64) -> Result<(), QueueError> {
        let change = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let oldest = signed(now.saturating_sub(RETENTION.as_secs()));
        change.execute(
            "DELETE FROM task WHERE changed_at < ?1 AND state NOT IN ('queued', 'claimed') AND (is_settled OR state <> 'done')",
            [oldest],
        )?;
        for (id, spec) in tasks {
            let text = serde_json::to_string(spec)?;
            if text.len() > MAX_TASK_BYTES {
                return Err(QueueError::TooLong(id.clone(), MAX_TASK_BYTES));
            }
            let known: Option<String> =
                change.query_row("SELECT spec FROM task WHERE id = ?1", [id], |row| row.get(0)).optional()?;
            match known {
                Some(known) if known == text => continue,
                Some(_) => return Err(QueueError::Different(id.clone())),
                None => {}
            }
            change.execute(
                "INSERT INTO task (id, spec, priority, max_attempts, state, submitted_at, changed_at)
                 VALUES (?1, ?2, ?3, ?4, 'queued', ?5, ?5)",
                params![id, text, spec.priority as i64, spec.max_attempts, signed(now)],
            )?;
        }
        let count: i64 = change.query_row("SELECT count(*) FROM task", [], |row| row.get(0))?;
        if u64::try_from(count).unwrap_or_default() > MAX_TASKS {
            return Err(QueueError::Full(MAX_TASKS));
        }
        Ok(change.commit()?)
    }

    /// Claims the next task for `worker` until `lease_until`, and returns it. Claims that have ended by `time` are taken back before.
    ///
    /// # Errors
    /// Fails when the database cannot be used.
    pub fn claim(
        &mut self,
        worker: &str,
        (time, lease_until): (&BootTime, &BootTime),
        now: u64,
    ) -> Result<Option<TaskRecord>, QueueError> {
        let change = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        change.execute(
            "UPDATE task SET failed_attempts = failed_attempts + 1, changed_at = ?3, wait_until = NULL,
             state = CASE WHEN failed_attempts + 1 >= max_attempts THEN 'dead' ELSE 'queued' END,
             cause = 'the worker ' || worker || ' has ended without a result'
             WHERE state = 'claimed' AND (boot <> ?1 OR wait_until < ?2)",
            params![time.boot, time.millis, signed(now)],
        )?;
        let claimed = change
            .query_row(
                &format!(
                    "UPDATE task SET state = 'claimed', attempt = attempt + 1, worker = ?1, boot = ?2, wait_until = ?3,
                     is_settled = 0, changed_at = ?4 WHERE number = (SELECT number FROM task WHERE state = 'queued'
                     AND (wait_until IS NULL OR boot <> ?2 OR wait_until <= ?5)
                     ORDER BY priority, number LIMIT 1) RETURNING {COLUMNS}"
                ),
                params![worker, lease_until.boot, lease_until.millis, signed(now), time.millis],
                record,
            )
            .optional()?;
        change.commit()?;
        Ok(claimed)
    }

    /// Extends the claim of an attempt; returns whether the task is still its own.
    ///
    /// # Errors
    /// Fails when the database cannot be used.
    pub fn renew(&self, key: AttemptKey, lease_until: &BootTime) -> Result<bool, QueueError> {
        let changed = self.connection.execute(
            "UPDATE task SET boot = ?3, wait_until = ?4 WHERE number = ?1 AND attempt = ?2 AND state = 'claimed'",
            params![signed(key.task), key.attempt, lease_until.boot, lease_until.millis],
        )?;
        Ok(changed == 1)
    }

    /// Records how an attempt ended at `time`; returns whether the task was still its own.
    ///
    /// # Errors
    /// Fails when the database cannot be used.
    pub fn finish(
        &self,
        key: AttemptKey,
        ending: &Ending,
        result: Option<&RunResult>,
        (time, now): (&BootTime, u64),
    ) -> Result<bool, QueueError> {
        let (state, cause, commit, has_failed) = match ending {
            Ending::Done(commit) => ("done", None, commit.as_deref(), false),
            Ending::Failed(cause) => ("failed", Some(cause), None, true),
            Ending::Retry(cause) => ("queued", Some(cause), None, true),
        };
        let result = result.map(bounded).transpose()?.flatten();
        let longest = i64::try_from(MAX_WAIT.as_millis()).unwrap_or(i64::MAX);
        let changed = self.connection.execute(
            "UPDATE task SET failed_attempts = failed_attempts + ?4, cause = ?5, commit_id = ?6, result = ?7, changed_at = ?8,
             state = CASE WHEN ?3 = 'queued' AND failed_attempts + 1 >= max_attempts THEN 'dead' ELSE ?3 END,
             boot = ?9, wait_until = ?10 + min(2000 << min(failed_attempts, 10), ?11)
             WHERE number = ?1 AND attempt = ?2 AND state = 'claimed'",
            params![
                signed(key.task),
                key.attempt,
                state,
                has_failed,
                cause,
                commit,
                result,
                signed(now),
                time.boot,
                time.millis,
                longest
            ],
        )?;
        Ok(changed == 1)
    }

    /// Gives the task of an attempt back, which does not count as failed.
    ///
    /// # Errors
    /// Fails when the database cannot be used.
    pub fn give_back(&self, key: AttemptKey, now: u64) -> Result<(), QueueError> {
        self.connection.execute(
            "UPDATE task SET state = 'queued', wait_until = NULL, changed_at = ?3
             WHERE number = ?1 AND attempt = ?2 AND state = 'claimed'",
            params![signed(key.task), key.attempt, signed(now)],
        )?;
        Ok(())
    }

    /// Returns the ended tasks that have no branch yet, or something is left of their newest attempt; of cancelled ones, those whose
    /// worker can no longer be at work at `time`. Only those whose state changed before `until` (seconds since the Unix epoch).
    ///
    /// # Errors
    /// Fails when the database cannot be used.
    pub fn unsettled(&self, time: &BootTime, until: u64) -> Result<Vec<TaskRecord>, QueueError> {
        self.records(
            "WHERE is_settled = 0 AND changed_at <= ?3 AND (state IN ('done', 'failed', 'dead')
             OR state = 'cancelled' AND attempt > 0 AND (boot <> ?1 OR wait_until < ?2))",
            params![time.boot, time.millis, signed(until)],
        )
    }

    /// Records that the task of an attempt has its branch, and that nothing is left of the attempt.
    ///
    /// # Errors
    /// Fails when the database cannot be used.
    pub fn set_settled(&self, key: AttemptKey) -> Result<(), QueueError> {
        let text = "UPDATE task SET is_settled = 1 WHERE number = ?1 AND attempt = ?2";
        self.connection.execute(text, params![signed(key.task), key.attempt])?;
        Ok(())
    }

    /// Checks whether a task waits, or is claimed.
    ///
    /// # Errors
    /// Fails when the database cannot be used.
    pub fn has_open_tasks(&self) -> Result<bool, QueueError> {
        let text = "SELECT EXISTS (SELECT 1 FROM task WHERE state IN ('queued', 'claimed'))";
        Ok(self.connection.query_row(text, [], |row| row.get(0))?)
    }

    /// Returns the task with this id.
    ///
    /// # Errors
    /// Fails if there is none.
    pub fn get(&self, id: &str) -> Result<TaskRecord, QueueError> {
        self.records("WHERE id = ?1", [id])?.pop().ok_or_else(|| QueueError::Unknown(id.to_owned()))
    }

    /// Returns the states of tasks, in the order of `ids`.
    ///
    /// # Errors
    /// Fails if one does not exist.
    pub fn states(&self, ids: &[String]) -> Result<Vec<TaskState>, QueueError> {
        let mut statement = self.connection.prepare("SELECT state FROM task WHERE id = ?1")?;
        let mut state = |id: &String| {
            let name: Option<String> = statement.query_row([id], |row| row.get(0)).optional()?;
            let name = name.ok_or_else(|| QueueError::Unknown(id.clone()))?;
            name.parse().map_err(|_| QueueError::Storage(format!("unknown state {name}")))
        };
        ids.iter().map(&mut state).collect()
    }

    /// Returns the tasks, in the order of their submission; those in `state`, or all.
    ///
    /// # Errors
    /// Fails when the database cannot be used.
    pub fn list(&self, state: Option<TaskState>) -> Result<Vec<TaskRecord>, QueueError> {
        match state {
            Some(state) => self.records("WHERE state = ?1 ORDER BY number", [state.name()]),
            None => self.records("ORDER BY number", []),
        }
    }

    /// Cancels tasks that have not ended, all or none. Their workers end the runs when they next renew their claims.
    ///
    /// # Errors
    /// Fails if one does not exist, or has ended.
    pub fn cancel(&mut self, ids: &[String], now: u64) -> Result<(), QueueError> {
        let text = "UPDATE task SET state = 'cancelled', cause = 'cancelled by the user', changed_at = ?2
             WHERE id = ?1 AND state IN ('queued', 'claimed')";
        self.change_all(ids, text, Some(now), "has ended")
    }

    /// Queues tasks again that ended without success, all or none; their attempts may fail as often as before.
    ///
    /// # Errors
    /// Fails if one does not exist, or is queued, claimed or done.
    pub fn retry(&mut self, ids: &[String], now: u64) -> Result<(), QueueError> {
        let text = "UPDATE task SET state = 'queued', failed_attempts = 0, cause = NULL, wait_until = NULL, changed_at = ?2
             WHERE id = ?1 AND state IN ('failed', 'dead', 'cancelled')";
        self.change_all(ids, text, Some(now), "can be retried only after it failed")
    }

    /// Removes tasks that have ended, all or none.
    ///
    /// # Errors
    /// Fails if one does not exist, or has not ended.
    pub fn remove(&mut self, ids: &[String]) -> Result<(), QueueError> {
        let text = "DELETE FROM task WHERE id = ?1 AND state NOT IN ('queued', 'claimed')";
        self.change_all(ids, text, None, "has not ended; `agent tasks cancel` cancels it")
    }

    /// Executes `text` with each id, and with `now` if it is given. A task that it does not change is an error with `refusal`.
    fn change_all(
        &mut self,
        ids: &[String],
        text: &str,
        now: Option<u64>,
        refusal: &str,
    ) -> Result<(), QueueError> {
        let change = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for id in ids {
            let changed = match now {
                Some(now) => change.execute(text, params![id, signed(now)])?,
                None => change.execute(text, [id])?,
            };
            if changed != 1 {
                let state: Option<String> = change
                    .query_row("SELECT state FROM task WHERE id = ?1", [id], |row| row.get(0))
                    .optional()?;
                let state = state.ok_or_else(|| QueueError::Unknown(id.clone()))?;
                return Err(QueueError::State(format!("the task {id} ({state}) {refusal}")));
            }
        }
        Ok(change.commit()?)
    }

    fn records<P: rusqlite::Params>(
        &self,
        condition: &str,
        values: P,
    ) -> Result<Vec<TaskRecord>, QueueError> {
        let mut statement = self.connection.prepare(&format!("SELECT {COLUMNS} FROM task {condition}"))?;
        let records = statement.query_map(values, record)?;
        Ok(records.collect::<Result<_, _>>()?)
    }
}

/// Reads a record from a row with [`COLUMNS`].
fn record(row: &Row<'_>) -> rusqlite::Result<TaskRecord> {
    let wrong = |column: usize, why: String| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, why.into())
    };
    let (id, spec, state) = (row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?);
    let state = state.parse::<TaskState>().map_err(|_| wrong(2, format!("unknown state {state}")))?;
    let spec = serde_json::from_str(&spec).map_err(|error| wrong(1, error.to_string()))?;
    let result = row.get::<_, Option<String>>(10)?;
    let result = result.map(|text| serde_json::from_str(&text)).transpose();
    let (commit, is_settled) = (row.get::<_, Option<String>>(7)?, row.get::<_, bool>(12)?);
    Ok(TaskRecord {
        branch: commit.as_ref().filter(|_| is_settled).map(|_| branch_name(&id)),
        id,
        number: u64::try_from(row.get::<_, i64>(11)?).unwrap_or_default(),
        spec,
        state,
        attempt: row.get(3)?,
        failed_attempts: row.get(4)?,
        worker: row.get(5)?,
        cause: row.get(6)?,
        commit,
        submitted_at: u64::try_from(row.get::<_, i64>(8)?).unwrap_or_default(),
        changed_at: u64::try_from(row.get::<_, i64>(9)?).unwrap_or_default(),
        result: result.map_err(|error| wrong(10, error.to_string()))?,
    })
}

/// Returns the document of a run for a record, if it is short enough: with its answer, or without.
fn bounded(result: &RunResult) -> Result<Option<String>, serde_json::Error> {
    let without_answer = || RunResult { output: "".into(), ..result.clone() };
    let text = serde_json::to_string(result)?;
    let text = if text.len() > MAX_RESULT_BYTES { serde_json::to_string(&without_answer())? } else { text };
    Ok((text.len() <= MAX_RESULT_BYTES).then_some(text))
}

fn signed(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

/// Checks that `directory` is on a file system of this machine.
fn check_file_system(directory: &Path) -> Result<(), QueueError> {
    #[cfg(target_os = "linux")]
    {
        let found = rustix::fs::statfs(directory).map_err(|error| QueueError::Storage(error.to_string()))?;
        // The constants are 32 bits wide, and some systems extend the sign.
        let kind = found.f_type & 0xffff_ffff;
        if let Some((_, name)) = NETWORK_FILE_SYSTEMS.iter().find(|(known, _)| *known == kind) {
            let why = format!(
                "{} is on {name}, where the locks of SQLite do not hold; set `fleet.queue` to a file of this machine",
                directory.display()
            );
            return Err(QueueError::Storage(why));
        }
    }
    Ok(())
}

/// Returns the file of the queue `url`, `sqlite:PATH`, by default one in `state`.
///
/// # Errors
/// For another kind of queue.
pub fn queue_file(url: Option<&str>, state: &Path) -> Result<PathBuf, String> {
    let Some(url) = url else { return Ok(state.join("fleet").join("tasks.sqlite")) };
    match url.strip_prefix("sqlite:").map(|path| path.strip_prefix("//").unwrap_or(path)) {
        Some("") => Ok(state.join("fleet").join("tasks.sqlite")),
        Some(path) if Path::new(path).is_absolute() => Ok(PathBuf::from(path)),
        _ => Err(format!("`{url}` is no queue: write `sqlite:/absolute/path`, or `sqlite:` for the default")),
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
