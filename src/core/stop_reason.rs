//! Why a run ended: stop reason, status, and the limit that was reached.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray, strum::Display)]
#[strum(serialize_all = "snake_case")]
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

crate::impl_name!(StopReason);

/// The status that summarizes a [`StopReason`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Status {
    /// The work is done.
    Success,
    /// The run ended early; the work that was done remains.
    Partial,
    /// The run could not do its work.
    #[default]
    Failed,
}

crate::impl_name!(Status);

impl StopReason {
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
    /// `--timeout`.
    Time,
    /// `--step-timeout`.
    StepTime,
    /// The context window of the model.
    Window,
}

/// A limit that ended a run, with its value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitReached {
    /// The limit.
    pub limit: ReachedLimit,
    /// Its value in US dollars, tokens, calls, steps or seconds, if it is known.
    pub value: Option<f64>,
}
