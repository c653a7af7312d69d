//! Standard output to a program that drives runs: lines of JSON, written while the runs go on.

use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Bytes that wait for a client that does not read; above it the client counts as gone.
const MAX_QUEUED_BYTES: usize = 64 << 20;

/// Writes lines to a client.
pub struct ClientOutput {
    lines: mpsc::UnboundedSender<String>,
    queued: Arc<AtomicUsize>,
    ended: CancellationToken,
}

impl ClientOutput {
    /// Starts to write. `ended` is cancelled when the client does not read. The task ends when everything is written and the
    /// value is dropped.
    pub fn start(ended: CancellationToken) -> (Self, JoinHandle<()>) {
        let (lines, receiver) = mpsc::unbounded_channel();
        let queued = Arc::new(AtomicUsize::new(0));
        let writer = tokio::spawn(write(receiver, Arc::clone(&queued), ended.clone()));
        (Self { lines, queued, ended }, writer)
    }

    /// Queues a message.
    pub fn send(&self, message: &Value) {
        let line = format!("{message}\n");
        let bytes = line.len();
        if self.queued.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) > MAX_QUEUED_BYTES {
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
    }
}
