//! An account of a session: what was asked, done, refused and changed, step by step, with the time, tokens and money it took.
//!
//! It is folded from the records of a journal, so `--report` at the end of a run and `agent report` later make the same of
//! them. The forms in which it is shown stand beside it, one file each.

mod builder;
mod chart;
mod github;
mod html;
mod html_writer;
mod markdown;
mod text;

pub use builder::SessionReportBuilder;

use crate::core::decision::Denial;
use crate::core::event::{FinishReason, HookVerdict, MessageOrigin, NoticeLevel, Purpose};
use crate::core::failure::Failure;
use crate::core::file_change::{Change, ChangeAction};
use crate::core::guardrail::TriggeredGuardrail;
use crate::core::price::Usd;
use crate::core::run_result::{Cost, Executables, ModifiedFile, PendingApproval, RunResult};
use crate::core::stop_reason::{ReachedLimit, Status, StopReason};
use crate::core::usage::Usage;
use crate::messages;
use crate::report::json;
use schemars::JsonSchema;
use serde::Serialize;
use std::io;
use std::path::Path;
use std::str::FromStr;

/// The version of the document.
pub const REPORT_SCHEMA_VERSION: u32 = 1;

/// An account of a session. Long texts in it are cut to their beginning and end, with a note where.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct SessionReport {
    /// The version of this document.
    pub schema_version: u32,
    /// The session, for `agent resume`; null when none was made.
    pub session_id: Option<String>,
    /// The workspace root.
    pub workspace: Option<String>,
    /// What was asked for first.
    pub task: String,
    /// The agent of the last run; null when none began.
    pub agent: Option<String>,
    /// `provider/model` that was asked last; null when none was chosen yet.
    pub model: Option<String>,
    /// The permission mode of the last run.
    pub mode: Option<String>,
    /// What confined commands in the last run.
    pub sandbox: Option<String>,
    /// How the last run ended; null when it has no end: it is still at work, or was killed.
    pub status: Option<Status>,
    /// Why it ended; null without an end, and when it never began.
    pub stop_reason: Option<StopReason>,
    /// The limit that ended it.
    pub limit: Option<ReachedLimit>,
    /// What went wrong.
    pub error: Option<Failure>,
    /// The final answer; a structured one as JSON.
    pub output: String,
    /// When the first run began, milliseconds since the Unix epoch; null when none did.
    pub started_ms: Option<u64>,
    /// When something happened last, milliseconds since the Unix epoch.
    pub completed_ms: Option<u64>,
    /// Time that runs took, from their first record to their last; what lies between runs does not count.
    pub duration_ms: u64,
    /// The part of it in which models were waited for.
    pub model_time_ms: u64,
    /// The time that tool calls took; calls side by side count each.
    pub tool_time_ms: u64,
    /// Model calls that were part of the work.
    pub step_count: u32,
    /// Everything sent to models, retries and closing calls included.
    pub request_count: u32,
    /// Tool calls that models made.
    pub tool_call_count: u32,
    /// Tokens.
    pub usage: Usage,
    /// Money.
    pub cost: Cost,
    /// The runs, in order.
    pub runs: Vec<Run>,
    /// The steps, in order, closing calls included.
    pub steps: Vec<Step>,
    /// Files changed, as they stand at the end compared with the start.
    pub files_modified: Vec<FileChange>,
    /// Calls that were refused.
    pub permission_denials: Vec<ReportedDenial>,
    /// Calls that wait for an answer.
    pub awaiting_approval: Vec<PendingApproval>,
    /// Guardrails on the conversation that withheld a text or ended a run.
    pub guardrails: Vec<TriggeredGuardrail>,
    /// Calls and requests that failed.
    pub errors: Vec<ReportedError>,
    /// What did not go as asked: retries, hooks that blocked, notices.
    pub warnings: Vec<Warning>,
    /// Executables that the last run made or changed.
    pub executables: Executables,
    /// Records of the journal that are damaged and were skipped.
    pub damaged_records: usize,
    /// What is counted above but not listed, because there is too much of it.
    pub left_out: OmittedCounts,
}

/// One process's work on the session.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Run {
    /// The agent.
    pub agent: String,
    /// `provider/model` that it began with.
    pub model: String,
    /// The permission mode.
    pub mode: String,
    /// What confined commands.
    pub sandbox: String,
    /// When it began, milliseconds since the Unix epoch.
    pub started_ms: u64,
    /// From its first record to its last.
    pub duration_ms: u64,
    /// How it ended; null when it has no end.
    pub status: Option<Status>,
    /// Why it ended.
    pub stop_reason: Option<StopReason>,
}

/// One model call and the tool calls that it asked for.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Step {
    /// Counted over all runs of the session, from 1; a closing call has the number of the step before it.
    pub number: u32,
    /// The run, from 1.
    pub run: usize,
    /// Why the model was asked.
    pub purpose: Purpose,
    /// `provider/model`.
    pub model: String,
    /// When it began, milliseconds since the Unix epoch.
    pub started_ms: u64,
    /// What was said to the model before it, by whom.
    pub told: Vec<ReportedMessage>,
    /// What the model said.
    pub text: String,
    /// Its reasoning, as far as its provider shows it.
    pub thinking: String,
    /// Why the model stopped; null when it gave no answer.
    pub finish_reason: Option<FinishReason>,
    /// Requests for it that went out.
    pub requests: u32,
    /// Tokens; null when they were not reported.
    pub usage: Option<Usage>,
    /// US dollars; null when tokens or price are not known.
    pub cost_usd: Option<Usd>,
    /// From the request to the end of the answer.
    pub latency_ms: u64,
    /// The time that its tool calls took, each counted.
    pub tool_time_ms: u64,
    /// The tool calls, in the model's order.
    pub calls: Vec<Call>,
    /// The hooks that ran.
    pub hooks: Vec<Hook>,
}

/// A message in the conversation that no model wrote.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReportedMessage {
    /// Who said it.
    pub origin: MessageOrigin,
    /// The text.
    pub text: String,
}

/// What became of a tool call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// It did what it was asked.
    Ok,
    /// It failed.
    Failed,
    /// It was not permitted, and did not run.
    Refused,
    /// It was only described (`--dry-run`), and did not run.
    Simulated,
    /// It waits for a person's answer.
    Waiting,
    /// It has no result: the run ended before.
    #[default]
    Unfinished,
}

/// One tool call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Call {
    /// Joins it with its result.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// What it was to do, one line.
    pub summary: String,
    /// The arguments as the model wrote them.
    pub arguments: String,
    /// What became of it.
    pub outcome: CallStatus,
    /// Whether it did not run: it was refused or simulated.
    pub skipped: bool,
    /// What the model read.
    pub result: String,
    /// Bytes of that before it was cut.
    pub result_bytes: usize,
    /// What went wrong, in one line; null when nothing did.
    pub error: Option<String>,
    /// Decision, hooks and execution.
    pub latency_ms: u64,
    /// Files it changed.
    pub changed: Vec<ChangedFile>,
}

/// A file that a call changed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ChangedFile {
    /// Path from the workspace root.
    pub path: String,
    /// What happened to it.
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
    /// Its name, or its command.
    pub hook: String,
    /// The hook event.
    pub on: String,
    /// What it decided.
    pub verdict: HookVerdict,
    /// Its first lines of output.
    pub output: String,
    /// How long it took.
    pub duration_ms: u64,
}

/// A file that the session changed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FileChange {
    /// What happened to it.
    #[serde(flatten)]
    pub file: ModifiedFile,
    /// The unified diff between what it was and what the session left; null when it is no text, was not kept or is
    /// one too many.
    pub diff: Option<String>,
}

/// A call that was refused.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReportedDenial {
    /// The step.
    pub step: u32,
    /// Which call, and why.
    #[serde(flatten)]
    pub denial: Denial,
}

/// Something that failed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReportedError {
    /// The step.
    pub step: u32,
    /// The tool; null when it was the model.
    pub tool: Option<String>,
    /// What went wrong, in one line.
    pub message: String,
}

/// Something that did not go as asked.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Warning {
    /// The step.
    pub step: u32,
    /// How grave it is.
    pub level: NoticeLevel,
    /// In words.
    pub text: String,
}

/// What is counted but not listed.
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
    /// Whether anything is.
    pub fn is_anything(self) -> bool {
        self != Self::default()
    }
}

impl SessionReport {
    /// Takes over how the last run ended, also where its journal could not be told, or there is none.
    pub fn set_result(&mut self, result: &RunResult) {
        self.schema_version = REPORT_SCHEMA_VERSION;
        self.session_id = self.session_id.take().or_else(|| result.session_id.clone());
        self.model = result.model.clone().or_else(|| self.model.take());
        self.sandbox = result.sandbox.clone().or_else(|| self.sandbox.take());
        self.status = Some(result.status);
        self.stop_reason = result.stop_reason;
        self.limit = result.limit;
        self.error.clone_from(&result.error);
        self.output = builder::truncate_text(&result.output.text(), builder::TEXT_CHARS);
        self.cost.clone_from(&result.cost);
        self.awaiting_approval.clone_from(&result.awaiting_approval);
        self.executables.clone_from(&result.executables);
    }
}

/// A form in which an account is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportFormat {
    /// The document, one line of JSON.
    Json,
    /// Markdown, to read or to keep.
    Markdown,
    /// Markdown for the summary of a job or a comment on GitHub: folded, and short enough for both.
    Github,
    /// A page that needs nothing but itself.
    Html,
}

impl ReportFormat {
    /// The form that the ending of a file's name asks for.
    pub fn from_path(path: &Path) -> Self {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        match ending.as_deref() {
            Some("json") => Self::Json,
            Some("html" | "htm") => Self::Html,
            _ => Self::Markdown,
        }
    }

    /// `account` in this form, ended by a newline, without a raw control or invisible character.
    ///
    /// # Errors
    /// When it cannot be written as JSON, which its types rule out.
    pub fn render(self, account: &SessionReport) -> io::Result<String> {
        match self {
            Self::Json => json::line(account),
            Self::Markdown => Ok(markdown::render(account)),
            Self::Github => Ok(github::render(account)),
            Self::Html => Ok(html::render(account)),
        }
    }
}

impl FromStr for ReportFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "json" => Ok(Self::Json),
            "markdown" | "md" => Ok(Self::Markdown),
            "github" => Ok(Self::Github),
            "html" => Ok(Self::Html),
            _ => Err(messages::REPORT_FORMS.to_owned()),
        }
    }
}

#[cfg(test)]
#[path = "session_report_tests.rs"]
mod tests;
