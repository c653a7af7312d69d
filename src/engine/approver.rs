//! Who answers when a call must be asked: a person at a terminal, or nobody.

use futures_util::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What becomes of a call that is asked about where nobody answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NoApprover {
    /// It is refused, and the run goes on.
    Refuse,
    /// It waits, and the run ends.
    Pause,
}

impl NoApprover {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Pause => "pause",
        }
    }
}

/// What a person is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The tool.
    pub tool: String,
    /// What it is to do, one line.
    pub summary: String,
    /// Why it is asked.
    pub reason: String,
    /// What else the person must see, a line each: where links lead.
    pub notes: Vec<String>,
    /// The diff or the command, for the person to read.
    pub preview: Option<String>,
    /// What [`ApproverAnswer::Always`] allows from then on, in words.
    pub always_scope: String,
}

/// What the person says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApproverAnswer {
    /// Run it.
    Yes,
    /// Run it, and do not ask about its like again in this run.
    Always,
    /// Do not run it; the model is told, with the reason if there is one, and goes on.
    No(Option<String>),
    /// End the run.
    Abort,
    /// There is no person.
    NoApprover,
}

/// Answers questions, one at a time.
pub trait Approver {
    /// Asks `question`.
    fn ask<'a>(&'a self, question: &'a Question) -> LocalBoxFuture<'a, ApproverAnswer>;
}

/// Nobody is there: every question is a refusal.
#[derive(Debug, Clone, Copy)]
pub struct NonInteractiveApprover;

impl Approver for NonInteractiveApprover {
    fn ask<'a>(&'a self, _question: &'a Question) -> LocalBoxFuture<'a, ApproverAnswer> {
        Box::pin(std::future::ready(ApproverAnswer::NoApprover))
    }
}
