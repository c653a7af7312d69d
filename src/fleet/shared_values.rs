//! Values that all workers of a queue share, besides the tasks: the states of the agents of a Hub, the money of a day, and the leader.

use crate::error::QueueError;
use crate::queue::Queue;
use rusqlite::{OptionalExtension, Transaction};
use serde::Serialize;
use serde::de::DeserializeOwned;

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
