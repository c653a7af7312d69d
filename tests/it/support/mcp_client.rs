//! A client of `agent mcp serve`, `agent acp` or `agent serve`: writes messages, and waits for those that come back.

use super::run::{Finished, Lab, Running};
use super::server::Server;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Longer than anything takes here.
const PATIENCE: Duration = Duration::from_mins(1);

pub struct McpClient {
    pub child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    next_id: u64,
}

impl McpClient {
    /// Starts a server whose model is `server`, and performs the handshake with these capabilities.
    pub fn start(lab: &Lab, server: &Server, more: &[&str], capabilities: &Value) -> Self {
        Self::spawn(lab, server, more).greeted(capabilities)
    }

    /// Performs the handshake with these capabilities.
    pub fn greeted(self, capabilities: &Value) -> Self {
        let mut client = self;
        let about = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"}});
        let answer = client.request("initialize", &about);
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    pub fn spawn(lab: &Lab, server: &Server, more: &[&str]) -> Self {
        Self::spawn_as(&["mcp", "serve"], lab, server, more)
    }

    /// Starts another command that speaks JSON-RPC in lines.
    pub fn spawn_as(command: &[&str], lab: &Lab, server: &Server, more: &[&str]) -> Self {
        Self::spawn_at(command, lab, &server.url(), more)
    }

    /// Starts a command whose model is behind `url`.
    pub fn spawn_at(command: &[&str], lab: &Lab, url: &str, more: &[&str]) -> Self {
        let args = ["--model", "openai/mock", "--api-base", url, "--api-key", "k-123456789"];
        Self::over(lab.command(&[command, &args, more].concat()))
    }

    /// Starts a command that speaks JSON in lines.
    pub fn over(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (sender, messages) = channel();
        let output = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                let _ = sender.send(message);
            }
        });
        Self { input: child.stdin.take(), child, messages, next_id: 0 }
    }

    pub fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    /// Sends what the server may refuse to read.
    pub fn flood(&mut self, line: &str) {
        let _refused = writeln!(self.input.as_mut().unwrap(), "{line}");
    }

    pub fn send_line(&mut self, line: &str) {
        self.send_part(&format!("{line}\n"));
    }

    /// Sends a text that may be less than a line.
    pub fn send_part(&mut self, text: &str) {
        self.input.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Sends a request and returns its id.
    pub fn begin(&mut self, method: &str, params: &Value) -> u64 {
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}));
        self.next_id
    }

    #[track_caller]
    pub fn receive(&self) -> Value {
        self.messages.recv_timeout(PATIENCE).expect("a message")
    }

    /// Waits for the answer to the request `id`; messages before it are dropped.
    #[track_caller]
    pub fn answer(&self, id: u64) -> Value {
        loop {
            let message = self.receive();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// Waits for a request of the server.
    #[track_caller]
    pub fn asked(&self) -> Value {
        loop {
            let message = self.receive();
            if message.get("method").is_some() && message.get("id").is_some() {
                return message;
            }
        }
    }

    #[track_caller]
    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }

    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Ends the input.
    pub fn close_input(&mut self) {
        drop(self.input.take());
    }

    /// Ends the input and waits for the end of the server.
    pub fn leave(mut self) -> Option<i32> {
        self.close_input();
        self.child.wait().unwrap().code()
    }
}

/// Runs `agent mcp` with this standard input.
pub fn piped(lab: Lab, input: &str, args: &[&str]) -> Finished {
    let lab = lab.stdin(input);
    let running: Running = lab.start(args);
    running.finish()
}
