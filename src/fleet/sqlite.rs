//! The tasks of one machine, in an `SQLite` database. Each change is one transaction.

use crate::boot_clock::BootTime;
use crate::error::QueueError;
use crate::selection::Selection;
use crate::unreadable::Unreadable;
use agent_core::fleet::{AttemptKey, Priority, TaskRecord, TaskSpec, TaskState};
use agent_core::hub::{ActivationKind, Lane};
use agent_core::task_transitions::Change;
use agent_runtime::private_file::create_private_dir;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use rustix::io::Errno;
use std::cell::RefCell;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;
use strum::IntoEnumIterator;
use tempfile::NamedTempFile;

/// Version of the tables, in `PRAGMA user_version`.
const VERSION: i64 = 2;
/// How long a change waits for those of other processes.
const BUSY: Duration = Duration::from_secs(10);
/// How a database is opened that exists.
const OPEN_FLAGS: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// The tables. `number`: the order of submission. `record`: the task as JSON, without its number and result; some of it is repeated in columns
/// that are searched. `wait_until`: when a claim, or the wait after a failed attempt, ends, in milliseconds since the boot with the id `boot`.
const TABLES: &str = "
CREATE TABLE task (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  priority INTEGER NOT NULL,
  state TEXT NOT NULL,
  boot TEXT,
  wait_until INTEGER,
  is_settled INTEGER NOT NULL DEFAULT 0,
  changed_at INTEGER NOT NULL,
  record TEXT NOT NULL,
  result TEXT
) STRICT;
CREATE INDEX task_order ON task (state, priority, number);
CREATE INDEX task_settled ON task (is_settled, state);
CREATE INDEX task_changed ON task (changed_at);
CREATE TABLE queue (id TEXT NOT NULL) STRICT;
INSERT INTO queue VALUES (lower(hex(randomblob(4))));";

/// File systems of other machines, on which the locks of `SQLite` do not hold (`statfs(2)`).
#[cfg(target_os = "linux")]
const NETWORK_FILE_SYSTEMS: [(i64, &str); 12] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x0102_1997, "9P"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x5346_414f, "AFS"),
    (0x4750_4653, "GPFS"),
    (0x0116_1970, "GFS2"),
    (0x7461_636f, "OCFS2"),
    (0x1983_0326, "BeeGFS"),
];

/// The database.
pub struct SqliteStore {
    connection: RefCell<Connection>,
    /// Random id, which tells the worktrees of this queue from those of others.
    pub id: String,
    /// Time after which a claim ends that is not renewed.
    pub lease: Duration,
    /// Tasks that could not be read, and why.
    pub unreadable: Unreadable,
}

impl SqliteStore {
    /// Opens the database at `path`, which is created with its directory, readable for the user only.
    ///
    /// # Errors
    /// Fails when it cannot be used, and on a file system of another machine.
    pub fn open(path: &Path, lease: Duration) -> Result<Self, QueueError> {
        let failed = |error: std::io::Error| QueueError::Storage(format!("{}: {error}", path.display()));
        let directory = path.parent().unwrap_or(Path::new("/"));
        create_private_dir(directory).map_err(failed)?;
        check_file_system(directory)?;
        create(path, directory)?;
        // It may be a link.
        check_file_system(path)?;
        let connection = Connection::open_with_flags(path, OPEN_FLAGS)?;
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "synchronous", "full")?;
        let version = connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))?;
        if version != VERSION {
            let why = format!(
                "{} was written by another version of this program (tables of version {version}, not {VERSION}); move it away, with its files `-wal` and `-shm`, or set `fleet.queue` to another file",
                path.display()
            );
            return Err(QueueError::Storage(why));
        }
        let id = connection.query_row("SELECT id FROM queue", [], |row| row.get(0))?;
        Ok(Self { connection: RefCell::new(connection), id, lease, unreadable: Unreadable::default() })
    }

    /// Sets how long a change waits for those of other processes (10 s), while nothing else of this process goes on.
    ///
    /// # Errors
    /// Fails when the database cannot be used.
    pub fn set_patience(&self, patience: Duration) -> Result<(), QueueError> {
        Ok(self.connection.borrow().busy_timeout(patience)?)
    }

    /// Makes one change of the database: all of it, or nothing if `change` fails.
    pub(super) fn transaction<T>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, QueueError>,
    ) -> Result<T, QueueError> {
        let mut connection = self.connection.borrow_mut();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = change(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }

    /// Adds tasks, all or none, up to `most` in the database, and removes those that ended before `oldest`. A task that exists with the same
    /// spec stays as it is.
    ///
    /// # Errors
    /// Fails if a task with one of the ids has another spec, and for a full queue.
    pub fn submit(
        &self,
        tasks: &[(String, TaskSpec)],
        now: u64,
        oldest: u64,
        most: u64,
    ) -> Result<(), QueueError> {
        self.transaction(|change| {
            change.execute(
                "DELETE FROM task WHERE changed_at < ?1 AND state NOT IN ('queued', 'claimed') AND (is_settled OR state <> 'done')",
                [signed(oldest)],
            )?;
            let mut insert = change.prepare(
                "INSERT INTO task (id, priority, state, changed_at, record) VALUES (?1, ?2, 'queued', ?3, ?4)",
            )?;
            for (id, spec) in tasks {
                match find(change, id) {
                    Ok(known) if known.spec == *spec => {}
                    Ok(_) => return Err(QueueError::Different(id.clone())),
                    Err(QueueError::Unknown(_)) => {
                        let record = serde_json::to_string(&TaskRecord::new(id, 0, spec, now))?;
                        insert.execute(params![id, spec.priority as i64, signed(now), record])?;
                    }
                    Err(error) => return Err(error),
                }
            }
            let count: i64 = change.query_row("SELECT count(*) FROM task", [], |row| row.get(0))?;
            if u64::try_from(count).unwrap_or_default() > most { Err(QueueError::Full(most)) } else { Ok(()) }
        })
    }

    /// Claims the next task of `lane` for `worker`, and returns it; with an `id` only that task. Claims that have ended by `time` are taken
    /// back before.
    ///
    /// # Errors
    /// Fails when the database cannot be used.
    pub fn claim(
        &self,
        lane: Lane,
        id: Option<&str>,
        worker: &str,
        time: &BootTime,
        now: u64,
    ) -> Result<Option<TaskRecord>, QueueError> {
        self.transaction(|change| {
            let ended = "WHERE state = 'claimed' AND (boot <> ?1 OR wait_until < ?2)";
            for mut task in self.records(change, ended, params![time.boot, time.millis], usize::MAX)? {
                task.take_back(now);
                write(change, &task, Some(time))?;
            }
            let next = format!(
                "WHERE state = 'queued' AND (wait_until IS NULL OR boot <> ?1 OR wait_until <= ?2)
                 AND (?3 IS NULL OR id = ?3) AND {} ORDER BY priority, number",
                of_lane(lane)
            );
            let mut next = self.records(change, &next, params![time.boot, time.millis, id], 1)?;
            let Some(mut task) = next.pop() else { return Ok(None) };
            task.claim(worker, now);
            write(change, &task, Some(&time.after(self.lease)))?;
            Ok(Some(task))
        })
    }

    /// Extends the claim of an attempt from `time` on; returns whether the task is still its own.
    ///
    /// # Errors
    /// Fails when the database cannot be used.
    pub fn renew(&self, task: &TaskRecord, time: &BootTime) -> Result<bool, QueueError> {
        let (until, AttemptKey { task: number, attempt }) = (time.after(self.lease), task.newest_attempt());
        let changed = self.connection.borrow().execute(
            "UPDATE task SET boot = ?4, wait_until = ?5 WHERE number = ?1 AND state = 'claimed'
             AND record ->> 'attempt' = ?2 AND record ->> 'worker' = ?3",
            params![signed(number), attempt, task.worker, until.boot, until.millis],
        )?;
        Ok(changed == 1)
    }

    /// Changes tasks as `change` says, all or none; returns whether all were written. What waits does so from `time` on.
    ///
    /// # Errors
    /// Fails if one does not exist, when `change` fails, and when the database cannot be used.
    pub fn change_all(
        &self,
        ids: &[String],
        time: &BootTime,
        change: &dyn Fn(&mut TaskRecord) -> Result<Change, QueueError>,
    ) -> Result<bool, QueueError> {
        self.transaction(|transaction| {
            let mut all = true;
            for id in ids {
                let mut task = find(transaction, id)?;
                match change(&mut task)? {
                    Change::Keep => all = false,
                    Change::Write => write(transaction, &task, None)?,
                    Change::WriteAndWait(wait) => write(transaction, &task, Some(&time.after(wait)))?,
                }
            }
            Ok(all)
        })
    }

    /// Removes tasks that have ended, all or none.
    ///
    /// # Errors
    /// Fails if one does not exist, or has not ended.
    pub fn remove(&self, ids: &[String]) -> Result<(), QueueError> {
        self.transaction(|change| {
            for id in ids {
                find(change, id)?.check_removable()?;
                change.execute("DELETE FROM task WHERE id = ?1", [id])?;
            }
            Ok(())
        })
    }

    /// Returns the task with this id.
    ///
    /// # Errors
    /// Fails if there is none.
    pub fn get(&self, id: &str) -> Result<TaskRecord, QueueError> {
        find(&self.connection.borrow(), id)
    }

    /// Returns the states of tasks, in the order of `ids`.
    ///
    /// # Errors
    /// Fails if one does not exist.
    pub fn states(&self, ids: &[String]) -> Result<Vec<TaskState>, QueueError> {
        let connection = self.connection.borrow();
        let mut statement = connection.prepare("SELECT state FROM task WHERE id = ?1")?;
        let mut state = |id: &String| {
            let name: Option<String> = statement.query_row([id], |row| row.get(0)).optional()?;
            let name = name.ok_or_else(|| QueueError::Unknown(id.clone()))?;
            parse_state(&name)
        };
        ids.iter().map(&mut state).collect()
    }

    /// Returns the selected tasks, in the order of their submission, without the documents of their runs.
    ///
    /// # Errors
    /// Fails when the database cannot be used.
    pub fn select(&self, selection: Selection, time: &BootTime) -> Result<Vec<TaskRecord>, QueueError> {
        let connection = self.connection.borrow();
        match selection {
            Selection::All => self.records(&connection, "ORDER BY number", [], usize::MAX),
            Selection::InState(state) => {
                self.records(&connection, "WHERE state = ?1 ORDER BY number", [state.name()], usize::MAX)
            }
            Selection::Unsettled { until } => self.records(
                &connection,
                "WHERE is_settled = 0 AND changed_at <= ?3 AND (state IN ('done', 'failed', 'dead')
                 OR state = 'cancelled' AND record ->> 'attempt' > 0 AND (boot <> ?1 OR wait_until < ?2)) ORDER BY number",
                params![time.boot, time.millis, signed(until)],
                usize::MAX,
            ),
        }
    }

    /// Returns how many tasks of each priority are in each state.
    ///
    /// # Errors
    /// Fails when the database cannot be used.
    pub fn counts(&self) -> Result<Vec<(TaskState, Priority, u64)>, QueueError> {
        let connection = self.connection.borrow();
        let query = "SELECT state, priority, count(*) FROM task GROUP BY state, priority";
        let mut statement = connection.prepare(query)?;
        let mut rows = statement.query([])?;
        let mut counts = Vec::new();
        while let Some(row) = rows.next()? {
            let (state, priority): (String, u8) = (row.get(0)?, row.get(1)?);
            let priority = Priority::iter().nth(priority.into()).unwrap_or_default();
            let count = u64::try_from(row.get::<_, i64>(2)?).unwrap_or_default();
            counts.push((parse_state(&state)?, priority, count));
        }
        Ok(counts)
    }

    /// Returns up to `most` tasks; those that cannot be read are left out and noted.
    fn records<P: rusqlite::Params>(
        &self,
        connection: &Connection,
        condition: &str,
        values: P,
        most: usize,
    ) -> Result<Vec<TaskRecord>, QueueError> {
        let mut statement = connection.prepare(&format!("{COLUMNS} {condition}"))?;
        let mut rows = statement.query(values)?;
        let mut tasks = Vec::new();
        while tasks.len() < most
            && let Some(row) = rows.next()?
        {
            match record(row) {
                Ok(task) => tasks.push(task),
                Err(error) => self.unreadable.note(error.to_string()),
            }
        }
        Ok(tasks)
    }

    /// Checks whether a task of `lane` waits, or is claimed.
    ///
    /// # Errors
    /// Fails when the database cannot be used.
    pub fn has_open_tasks(&self, lane: Lane) -> Result<bool, QueueError> {
        let open = format!("WHERE state IN ('queued', 'claimed') AND {}", of_lane(lane));
        Ok(!self.records(&self.connection.borrow(), &open, [], 1)?.is_empty())
    }
}

/// Returns the condition for tasks of `lane`.
fn of_lane(lane: Lane) -> &'static str {
    match lane {
        Lane::Submitted => "record ->> '$.activation.kind' IS NULL",
        Lane::Hub(None) => "record ->> '$.activation.kind' IS NOT NULL",
        Lane::Hub(Some(ActivationKind::Notification)) => "record ->> '$.activation.kind' = 'notification'",
        Lane::Hub(Some(ActivationKind::Exploration)) => "record ->> '$.activation.kind' = 'exploration'",
    }
}

/// Creates the database at `path`, unless it exists. It gets its name when it is complete: to let a database write ahead to a log while
/// another process does so fails at once instead of waiting. The logs of a database that was removed would be read into the new one.
fn create(path: &Path, directory: &Path) -> Result<(), QueueError> {
    let failed = |error: std::io::Error| QueueError::Storage(format!("{}: {error}", path.display()));
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    // One process at a time: a log that another one has begun would be removed.
    let lock = File::open(directory).map_err(failed)?;
    lock.lock().map_err(failed)?;
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    for log in log_paths(path) {
        match rustix::fs::unlink(&log) {
            Err(error) if error != Errno::NOENT => return Err(failed(error.into())),
            _ => {}
        }
    }
    let file = NamedTempFile::new_in(directory).map_err(failed)?;
    let connection = Connection::open(file.path())?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.execute_batch(TABLES)?;
    connection.pragma_update(None, "user_version", VERSION)?;
    connection.close().map_err(|(_, error)| error)?;
    file.persist_noclobber(path).map(drop).map_err(|error| failed(error.error))
}

/// Returns the paths of the files that belong to the database at `path`.
fn log_paths(path: &Path) -> [PathBuf; 2] {
    ["-wal", "-shm"].map(|end| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        name.into()
    })
}

fn find(connection: &Connection, id: &str) -> Result<TaskRecord, QueueError> {
    let mut statement = connection.prepare(&format!("{COLUMNS} WHERE id = ?1"))?;
    let mut rows = statement.query([id])?;
    rows.next()?.map_or_else(|| Err(QueueError::Unknown(id.to_owned())), record)
}

/// Start of a query for rows that `record` reads.
const COLUMNS: &str = "SELECT number, record, result, id FROM task";

fn record(row: &Row<'_>) -> Result<TaskRecord, QueueError> {
    let id: String = row.get(3)?;
    let unreadable = |error: serde_json::Error| QueueError::Unreadable(id.clone(), error.to_string());
    let (record, result) = (row.get::<_, String>(1)?, row.get::<_, Option<String>>(2)?);
    let record: TaskRecord = serde_json::from_str(&record).map_err(unreadable)?;
    let result = result.map(|text| serde_json::from_str(&text)).transpose().map_err(unreadable)?;
    let number = u64::try_from(row.get::<_, i64>(0)?).unwrap_or_default();
    Ok(TaskRecord { number, result, ..record })
}

/// Writes a record. Nobody claims or takes back its task before `until`; `None` leaves that time as it is.
fn write(connection: &Connection, task: &TaskRecord, until: Option<&BootTime>) -> Result<(), QueueError> {
    let result = task.result.as_ref().map(serde_json::to_string).transpose()?;
    let record = serde_json::to_string(&TaskRecord { result: None, ..task.clone() })?;
    connection
        .prepare(
            "UPDATE task SET state = ?2, boot = coalesce(?3, boot), wait_until = coalesce(?4, wait_until), is_settled = ?5, changed_at = ?6, record = ?7, result = ?8
             WHERE number = ?1",
        )?
        .execute(params![
            signed(task.number),
            task.state.name(),
            until.map(|until| &until.boot),
            until.map(|until| until.millis),
            task.settled,
            signed(task.changed_at),
            record,
            result
        ])?;
    Ok(())
}

fn parse_state(name: &str) -> Result<TaskState, QueueError> {
    name.parse().map_err(|_| QueueError::Storage(format!("unknown state {name}")))
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
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

#[cfg(test)]
#[path = "sqlite_tests.rs"]
mod tests;
