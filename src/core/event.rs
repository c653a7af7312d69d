//! Events of a run, the records that contain them in journals and streams, and the trait of event sinks.

use crate::approval::{ApprovalAnswer, ApprovalRequest};
pub use crate::billed_usage::BilledUsage;
use crate::budget_share::{BudgetCap, BudgetShare};
use crate::change_review::ChangeReview;
use crate::compaction::CompactionEvent;
use crate::decision::Denial;
use crate::evaluation::Evaluation;
use crate::failure::{Failure, FailureKind};
use crate::file_change::{Change, ObservedFile, RestoreDirection};
pub use crate::finish_reason::FinishReason;
use crate::guardrail::{CallCounts, TriggeredGuardrail};
use crate::image::Image;
use crate::limits::RunLimits;
use crate::message::{HistoryMessage, Message, ToolCall, ToolResult};
pub use crate::message_origin::{MessageAuthor, MessageOrigin};
pub use crate::notice_level::NoticeLevel;
pub use crate::prefix_hashes::PrefixHashes;
use crate::price::Usd;
pub use crate::purpose::Purpose;
use crate::quality_gate::GateResult;
use crate::run_result::{InstructionFile, RunResult};
use crate::stop_reason::{LimitReached, StopReason};
use crate::usage::Usage;
use crate::work::WorkEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of [`Record`] and [`Event`] as written to journals and streams.
pub const EVENT_SCHEMA_VERSION: u32 = 1;

/// An event with its position in the session and in time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// [`EVENT_SCHEMA_VERSION`] of the writer.
    pub v: u32,
    /// Sequence number of the record in the session, from 0 without gaps; deltas are not counted.
    pub seq: u64,
    /// Id of the run (one process's work on the session).
    pub run: String,
    /// Step of the run; 0 before the first.
    pub step: u32,
    /// Wall clock, milliseconds since the Unix epoch.
    pub wall_ms: u64,
    /// Monotonic clock, microseconds since the process started.
    pub mono_us: u64,
    /// The event.
    pub event: Event,
}

/// Decision of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookVerdict {
    /// Exit code 0: the action may proceed.
    Allow,
    /// Exit code 2, or a pre hook that could not run: the action is blocked.
    Block,
    /// The run must end.
    Stop,
    /// Any other outcome: a warning is reported, and the work continues.
    Warn,
}

/// An event of a run. A run begins with `SessionStart` (only in a new session) and `RunStart`; each step has `StepStart`, `RequestSent`, `ModelResponse`,
/// for each call `ToolCallStart` and `ToolCallEnd`, and `StepEnd`; `RunEnd` is last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case", tag = "type")]
#[strum(serialize_all = "snake_case")]
pub enum Event {
    /// The session starts; the first record of every journal.
    SessionStart {
        /// `YYYYMMDD-HHMMSS-xxxxxx`.
        session_id: String,
        /// The workspace root, absolute.
        workspace: String,
        /// The program version that created the session.
        program: String,
        /// The workspace root before the session was imported (`agent sessions import`); absent for a session of this machine.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        imported_from: Option<String>,
        /// The command of several runs, such as `agent loop`, of which the session is a part.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work_id: Option<String>,
    },
    /// A process starts to work on the session.
    RunStart {
        /// Name of the agent.
        agent: String,
        /// `provider/model`.
        model: String,
        /// The permission mode.
        mode: String,
        /// Names of the tools offered, in order.
        tools: Vec<String>,
        /// Hashes of the definitions of the MCP tools that can be called, by name.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        mcp_tools: BTreeMap<String, String>,
        /// Step limit of this run.
        max_steps: u32,
        /// Whether the session had earlier runs.
        resumed: bool,
        /// The sandbox of commands.
        sandbox: String,
        /// Limits of the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bounds: Option<Box<RunLimits>>,
    },
    /// The system message; a later one replaces an earlier one.
    System {
        /// The whole text.
        text: String,
    },
    /// An instruction file, which the system message or the next user message contains.
    Instructions {
        /// The file, and the version that the previous run used.
        file: InstructionFile,
    },
    /// Messages of an earlier conversation are added before the first prompt (`--history`).
    History {
        /// The messages, in order.
        messages: Vec<HistoryMessage>,
    },
    /// A user message is added to the conversation.
    UserMessage {
        /// The text.
        text: String,
        /// Origin of the message.
        origin: MessageOrigin,
        /// Images that the user attached; stored beside the journal.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
    /// A step starts: the model is about to be called.
    StepStart {
        /// Purpose of the call.
        purpose: Purpose,
        /// Number of messages in the conversation.
        messages: usize,
        /// Hash of the messages without secrets and without the session's untrusted-data delimiters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
    },
    /// A request is sent; retries are requests too.
    RequestSent {
        /// Number of the attempt, from 1.
        attempt: u32,
    },
    /// The start of the requests. Emitted at the first step of a run, and at each step where it differs from the step
    /// before, so that the provider's cache is lost.
    RequestPrefix {
        /// The current hashes.
        hashes: PrefixHashes,
        /// What differs: `parameters`, `tools`, `system`, or the first different `message N`.
        changed: Vec<String>,
    },
    /// The most that the run may use of a budget that other runs share; emitted before a request when it has changed.
    BudgetCap(BudgetCap),
    /// The following response comes from the local cache (`llm.cache`); no request is sent.
    CachedAnswer,
    /// A request failed and is retried.
    Retry {
        /// The attempt that failed: the `attempt` of its `request_sent`.
        attempt: u32,
        /// Number of this retry, from 1.
        retry: u32,
        /// Maximum number of retries.
        max_retries: u32,
        /// Whether the `text` and `thinking` events since that `request_sent` belong to a response that is discarded.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        answer_discarded: bool,
        /// Milliseconds until the next attempt.
        delay_ms: u64,
        /// Class of the failure.
        kind: FailureKind,
        /// Description of the failure.
        message: String,
        /// Usage of the failed request, if the provider reported it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        billed: Option<BilledUsage>,
    },
    /// A piece of streamed text. Never journaled.
    #[serde(rename = "text")]
    TextDelta {
        /// The piece.
        text: String,
    },
    /// A piece of streamed reasoning. Never journaled.
    #[serde(rename = "thinking")]
    ThinkingDelta {
        /// The piece.
        text: String,
    },
    /// The model responded.
    ModelResponse {
        /// Purpose of the call.
        purpose: Purpose,
        /// The response.
        message: Message,
        /// Why the model stopped.
        finish: FinishReason,
        /// Tokens, if the provider reported them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// US dollars, if tokens and price are known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<Usd>,
        /// Milliseconds from the request to the end of the response.
        latency_ms: u64,
    },
    /// The model call failed, including all retries.
    ModelFailed {
        /// Purpose of the call.
        purpose: Purpose,
        /// The failure.
        failure: Failure,
        /// Usage of the last attempt, if the provider reported it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        billed: Option<BilledUsage>,
    },
    /// A model call was abandoned before its response.
    ModelAbandoned {
        /// Purpose of the call.
        purpose: Purpose,
        /// `timeout`, `user_interrupt`, or `budget_exceeded` if a retry no longer fits into the budget.
        reason: StopReason,
    },
    /// A model failed and the next one of `llm.fallback` is used for the rest of the run; the step is repeated.
    ModelSwitched {
        /// The model that failed.
        from: String,
        /// The model that is used from now on.
        to: String,
        /// The failure.
        failure: Failure,
    },
    /// A tool call is about to be checked and run.
    #[serde(rename = "tool_call_start")]
    ToolCallStart {
        /// The call as the model made it.
        call: ToolCall,
        /// One-line summary of the call.
        summary: String,
    },
    /// A call is about to change files. If the process is killed, the next one checks these files.
    FileChangesPlanned {
        /// Id of the call.
        call_id: String,
        /// The planned changes; empty for a program, whose changes are found by comparison.
        changes: Vec<Change>,
    },
    /// A tool call has a result.
    #[serde(rename = "tool_call_end")]
    ToolCallEnd {
        /// Name of the tool; for a call of `call_tool`, of the tool that it named.
        name: String,
        /// One-line summary of the call.
        summary: String,
        /// The result sent to the model.
        result: ToolResult,
        /// Files that the call changed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<Change>,
        /// Files whose content was sent to the model.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        seen: Vec<ObservedFile>,
        /// Set if the call was refused and not run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        denial: Option<Denial>,
        /// Set if the call was simulated (`--dry-run`).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        simulated: bool,
        /// What the call adds to the limits of guardrails.
        #[serde(default, skip_serializing_if = "crate::is_default")]
        guardrail_counts: CallCounts,
        /// Milliseconds for decision, hooks and execution, without the wait for an answer of the user.
        duration_ms: u64,
    },
    /// A tool call was not run: it needs approval, or follows a call that does (`--approvals pause`).
    ToolCallPending {
        /// Id of the call.
        call_id: String,
        /// The approval request; absent if the call only waits for an earlier one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approval: Option<ApprovalRequest>,
    },
    /// The user answered an approval request between runs (`agent approve`, `agent deny`); the last answer counts.
    ApprovalAnswered {
        /// Id of the request.
        id: String,
        /// The answer.
        answer: ApprovalAnswer,
        /// Signature: shows that the answer was given on this machine, in this session and to this request.
        signature: String,
    },
    /// An event in the session of a subagent.
    Subagent {
        /// Id of the call that started the subagent.
        call_id: String,
        /// The event.
        event: Box<Event>,
        /// What the subagent has spent and reserved; absent if it is unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget_share: Option<BudgetShare>,
    },
    /// A command continues in the background.
    BackgroundStart {
        /// Id of the command for the model.
        id: String,
        /// The command, one line.
        command: String,
    },
    /// A background command ended.
    BackgroundEnd {
        /// Id of the command for the model.
        id: String,
        /// The command, one line.
        command: String,
        /// Description of how it ended.
        outcome: String,
        /// Set if the command was ended at the end of the run.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        ended_by_run_end: bool,
    },
    /// A hook ran.
    HookEnd {
        /// Name of the hook, or its command.
        hook: String,
        /// The hook event.
        on: String,
        /// Decision of the hook.
        verdict: HookVerdict,
        /// First lines of its output, limited in length.
        output: String,
        /// Duration in milliseconds.
        duration_ms: u64,
    },
    /// A guardrail withheld a text or ended the run.
    Guardrail {
        /// The guardrail and its reason.
        triggered: TriggeredGuardrail,
    },
    /// The model reported that it is done, and the quality gates were checked.
    QualityGates {
        /// Results of the gates, in order.
        results: Vec<GateResult>,
    },
    /// The model evaluated its own answer, or the evaluation failed (`evaluation.mode`).
    Evaluation {
        /// The result.
        #[serde(flatten)]
        result: Evaluation,
    },
    /// Another agent reviewed the changes of the run, or the review failed (`auto_review.enabled`).
    ChangeReview {
        /// The result.
        #[serde(flatten)]
        result: ChangeReview,
    },
    /// The cost of the run reached the warning threshold; emitted once in a run.
    BudgetWarning {
        /// US dollars of the run so far, including failed requests.
        spent_usd: Usd,
        /// The threshold, in US dollars.
        threshold_usd: Usd,
    },
    /// The conversation fills the context window and is compacted.
    Compaction {
        /// The part of the compaction.
        #[serde(flatten)]
        part: CompactionEvent,
    },
    /// All tool calls of the step have a result or are pending.
    StepEnd,
    /// The session's files were stored as a git commit (`checkpoints.enabled`).
    Checkpoint {
        /// The step after which it was made, counted over all runs of the session.
        step: u32,
        /// Name of the git ref.
        reference: String,
        /// Hash of the commit.
        commit: String,
        /// Changed files that the commit does not contain.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        omitted_files: Vec<String>,
    },
    /// A notice.
    Notice {
        /// Severity of the notice.
        level: NoticeLevel,
        /// Text of the notice.
        text: String,
    },
    /// A limit or a circuit breaker ends the run; the model is asked for a closing summary.
    Closing {
        /// Why the run ends.
        reason: StopReason,
        /// The limit that ends it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<LimitReached>,
    },
    /// The user restored files between runs (`agent undo`, `agent redo`).
    Restored {
        /// Undo or redo.
        direction: RestoreDirection,
        /// The last step whose changes an undo left in place, counted over all runs of the session; 0 for a redo.
        to_step: u32,
        /// The restored files.
        changed: Vec<Change>,
    },
    /// The run ended; the last record of every run.
    RunEnd {
        /// The result.
        result: Box<RunResult>,
    },
    /// The session was imported (`agent sessions import`): the records before come from a file, and what they changed, chose or
    /// asked for is not of this machine.
    Imported,
    /// A command of several runs, such as `agent loop`; only in its own journal.
    Work {
        /// What happened.
        part: WorkEvent,
    },
}

impl Event {
    /// Returns the name of the kind of event: the value of `type` in JSON.
    pub fn kind(&self) -> &'static str {
        self.into()
    }

    /// Checks whether the event, the first of a session, is that of one that was imported, or of a fork of one.
    pub fn starts_imported_session(&self) -> bool {
        matches!(self, Self::SessionStart { imported_from: Some(_), .. })
    }

    /// Checks whether the event is streamed but never recorded.
    pub fn is_delta(&self) -> bool {
        matches!(self, Self::TextDelta { .. } | Self::ThinkingDelta { .. })
    }

    /// Creates a user message without images.
    pub fn user_message(text: impl Into<String>, origin: MessageOrigin) -> Self {
        Self::UserMessage { text: text.into(), origin, images: Vec::new() }
    }

    /// Creates the end of a call that did not run, or of which only `result` and `changed` are known.
    pub fn tool_not_run(name: String, summary: String, result: ToolResult, changed: Vec<Change>) -> Self {
        Self::ToolCallEnd {
            name,
            summary,
            result,
            changed,
            seen: Vec::new(),
            denial: None,
            simulated: false,
            guardrail_counts: CallCounts::default(),
            duration_ms: 0,
        }
    }

    /// Returns the images that the event adds to a conversation, including that of a subagent.
    pub fn images(&self) -> &[Image] {
        match self {
            Self::UserMessage { images, .. } => images,
            Self::ToolCallEnd { result, .. } => &result.images,
            Self::Subagent { event, .. } => event.images(),
            _ => &[],
        }
    }

    /// Returns the files that a call changed, including calls of subagents.
    pub fn changed(&self) -> &[Change] {
        match self {
            Self::ToolCallEnd { changed, .. } => changed,
            Self::Subagent { event, .. } => event.changed(),
            _ => &[],
        }
    }
}
