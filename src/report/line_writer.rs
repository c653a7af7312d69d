//! Writes lines to standard output in a thread, so that a slow reader does not delay the run.

use agent_terminal::{PrintOutcome, Terminal};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

/// Maximum queued bytes before whole events are dropped: some thousand steps.
pub const MAX_WAITING: usize = 64 << 20;

/// Queues lines for standard output.
pub struct LineWriter {
    lines: Sender<Option<String>>,
    waiting: Arc<AtomicUsize>,
}

/// Guard of a [`LineWriter`]; when it is dropped, all queued lines are written first.
pub struct LineWriterGuard {
    lines: Sender<Option<String>>,
    writer: Option<JoinHandle<()>>,
}

impl LineWriter {
    /// Starts the thread.
    pub fn start(terminal: Arc<Terminal>) -> (Self, LineWriterGuard) {
        let (lines, to_write) = mpsc::channel::<Option<String>>();
        let waiting = Arc::new(AtomicUsize::new(0));
        let left = Arc::clone(&waiting);
        let writer = std::thread::spawn(move || {
            while let Ok(Some(line)) = to_write.recv() {
                // The reader is gone or the write failed; the sender learns of it with the next line.
                if !matches!(terminal.print(&line), Ok(PrintOutcome::Written)) {
                    return;
                }
                left.fetch_sub(line.len(), Ordering::Relaxed);
            }
        });
        let end = LineWriterGuard { lines: lines.clone(), writer: Some(writer) };
        (Self { lines, waiting }, end)
    }

    /// Queues a line, which contains its line end.
    ///
    /// # Errors
    /// When the reader has gone, or an earlier line could not be written.
    pub fn send(&self, line: String) -> io::Result<()> {
        self.waiting.fetch_add(line.len(), Ordering::Relaxed);
        self.lines.send(Some(line)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Returns the number of queued bytes.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

impl Drop for LineWriterGuard {
    fn drop(&mut self) {
        // Fails if the writer has stopped, which is fine.
        let _ = self.lines.send(None);
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}
