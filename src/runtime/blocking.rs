//! Runs blocking work on a thread of its own, with a time limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Sets a flag when dropped, so that abandoned work ends.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` on a blocking thread. Its stop flag is set after `limit`, on cancellation, and when this future is dropped.
///
/// # Errors
/// When the work panicked.
pub async fn run_blocking<T: Send + 'static>(
    limit: Duration,
    cancel: &CancellationToken,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> Result<T, tokio::task::JoinError> {
    let stop = StopOnDrop(Arc::new(AtomicBool::new(false)));
    let flag = Arc::clone(&stop.0);
    let mut task = tokio::task::spawn_blocking(move || work(&flag));
    let done = tokio::select! {
        done = &mut task => Some(done),
        () = cancel.cancelled() => None,
        () = tokio::time::sleep(limit) => None,
    };
    if let Some(done) = done {
        return done;
    }
    stop.0.store(true, Ordering::Relaxed);
    task.await
}
