//! Values that all workers of a queue share, besides the tasks: counts of the agents of a Hub, and who feeds the queue.

use crate::fleet::boot_clock::BootTime;
use crate::fleet::error::QueueError;
use crate::fleet::queue::Queue;
use rusqlite::{OptionalExtension, Transaction};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// Longest time for which a process is the leader without renewing that.
const MAX_LEADERSHIP: Duration = Duration::from_secs(30);

impl Queue {
    /// Changes the value `key`, which is the default one if it does not exist, and returns what `change` returns. It is written if it is
    /// different then. `change` may be called several times: no other change comes between reading and writing.
    ///
    /// # Errors
    /// Fails when the store cannot be used, or the value cannot be read.
    pub async fn change_value<V, T>(
        &self,
        key: &str,
        mut change: impl FnMut(&mut V) -> T,
    ) -> Result<T, QueueError>
    where
        V: Serialize + DeserializeOwned + Default,
    {
        let mut changed = |text: Option<&str>| -> Result<(T, Option<String>), QueueError> {
            let unreadable =
                |error: serde_json::Error| QueueError::Unreadable(key.to_owned(), error.to_string());
            let mut value =
                text.map_or_else(|| Ok(V::default()), |text| serde_json::from_str(text).map_err(unreadable))?;
            let done = change(&mut value);
            let new = serde_json::to_string(&value)?;
            Ok((done, (text != Some(new.as_str())).then_some(new)))
        };
        match self {
            Self::Sqlite(store) => store.transaction(|transaction| {
                let (done, new) = changed(read(transaction, key)?.as_deref())?;
                new.map_or(Ok(()), |new| write(transaction, key, &new))?;
                Ok(done)
            }),
            Self::Nats(store) => loop {
                let known = store.value(key).await?;
                let text = known.as_ref().map(|(text, _)| text.as_str());
                let (done, new) = changed(text)?;
                let Some(new) = new else { return Ok(done) };
                if store.write_value(key, new, known.as_ref().map(|(_, revision)| *revision)).await? {
                    return Ok(done);
                }
            },
        }
    }

    /// Makes this process, whose name is `name`, the leader, or renews that; returns whether it is. Another one can be the leader when this
    /// has not been called for the time of a lease, at most 30 seconds on one machine.
    ///
    /// # Errors
    /// Fails when the store cannot be used.
    pub async fn lead(&self, name: &str) -> Result<bool, QueueError> {
        if let Self::Nats(store) = self {
            return store.lead(name).await;
        }
        let now = BootTime::now();
        let until = now.after(self.lease().min(MAX_LEADERSHIP));
        self.change_value(LEADER, |leader: &mut Leader| {
            let is_free = leader.boot != now.boot || leader.until < now.millis;
            let leads = is_free || leader.name == name;
            if leads {
                *leader = Leader { name: name.to_owned(), boot: until.boot.clone(), until: until.millis };
            }
            leads
        })
        .await
    }

    /// Lets another process be the leader, if this one is.
    ///
    /// # Errors
    /// Fails when the store cannot be used.
    pub async fn resign(&self, name: &str) -> Result<(), QueueError> {
        if let Self::Nats(store) = self {
            return store.resign(name).await;
        }
        let resign = |leader: &mut Leader| {
            if leader.name == name {
                *leader = Leader::default();
            }
        };
        self.change_value(LEADER, resign).await
    }
}

/// The value of the leader in a database.
const LEADER: &str = "leader";

/// The process that feeds the queue.
#[derive(Default, Serialize, serde::Deserialize)]
struct Leader {
    name: String,
    boot: String,
    /// Milliseconds since the boot.
    until: i64,
}

/// The table of the values.
const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS shared_value (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT";

fn read(transaction: &Transaction<'_>, key: &str) -> Result<Option<String>, QueueError> {
    transaction.execute(TABLE, [])?;
    let query = "SELECT value FROM shared_value WHERE key = ?1";
    Ok(transaction.query_row(query, [key], |row| row.get(0)).optional()?)
}

fn write(transaction: &Transaction<'_>, key: &str, value: &str) -> Result<(), QueueError> {
    let change = "INSERT INTO shared_value VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2";
    Ok(transaction.execute(change, [key, value]).map(drop)?)
}
