//! Why a run ended: the one verdict, its status, and the finer cause beside it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model finished.
    LlmDone,
    /// The step limit was reached.
    MaxSteps,
    /// The next call could have cost more than was left of the money, the tokens or the tool calls.
    BudgetExceeded,
    /// The conversation no longer fits into the model's window.
    ContextFull,
    /// The total or the step time limit was reached.
    Timeout,
    /// The same call, or the same round of calls, was made again and again.
    RepeatedCall,
    /// Too many calls in a row failed, or had arguments that are not valid JSON.
    ConsecutiveErrors,
    /// The calls differed and led nowhere, or an action was announced and not taken.
    NoProgress,
    /// A hook ended the run.
    Guardrail,
    /// The model refused, or its provider filtered the answer.
    ContentFilter,
    /// The answer stayed cut after the allowed continuations.
    Truncated,
    /// A call waits for a person's answer.
    AwaitingApproval,
    /// SIGINT, SIGTERM, or `a` at a prompt.
    UserInterrupt,
    /// The provider was unusable after the retries.
    LlmError,
    /// 401 or 403, or no key where one is needed.
    AuthError,
    /// A bug, or the journal can no longer be written.
    InternalError,
}

/// The three-way summary of a [`StopReason`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The work is done.
    Success,
    /// The run ended early; what was done stands.
    Partial,
    /// The run could not do its work.
    Failed,
}

impl StopReason {
    /// Every reason, in the order of the table in the README.
    pub const ALL: [Self; 16] = [
        Self::LlmDone,
        Self::MaxSteps,
        Self::BudgetExceeded,
        Self::ContextFull,
        Self::Timeout,
        Self::RepeatedCall,
        Self::ConsecutiveErrors,
        Self::NoProgress,
        Self::Guardrail,
        Self::ContentFilter,
        Self::Truncated,
        Self::AwaitingApproval,
        Self::UserInterrupt,
        Self::LlmError,
        Self::AuthError,
        Self::InternalError,
    ];

    /// The status that goes with this reason.
    pub fn status(self) -> Status {
        match self {
            Self::LlmDone => Status::Success,
            Self::MaxSteps
            | Self::BudgetExceeded
            | Self::ContextFull
            | Self::Timeout
            | Self::RepeatedCall
            | Self::ConsecutiveErrors
            | Self::NoProgress
            | Self::Guardrail
            | Self::ContentFilter
            | Self::Truncated
            | Self::AwaitingApproval
            | Self::UserInterrupt => Status::Partial,
            Self::LlmError | Self::AuthError | Self::InternalError => Status::Failed,
        }
    }

    /// The name used in JSON, journals and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::LlmDone => "llm_done",
            Self::MaxSteps => "max_steps",
            Self::BudgetExceeded => "budget_exceeded",
            Self::ContextFull => "context_full",
            Self::Timeout => "timeout",
            Self::RepeatedCall => "repeated_call",
            Self::ConsecutiveErrors => "consecutive_errors",
            Self::NoProgress => "no_progress",
            Self::Guardrail => "guardrail",
            Self::ContentFilter => "content_filter",
            Self::Truncated => "truncated",
            Self::AwaitingApproval => "awaiting_approval",
            Self::UserInterrupt => "user_interrupt",
            Self::LlmError => "llm_error",
            Self::AuthError => "auth_error",
            Self::InternalError => "internal_error",
        }
    }
}

impl std::fmt::Display for StopReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Status {
    /// The name used in JSON and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Partial => "partial",
            Self::Failed => "failed",
        }
    }
}

/// Which limit ended a run, named in the result beside the stop reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReachedLimit {
    /// `--budget`.
    Usd,
    /// `costs.max_tokens`.
    Tokens,
    /// `costs.max_tool_calls`.
    ToolCalls,
    /// `--max-steps`.
    Steps,
    /// `--timeout` or `--step-timeout`.
    Time,
    /// What the model may hold.
    Window,
}
