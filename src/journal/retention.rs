//! How long sessions are kept.

use crate::journal::store::{SessionError, Store};
use std::time::{Duration, UNIX_EPOCH};

/// Seconds of a day.
const DAY: u64 = 86_400;

/// What a cleanup did.
pub struct Cleaned {
    /// Sessions that are gone.
    pub removed: usize,
    /// What their checkpoints are called, which are there still.
    pub checkpoints: Vec<String>,
    /// Why others are not.
    pub kept: Vec<SessionError>,
}

/// Removes the sessions in which nothing has happened for `days`; `now` is the time since the Unix epoch.
///
/// # Errors
/// When they cannot be listed.
pub fn clean(store: &Store, days: u32, now: Duration) -> Result<Cleaned, SessionError> {
    store.sweep();
    let mut cleaned = Cleaned { removed: 0, checkpoints: Vec::new(), kept: Vec::new() };
    for id in older(store, days, now)? {
        match store.remove(&id) {
            Ok(checkpoints) => {
                cleaned.removed = cleaned.removed.saturating_add(1);
                cleaned.checkpoints.extend(checkpoints);
            }
            Err(error) => cleaned.kept.push(error),
        }
    }
    Ok(cleaned)
}

/// The sessions in which nothing has happened for `days`, oldest first.
///
/// # Errors
/// When they cannot be listed.
pub fn older(store: &Store, days: u32, now: Duration) -> Result<Vec<String>, SessionError> {
    let age = Duration::from_secs(u64::from(days).saturating_mul(DAY));
    store.older_than(UNIX_EPOCH + now.saturating_sub(age))
}
