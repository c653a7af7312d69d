//! A client of `agent serve`, which checks every message against the schema of the protocol.

use super::mcp_client::McpClient;
use super::run::Lab;
use super::schema;
use super::server::Server;
use serde_json::{Value, json};

pub struct RpcClient {
    pub client: McpClient,
    schema: jsonschema::Validator,
    /// The notifications so far that nobody waited for.
    pub passed: Vec<Value>,
}

impl RpcClient {
    pub fn start(lab: &Lab, model: &Server, more: &[&str]) -> Self {
        Self::over(McpClient::spawn_as(&["serve"], lab, model, more))
    }

    pub fn over(client: McpClient) -> Self {
        Self { client, schema: schema::of("rpc"), passed: Vec::new() }
    }

    fn receive(&mut self) -> Value {
        let message = self.client.receive();
        schema::valid(&self.schema, &message);
        message
    }

    /// Sends a request and waits for its response; notifications before it are kept.
    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.client.begin(method, params);
        self.response(&json!(id))
    }

    /// Waits for the response with this id; notifications before it are kept.
    pub fn response(&mut self, id: &Value) -> Value {
        loop {
            let message = self.receive();
            if message.get("method").is_none() {
                assert_eq!(&message["id"], id, "{message}");
                return message;
            }
            self.passed.push(message);
        }
    }

    /// Sends a request and returns its result.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: &Value) -> Value {
        let response = self.request(method, params);
        assert!(response.get("error").is_none(), "{response}");
        response["result"].clone()
    }

    /// Sends a request that is refused, and returns the code of the error.
    #[track_caller]
    pub fn refused(&mut self, method: &str, params: &Value) -> i64 {
        let response = self.request(method, params);
        response["error"]["code"].as_i64().unwrap_or_else(|| panic!("{response}"))
    }

    /// Begins a session with a run and returns its id.
    pub fn begin(&mut self, task: &str) -> String {
        let begun = self.call("start", &json!({ "task": task }));
        begun["session_id"].as_str().unwrap().to_owned()
    }

    /// Waits for a notification of this method, also among those that were received.
    pub fn wait(&mut self, method: &str) -> Value {
        if let Some(at) = self.passed.iter().position(|message| message["method"] == method) {
            return self.passed.remove(at)["params"].clone();
        }
        loop {
            let message = self.receive();
            assert!(message.get("method").is_some(), "{message}");
            if message["method"] == method {
                return message["params"].clone();
            }
            self.passed.push(message);
        }
    }

    /// Waits for the end of a run of the session.
    pub fn result(&mut self, session: &str) -> Value {
        let finished = self.wait("finished");
        assert_eq!(finished["session_id"], session, "{finished}");
        finished["result"].clone()
    }

    /// Runs a task and returns the id of its session and its result.
    pub fn run(&mut self, task: &str) -> (String, Value) {
        let session = self.begin(task);
        let result = self.result(&session);
        (session, result)
    }

    /// Takes the events of a session that were received.
    pub fn events(&mut self, session: &str) -> Vec<Value> {
        let is_event =
            |message: &Value| message["method"] == "event" && message["params"]["session_id"] == session;
        let events = self.passed.iter().filter(|message| is_event(message));
        let events = events.map(|message| message["params"]["event"].clone()).collect();
        self.passed.retain(|message| !is_event(message));
        events
    }
}

/// The types of events without the pieces of answers.
pub fn types(events: &[Value]) -> Vec<&str> {
    let types = events.iter().map(|event| event["type"].as_str().unwrap());
    types.filter(|kind| !["text", "thinking"].contains(kind)).collect()
}
