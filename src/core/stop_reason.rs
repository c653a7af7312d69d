//! Why a run ended: stop reason, status, and the limit that was reached.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model finished its work.
    LlmDone,
    /// The step limit was reached.
    MaxSteps,
    /// The next call could have cost more than the money, tokens or tool calls that were left.
    BudgetExceeded,
    /// The conversation no longer fits into the model's context window.
    ContextFull,
    /// The total or the step time limit was reached.
    Timeout,
    /// The same call, or the same sequence of calls, was repeated.
    RepeatedCall,
    /// Too many calls in a row failed, or had arguments that are not valid JSON.
    ConsecutiveErrors,
    /// Different calls made no progress, or the model announced an action and did not take it.
    NoProgress,
    /// A hook ended the run.
    Guardrail,
    /// The model refused, or its provider filtered the response.
    ContentFilter,
    /// The response was still cut off after the allowed continuations.
    Truncated,
    /// A call needs the user's approval.
    AwaitingApproval,
    /// SIGINT, SIGTERM, or `a` at a prompt.
    UserInterrupt,
    /// The provider failed after all retries.
    LlmError,
    /// HTTP status 401 or 403, or a missing key.
    AuthError,
    /// A bug, or the journal cannot be written.
    InternalError,
}

/// The status that summarizes a [`StopReason`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The work is done.
    Success,
    /// The run ended early; the work that was done remains.
    Partial,
    /// The run could not do its work.
    Failed,
}

impl StopReason {
    /// All reasons, in the order of the table in the README.
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

    /// Returns the status for this reason.
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

    /// Returns the name used in JSON, journals and messages.
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
    /// Returns the name used in JSON and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Partial => "partial",
            Self::Failed => "failed",
        }
    }
}

/// The limit that ended a run; reported in the result with the stop reason.
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
    /// The context window of the model.
    Window,
}
