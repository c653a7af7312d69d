//! Sends messages to the client: responses, notifications, and requests whose responses it passes on.

use crate::report::json;
use agent_client_protocol_schema::v1::{Error, RequestId};
use serde::Serialize;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::AsyncWriteExt;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Bytes that wait for a client that does not read; above it the client counts as gone.
const MAX_QUEUED_BYTES: usize = 64 << 20;

/// What a client answers to a request: the result, or the error that it reports.
pub type Answer = Result<Value, Value>;

/// A notification on the wire.
#[derive(Serialize)]
struct Envelope<'a, T> {
    jsonrpc: &'static str,
    #[serde(flatten)]
    notification: &'a T,
}

/// The way to the client.
pub struct Outbox {
    lines: mpsc::UnboundedSender<String>,
    queued: Arc<AtomicUsize>,
    waiting: RefCell<HashMap<i64, oneshot::Sender<Answer>>>,
    last_id: Cell<i64>,
    is_full: Cell<bool>,
    ended: CancellationToken,
    has_room: Arc<Notify>,
}

impl Outbox {
    /// Creates the way to the client on standard output. `ended` is cancelled when the client does not read. The task ends
    /// when everything is written and the outbox is dropped.
    pub fn start(ended: CancellationToken) -> (Rc<Self>, JoinHandle<()>) {
        let (lines, receiver) = mpsc::unbounded_channel();
        let queued = Arc::new(AtomicUsize::new(0));
        let has_room = Arc::new(Notify::new());
        let writer = tokio::spawn(write(receiver, Arc::clone(&queued), Arc::clone(&has_room), ended.clone()));
        let (waiting, last_id, is_full) = (RefCell::default(), Cell::new(0), Cell::new(false));
        (Rc::new(Self { lines, queued, waiting, last_id, is_full, ended, has_room }), writer)
    }

    /// Returns the number of bytes that wait for the client.
    pub fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    /// Checks whether the client counts as gone because it does not read.
    pub fn is_full(&self) -> bool {
        self.is_full.get()
    }

    /// Waits until at most `bytes` wait for the client.
    pub async fn drained_to(&self, bytes: usize) {
        while self.queued() > bytes {
            self.has_room.notified().await;
        }
    }

    fn send(&self, message: &impl Serialize) {
        // A JSON value can always be serialized.
        let Ok(line) = json::line(message) else { return };
        let bytes = line.len();
        if self.queued.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) > MAX_QUEUED_BYTES {
            self.is_full.set(true);
            self.ended.cancel();
        } else {
            // The writer ends with the client only.
            let _sent = self.lines.send(line);
        }
    }

    /// Sends the response to request `id`.
    pub fn respond(&self, id: &RequestId, response: Result<Value, Error>) {
        self.send(&match response {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
        });
    }

    /// Sends a notification, which is serialized as an object with `method` and `params`.
    pub fn notify(&self, notification: &impl Serialize) {
        self.send(&Envelope { jsonrpc: "2.0", notification });
    }

    /// Sends a request. The receiver gets the answer; without one, it fails.
    pub fn request(&self, method: &str, params: &impl Serialize) -> oneshot::Receiver<Answer> {
        let id = self.last_id.get().wrapping_add(1);
        self.last_id.set(id);
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.waiting.borrow_mut();
        waiting.retain(|_, sender| !sender.is_closed());
        waiting.insert(id, sender);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        receiver
    }

    /// Delivers the answer to request `id`; an answer without a waiting request is dropped.
    pub fn resolve(&self, id: &RequestId, answer: Answer) {
        let RequestId::Number(id) = id else { return };
        if let Some(sender) = self.waiting.borrow_mut().remove(id) {
            let _received = sender.send(answer);
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
