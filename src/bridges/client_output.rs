//! Standard output to a program that drives runs: lines of JSON, written while the runs go on.

use agent_report::json;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Bytes that wait for a client that does not read; above it the client counts as gone.
const MAX_QUEUED_BYTES: usize = 64 << 20;
/// Time to write what was sent last to a client that has left.
pub const FLUSH_TIME: Duration = Duration::from_millis(50);

/// Writes lines to a client.
pub struct ClientOutput {
    lines: mpsc::UnboundedSender<String>,
    queued: Arc<AtomicUsize>,
    is_full: AtomicBool,
    ended: CancellationToken,
    has_room: Arc<Notify>,
}

impl ClientOutput {
    /// Starts to write. `ended` is cancelled when the client does not read. The task ends when everything is written and the
    /// value is dropped.
    pub fn start(ended: CancellationToken) -> (Self, JoinHandle<()>) {
        let (lines, receiver) = mpsc::unbounded_channel();
        let queued = Arc::new(AtomicUsize::new(0));
        let has_room = Arc::new(Notify::new());
        let writer = tokio::spawn(write(receiver, Arc::clone(&queued), Arc::clone(&has_room), ended.clone()));
        (Self { lines, queued, is_full: AtomicBool::new(false), ended, has_room }, writer)
    }

    /// Returns the number of bytes that wait for the client.
    pub fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    /// Checks whether the client counts as gone because it does not read.
    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Waits until at most `bytes` wait for the client.
    pub async fn drained_to(&self, bytes: usize) {
        while self.queued() > bytes {
            self.has_room.notified().await;
        }
    }

    /// Queues a message.
    pub fn send(&self, message: &impl Serialize) {
        // A JSON value can always be serialized.
        let Ok(line) = json::line(message) else { return };
        let bytes = line.len();
        if self.queued.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) > MAX_QUEUED_BYTES {
            self.is_full.store(true, Ordering::Relaxed);
            self.ended.cancel();
        } else {
            // The writer ends with the client only.
            let _sent = self.lines.send(line);
        }
    }
}

async fn write(
    mut lines: mpsc::UnboundedReceiver<String>,
    queued: Arc<AtomicUsize>,
    has_room: Arc<Notify>,
    ended: CancellationToken,
) {
    let mut output = tokio::io::stdout();
    while let Some(line) = lines.recv().await {
        let written = async {
            output.write_all(line.as_bytes()).await?;
            output.flush().await
        };
        if written.await.is_err() {
            return ended.cancel();
        }
        queued.fetch_sub(line.len(), Ordering::Relaxed);
        has_room.notify_waiters();
    }
}
