//! Sends messages to the client: responses, notifications, and requests whose responses it passes on.

use crate::client_output::ClientOutput;
use agent_client_protocol_schema::v1::{Error, RequestId};
use serde::Serialize;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

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
    /// The lines to the client.
    pub output: ClientOutput,
    waiting: RefCell<HashMap<i64, oneshot::Sender<Answer>>>,
    last_id: Cell<i64>,
}

impl Outbox {
    /// Creates the way to the client on standard output. `ended` is cancelled when the client does not read. The task ends
    /// when everything is written and the outbox is dropped.
    pub fn start(ended: CancellationToken) -> (Rc<Self>, JoinHandle<()>) {
        let (output, writer) = ClientOutput::start(ended);
        let (waiting, last_id) = (RefCell::default(), Cell::new(0));
        (Rc::new(Self { output, waiting, last_id }), writer)
    }

    /// Sends the response to request `id`.
    pub fn respond(&self, id: &RequestId, response: Result<Value, Error>) {
        self.output.send(&match response {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
        });
    }

    /// Sends a notification, which is serialized as an object with `method` and `params`.
    pub fn notify(&self, notification: &impl Serialize) {
        self.output.send(&Envelope { jsonrpc: "2.0", notification });
    }

    /// Sends a request. The receiver gets the answer; without one, it fails.
    pub fn request(&self, method: &str, params: &impl Serialize) -> oneshot::Receiver<Answer> {
        let id = self.last_id.get().wrapping_add(1);
        self.last_id.set(id);
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.waiting.borrow_mut();
        waiting.retain(|_, sender| !sender.is_closed());
        waiting.insert(id, sender);
        self.output.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
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
