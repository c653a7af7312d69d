//! What the breakers remember of calls and of what became of them, and the patterns they find.

use super::fingerprint::{self, Fingerprint};
use crate::core::decision::Denial;
use crate::core::file_change::{Change, ChangedBy};
use crate::core::limits::BreakerLimits;
use crate::core::message::{ToolCall, ToolResult};
use crate::core::stop_reason::StopReason;
use crate::engine::policy::DECLINED_RULE;
use crate::tools::TypedTool;
use crate::tools::run_command::RunCommand;
use serde::{Deserialize, Serialize};

/// Characters of a result below which it says too little to be a sign when other calls give it too.
const MIN_TELLING_CHARS: usize = 200;

/// A call of the last answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObservedCall {
    /// The model's name for it.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// What it is; nothing where nobody can read its arguments.
    pub key: Option<Fingerprint>,
    /// Whether it is made to wait.
    pub waits: bool,
    /// Whether it may be made as often as the model likes.
    pub is_exempt: bool,
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObservedResult {
    /// What it answered.
    pub result: Fingerprint,
    /// Whether that is so long that it would not be the same by chance.
    pub is_telling: bool,
    /// How it went.
    pub went: CallOutcome,
    /// The files that a tool changed, with their contents before and after.
    pub edits: Vec<(String, Fingerprint, Fingerprint)>,
}

/// How a call went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum CallOutcome {
    /// Well.
    Well,
    /// It failed, with an error of this class.
    Badly(Option<Fingerprint>),
    /// It is a command that ran and ended badly, with an error of this class.
    Unsuccessfully(Option<Fingerprint>),
    /// It failed with an error that goes by itself.
    Transiently,
    /// The person said no to it.
    Against,
}

/// What shows that a run goes nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pattern {
    /// The same call, so many times in a row.
    Call(String, u32),
    /// The same few calls, round after round.
    Cycle(Vec<String>),
    /// So many errors in a row.
    Errors(u32),
    /// A tool that fails with the same class of error, in so many answers.
    SameError(String, u32),
    /// A tool that gives the same result whatever it is asked, in so many answers.
    SameResult(String, u32),
    /// A file that went back to a content it had before, so many times.
    Reverted(String, u32),
}

impl ObservedCall {
    /// What is to be remembered of `call`.
    pub fn of(call: &ToolCall, limits: &BreakerLimits) -> Self {
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
    /// What is to be remembered of how a call of `tool` ended. Only what tools wrote counts as an edit: commands put files back
    /// and forth for reasons of their own.
    pub fn of(tool: &str, result: &ToolResult, denial: Option<&Denial>, changed: &[Change]) -> Self {
        let text = result.text.strip_prefix("Error: ").unwrap_or(&result.text);
        let went = match denial {
            _ if !result.is_error => CallOutcome::Well,
            Some(denial) if denial.rule == DECLINED_RULE => CallOutcome::Against,
            None if fingerprint::is_transient(text) => CallOutcome::Transiently,
            None if tool == RunCommand::NAME => {
                CallOutcome::Unsuccessfully(Fingerprint::of_error(tool, text))
            }
            Some(_) | None => CallOutcome::Badly(Fingerprint::of_error(tool, text)),
        };
        let edits = changed.iter().filter(|change| change.by == ChangedBy::Tool).map(|change| {
            let content = |hash: &Option<String>| Fingerprint::of_content(hash.as_deref());
            (change.path.clone(), content(&change.before), content(&change.after))
        });
        Self {
            result: Fingerprint::of_result(text),
            is_telling: text.chars().nth(MIN_TELLING_CHARS).is_some(),
            went,
            edits: edits.collect(),
        }
    }
}

impl Pattern {
    /// Why a run ends that does not leave it.
    pub fn reason(&self) -> StopReason {
        match self {
            Self::Call(..) | Self::Cycle(_) => StopReason::RepeatedCall,
            Self::Errors(..) => StopReason::ConsecutiveErrors,
            Self::SameError(..) | Self::SameResult(..) | Self::Reverted(..) => StopReason::NoProgress,
        }
    }
}
