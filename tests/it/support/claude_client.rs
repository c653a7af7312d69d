//! A client of Claude Code's protocol: sends messages and control requests, and waits for what comes back.

use super::mcp_client::McpClient;
use super::run::Lab;
use super::server::Server;
use serde_json::{Value, json};
use std::path::Path;

/// What the SDK sends first.
pub const FLAGS: [&str; 7] =
    ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json", "--model", "mock"];
/// The key that the client passes.
const KEY: &str = "sk-ant-test-0123456789abcdef";

pub struct ClaudeClient {
    pub client: McpClient,
    /// The messages so far.
    pub seen: Vec<Value>,
    requests: u64,
}

impl ClaudeClient {
    pub fn start(lab: &Lab, model: &Server, more: &[&str]) -> Self {
        Self::at(lab, &model.url(), more)
    }

    /// Starts the program with the model server at `url`.
    pub fn at(lab: &Lab, url: &str, more: &[&str]) -> Self {
        Self::below(lab, &lab.ws(), url, more)
    }

    /// Starts the program in `directory`.
    pub fn below(lab: &Lab, directory: &Path, url: &str, more: &[&str]) -> Self {
        let mut command = lab.command(&[&FLAGS, more].concat());
        command.current_dir(directory);
        command.env("ANTHROPIC_BASE_URL", url).env("ANTHROPIC_API_KEY", KEY);
        Self { client: McpClient::over(command), seen: Vec::new(), requests: 0 }
    }

    /// Starts one to which approvals are put.
    pub fn asked(lab: &Lab, model: &Server, more: &[&str]) -> Self {
        Self::start(lab, model, &[&["--permission-prompt-tool=stdio"], more].concat())
    }

    pub fn say(&mut self, content: &Value) {
        let message = json!({"role": "user", "content": content});
        self.client
            .send(&json!({"type": "user", "message": message, "parent_tool_use_id": null, "session_id": ""}));
    }

    /// Waits for the next message for which `is_it` holds; those before it are kept.
    #[track_caller]
    pub fn wait(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.client.receive();
            self.seen.push(message.clone());
            if is_it(&message) {
                return message;
            }
        }
    }

    #[track_caller]
    pub fn result(&mut self) -> Value {
        self.wait(|message| message["type"] == "result")
    }

    /// Sends a message and waits for its result.
    #[track_caller]
    pub fn turn(&mut self, text: &str) -> Value {
        self.say(&json!(text));
        self.result()
    }

    /// Sends a control request and waits for the response.
    #[track_caller]
    pub fn control(&mut self, request: &Value) -> Value {
        self.requests += 1;
        let id = format!("r{}", self.requests);
        self.client.send(&json!({"type": "control_request", "request_id": id, "request": request}));
        let answer = self.wait(|message| message["response"]["request_id"] == id.as_str());
        answer["response"].clone()
    }

    /// Waits for a control request of the program.
    #[track_caller]
    pub fn request(&mut self, subtype: &str) -> Value {
        self.wait(|message| message["request"]["subtype"] == subtype)
    }

    /// Answers a control request.
    pub fn answer(&mut self, request: &Value, response: &Value) {
        let response =
            json!({"subtype": "success", "request_id": request["request_id"], "response": response});
        self.client.send(&json!({"type": "control_response", "response": response}));
    }

    /// The messages of this type.
    pub fn of(&self, kind: &str) -> Vec<&Value> {
        self.seen.iter().filter(|message| message["type"] == kind).collect()
    }

    /// The texts of the warnings so far.
    pub fn warnings(&self) -> String {
        let shown = self.seen.iter().filter(|message| message["subtype"] == "informational");
        shown.filter_map(|message| message["content"].as_str()).collect::<Vec<_>>().join("\n")
    }

    pub fn leave(self) -> Option<i32> {
        self.client.leave()
    }
}
