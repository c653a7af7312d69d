//! What happens after each class of error: one table for the retries, the exit codes and the manual.

use crate::core::failure::FailureKind;
use std::fmt::Write;

/// How often an empty answer is asked for again: a model that has nothing to say twice has nothing to say.
const EMPTY_ANSWER_RESAMPLES: u32 = 1;
/// How often a model may try again to write a tool call that its server can read: most manage at the second sample.
const UNREADABLE_CALL_RESAMPLES: u32 = 2;

/// What happens after a model call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorAction {
    /// It is repeated after a wait, up to `llm.retries` times; what arrived of the answer is discarded.
    Retry,
    /// It is requested again at once, at most so often.
    Resample(u32),
    /// The run ends: the same request would fail again.
    Stop,
}

/// What happens after an error of class `kind`.
pub fn action_for(kind: FailureKind) -> ErrorAction {
    match kind {
        FailureKind::RateLimit
        | FailureKind::Overloaded
        | FailureKind::Server
        | FailureKind::Network
        | FailureKind::Timeout
        | FailureKind::Malformed
        | FailureKind::CutStream => ErrorAction::Retry,
        FailureKind::EmptyAnswer => ErrorAction::Resample(EMPTY_ANSWER_RESAMPLES),
        FailureKind::ToolUseFailed => ErrorAction::Resample(UNREADABLE_CALL_RESAMPLES),
        FailureKind::Auth
        | FailureKind::Quota
        | FailureKind::ContextOverflow
        | FailureKind::Refusal
        | FailureKind::Request
        | FailureKind::OutputSchema
        | FailureKind::Config
        | FailureKind::Usage
        | FailureKind::Session
        | FailureKind::Internal => ErrorAction::Stop,
    }
}

/// Whether a request that failed with an error of class `kind` may be sent again: what the server says (`x-should-retry`)
/// wins over the table, except where asking again can never help.
pub fn is_retryable(kind: FailureKind, server_says: Option<bool>) -> bool {
    let hopeless = matches!(kind, FailureKind::Auth | FailureKind::Quota | FailureKind::ContextOverflow);
    !hopeless && server_says.unwrap_or(action_for(kind) != ErrorAction::Stop)
}

/// Whether another model may take over (`llm.fallback`) when a call has failed for good with an error of class `kind`: when
/// it is this model or its server that cannot be used now. What is wrong with the key, the configuration, the request or
/// the conversation is for a person to mend, and a refusal is an answer.
pub fn should_fall_back(kind: FailureKind) -> bool {
    match kind {
        FailureKind::RateLimit
        | FailureKind::Overloaded
        | FailureKind::Server
        | FailureKind::Network
        | FailureKind::Timeout
        | FailureKind::Malformed
        | FailureKind::CutStream
        | FailureKind::Quota
        | FailureKind::EmptyAnswer
        | FailureKind::ToolUseFailed => true,
        FailureKind::Auth
        | FailureKind::ContextOverflow
        | FailureKind::Refusal
        | FailureKind::Request
        | FailureKind::OutputSchema
        | FailureKind::Config
        | FailureKind::Usage
        | FailureKind::Session
        | FailureKind::Internal => false,
    }
}

impl ErrorAction {
    fn description(self) -> &'static str {
        match self {
            Self::Retry => "repeated up to `llm.retries` times",
            Self::Resample(1) => "requested again once",
            Self::Resample(_) => "requested again twice",
            Self::Stop => "the run ends",
        }
    }
}

/// The table of `agent help errors`.
pub fn error_table() -> String {
    let mut table =
        String::from("| error.kind | what it is | what happens | `llm.fallback` |\n|---|---|---|---|\n");
    for kind in FailureKind::ALL {
        let (meaning, happens) = (kind.meaning(), action_for(kind).description());
        let then = if should_fall_back(kind) { "then the next model" } else { "" };
        let _ = writeln!(table, "| `{}` | {meaning} | {happens} | {then} |", kind.name());
    }
    let insisted = |kind: &FailureKind| !is_retryable(*kind, Some(true));
    let never: Vec<_> =
        FailureKind::ALL.into_iter().filter(insisted).map(|kind| format!("`{}`", kind.name())).collect();
    let _ = writeln!(
        table,
        "\nA server that sends `x-should-retry: true` or `false` with its error decides so itself, as often as `llm.retries` says;\nthese are never repeated: {}.",
        never.join(", ")
    );
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::LlmError;
    use crate::llm::retry::{RetryAdvice, delay};

    #[test]
    fn lr1_the_table_of_the_manual_says_what_is_repeated() {
        let table = error_table();
        let never = table.lines().last().unwrap();
        for kind in FailureKind::ALL {
            let name = format!("`{}`", kind.name());
            let row = table.lines().find(|line| line.starts_with(&format!("| {name} |"))).unwrap();
            let cell = row.split('|').nth(3).unwrap().trim();
            for (says, repeated) in
                [(None, cell != "the run ends"), (Some(true), !never.contains(&name)), (Some(false), false)]
            {
                let error =
                    RetryAdvice { should_retry: says, retry_after: None }.apply_to(LlmError::new(kind, ""));
                assert_eq!(delay(&error, 1, 1, 0).is_some(), repeated, "{name} {says:?}");
            }
        }
    }
}
