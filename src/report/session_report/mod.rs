//! Report on a session: its steps, calls, refusals and file changes, with time, tokens and cost; in six formats.
//!
//! It is built from the records of a journal, so `--report` at the end of a run and `agent report` later give the
//! same report. Each format has its own file.

pub(crate) mod bars;
mod builder;
mod chart;
mod github;
mod html;
pub(crate) mod html_page;
pub mod html_writer;
mod junit;
pub mod markdown;
mod sarif;
mod text;

pub use builder::SessionReportBuilder;

use crate::json;
use agent_core::change_review::ChangeReview;
use agent_core::decision::Denial;
use agent_core::evaluation::Evaluation;
use agent_core::event::{FinishReason, HookVerdict, MessageOrigin, NoticeLevel, Purpose};
use agent_core::failure::Failure;
use agent_core::file_change::{Change, ChangeAction};
use agent_core::guardrail::TriggeredGuardrail;
use agent_core::health::CodeHealth;
use agent_core::price::Usd;
use agent_core::quality_gate::GateResult;
use agent_core::review::Review;
use agent_core::run_result::{Cost, Executables, ModifiedFile, PendingApproval, RunResult};
use agent_core::stop_reason::{ReachedLimit, Status, StopReason};
use agent_core::usage::Usage;
use agent_messages as messages;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// Version of the document.
pub const REPORT_SCHEMA_VERSION: u32 = 1;

/// A report on a session. The middle of a long text is replaced by a note.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct SessionReport {
    /// Version of this document.
    pub schema_version: u32,
    /// The session, for `agent resume`; null if none was created.
    pub session_id: Option<String>,
    /// The workspace root.
    pub workspace: Option<String>,
    /// The first prompt.
    pub task: String,
    /// The agent of the last run; null if none started.
    pub agent: Option<String>,
    /// `provider/model` that was called last; null if no model was selected.
    pub model: Option<String>,
    /// The permission mode of the last run.
    pub mode: Option<String>,
    /// The sandbox of commands in the last run.
    pub sandbox: Option<String>,
    /// Status of the last run; null if it is running or was killed.
    pub status: Option<Status>,
    /// Why the last run ended; null if it has no end, or did not start.
    pub stop_reason: Option<StopReason>,
    /// The limit that ended the last run.
    pub limit: Option<ReachedLimit>,
    /// The value of `limit` in US dollars, tokens, calls, steps or seconds; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_value: Option<f64>,
    /// The failure that ended the last run.
    pub error: Option<Failure>,
    /// The final answer; a structured answer as JSON.
    pub output: String,
    /// Start of the first run, in milliseconds since the Unix epoch; null if none started.
    pub started_ms: Option<u64>,
    /// Time of the last record, in milliseconds since the Unix epoch.
    pub completed_ms: Option<u64>,
    /// Duration of all runs, each from its first record to its last; time between runs is not counted.
    pub duration_ms: u64,
    /// Time spent waiting for models.
    pub model_time_ms: u64,
    /// Time of all tool calls; parallel calls are each counted.
    pub tool_time_ms: u64,
    /// Model calls that were part of the work.
    pub step_count: u32,
    /// All requests sent to models, including retries and closing calls.
    pub request_count: u32,
    /// Tool calls by models.
    pub tool_call_count: u32,
    /// Total tokens.
    pub usage: Usage,
    /// Cost of the session.
    pub cost: Cost,
    /// The runs, in order.
    pub runs: Vec<Run>,
    /// The steps, in order, including closing calls.
    pub steps: Vec<Step>,
    /// Files changed, compared with their state before the session.
    pub files_modified: Vec<FileChange>,
    /// Calls that were refused.
    pub permission_denials: Vec<ReportedDenial>,
    /// Calls that need approval.
    pub awaiting_approval: Vec<PendingApproval>,
    /// Guardrails on the conversation that withheld a text or ended a run.
    pub guardrails: Vec<TriggeredGuardrail>,
    /// Calls and requests that failed.
    pub errors: Vec<ReportedError>,
    /// Warnings: retries, hooks that blocked, notices.
    pub warnings: Vec<Warning>,
    /// Results of the quality gates when the last run ended.
    pub quality_gates: Vec<GateResult>,
    /// Result of the evaluation of `output`; null if it was not evaluated.
    pub evaluation: Option<Evaluation>,
    /// The last review of the run's changes (`--review`); absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_review: Option<ChangeReview>,
    /// The findings of a review in `output`, sorted by file and line; null if `output` is not a complete review.
    pub review: Option<Review>,
    /// Executable files that the last run created or changed.
    pub executables: Executables,
    /// Figures on the code before and after the last run; null if it was not measured.
    pub health: Option<CodeHealth>,
    /// Damaged records of the journal, which were skipped.
    pub damaged_records: usize,
    /// Numbers of entries that are counted above but not listed.
    pub left_out: OmittedCounts,
}

/// One process's work on the session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Run {
    /// Name of the agent.
    pub agent: String,
    /// `provider/model` at the start.
    pub model: String,
    /// The permission mode.
    pub mode: String,
    /// The sandbox of commands.
    pub sandbox: String,
    /// Start time, in milliseconds since the Unix epoch.
    pub started_ms: u64,
    /// Milliseconds from its first record to its last.
    pub duration_ms: u64,
    /// Status; null if the run has no end.
    pub status: Option<Status>,
    /// Why the run ended.
    pub stop_reason: Option<StopReason>,
}

/// A model call and the tool calls that it requested.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Step {
    /// Number over all runs of the session, from 1; a closing call has the number of the step before it.
    pub number: u32,
    /// Number of the run, from 1.
    pub run: usize,
    /// Purpose of the model call.
    pub purpose: Purpose,
    /// `provider/model`.
    pub model: String,
    /// Start time, in milliseconds since the Unix epoch.
    pub started_ms: u64,
    /// Messages added to the conversation before the call.
    pub added_messages: Vec<ReportedMessage>,
    /// Text of the response.
    pub text: String,
    /// Reasoning of the model, if its provider returns it.
    pub thinking: String,
    /// Why the model stopped; null without a response.
    pub finish_reason: Option<FinishReason>,
    /// Number of requests, including retries.
    pub requests: u32,
    /// Tokens; null if they were not reported.
    pub usage: Option<Usage>,
    /// US dollars; null if tokens or price are unknown.
    pub cost_usd: Option<Usd>,
    /// Milliseconds from the request to the end of the response.
    pub latency_ms: u64,
    /// Time of its tool calls; parallel calls are each counted.
    pub tool_time_ms: u64,
    /// The tool calls, in the model's order.
    pub calls: Vec<Call>,
    /// The hooks that ran.
    pub hooks: Vec<Hook>,
}

/// A message in the conversation that no model wrote.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReportedMessage {
    /// Origin of the message.
    pub origin: MessageOrigin,
    /// The text.
    pub text: String,
}

/// Outcome of a tool call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// The call succeeded.
    Ok,
    /// The call failed.
    Failed,
    /// The call was not permitted and did not run.
    Refused,
    /// The call was simulated (`--dry-run`) and did not run.
    Simulated,
    /// The call needs approval.
    Waiting,
    /// The call has no result: the run ended before.
    #[default]
    Unfinished,
}

/// A tool call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Call {
    /// Links the call to its result.
    pub call_id: String,
    /// Name of the tool.
    pub tool: String,
    /// One-line summary of the call.
    pub summary: String,
    /// The arguments as the model wrote them.
    pub arguments: String,
    /// Outcome of the call.
    pub outcome: CallStatus,
    /// Whether the call did not run because it was refused or simulated.
    pub skipped: bool,
    /// The text sent to the model.
    pub result: String,
    /// Bytes of the result before it was shortened.
    pub result_bytes: usize,
    /// The error, in one line; null if there was none.
    pub error: Option<String>,
    /// Milliseconds for decision, hooks and execution, without the wait for an answer of the user.
    pub latency_ms: u64,
    /// Files that the call changed.
    pub changed: Vec<ChangedFile>,
}

/// A file that a call changed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ChangedFile {
    /// Path from the workspace root.
    pub path: String,
    /// The change.
    pub action: ChangeAction,
}

impl From<&Change> for ChangedFile {
    fn from(change: &Change) -> Self {
        Self { path: change.path.clone(), action: change.action }
    }
}

/// A hook that ran.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Hook {
    /// Name of the hook, or its command.
    pub hook: String,
    /// The hook event.
    pub on: String,
    /// Decision of the hook.
    pub verdict: HookVerdict,
    /// First lines of its output.
    pub output: String,
    /// Duration in milliseconds.
    pub duration_ms: u64,
}

/// A file that the session changed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FileChange {
    /// The change.
    #[serde(flatten)]
    pub file: ModifiedFile,
    /// The unified diff over the session; null if the file is not text, its earlier content was not stored, or there are
    /// too many diffs.
    pub diff: Option<String>,
}

/// A call that was refused.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReportedDenial {
    /// Number of the step.
    pub step: u32,
    /// The call, and why it was refused.
    #[serde(flatten)]
    pub denial: Denial,
}

/// A failure.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReportedError {
    /// Number of the step.
    pub step: u32,
    /// Name of the tool; null for a model call.
    pub tool: Option<String>,
    /// The error, in one line.
    pub message: String,
}

/// A warning.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Warning {
    /// Number of the step.
    pub step: u32,
    /// Severity of the warning.
    pub level: NoticeLevel,
    /// Text of the warning.
    pub text: String,
}

/// Numbers of entries that are counted but not listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OmittedCounts {
    /// Steps.
    pub steps: u32,
    /// Tool calls.
    pub calls: u32,
    /// Hooks, refusals, errors, warnings and messages.
    pub others: u32,
}

impl OmittedCounts {
    /// Checks whether any entry was omitted.
    pub fn is_anything(self) -> bool {
        self != Self::default()
    }
}

impl SessionReport {
    /// Sets the result of the last run; needed if its journal is incomplete or missing.
    pub fn set_result(&mut self, result: &RunResult) {
        self.schema_version = REPORT_SCHEMA_VERSION;
        self.session_id = self.session_id.take().or_else(|| result.session_id.clone());
        self.model = result.model.clone().or_else(|| self.model.take());
        self.sandbox = result.sandbox.clone().or_else(|| self.sandbox.take());
        self.status = Some(result.status);
        self.stop_reason = result.stop_reason;
        (self.limit, self.limit_value) = (result.limit, result.limit_value);
        self.error.clone_from(&result.error);
        self.output = builder::truncate_text(&result.output.text(), builder::TEXT_CHARS);
        self.cost.clone_from(&result.cost);
        self.awaiting_approval.clone_from(&result.awaiting_approval);
        self.executables.clone_from(&result.executables);
        self.health.clone_from(&result.health);
        self.quality_gates.clone_from(&result.quality_gates);
        self.evaluation.clone_from(&result.evaluation);
        self.change_review.clone_from(&result.review);
        self.review = Review::from_result(result);
    }
}

/// Format of a session report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::EnumString)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = unknown_format)]
pub enum ReportFormat {
    /// The document, one line of JSON.
    Json,
    /// Markdown, to read or to store.
    #[strum(serialize = "markdown", serialize = "md")]
    Markdown,
    /// Markdown for a job summary or a comment on GitHub: folded, and short enough for both.
    Github,
    /// A self-contained HTML page.
    Html,
    /// `JUnit` XML: the run, its quality gates and its findings as test cases.
    Junit,
    /// SARIF 2.1.0: the findings of a review.
    Sarif,
}

impl ReportFormat {
    /// Returns the format for a file name's extension; Markdown by default.
    pub fn from_path(path: &Path) -> Self {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        match ending.as_deref() {
            Some("json") => Self::Json,
            Some("html" | "htm") => Self::Html,
            Some("xml") => Self::Junit,
            Some("sarif") => Self::Sarif,
            _ => Self::Markdown,
        }
    }

    /// Renders `report` in this format, ending with a newline, without raw control or invisible characters.
    ///
    /// # Errors
    /// When it cannot be serialized, which cannot happen for its types.
    pub fn render(self, report: &SessionReport) -> io::Result<String> {
        match self {
            Self::Json => json::line(report),
            Self::Markdown => Ok(markdown::render(report)),
            Self::Github => Ok(github::render(report)),
            Self::Html => Ok(html::render(report)),
            Self::Junit => Ok(junit::render(report)),
            Self::Sarif => sarif::render(report),
        }
    }
}

fn unknown_format(_: &str) -> String {
    messages::REPORT_FORMS.to_owned()
}

#[cfg(test)]
#[path = "session_report_tests.rs"]
mod tests;
