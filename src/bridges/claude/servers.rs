//! MCP servers that live in the client: their messages travel in control requests (`mcp_message`).

use super::outbox::Outbox;
use agent_mcp::definition::is_unambiguous;
use agent_mcp::hosted::{HostedMessage, HostedServer};
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::HashMap;
use std::convert::Infallible;
use tokio::sync::mpsc;

/// Maximum characters of a server's name; with them, no name of a tool is cut inside of the server's part.
const MAX_NAME_CHARS: usize = 32;
/// Maximum number of servers.
const MAX_SERVERS: usize = 64;
/// Code of JSON-RPC for a failure of the receiver.
const INTERNAL_ERROR: i64 = -32603;

/// The connections to the servers of the client.
#[derive(Default)]
pub struct ClientServers {
    /// Their names.
    names: RefCell<Vec<String>>,
    /// Take what a server sends, by its name.
    connected: RefCell<HashMap<String, mpsc::Sender<Value>>>,
}

impl ClientServers {
    /// Takes over the names of `initialize`.
    ///
    /// # Errors
    /// For names that tools cannot contain.
    pub fn set(&self, names: &Value) -> Result<(), String> {
        let list = names.as_array().map(Vec::as_slice).unwrap_or_default();
        let plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        let is_valid = |name: &&str| {
            !name.is_empty() && name.len() <= MAX_NAME_CHARS && plain(name) && is_unambiguous(name)
        };
        let valid: Vec<String> =
            list.iter().filter_map(Value::as_str).filter(is_valid).map(str::to_owned).collect();
        if valid.len() != list.len() || valid.len() > MAX_SERVERS {
            return Err(format!(
                "names of MCP servers have 1 to {MAX_NAME_CHARS} letters, digits, `-` and `_`, without `__` and not `_` last; there are at most {MAX_SERVERS}"
            ));
        }
        self.names.replace(valid);
        Ok(())
    }

    /// Returns the names.
    pub fn names(&self) -> Vec<String> {
        self.names.borrow().clone()
    }

    /// Returns the servers for a run, whose messages arrive at `messages`.
    pub fn for_run(&self, messages: &mpsc::UnboundedSender<HostedMessage>) -> Vec<HostedServer> {
        let server = |name: &String| HostedServer { name: name.clone(), messages: messages.clone() };
        self.names.borrow().iter().map(server).collect()
    }

    /// Delivers what a server sends by itself.
    ///
    /// # Errors
    /// When it is not connected, or has sent too much.
    pub fn deliver(&self, server: &str, message: Value) -> Result<(), String> {
        let connected = self.connected.borrow();
        let replies = connected.get(server).ok_or_else(|| "this server is not connected".to_owned())?;
        replies.try_send(message).map_err(|_| "this server has sent too many messages".to_owned())
    }

    /// Passes the messages of a run on, until it is dropped.
    pub async fn pass_on(
        &self,
        outbox: &Outbox,
        mut messages: mpsc::UnboundedReceiver<HostedMessage>,
    ) -> Infallible {
        let mut open = FuturesUnordered::new();
        loop {
            tokio::select! {
                Some(message) = messages.recv() => {
                    self.connected.borrow_mut().insert(message.server.clone(), message.replies.clone());
                    open.push(pass(outbox, message));
                }
                Some(()) = open.next(), if !open.is_empty() => {}
                else => std::future::pending().await,
            }
        }
    }
}

/// Sends a message and returns the answer to it, if it is a request.
async fn pass(outbox: &Outbox, message: HostedMessage) {
    let HostedMessage { server, message, replies } = message;
    let id = message.get("id").filter(|_| message.get("method").is_some()).cloned();
    let answer =
        outbox.request(json!({"subtype": "mcp_message", "server_name": server, "message": message})).await;
    let Some(id) = id else { return };
    let reply = match answer.and_then(|answer| response_to(&id, answer)) {
        Ok(reply) => reply,
        Err(why) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": INTERNAL_ERROR, "message": why}}),
    };
    // The connection has ended meanwhile.
    let _sent = replies.send(reply).await;
}

/// Returns the response to the message `id` in the answer of the client.
fn response_to(id: &Value, mut answer: Value) -> Result<Value, String> {
    let response = answer["mcp_response"].take();
    let has_outcome = response.get("result").is_some() != response.get("error").is_some();
    let is_response = response.get("id") == Some(id) && has_outcome;
    is_response.then_some(response).ok_or_else(|| "the client gave no response of MCP".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_response_to_the_message_is_an_error() {
        let of = |response: Value| response_to(&json!(1), json!({ "mcp_response": response }));
        assert!(of(json!({"jsonrpc": "2.0", "id": 1, "result": {}})).is_ok());
        for wrong in [json!(null), json!({}), json!({"id": 2, "result": {}}), json!({"id": 1}), json!("x")] {
            assert!(of(wrong.clone()).is_err(), "{wrong}");
        }
    }

    // Fault E5: also clients name servers.
    #[test]
    fn names_that_tools_cannot_contain_are_refused() {
        let servers = ClientServers::default();
        servers.set(&json!(["Calc", "my-tools_2"])).unwrap();
        assert_eq!(servers.names(), ["Calc", "my-tools_2"]);
        let long = "x".repeat(33);
        for names in [
            json!(["a b"]),
            json!([""]),
            json!([7]),
            json!(["../x"]),
            json!([long]),
            json!(["a__b"]),
            json!(["a_"]),
        ] {
            assert!(servers.set(&names).is_err(), "{names}");
        }
        assert!(servers.deliver("Calc", json!({})).is_err());
    }
}
