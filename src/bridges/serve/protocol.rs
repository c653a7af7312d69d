//! The requests, results and notifications of `agent serve`.

use crate::json_rpc::message::{invalid_params, parameters};
use agent_client_protocol_schema::v1::Error;
use agent_core::file_change::Change;
use agent_core::price::Usd;
use agent_core::run_result::RunResult;
use agent_engine::policy::Mode;
use agent_report::json_stream::StreamLine;
use agent_run::client::RunBounds;
use agent_run::session_list::ListedSession;
use agent_terminal::one_line;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;
use strum::VariantNames;

/// Characters shown of an unknown method.
const METHOD_CHARS: usize = 100;

/// A request of the client.
#[derive(Debug, Deserialize, JsonSchema, VariantNames)]
#[serde(tag = "method", content = "params", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Request {
    /// Begins a session with a run on a task. Result: `Begun`, at once; the run ends with `finished`.
    Start(Start),
    /// Continues a session with a further run. Result: `Begun`, at once; the run ends with `finished`.
    Send(Send),
    /// Interrupts the run of a session, which then ends with `finished`. Result: `Done`.
    Interrupt(Interrupt),
    /// Answers an `approval`. Result: `Done`.
    Approve(Approve),
    /// Lists the sessions of the workspace, newest first. Result: `Sessions`.
    List(List),
    /// Sends the stored events of a session again, and then the result `Subscribed`.
    Subscribe(Subscribe),
    /// Undoes the file changes of a session, as `agent undo` does. Result: `Undone`.
    Undo(Undo),
}

/// Parameters of `start`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// What to do in the workspace of the server.
    pub task: String,
    /// Name of a configured agent; only that of `--agent` if the server was started with it.
    #[serde(default)]
    pub agent: Option<String>,
    /// `provider/model`; only that of `--model` if the server was started with it.
    #[serde(default)]
    pub model: Option<String>,
    /// Limits of the run.
    #[serde(default)]
    pub limits: RunLimits,
}

/// Parameters of `send`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Send {
    /// The session; no run of it may be working.
    pub session_id: String,
    /// The next message of the user.
    pub prompt: String,
    /// Limits of the run.
    #[serde(default)]
    pub limits: RunLimits,
}

/// Limits of a run. They only lower those of the server's flags and configuration.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunLimits {
    /// The most permissive mode.
    pub mode: Option<Mode>,
    /// Maximum number of model calls.
    pub max_steps: Option<NonZeroU32>,
    /// Maximum cost in US dollars.
    pub budget_usd: Option<Usd>,
    /// Maximum time in seconds.
    pub timeout_seconds: Option<NonZeroU64>,
}

/// Parameters of `interrupt`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interrupt {
    /// The session.
    pub session_id: String,
}

/// Parameters of `approve`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Approve {
    /// The session.
    pub session_id: String,
    /// The `id` of the question, which counts for one answer.
    pub question_id: String,
    /// The answer.
    pub decision: Decision,
    /// Why a call is denied; the model reads it.
    #[serde(default)]
    pub reason: Option<String>,
}

/// Answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Run the call.
    Allow,
    /// Run the call, and allow those that `always_scope` describes until the run ends.
    AllowAlways,
    /// Refuse the call; the run continues.
    Deny,
    /// End the run.
    Stop,
}

/// Parameters of `list`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// The `next_cursor` of the page before.
    #[serde(default)]
    pub cursor: Option<String>,
}

/// Parameters of `subscribe`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Subscribe {
    /// The session.
    pub session_id: String,
    /// The first event to send, by its `seq`.
    #[serde(default)]
    pub from_seq: u64,
}

/// Parameters of `undo`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Undo {
    /// The session; no run of it may be working.
    pub session_id: String,
    /// Undo only what came after this step.
    #[serde(default)]
    pub to_step: u32,
    /// Undo only the changes of this file.
    #[serde(default)]
    pub file: Option<String>,
    /// Also files that somebody else has changed since.
    #[serde(default)]
    pub force: bool,
}

/// Result of `start` and `send`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Begun {
    /// The session.
    pub session_id: String,
}

/// Result of `interrupt` and `approve`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Done {}

/// Result of `list`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Sessions {
    /// The sessions of this page.
    pub sessions: Vec<SessionState>,
    /// The cursor of the next page; null if there is none.
    pub next_cursor: Option<String>,
}

/// A session, as in `agent sessions list --json`, with its state.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SessionState {
    /// The session.
    #[serde(flatten)]
    pub session: ListedSession,
    /// Its state.
    pub state: State,
}

/// State of a session.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// A run of this client is working.
    Working,
    /// The last run has ended.
    Ended,
    /// The last run was killed, or another process is working on the session.
    Unfinished,
}

/// Result of `subscribe`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Subscribed {
    /// `seq` after the last event that was sent: the next `from_seq`.
    pub next_seq: u64,
    /// Whether a run of this client is working, whose further events follow.
    pub is_working: bool,
    /// Number of damaged records of the session, which were not sent.
    pub damaged: u64,
}

/// Result of `undo`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Undone {
    /// The changes that undid those of the session.
    pub changed: Vec<Change>,
    /// Files whose displaced content could not be stored.
    pub warnings: Vec<String>,
}

/// A notification to the client.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "method", content = "params", rename_all = "snake_case")]
pub enum Notification<'a> {
    /// An event of a run.
    Event {
        /// The session.
        session_id: &'a str,
        /// The event, as a line of `--output-format stream-json`.
        #[schemars(schema_with = "event_schema")]
        event: StreamLine<'a>,
    },
    /// A call waits for `approve`; no other call of the run is asked about meanwhile.
    Approval {
        /// The session.
        session_id: &'a str,
        /// The question.
        question: ApprovalQuestion,
    },
    /// A run has ended, or could not start.
    Finished {
        /// The session.
        session_id: &'a str,
        /// The result, as the document of `--json`.
        #[schemars(schema_with = "result_schema")]
        result: &'a RunResult,
    },
}

fn event_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"$ref": "events.json"})
}

fn result_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"$ref": "result.json"})
}

/// A question whether a call may run. Invisible characters in its texts are written as escapes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ApprovalQuestion {
    /// Id of the question.
    pub id: String,
    /// Id of the call, as in `tool_call_start`; unique within one conversation only.
    pub call_id: String,
    /// Id of the call that started the subagent that makes the call, as in `subagent`; absent for a call of the run itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
    /// Name of the tool.
    pub tool: String,
    /// Summary of the call, one line.
    pub summary: String,
    /// Why approval is needed.
    pub reason: String,
    /// Further notes, one line each.
    pub notes: Vec<String>,
    /// The diff or the command.
    pub preview: Option<String>,
    /// The calls that `allow_always` allows.
    pub always_scope: String,
}

impl Request {
    /// Parses the request of a client.
    ///
    /// # Errors
    /// For an unknown method (-32601), wrong parameters and an empty task or prompt (-32602).
    pub fn parse(method: &str, params: Value) -> Result<Self, Error> {
        if !Self::VARIANTS.contains(&method) {
            let message = format!("there is no method `{}`", one_line(method, METHOD_CHARS));
            return Err(Error::new(Error::method_not_found().code.into(), message));
        }
        let params = match params {
            Value::Null => json!({}),
            Value::Object(_) => params,
            _ => return Err(invalid_params("`params` must be an object")),
        };
        match parameters(json!({ "method": method, "params": params }))? {
            Self::Start(Start { task: text, .. }) | Self::Send(Send { prompt: text, .. })
                if text.trim().is_empty() =>
            {
                Err(invalid_params("the task or prompt is empty"))
            }
            request => Ok(request),
        }
    }
}

impl RunLimits {
    /// Returns `bounds` lowered to these limits.
    pub fn within(&self, bounds: RunBounds) -> RunBounds {
        RunBounds {
            mode: self.mode.into_iter().chain(bounds.mode).min(),
            max_steps: self.max_steps.map(NonZeroU32::get),
            budget: self.budget_usd,
            timeout: self.timeout_seconds.map(|seconds| Duration::from_secs(seconds.get())),
            ..bounds
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_methods_and_fields_and_values_out_of_range_are_refused() {
        let code = |method: &str, params: Value| {
            Request::parse(method, params).err().map(|error| i32::from(error.code))
        };
        assert_eq!(
            code("start", json!({"task": "x", "limits": {"mode": "confirm-all", "budget_usd": 0.5}})),
            None
        );
        assert_eq!(code("list", Value::Null), None);
        assert_eq!(code("Start", json!({"task": "x"})), Some(-32601));
        for (method, params) in [
            ("start", json!({})),
            ("start", json!(["x"])),
            ("start", json!({"task": " "})),
            ("start", json!({"task": "x", "workspace": "/"})),
            ("start", json!({"task": "x", "limits": {"sandbox": "off"}})),
            ("start", json!({"task": "x", "limits": {"mode": "free"}})),
            ("start", json!({"task": "x", "limits": {"max_steps": 0}})),
            ("start", json!({"task": "x", "limits": {"max_steps": -1}})),
            ("start", json!({"task": "x", "limits": {"budget_usd": -0.1}})),
            ("start", json!({"task": "x", "limits": {"timeout_seconds": 0.5}})),
            ("send", json!({"session_id": 1, "prompt": "x"})),
            ("send", json!({"session_id": "a", "prompt": "\n"})),
            ("interrupt", Value::Null),
            ("approve", json!({"session_id": "a", "question_id": "b", "decision": "yes"})),
            ("list", json!({"all": true})),
            ("subscribe", json!({"session_id": "a", "from_seq": -1})),
            ("undo", json!({"session_id": "a", "to_step": "1"})),
        ] {
            assert_eq!(code(method, params.clone()), Some(-32602), "{method} {params}");
        }
    }

    #[test]
    fn limits_lower_the_mode_of_the_server_and_never_raise_it() {
        let bounds = |mode| RunBounds { mode: Some(mode), ..RunBounds::default() };
        let limits = |mode| RunLimits { mode: Some(mode), ..RunLimits::default() };
        for (server, asked, result) in [
            (Mode::Yolo, Mode::ConfirmAll, Mode::ConfirmAll),
            (Mode::ConfirmAll, Mode::Yolo, Mode::ConfirmAll),
        ] {
            assert_eq!(limits(asked).within(bounds(server)).mode, Some(result));
        }
        assert_eq!(RunLimits::default().within(bounds(Mode::ConfirmAll)).mode, Some(Mode::ConfirmAll));
    }
}
