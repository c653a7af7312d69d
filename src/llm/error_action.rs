//! Action after each class of error: one table for the retries, the exit codes and the manual.

use agent_core::failure::FailureKind;
use std::fmt::Write;
use strum::VariantArray;

/// How often an empty answer is requested again; a second empty answer will hardly be followed by a better one.
const EMPTY_ANSWER_RESAMPLES: u32 = 1;
/// How often a tool call that the server could not parse is requested again: most models succeed at the second attempt.
const UNREADABLE_CALL_RESAMPLES: u32 = 2;

/// What happens after a failed model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorAction {
    /// The request is repeated after a wait, up to `llm.retries` times; the partial answer is discarded.
    Retry,
    /// The request is repeated at once, at most this many times.
    Resample(u32),
    /// The run ends: the same request would fail again.
    Stop,
}

/// Returns the action after an error of class `kind`.
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

/// Checks whether a request that failed with an error of class `kind` may be repeated: the server's `x-should-retry`
/// overrides the table, except for errors that a repetition can never fix.
pub fn is_retryable(kind: FailureKind, server_advice: Option<bool>) -> bool {
    let hopeless = matches!(kind, FailureKind::Auth | FailureKind::Quota | FailureKind::ContextOverflow);
    !hopeless && server_advice.unwrap_or(action_for(kind) != ErrorAction::Stop)
}

/// Checks whether another model may take over (`llm.fallback`) after a call finally failed with an error of class `kind`: only
/// if this model or its server is unusable now. The user must fix the key, the configuration, the request or
/// the conversation, and a refusal is an answer.
pub fn should_fall_back(kind: FailureKind) -> bool {
    kind == FailureKind::Quota || action_for(kind) != ErrorAction::Stop
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

/// Returns the table of `agent help errors`.
pub fn error_table() -> String {
    let mut table =
        String::from("| error.kind | what it is | what happens | `llm.fallback` |\n|---|---|---|---|\n");
    for kind in FailureKind::VARIANTS.iter().copied() {
        let (meaning, happens) = (kind.meaning(), action_for(kind).description());
        let then = if should_fall_back(kind) { "then the next model" } else { "" };
        let _ = writeln!(table, "| `{}` | {meaning} | {happens} | {then} |", kind.name());
    }
    let insisted = |kind: &&FailureKind| !is_retryable(**kind, Some(true));
    let never: Vec<_> =
        FailureKind::VARIANTS.iter().filter(insisted).map(|kind| format!("`{}`", kind.name())).collect();
    let _ = writeln!(
        table,
        "\nIf a server sends `x-should-retry: true` or `false` with its error, that decides instead, up to `llm.retries` times;\nthese are never repeated: {}.",
        never.join(", ")
    );
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LlmError;
    use crate::retry::{RetryAdvice, delay};

    #[test]
    fn lr1_the_table_of_the_manual_says_what_is_repeated() {
        let table = error_table();
        let never = table.lines().last().unwrap();
        for kind in FailureKind::VARIANTS.iter().copied() {
            let name = format!("`{}`", kind.name());
            let row = table.lines().find(|line| line.starts_with(&format!("| {name} |"))).unwrap();
            let cell = row.split('|').nth(3).unwrap().trim();
            for (advice, repeated) in
                [(None, cell != "the run ends"), (Some(true), !never.contains(&name)), (Some(false), false)]
            {
                let error =
                    RetryAdvice { should_retry: advice, retry_after: None }.apply_to(LlmError::new(kind, ""));
                assert_eq!(delay(&error, 1, 1, 0).is_some(), repeated, "{name} {advice:?}");
            }
        }
    }
}
