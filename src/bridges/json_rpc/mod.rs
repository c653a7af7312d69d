//! JSON-RPC 2.0 as lines on standard input and output: reads requests of a client, performs their work and sends responses.

pub mod message;
pub mod outbox;
pub mod session_page;

use crate::client_input::{Input, end_runs};
use crate::client_lines::{Line, LineReader, MAX_LINE_BYTES};
use crate::client_output::FLUSH_TIME;
use agent_client_protocol_schema::v1::{Error, RequestId};
use agent_core::failure::FailureKind;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_runtime::interrupt::SignalHandlers;
use agent_terminal::Style;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use message::{Malformed, Message, OtherFields, failed, invalid_params, line_too_long};
use outbox::Outbox;
use serde_json::Value;
use std::rc::Rc;
use tokio_util::sync::CancellationToken;

/// Work that a request starts.
pub type Work<'a> = LocalBoxFuture<'a, ()>;

/// What a request leads to.
pub enum Reply<'a> {
    /// The result.
    Result(Value),
    /// The result, and work after it.
    Begun(Value, Work<'a>),
    /// Work that responds itself.
    Work(Work<'a>),
}

/// The methods of a protocol.
pub trait Protocol<'a> {
    /// What becomes of fields of its messages that JSON-RPC does not name.
    const OTHER_FIELDS: OtherFields;

    /// Handles the request `id`.
    ///
    /// # Errors
    /// With the error that the client receives.
    fn requested(&mut self, id: &RequestId, method: &str, params: Value) -> Result<Reply<'a>, Error>;

    /// Handles a notification; one that is unknown has no effect.
    fn notified(&mut self, method: &str, params: Value);
}

/// Serves the protocol that `new` creates, until the input ends, a signal arrives or the client does not read; then all work is
/// interrupted. `new` receives the way to the client and what interrupts all work.
///
/// # Errors
/// Fails when the signal handlers cannot be installed.
pub fn serve<'a, P: Protocol<'a>>(
    app: &App,
    new: impl FnOnce(Rc<Outbox>, CancellationToken) -> P,
) -> AppResult<()> {
    app.block_on(async {
        let interrupt = app.interrupt()?.arm(SignalHandlers::silent());
        let input = Input { stdin: tokio::io::stdin(), ended: interrupt.clone() };
        let mut lines = LineReader::new(input, MAX_LINE_BYTES);
        let (outbox, writer) = Outbox::start(interrupt.clone());
        let mut protocol = new(Rc::clone(&outbox), interrupt.clone());
        let mut running = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                () = interrupt.cancelled() => break,
                Some(()) = running.next(), if !running.is_empty() => {}
                line = lines.next() => match line {
                    Some(Line::Complete(line)) => running.extend(receive(&mut protocol, &outbox, &line)),
                    Some(Line::TooLong) => {
                        let Malformed { id, error } = line_too_long();
                        outbox.respond(&id, Err(error));
                    }
                    None => break,
                },
            }
        }
        end_runs(running, &interrupt).await;
        if outbox.output.is_full() {
            app.notify(Style::Warning, messages::CLIENT_DOES_NOT_READ);
        }
        // The writer ends when no outbox is left.
        drop((protocol, outbox));
        let _written = tokio::time::timeout(FLUSH_TIME, writer).await;
        Ok(())
    })
}

/// Returns the error for what cannot be done: wrong parameters for wrong use.
pub fn error_for(app: &App, error: &AppError) -> Error {
    let message = app.redact(&error.to_string());
    if error.kind == FailureKind::Usage { invalid_params(&message) } else { failed(&message) }
}

/// Handles a line; returns the work that it starts.
fn receive<'a, P: Protocol<'a>>(protocol: &mut P, outbox: &Outbox, line: &[u8]) -> Option<Work<'a>> {
    if line.trim_ascii().is_empty() {
        return None;
    }
    match Message::parse(line, P::OTHER_FIELDS) {
        Err(malformed) => {
            let Malformed { id, error } = *malformed;
            outbox.respond(&id, Err(error));
        }
        Ok(Message::Response { id, result }) => outbox.resolve(&id, result),
        Ok(Message::Notification { method, params }) => protocol.notified(&method, params),
        Ok(Message::Request { id, method, params }) => match protocol.requested(&id, &method, params) {
            Ok(Reply::Result(result)) => outbox.respond(&id, Ok(result)),
            Ok(Reply::Begun(result, work)) => {
                outbox.respond(&id, Ok(result));
                return Some(work);
            }
            Ok(Reply::Work(work)) => return Some(work),
            Err(error) => outbox.respond(&id, Err(error)),
        },
    }
    None
}
