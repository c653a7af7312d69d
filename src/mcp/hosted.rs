//! Servers in the program that drives the run, which passes their messages on.

use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use std::io;
use tokio::sync::mpsc;

/// Messages of a server that wait to be read.
const MAX_WAITING: usize = 1024;

/// A server in the program that drives the run.
#[derive(Debug, Clone)]
pub struct HostedServer {
    /// The name under which the program knows it.
    pub name: String,
    /// Takes the messages for it.
    pub messages: mpsc::UnboundedSender<HostedMessage>,
}

/// A message of the protocol for a server.
#[derive(Debug)]
pub struct HostedMessage {
    /// Name of the server.
    pub server: String,
    /// The message.
    pub message: Value,
    /// Takes what the server sends.
    pub replies: mpsc::Sender<Value>,
}

/// A connection to such a server.
pub struct HostedTransport {
    server: HostedServer,
    replies: mpsc::Sender<Value>,
    received: mpsc::Receiver<Value>,
}

impl HostedTransport {
    /// Creates a connection.
    pub fn new(server: HostedServer) -> Self {
        let (replies, received) = mpsc::channel(MAX_WAITING);
        Self { server, replies, received }
    }
}

impl Transport<RoleClient> for HostedTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let sent = serde_json::to_value(item).map_err(io::Error::other).and_then(|message| {
            let (server, replies) = (self.server.name.clone(), self.replies.clone());
            let message = HostedMessage { server, message, replies };
            self.server.messages.send(message).map_err(|_| io::ErrorKind::BrokenPipe.into())
        });
        std::future::ready(sent)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            // What is no message of the protocol is dropped, as on other transports.
            if let Ok(message) = serde_json::from_value(self.received.recv().await?) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.received.close();
        Ok(())
    }
}
