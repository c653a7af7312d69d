//! Removes sessions that are older than the retention period.

use crate::session_store::{SessionError, SessionStore};
use std::time::{Duration, UNIX_EPOCH};

/// Seconds in a day.
const SECONDS_PER_DAY: u64 = 86_400;

/// Result of a cleanup.
pub struct CleanupReport {
    /// Number of sessions that were removed.
    pub removed: usize,
    /// Refs of their checkpoints, which still exist.
    pub checkpoints: Vec<String>,
    /// Why other sessions were not removed.
    pub failures: Vec<SessionError>,
}

/// Removes the sessions without activity for `days`; `now` is the time since the Unix epoch.
///
/// # Errors
/// When the sessions cannot be listed.
pub fn remove_expired(store: &SessionStore, days: u32, now: Duration) -> Result<CleanupReport, SessionError> {
    store.remove_leftovers();
    let mut cleaned = CleanupReport { removed: 0, checkpoints: Vec::new(), failures: Vec::new() };
    for id in expired_sessions(store, days, now)? {
        match store.remove(&id) {
            Ok(checkpoints) => {
                cleaned.removed = cleaned.removed.saturating_add(1);
                cleaned.checkpoints.extend(checkpoints);
            }
            Err(error) => cleaned.failures.push(error),
        }
    }
    Ok(cleaned)
}

/// Returns the sessions without activity for `days`, oldest first.
///
/// # Errors
/// When the sessions cannot be listed.
pub fn expired_sessions(store: &SessionStore, days: u32, now: Duration) -> Result<Vec<String>, SessionError> {
    let age = Duration::from_secs(u64::from(days).saturating_mul(SECONDS_PER_DAY));
    store.inactive_since(UNIX_EPOCH + now.saturating_sub(age))
}
