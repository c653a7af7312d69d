//! Interface for approval questions about calls, and the approver for runs without a user.

use crate::rules::PolicyRule;
use agent_core::message::CallKey;
use futures_util::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Handling of a call that needs approval when no user can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum NoApprover {
    /// The call is refused and the run continues.
    Refuse,
    /// The call stays pending and the run ends.
    Pause,
}

agent_core::impl_name!(NoApprover);

/// An approval question for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The call.
    pub call: CallKey,
    /// Name of the tool.
    pub tool: String,
    /// Its arguments, without secrets.
    pub arguments: Value,
    /// Summary of the call, one line.
    pub summary: String,
    /// Why approval is needed.
    pub reason: String,
    /// Name of the rule that requires it.
    pub rule: String,
    /// Further notes for the user, one line each, such as the targets of links.
    pub notes: Vec<String>,
    /// The diff or the command.
    pub preview: Option<String>,
    /// Description of the calls that [`ApproverAnswer::Always`] allows.
    pub always_scope: String,
    /// The rule that allows these calls for good, where the policy can say it and no other rule asks.
    pub rule_for_good: Option<PolicyRule>,
}

/// Answer to a [`Question`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApproverAnswer {
    /// Run the call.
    Yes,
    /// Run the call, and allow similar calls until the run ends.
    Always,
    /// Run the call with these arguments instead, if they need no more than this approval.
    YesWith(Value),
    /// Refuse the call. The model receives the refusal, with the reason if there is one, and continues.
    No(Option<String>),
    /// End the run.
    Abort,
    /// No user can answer.
    NoApprover,
}

/// Answers questions, one at a time.
pub trait Approver {
    /// Asks `question`.
    fn ask<'a>(&'a self, question: &'a Question) -> LocalBoxFuture<'a, ApproverAnswer>;

    /// Returns the first of these files, by their paths in the workspace, that the user is editing and has not saved.
    fn unsaved_file<'a>(&'a self, _paths: &'a [&'a str]) -> LocalBoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }
}

/// Approver for runs without a user; answers every question with [`ApproverAnswer::NoApprover`].
#[derive(Debug, Clone, Copy)]
pub struct NonInteractiveApprover;

impl Approver for NonInteractiveApprover {
    fn ask<'a>(&'a self, _question: &'a Question) -> LocalBoxFuture<'a, ApproverAnswer> {
        Box::pin(std::future::ready(ApproverAnswer::NoApprover))
    }
}
