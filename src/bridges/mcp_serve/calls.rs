//! The tools of `agent mcp serve` and their arguments.

use agent_core::price::Usd;
use rmcp::ErrorData;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::num::{NonZeroU32, NonZeroU64};

/// A call of a client.
pub enum Call {
    /// A new session.
    Run(RunCall),
    /// A further message in a session.
    Reply(ReplyCall),
    /// What became of a session.
    Session(SessionCall),
}

/// Arguments of `run`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunCall {
    /// What to do in the workspace of the server.
    pub task: String,
    /// Name of a configured agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// Maximum number of model calls; lowers the limit of the server.
    #[serde(default)]
    pub max_steps: Option<NonZeroU32>,
    /// Maximum cost in US dollars; lowers the limit of the server.
    #[serde(default)]
    #[schemars(with = "Option<f64>")]
    pub budget_usd: Option<Usd>,
    /// Maximum time in seconds; lowers the limit of the server.
    #[serde(default)]
    pub timeout_seconds: Option<NonZeroU64>,
}

/// Arguments of `reply`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplyCall {
    /// The `session_id` of an earlier result.
    pub session_id: String,
    /// The next message of the user.
    pub prompt: String,
}

/// Arguments of `session`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionCall {
    /// The `session_id` of an earlier result.
    pub session_id: String,
}

/// Returns the definitions of the tools.
pub fn tools() -> Vec<Tool> {
    let changes = ToolAnnotations::new().read_only(false).destructive(true).open_world(true);
    let reads = ToolAnnotations::new().read_only(true);
    vec![
        tool::<RunCall>("run", "Gives a coding task to an agent, which reads and changes files and runs commands in the workspace of this server until it is done. Returns its answer and what it did.")
            .with_annotations(changes.clone()),
        tool::<ReplyCall>("reply", "Continues an earlier session of the agent with a further message.")
            .with_annotations(changes),
        tool::<SessionCall>("session", "Returns the result of the last run of a session.").with_annotations(reads),
    ]
}

fn tool<Arguments: JsonSchema>(name: &'static str, description: &'static str) -> Tool {
    let schema = schemars::schema_for!(Arguments).to_value();
    let schema = schema.as_object().cloned().unwrap_or_default();
    Tool::new(name, description, schema)
}

impl Call {
    /// Parses a call.
    ///
    /// # Errors
    /// The protocol's error for an unknown tool or invalid arguments.
    pub fn parse(name: &str, arguments: Option<JsonObject>) -> Result<Self, ErrorData> {
        match name {
            "run" => Self::Run(parse(arguments)?).with_text(),
            "reply" => Self::Reply(parse(arguments)?).with_text(),
            "session" => Ok(Self::Session(parse(arguments)?)),
            _ => Err(ErrorData::invalid_params(format!("unknown tool `{name}`"), None)),
        }
    }
}

impl Call {
    /// Returns the length of its texts in bytes.
    pub fn text_bytes(&self) -> usize {
        match self {
            Self::Run(RunCall { task, agent, .. }) => task.len() + agent.as_ref().map_or(0, String::len),
            Self::Reply(ReplyCall { session_id, prompt }) => session_id.len() + prompt.len(),
            Self::Session(SessionCall { session_id }) => session_id.len(),
        }
    }

    fn with_text(self) -> Result<Self, ErrorData> {
        match &self {
            Self::Run(RunCall { task: text, .. }) | Self::Reply(ReplyCall { prompt: text, .. })
                if text.trim().is_empty() =>
            {
                Err(ErrorData::invalid_params("the task or prompt is empty", None))
            }
            _ => Ok(self),
        }
    }
}

fn parse<Arguments: DeserializeOwned>(arguments: Option<JsonObject>) -> Result<Arguments, ErrorData> {
    serde_json::from_value(Value::Object(arguments.unwrap_or_default()))
        .map_err(|error| ErrorData::invalid_params(error.to_string(), None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_tools_and_arguments_and_numbers_out_of_range_are_refused() {
        let parse = |name: &str, arguments: Value| Call::parse(name, arguments.as_object().cloned()).is_ok();
        assert!(parse("run", json!({"task": "x", "max_steps": 3, "budget_usd": 0.5})));
        for (name, arguments) in [
            ("other", json!({})),
            ("run", json!({})),
            ("run", json!({"task": "x", "workspace": "/"})),
            ("run", json!({"task": "x", "mode": "yolo"})),
            ("run", json!({"task": "x", "max_steps": -1})),
            ("run", json!({"task": "x", "max_steps": 0})),
            ("run", json!({"task": "x", "timeout_seconds": 0})),
            ("run", json!({"task": " "})),
            ("run", json!({"task": "x", "budget_usd": -1.0})),
            ("reply", json!({"session_id": 1, "prompt": "x"})),
        ] {
            assert!(!parse(name, arguments.clone()), "{name} {arguments}");
        }
    }
}
