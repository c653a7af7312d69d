//! Sends messages and control requests to the client.

use super::args::ClaudeOutput;
use crate::client_output::ClientOutput;
use agent_runtime::clock::Clock;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The answer of a client to a control request: its response, or why there is none.
pub type Answer = Result<Value, String>;

/// The way to the client.
pub struct Outbox {
    output: ClientOutput,
    format: ClaudeOutput,
    clock: Rc<Clock>,
    /// The session that messages name.
    pub session_id: RefCell<String>,
    waiting: RefCell<HashMap<String, oneshot::Sender<Answer>>>,
    /// Whether the client can still answer.
    is_open: Cell<bool>,
}

impl Outbox {
    /// Creates the way to a client. `ended` is cancelled when it does not read.
    pub fn start(
        format: ClaudeOutput,
        clock: &Rc<Clock>,
        ended: CancellationToken,
    ) -> (Rc<Self>, JoinHandle<()>) {
        let (output, writer) = ClientOutput::start(ended);
        let outbox = Self {
            output,
            format,
            clock: Rc::clone(clock),
            session_id: RefCell::default(),
            waiting: RefCell::default(),
            is_open: Cell::new(format == ClaudeOutput::StreamJson),
        };
        (Rc::new(outbox), writer)
    }

    /// Sends a message of the conversation; of the document of a single run, only the result is written.
    pub fn message(&self, mut message: Value) {
        let is_shown = match self.format {
            ClaudeOutput::StreamJson => true,
            ClaudeOutput::Json => message["type"] == "result",
            ClaudeOutput::Text => false,
        };
        if is_shown {
            message["uuid"] = self.clock.uuid().into();
            message["session_id"] = self.session_id.borrow().as_str().into();
            self.output.send(&message);
        }
    }

    /// Checks whether only the answer is written.
    pub fn is_text(&self) -> bool {
        self.format == ClaudeOutput::Text
    }

    /// Responds to the control request `id`.
    pub fn respond(&self, id: &str, response: Result<Value, String>) {
        let response = match response {
            Ok(response) => json!({"subtype": "success", "request_id": id, "response": response}),
            Err(error) => json!({"subtype": "error", "request_id": id, "error": error}),
        };
        self.output.send(&json!({"type": "control_response", "response": response}));
    }

    /// Sends a control request and waits for its answer. Dropped before, it withdraws the request.
    pub async fn request(&self, request: Value) -> Answer {
        if !self.is_open.get() {
            return Err("the client has closed standard input".to_owned());
        }
        let id = self.clock.short_id();
        let (sender, receiver) = oneshot::channel();
        self.waiting.borrow_mut().insert(id.clone(), sender);
        self.output.send(&json!({"type": "control_request", "request_id": id, "request": request}));
        let pending = Pending { outbox: self, id };
        let answer = receiver.await;
        drop(pending);
        answer.unwrap_or_else(|_| Err("the client has closed standard input".to_owned()))
    }

    /// Delivers an answer; one without a waiting request is dropped.
    pub fn resolve(&self, id: &str, answer: Answer) {
        if let Some(sender) = self.waiting.borrow_mut().remove(id) {
            let _received = sender.send(answer);
        }
    }

    /// Ends all waiting requests: the client has closed its input.
    pub fn close(&self) {
        self.is_open.set(false);
        self.waiting.borrow_mut().clear();
    }
}

/// A control request whose answer is awaited.
struct Pending<'a> {
    outbox: &'a Outbox,
    id: String,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if self.outbox.waiting.borrow_mut().remove(&self.id).is_some() {
            self.outbox.output.send(&json!({"type": "control_cancel_request", "request_id": self.id}));
        }
    }
}
