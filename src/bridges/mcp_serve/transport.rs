//! The messages of an MCP client on standard input, and those to it on standard output.
//!
//! Fields that the schema of MCP does not name are ignored, because it allows additional properties (but for the arguments of the
//! tools, whose own schemas do not). A line that is not a message is answered with -32700 or -32600, wrong parameters with -32602.

use crate::client_input::Input;
use crate::client_lines::{Line, LineReader, MAX_LINE_BYTES};
use crate::client_output::ClientOutput;
use crate::json_rpc::message::{
    Malformed, Message, OtherFields, invalid_params, invalid_request, line_too_long,
};
use agent_client_protocol_schema::v1::RequestId;
use rmcp::model::{ClientRequest, JsonRpcMessage, JsonRpcRequest};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::json;
use std::convert::Infallible;
use std::future::{Future, ready};
use std::sync::Arc;

/// The methods that this server implements and whose parameters may be wrong.
const METHODS: [&str; 4] = ["initialize", "server/discover", "tools/list", "tools/call"];

/// The transport to a client.
pub struct ClientTransport {
    lines: LineReader<Input>,
    output: Arc<ClientOutput>,
}

impl ClientTransport {
    /// Creates the transport to a client.
    pub fn new(input: Input, output: Arc<ClientOutput>) -> Self {
        Self { lines: LineReader::new(input, MAX_LINE_BYTES), output }
    }

    /// Answers a line that is not a message, and a request that is not valid in this protocol.
    fn refuse(&self, Malformed { id, error }: &Malformed) {
        self.output.send(&match id {
            // The schema of MCP has no null there.
            RequestId::Null => json!({"jsonrpc": "2.0", "error": error}),
            id => json!({"jsonrpc": "2.0", "id": id, "error": error}),
        });
    }
}

impl Transport<RoleServer> for ClientTransport {
    type Error = Infallible;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        self.output.send(&message);
        ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            match self.lines.next().await? {
                Line::TooLong => self.refuse(&line_too_long()),
                Line::Complete(line) if line.trim_ascii().is_empty() => {}
                Line::Complete(line) => match parse(&line) {
                    Ok(Some(message)) => return Some(message),
                    Ok(None) => {}
                    Err(malformed) => self.refuse(&malformed),
                },
            }
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Parses a line. A notification or response that does not fit is none and gets no answer.
///
/// # Errors
/// With the error that the client receives.
fn parse(line: &[u8]) -> Result<Option<RxJsonRpcMessage<RoleServer>>, Box<Malformed>> {
    let message = Message::parse(line, OtherFields::Ignored)?;
    let parsed = serde_json::from_slice(line);
    let Message::Request { id, method, .. } = message else { return Ok(parsed.ok()) };
    let is_known = METHODS.contains(&method.as_str());
    let error = match parsed {
        Ok(JsonRpcMessage::Request(JsonRpcRequest { request: ClientRequest::CustomRequest(_), .. }))
        | Err(_)
            if is_known =>
        {
            invalid_params(&format!("invalid parameters for `{method}`"))
        }
        Ok(message) => return Ok(Some(message)),
        Err(error) => invalid_request(&error),
    };
    Err(Box::new(Malformed { id, error }))
}
