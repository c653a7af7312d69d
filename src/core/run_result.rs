//! The result of a run: the document of `--json` and the last record of a journal.

use crate::core::decision::Denial;
use crate::core::evaluation::Evaluation;
use crate::core::failure::Failure;
use crate::core::file_change::{ChangeAction, ChangedBy};
use crate::core::guardrail::TriggeredGuardrail;
use crate::core::price::Usd;
use crate::core::quality_gate::GateResult;
use crate::core::stop_reason::{ReachedLimit, Status, StopReason};
use crate::core::usage::Usage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The version of the result document.
pub const RESULT_SCHEMA_VERSION: u32 = 1;

/// One tool call of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolUse {
    /// The tool.
    pub name: String,
    /// Whether it did what it was asked.
    pub success: bool,
    /// The file it was about, if one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What went wrong, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A subagent that the run asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SubagentUse {
    /// The call that asked it.
    pub call_id: String,
    /// Its name.
    pub agent: String,
    /// `provider/model`.
    pub model: String,
    /// The three-way summary; null when it did not come to an end.
    pub status: Option<Status>,
    /// Why it ended.
    pub stop_reason: Option<StopReason>,
    /// Its model calls.
    pub steps: u32,
    /// Tool calls of its model.
    pub tool_calls: u32,
    /// US dollars; null when the price of a model is not known.
    pub cost_usd: Option<Usd>,
}

/// One file the run changed, as it stands at the end compared with the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModifiedFile {
    /// Path from the workspace root.
    pub path: String,
    /// What happened to it over the whole run.
    pub action: ChangeAction,
    /// What changed it.
    pub by: ChangedBy,
}

/// A file of instructions for agents that the model was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstructionFile {
    /// Path from the workspace root.
    pub path: String,
    /// The hash of its content (BLAKE3, hexadecimal).
    pub hash: String,
    /// What the run before in this workspace that was given this file was given; absent when none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<PreviousInstructions>,
}

/// What an earlier run was given of a file of instructions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PreviousInstructions {
    /// The hash of its content then.
    pub hash: String,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// Files with a right to be executed that the run made or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Executables {
    /// Paths from the workspace root, sorted.
    pub files: Vec<String>,
    /// How many more there are.
    pub more: u64,
    /// Whether everything was looked at: a large workspace is not, because the look would cost too much.
    pub complete: bool,
}

impl Default for Executables {
    fn default() -> Self {
        Self { files: Vec::new(), more: 0, complete: true }
    }
}

/// What the run cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// US dollars; null when the price of the model is not known.
    pub total_usd: Option<Usd>,
    /// US dollars by what they were spent for: `agent`, `closing`, `summary`, `evaluation`, `subagent`.
    pub by_source: BTreeMap<String, Usd>,
}

/// What caches did for a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CacheUse {
    /// Prompt tokens read from the provider's cache.
    pub read_tokens: u64,
    /// Prompt tokens written to the provider's cache.
    pub write_tokens: u64,
    /// Answers that were kept from earlier requests (`llm.cache`).
    pub answers: u32,
    /// What requests began with and then no longer, in order: `parameters`, `tools`, `system`, `message N`.
    pub prefix_changes: Vec<String>,
}

/// What takes the room in the model's window, in tokens, about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContextUse {
    /// Tokens that the model may hold, prompt and answer together; null when that is not known.
    pub window: Option<u64>,
    /// Tokens of the next prompt.
    pub prompt: u64,
    /// Those of them that are instructions.
    pub instructions: u64,
    /// Those that are the tools offered, and the schema of the answer.
    pub tools: u64,
    /// How often the conversation was made shorter, over all runs of the session.
    pub compactions: u32,
}

/// The answer of a run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Output {
    /// In words.
    Text(String),
    /// A JSON value that fits the schema it was asked for.
    Value(Value),
}

impl Output {
    /// Whether it is a value that fits a schema.
    pub fn is_value(&self) -> bool {
        matches!(self, Self::Value(_))
    }

    /// As text: a value as JSON.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Value(value) => Cow::Owned(value.to_string()),
        }
    }
}

/// Equal is what a document tells in the same way: words, and a value that is a string.
impl PartialEq for Output {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(text), Self::Text(other)) => text == other,
            (Self::Value(value), Self::Value(other)) => value == other,
            (Self::Text(text), Self::Value(value)) | (Self::Value(value), Self::Text(text)) => value == text,
        }
    }
}

impl Default for Output {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl<T: Into<String>> From<T> for Output {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

/// A call that waits for a person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PendingApproval {
    /// What `agent approve` and `agent deny` take.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// What it is to do, one line.
    pub summary: String,
    /// Why it is asked.
    pub reason: String,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// The version of this document.
    pub schema_version: u32,
    /// The three-way summary.
    pub status: Status,
    /// Why the run ended; null when it never began.
    pub stop_reason: Option<StopReason>,
    /// The final answer: text, or with `--output-schema` the value that fits the schema.
    pub output: Output,
    /// Whether `output` is a value that fits the schema of `--output-schema`; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_valid: Option<bool>,
    /// The session, for `agent resume`; null when none was made.
    pub session_id: Option<String>,
    /// Steps of the agent: model calls that were part of the work.
    pub steps: u32,
    /// Everything sent to the model, retries and the closing call included.
    pub requests: u32,
    /// Tool calls the model made.
    pub tool_calls: u32,
    /// Those calls, in order.
    pub tools_used: Vec<ToolUse>,
    /// Files changed.
    pub files_modified: Vec<ModifiedFile>,
    /// Executables it made or changed.
    #[serde(default)]
    pub executables: Executables,
    /// The project's instructions, where there are some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<InstructionFile>,
    /// Wall time.
    pub duration_seconds: f64,
    /// `provider/model`; null when none was chosen yet.
    pub model: Option<String>,
    /// Tokens, summed.
    pub usage: Usage,
    /// Money.
    pub cost: Cost,
    /// Caches.
    #[serde(default)]
    pub cache: CacheUse,
    /// What takes the room in the model's window; null when no run began.
    #[serde(default)]
    pub context: Option<ContextUse>,
    /// Calls that were refused.
    pub permission_denials: Vec<Denial>,
    /// Calls that wait for an answer; absent without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub awaiting_approval: Vec<PendingApproval>,
    /// Guardrails on the conversation that withheld a text or ended the run; the first hundred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guardrails: Vec<TriggeredGuardrail>,
    /// The quality gates as they were when the model last said that it is done; absent when none was looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quality_gates: Vec<GateResult>,
    /// Subagents that were asked, over all runs of the session; absent where none was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subagents: Vec<SubagentUse>,
    /// What the evaluation of `output` found; absent when no answer was evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Evaluation>,
    /// What confined commands; null when no run began.
    pub sandbox: Option<String>,
    /// The limit that ended the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<ReachedLimit>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}
