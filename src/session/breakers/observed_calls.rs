//! The calls and outcomes that the breakers remember, and the patterns they detect.

use super::fingerprint::{self, Fingerprint};
use agent_core::decision::Denial;
use agent_core::file_change::{Change, ChangedBy};
use agent_core::limits::BreakerLimits;
use agent_core::message::{ToolCall, ToolResult};
use agent_core::stop_reason::StopReason;
use agent_engine::call_arguments::effective_call;
use agent_engine::policy::DECLINED_RULE;
use agent_tools::TypedTool;
use agent_tools::run_command::RunCommand;

/// Length of a result in characters below which equal results of different calls may be a coincidence.
const MIN_DISTINCTIVE_CHARS: usize = 200;

/// A call of the last answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedCall {
    /// The call id.
    pub id: String,
    /// Name of the tool.
    pub tool: String,
    /// Fingerprint of the call; `None` when its arguments are not valid.
    pub key: Option<Fingerprint>,
    /// Whether the call waits or polls.
    pub waits: bool,
    /// Whether the configuration exempts the call from the limits.
    pub is_exempt: bool,
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedResult {
    /// Fingerprint of the result.
    pub result: Fingerprint,
    /// Whether the result is long enough that an equal one is no coincidence.
    pub is_distinctive: bool,
    /// How the call ended.
    pub status: CallOutcome,
    /// Files changed by a tool, with the fingerprints of their contents before and after.
    pub edits: Vec<(String, Fingerprint, Fingerprint)>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum CallOutcome {
    /// Success.
    Success,
    /// A failure with an error of this class.
    Failure(Option<Fingerprint>),
    /// A command that ran and exited with a failure of this class.
    CommandFailure(Option<Fingerprint>),
    /// A transient failure.
    TransientFailure,
    /// A refusal by the user.
    Declined,
}

/// A pattern that indicates a lack of progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// The same call, this many times in a row.
    Call(String, u32),
    /// The same few calls in rounds.
    Cycle(Vec<String>),
    /// This many errors in a row.
    Errors(u32),
    /// A tool that fails with the same class of error, in this many answers.
    SameError(String, u32),
    /// A tool that returns the same result to different calls, in this many answers.
    SameResult(String, u32),
    /// A file that returned to earlier contents, this many times.
    Reverted(String, u32),
}

impl ObservedCall {
    /// Creates the observation of `call`, by the name of the tool that it is about.
    pub fn of(call: &ToolCall, limits: &BreakerLimits) -> Self {
        let call = effective_call(call);
        Self {
            id: call.id.clone(),
            tool: call.name.clone(),
            key: Fingerprint::of_call(&call.name, &call.arguments),
            waits: fingerprint::is_polling(&call.name, &call.arguments),
            is_exempt: limits.exempt.contains(&call.name),
        }
    }
}

impl ObservedResult {
    /// Creates the observation of the end of a call of `tool`. Only changes made by edit tools count as edits: commands may have reasons to
    /// restore files.
    pub fn of(tool: &str, result: &ToolResult, denial: Option<&Denial>, changed: &[Change]) -> Self {
        let text = result.text.strip_prefix("Error: ").unwrap_or(&result.text);
        let status = match denial {
            _ if !result.is_error => CallOutcome::Success,
            Some(denial) if denial.rule == DECLINED_RULE => CallOutcome::Declined,
            None if fingerprint::is_transient(text) => CallOutcome::TransientFailure,
            None if tool == RunCommand::NAME => {
                CallOutcome::CommandFailure(Fingerprint::of_error(tool, text))
            }
            Some(_) | None => CallOutcome::Failure(Fingerprint::of_error(tool, text)),
        };
        let edits = changed.iter().filter(|change| change.by == ChangedBy::Tool).map(|change| {
            let content = |hash: &Option<String>| Fingerprint::of_content(hash.as_deref());
            (change.path.clone(), content(&change.before), content(&change.after))
        });
        Self {
            result: Fingerprint::of_result(text),
            is_distinctive: text.chars().nth(MIN_DISTINCTIVE_CHARS).is_some(),
            status,
            edits: edits.collect(),
        }
    }
}

impl Pattern {
    /// Returns the stop reason of a run that does not leave the pattern.
    pub fn reason(&self) -> StopReason {
        match self {
            Self::Call(..) | Self::Cycle(_) => StopReason::RepeatedCall,
            Self::Errors(..) => StopReason::ConsecutiveErrors,
            Self::SameError(..) | Self::SameResult(..) | Self::Reverted(..) => StopReason::NoProgress,
        }
    }
}
