//! Barrier that delays the start of commands until preparations are complete.

use futures_util::FutureExt;
use futures_util::future::Shared;
use std::io;
use tokio::sync::oneshot;

/// Delays the start of commands until it is lifted. The default barrier is already lifted. Clones share one state.
#[derive(Debug, Clone, Default)]
pub struct Barrier(Option<Shared<oneshot::Receiver<()>>>);

/// Lifts a barrier. Dropping it instead makes every wait fail.
#[derive(Debug)]
pub struct BarrierRelease(oneshot::Sender<()>);

impl Barrier {
    /// Returns a closed barrier and its release.
    pub fn new() -> (BarrierRelease, Self) {
        let (lift, lifted) = oneshot::channel();
        (BarrierRelease(lift), Self(Some(lifted.shared())))
    }

    /// Waits until the barrier is lifted.
    ///
    /// # Errors
    /// Fails if the release was dropped.
    pub async fn wait(&self) -> io::Result<()> {
        let Some(lifted) = &self.0 else { return Ok(()) };
        lifted.clone().await.map_err(|_| io::Error::other("the preparation for commands failed"))
    }
}

impl BarrierRelease {
    /// Lifts the barrier.
    pub fn release(self) {
        let _no_waiter = self.0.send(());
    }
}
