//! What must have happened before commands begin, while everything for them is got ready.

use futures_util::FutureExt;
use futures_util::future::Shared;
use std::io;
use tokio::sync::oneshot;

/// Where commands wait until they may begin; by default nothing holds them up. A clone is the same one.
#[derive(Debug, Clone, Default)]
pub struct Barrier(Option<Shared<oneshot::Receiver<()>>>);

/// Lifts a barrier; dropped before, the barrier stays down for good.
#[derive(Debug)]
pub struct BarrierRelease(oneshot::Sender<()>);

impl Barrier {
    /// A barrier that is down, and what lifts it.
    pub fn new() -> (BarrierRelease, Self) {
        let (lift, lifted) = oneshot::channel();
        (BarrierRelease(lift), Self(Some(lifted.shared())))
    }

    /// Waits until it is lifted.
    ///
    /// # Errors
    /// When nobody will lift it any more.
    pub async fn wait(&self) -> io::Result<()> {
        let Some(lifted) = &self.0 else { return Ok(()) };
        lifted.clone().await.map_err(|_| io::Error::other("what had to come before has failed"))
    }
}

impl BarrierRelease {
    /// Lifts the barrier.
    pub fn release(self) {
        let _nobody_waits = self.0.send(());
    }
}
