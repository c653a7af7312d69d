//! What happens during a run, as typed facts, and the sink they are told to.

use crate::core::approval::{ApprovalAnswer, ApprovalRequest};
use crate::core::budget_share::BudgetShare;
use crate::core::compaction::CompactionEvent;
use crate::core::decision::Denial;
use crate::core::evaluation::Evaluation;
use crate::core::failure::{Failure, FailureKind};
use crate::core::file_change::{Change, ObservedFile, RestoreDirection};
pub use crate::core::finish_reason::FinishReason;
use crate::core::guardrail::{CallCounts, TriggeredGuardrail};
use crate::core::limits::RunLimits;
use crate::core::message::{HistoryMessage, Message, ToolCall, ToolResult};
pub use crate::core::message_origin::{MessageAuthor, MessageOrigin};
use crate::core::price::Usd;
use crate::core::quality_gate::GateResult;
use crate::core::run_result::{InstructionFile, RunResult};
use crate::core::stop_reason::StopReason;
use crate::core::usage::Usage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::sync::Arc;

/// The version of [`Record`] and [`Event`] as written to journals and streams.
pub const EVENT_SCHEMA_VERSION: u32 = 1;

/// One event with everything needed to place it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// [`EVENT_SCHEMA_VERSION`] of the writer.
    pub v: u32,
    /// Counts the records of a session from 0 without gaps; deltas are not counted.
    pub seq: u64,
    /// The run (one process's work on the session) it belongs to.
    pub run: String,
    /// The step of the run it happened in; 0 before the first.
    pub step: u32,
    /// Wall clock, milliseconds since the Unix epoch.
    pub wall_ms: u64,
    /// Monotonic clock, microseconds since the process began.
    pub mono_us: u64,
    /// What happened.
    pub event: Event,
}

/// Why a model is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The next step of the work.
    Step,
    /// The closing summary, without tools.
    Closing,
    /// A summary of old exchanges, without tools, to make the conversation shorter.
    Summary,
    /// A verdict on an answer, without tools (`evaluation.mode`).
    Evaluation,
}

impl Purpose {
    /// Whether the reply is for the loop alone: no part of the conversation, and nothing that anybody is shown.
    pub fn is_internal(self) -> bool {
        matches!(self, Self::Summary | Self::Evaluation)
    }
}

/// How loudly a notice is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoticeLevel {
    /// Only of interest when looking for a fault.
    Debug,
    /// Worth knowing.
    Info,
    /// Something did not go as asked.
    Warn,
    /// Something failed.
    Error,
}

/// What a hook decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookVerdict {
    /// Exit 0.
    Allow,
    /// Exit 2, or a pre hook that could not run.
    Block,
    /// The run is to end.
    Stop,
    /// Anything else: told, and the work goes on.
    Warn,
}

/// What a request used that gave no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BilledUsage {
    /// Tokens.
    pub usage: Usage,
    /// US dollars, where the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
}

/// Hashes of what the requests of a session begin with, in the order in which providers cache it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrefixHashes {
    /// Server, model and what every request says.
    pub parameters: String,
    /// The tools offered.
    pub tools: String,
    /// The system message.
    pub system: String,
}

/// A fact about a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Event {
    /// The session begins: the first record of every journal.
    SessionStart {
        /// `YYYYMMDD-HHMMSS-xxxxxx`.
        session_id: String,
        /// The workspace root, absolute.
        workspace: String,
        /// The version of the program that began it.
        program: String,
        /// The workspace root that the session knew before it was brought here from elsewhere (`agent sessions import`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        brought_from: Option<String>,
    },
    /// A process begins to work on the session.
    RunStart {
        /// The agent's name.
        agent: String,
        /// `provider/model`.
        model: String,
        /// The permission mode.
        mode: String,
        /// Names of the tools offered, in order.
        tools: Vec<String>,
        /// Step limit of this run.
        max_steps: u32,
        /// Whether the session had earlier runs.
        resumed: bool,
        /// What confines commands.
        sandbox: String,
        /// What the run is held to; earlier versions did not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bounds: Option<Box<RunLimits>>,
    },
    /// The system message; a later one replaces an earlier one.
    System {
        /// The whole text.
        text: String,
    },
    /// The project's instructions for agents, which the system message holds.
    Instructions {
        /// The file, and what it was before.
        file: InstructionFile,
    },
    /// What was said in an earlier conversation enters this one, before its first prompt (`--history`).
    History {
        /// In order.
        messages: Vec<HistoryMessage>,
    },
    /// A user message enters the conversation.
    UserMessage {
        /// The text.
        text: String,
        /// Who put it there.
        origin: MessageOrigin,
    },
    /// A step begins: the model is about to be asked.
    StepStart {
        /// Why.
        purpose: Purpose,
        /// How many messages it is sent.
        messages: usize,
        /// A hash of them, without secrets and without the marks of the session; earlier versions did not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
    },
    /// A request goes out; retries are requests too.
    RequestSent {
        /// 1 for the first try.
        attempt: u32,
    },
    /// What the requests begin with: told at the first step of a run, and at each that begins otherwise than the step
    /// before, which costs the provider's cache.
    RequestPrefix {
        /// What it is now.
        hashes: PrefixHashes,
        /// What was other before: `parameters`, `tools`, `system`, or the first such `message N`.
        changed: Vec<String>,
    },
    /// The answer that follows was kept from an earlier request (`llm.cache`): none went out.
    KeptAnswer,
    /// A request failed and is repeated.
    Retry {
        /// The attempt that failed: the `attempt` of its `request_sent`.
        attempt: u32,
        /// The number of this retry, from 1; 0 in journals of earlier versions.
        #[serde(default)]
        retry: u32,
        /// How many retries are allowed; 0 in journals of earlier versions.
        #[serde(default)]
        max_retries: u32,
        /// Whether the `text` and `thinking` events since that `request_sent` belong to an answer that is discarded.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        answer_discarded: bool,
        /// How long we wait before the next one.
        delay_ms: u64,
        /// The class of the failure.
        kind: FailureKind,
        /// In words.
        message: String,
        /// What it used all the same, where the provider said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        billed: Option<BilledUsage>,
    },
    /// A piece of answer text arrived. Never journaled.
    #[serde(rename = "text")]
    TextDelta {
        /// The piece.
        text: String,
    },
    /// A piece of reasoning arrived. Never journaled.
    #[serde(rename = "thinking")]
    ThinkingDelta {
        /// The piece.
        text: String,
    },
    /// The model answered.
    ModelResponse {
        /// Why it was asked.
        purpose: Purpose,
        /// The answer.
        message: Message,
        /// Why it stopped.
        finish: FinishReason,
        /// Tokens, where the provider said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// US dollars, where tokens and price are known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<Usd>,
        /// From the request to the end of the answer.
        latency_ms: u64,
    },
    /// The model could not be used, retries included.
    ModelFailed {
        /// Why it was asked.
        purpose: Purpose,
        /// What went wrong.
        failure: Failure,
        /// What the last attempt used all the same, where the provider said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        billed: Option<BilledUsage>,
    },
    /// A model call was given up before it answered.
    ModelAbandoned {
        /// Why it was asked.
        purpose: Purpose,
        /// `timeout`, `user_interrupt`, or `budget_exceeded` when a repetition no longer fits.
        reason: StopReason,
    },
    /// A model cannot be used and the next one of `llm.fallback` takes over, for the rest of the run; the step begins again.
    ModelSwitched {
        /// The model that failed.
        from: String,
        /// The one that takes over.
        to: String,
        /// What went wrong.
        because: Failure,
    },
    /// A tool call is about to be decided on and run.
    #[serde(rename = "tool_call_start", alias = "tool_start")]
    ToolCallStart {
        /// The call as the model made it.
        call: ToolCall,
        /// What it is to do, one line.
        summary: String,
    },
    /// A call is about to change files: where the process is killed meanwhile, the next one knows what to look at.
    Changing {
        /// The call.
        call_id: String,
        /// What is to become of files; nothing for a program, whose changes are found by comparison.
        changes: Vec<Change>,
    },
    /// A tool call has its result.
    #[serde(rename = "tool_call_end", alias = "tool_end")]
    ToolCallEnd {
        /// The tool's name.
        name: String,
        /// What it was to do, one line.
        summary: String,
        /// What the model reads.
        result: ToolResult,
        /// Files it changed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<Change>,
        /// Files it showed to the model.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        seen: Vec<ObservedFile>,
        /// Set when it was refused rather than run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        denial: Option<Denial>,
        /// Set when it was simulated (`--dry-run`).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        simulated: bool,
        /// What it counts towards the limits of guardrails.
        #[serde(default, skip_serializing_if = "CallCounts::is_empty")]
        counted: CallCounts,
        /// Decision, hooks and execution.
        duration_ms: u64,
    },
    /// A tool call was not run: it waits, for a person's answer or for a call before it that does (`--approvals pause`).
    #[serde(rename = "tool_call_waits")]
    ToolCallPending {
        /// The call.
        call_id: String,
        /// What a person is asked; absent when it waits its turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approval: Option<ApprovalRequest>,
    },
    /// The person answered, between runs (`agent approve`, `agent deny`); the last answer counts.
    ApprovalAnswered {
        /// Which question.
        id: String,
        /// What was said.
        answer: ApprovalAnswer,
        /// Shows that it was said here, in this session and to this question.
        seal: String,
    },
    /// Something happened in the session of a subagent, which a call has asked.
    Subagent {
        /// The call.
        call_id: String,
        /// What happened.
        event: Box<Event>,
        /// What the subagent has spent, and may yet by the request under way, where that is another amount than before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        purse: Option<BudgetShare>,
    },
    /// A command goes on in the background.
    BackgroundStart {
        /// What the model calls it.
        id: String,
        /// The command, one line.
        command: String,
    },
    /// A background command has ended.
    BackgroundEnd {
        /// What the model calls it.
        id: String,
        /// The command, one line.
        command: String,
        /// How it ended, in words.
        outcome: String,
        /// Set when the end of the run ended it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        with_run: bool,
    },
    /// A hook ran.
    HookEnd {
        /// Its name, or its command.
        hook: String,
        /// The hook event.
        on: String,
        /// What it decided.
        verdict: HookVerdict,
        /// Its first lines of output, bounded.
        output: String,
        /// How long it took.
        duration_ms: u64,
    },
    /// A guardrail withheld a text or ended the run.
    Guardrail {
        /// Which, and why.
        triggered: TriggeredGuardrail,
    },
    /// The model said that it is done, and the quality gates were looked at.
    Gates {
        /// What became of each, in order.
        results: Vec<GateResult>,
    },
    /// The model has judged its own answer, or could not (`evaluation.mode`).
    Evaluation {
        /// What it found.
        #[serde(flatten)]
        result: Evaluation,
    },
    /// The run has cost as much as one wants to be told of; once in a run.
    BudgetWarning {
        /// US dollars of the run so far, requests that broke off included.
        spent_usd: Usd,
        /// What was to be told of.
        at_usd: Usd,
    },
    /// The conversation fills the window and is made shorter.
    Compaction {
        /// What happens.
        #[serde(flatten)]
        part: CompactionEvent,
    },
    /// The step's tools have their results or wait, or it had none.
    StepEnd,
    /// What the session has made of files was written as a commit (`checkpoints.enabled`).
    Checkpoint {
        /// The step it shows, counted over all runs of the session.
        step: u32,
        /// What it is called in the repository.
        reference: String,
        /// Its name.
        commit: String,
        /// Changed files that are not in it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left_out: Vec<String>,
    },
    /// The state of the session was written beside its journal: what stands before need not be read again.
    StateKept {
        /// The version of its form.
        version: u32,
        /// The hash of what was written (BLAKE3, hexadecimal), which names the file.
        hash: String,
        /// Lines of the journal before this one.
        lines: u64,
    },
    /// Something worth telling.
    Notice {
        /// How loudly.
        level: NoticeLevel,
        /// In words.
        text: String,
    },
    /// A watchdog or a breaker ends the run; the model is asked for a closing summary.
    Closing {
        /// Why.
        reason: StopReason,
    },
    /// The person put files back, between runs (`agent undo`, `agent redo`).
    Restored {
        /// Which way.
        way: RestoreDirection,
        /// The last step whose changes an undo left, counted over all runs of the session; 0 for a redo.
        to_step: u32,
        /// The files.
        changed: Vec<Change>,
    },
    /// The run ended: the last record of every run.
    RunEnd {
        /// The verdict and the figures.
        result: Box<RunResult>,
    },
}

impl Event {
    /// Whether the event is told while it happens but never recorded.
    pub fn is_delta(&self) -> bool {
        matches!(self, Self::TextDelta { .. } | Self::ThinkingDelta { .. })
    }

    /// The files that a call has changed, of a subagent too.
    pub fn changed(&self) -> &[Change] {
        match self {
            Self::ToolCallEnd { changed, .. } => changed,
            Self::Subagent { event, .. } => event.changed(),
            _ => &[],
        }
    }
}

/// A listener to the events of a run.
pub trait EventSink {
    /// Takes note of one record.
    ///
    /// # Errors
    /// Only a [`required`](Self::required) sink's error ends the run; any other sink is dropped after its first.
    fn emit(&mut self, record: &Record) -> std::io::Result<()>;

    /// Whether the run may not go on without this sink. Only the journal says yes.
    fn is_required(&self) -> bool {
        false
    }

    /// The file that makes what was told durable when it is synced, before a side effect that cannot be repeated and at the
    /// end; nothing where nobody relies on it.
    ///
    /// # Errors
    /// When it lacks something that was told.
    fn file_to_sync(&self) -> std::io::Result<Option<Arc<File>>> {
        Ok(None)
    }
}
