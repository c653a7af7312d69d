//! The result of a run: the document of `--json` and the last record of a journal.

use crate::change_review::ChangeReview;
use crate::decision::Denial;
use crate::evaluation::Evaluation;
use crate::failure::{Failure, FailureKind};
use crate::file_change::{ChangeAction, ChangedBy};
use crate::guardrail::TriggeredGuardrail;
use crate::health::CodeHealth;
use crate::image::Image;
use crate::price::Usd;
use crate::quality_gate::GateResult;
use crate::stop_reason::{LimitReached, ReachedLimit, Status, StopReason};
use crate::usage::Usage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::iter::Sum;

/// Version of the result document.
pub const RESULT_SCHEMA_VERSION: u32 = 1;

/// A tool call of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolUse {
    /// Name of the tool.
    pub name: String,
    /// Whether the call succeeded.
    pub success: bool,
    /// The file that the call was about, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The error, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A subagent that the run started.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SubagentUse {
    /// The call that started the subagent.
    pub call_id: String,
    /// Name of the subagent.
    pub agent: String,
    /// `provider/model`.
    pub model: String,
    /// The status; null if the subagent did not finish.
    pub status: Option<Status>,
    /// Why the subagent stopped.
    pub stop_reason: Option<StopReason>,
    /// Model calls of the subagent.
    pub steps: u32,
    /// Tool calls of the subagent.
    pub tool_calls: u32,
    /// US dollars; null if the price of a model is unknown.
    pub cost_usd: Option<Usd>,
}

/// A file that the run changed, compared with its state before the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModifiedFile {
    /// Path from the workspace root.
    pub path: String,
    /// The change over the whole run.
    pub action: ChangeAction,
    /// What changed the file.
    pub by: ChangedBy,
    /// Number of lines that differ; absent for a file that is not text, and beyond the limit for all files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<ChangedLines>,
}

/// Lines of a file that differ from its state before the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedLines {
    /// Lines that were added.
    pub added: usize,
    /// Lines that were removed.
    pub removed: usize,
}

impl Sum for ChangedLines {
    fn sum<I: Iterator<Item = Self>>(lines: I) -> Self {
        lines.fold(Self::default(), |all, lines| Self {
            added: all.added.saturating_add(lines.added),
            removed: all.removed.saturating_add(lines.removed),
        })
    }
}

/// A file with instructions that was sent to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstructionFile {
    /// Path from the workspace root; absolute for the user's own instructions.
    pub path: String,
    /// Hash of the content (BLAKE3, hexadecimal).
    pub hash: String,
    /// Length of the part that was sent, in bytes.
    #[serde(default)]
    pub bytes: u64,
    /// The version of this file that the previous run in this workspace used; absent if no run used the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<PreviousInstructions>,
}

impl InstructionFile {
    /// Checks whether the file is in a directory below the workspace root. The system message contains the others.
    pub fn is_nested(&self) -> bool {
        self.path.contains('/') && !self.path.starts_with('/') && !self.path.starts_with("../")
    }

    /// Checks whether the file is the user's own.
    pub fn is_of_user(&self) -> bool {
        self.path.starts_with('/')
    }
}

/// The version of an instruction file that an earlier run used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PreviousInstructions {
    /// Hash of the content in that run.
    pub hash: String,
    /// Time of that run, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// Executable files that the run created or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Executables {
    /// Paths from the workspace root, sorted.
    pub files: Vec<String>,
    /// Number of executable files that are not listed.
    pub more: u64,
    /// Whether the whole workspace was scanned; false for a large workspace, where a scan would take too long.
    pub complete: bool,
}

impl Default for Executables {
    fn default() -> Self {
        Self { files: Vec::new(), more: 0, complete: true }
    }
}

/// Cost of the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// US dollars; null if the price of the model is unknown.
    pub total_usd: Option<Usd>,
    /// US dollars by purpose: `agent`, `closing`, `summary`, `evaluation`, `subagent`.
    pub by_source: BTreeMap<String, Usd>,
}

/// Use of caches in the session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CacheUse {
    /// Prompt tokens read from the provider's cache.
    pub read_tokens: u64,
    /// Prompt tokens written to the provider's cache.
    pub write_tokens: u64,
    /// Responses from the local response cache (`llm.cache`).
    pub answers: u32,
    /// Changes to the start of the prompt, which the provider's cache depends on, in order: `parameters`, `tools`,
    /// `system`, `message N`.
    pub prefix_changes: Vec<String>,
}

/// Use of the model's context window, in estimated tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContextUse {
    /// Size of the context window, prompt and response together; null if unknown.
    pub window: Option<u64>,
    /// Tokens of the next prompt.
    pub prompt: u64,
    /// Tokens of the instructions in it.
    pub instructions: u64,
    /// Tokens of the tool definitions and of the answer's schema in it.
    pub tools: u64,
    /// How often the conversation was compacted, over all runs of the session.
    pub compactions: u32,
}

/// The answer of a run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Output {
    /// Plain text.
    Text(String),
    /// A JSON value that fits the requested schema.
    Value(Value),
}

impl Output {
    /// Checks whether the output is a value that fits a schema.
    pub fn is_value(&self) -> bool {
        matches!(self, Self::Value(_))
    }

    /// Returns the output as text; a value is returned as JSON.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Value(value) => Cow::Owned(value.to_string()),
        }
    }
}

/// Outputs are equal if they have the same JSON form: a text equals a string value.
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

/// The program that did a task in place of the agent's own loop (`fleet.executors`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutorUse {
    /// Its name.
    pub name: String,
    /// The code with which it exited; null if it did not.
    pub exit_code: Option<i32>,
    /// Tokens that it says to have sent; null if its output does not tell.
    pub tokens_input: Option<u64>,
    /// Tokens that it says to have received; null if its output does not tell.
    pub tokens_output: Option<u64>,
}

/// A call that needs the user's approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PendingApproval {
    /// The id for `agent approve` and `agent deny`.
    pub id: String,
    /// Name of the tool.
    pub tool: String,
    /// One-line summary of the call.
    pub summary: String,
    /// Why approval is needed.
    pub reason: String,
}

/// The result of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// Version of this document.
    pub schema_version: u32,
    /// The status that summarizes the stop reason.
    pub status: Status,
    /// Why the run ended; null if it did not start.
    pub stop_reason: Option<StopReason>,
    /// The final answer: text, or with `--output-schema` the value that fits the schema.
    pub output: Output,
    /// Whether `output` is a value that fits the schema of `--output-schema`; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_valid: Option<bool>,
    /// The session, for `agent resume`; null if none was created.
    pub session_id: Option<String>,
    /// Steps of the agent: model calls that were part of the work.
    pub steps: u32,
    /// All requests sent to the model, including retries and the closing call.
    pub requests: u32,
    /// Tool calls the model made.
    pub tool_calls: u32,
    /// The tool calls, in order.
    pub tools_used: Vec<ToolUse>,
    /// Files changed.
    pub files_modified: Vec<ModifiedFile>,
    /// Executable files that the run created or changed.
    #[serde(default)]
    pub executables: Executables,
    /// The innermost instruction file of the project that the system message contains, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<InstructionFile>,
    /// All instruction files that were sent to the model, in this order; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instruction_files: Vec<InstructionFile>,
    /// Images that users and tools added to the conversation; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Wall time, in seconds.
    pub duration_seconds: f64,
    /// `provider/model`; null if no model was selected.
    pub model: Option<String>,
    /// Total tokens.
    pub usage: Usage,
    /// Cost of the run.
    pub cost: Cost,
    /// Use of caches.
    #[serde(default)]
    pub cache: CacheUse,
    /// Use of the model's context window; null if no run started.
    #[serde(default)]
    pub context: Option<ContextUse>,
    /// Calls that were refused.
    pub permission_denials: Vec<Denial>,
    /// Calls that need approval; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub awaiting_approval: Vec<PendingApproval>,
    /// Guardrails on the conversation that withheld a text or ended the run; at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guardrails: Vec<TriggeredGuardrail>,
    /// Results of the quality gates when the model last reported that it is done; absent if no gate ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quality_gates: Vec<GateResult>,
    /// Subagents that were started, over all runs of the session; absent if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subagents: Vec<SubagentUse>,
    /// Result of the evaluation of `output`; absent if no answer was evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Evaluation>,
    /// The last review of the changes (`--review`); absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<ChangeReview>,
    /// Figures on the code before and after the run; absent without `--health`, or if it could not be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<CodeHealth>,
    /// The program that did the work; absent if it was the agent itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<Box<ExecutorUse>>,
    /// The sandbox of commands; null if no run started.
    pub sandbox: Option<String>,
    /// The limit that ended the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<ReachedLimit>,
    /// The value of `limit` in US dollars, tokens, calls, steps or seconds; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_value: Option<f64>,
    /// The failure that ended the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

impl RunResult {
    /// Creates the result of a run that did not start (configuration, usage, session and key errors), or that a panic ended.
    pub fn not_started(failure: Failure, model: Option<String>) -> Self {
        let stop_reason = match failure.kind {
            FailureKind::Internal => Some(StopReason::InternalError),
            FailureKind::Auth => Some(StopReason::AuthError),
            _ => None,
        };
        Self {
            schema_version: RESULT_SCHEMA_VERSION,
            stop_reason,
            model,
            error: Some(failure),
            ..Self::default()
        }
    }

    /// Returns the limit that ended the run, with its value.
    pub fn limit_reached(&self) -> Option<LimitReached> {
        self.limit.map(|limit| LimitReached { limit, value: self.limit_value })
    }
}
