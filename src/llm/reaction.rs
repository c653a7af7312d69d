//! What happens after each class of error: one table for the retries, the exit codes and the manual.

use crate::failure::ErrorKind;
use std::fmt::Write;

/// How often an empty answer is asked for again: a model that has nothing to say twice has nothing to say.
const EMPTY_AGAIN: u32 = 1;
/// How often a model may try again to write a tool call that its server can read: most manage at the second sample.
const CALL_AGAIN: u32 = 2;

/// What happens after a model call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// It is repeated after a wait, up to `llm.retries` times; what arrived of the answer is discarded.
    Retry,
    /// It is requested again at once, at most so often.
    AskAgain(u32),
    /// The run ends: the same request would fail again.
    Stop,
}

/// What happens after an error of class `kind`.
pub fn reaction(kind: ErrorKind) -> Reaction {
    match kind {
        ErrorKind::RateLimit
        | ErrorKind::Overloaded
        | ErrorKind::Server
        | ErrorKind::Network
        | ErrorKind::Timeout
        | ErrorKind::Malformed
        | ErrorKind::CutStream => Reaction::Retry,
        ErrorKind::EmptyAnswer => Reaction::AskAgain(EMPTY_AGAIN),
        ErrorKind::ToolUseFailed => Reaction::AskAgain(CALL_AGAIN),
        ErrorKind::Auth
        | ErrorKind::Quota
        | ErrorKind::ContextOverflow
        | ErrorKind::Refusal
        | ErrorKind::Request
        | ErrorKind::OutputSchema
        | ErrorKind::Config
        | ErrorKind::Usage
        | ErrorKind::Session
        | ErrorKind::Internal => Reaction::Stop,
    }
}

/// Whether a request that failed with an error of class `kind` may be sent again: what the server says (`x-should-retry`)
/// wins over the table, except where asking again can never help.
pub fn may_repeat(kind: ErrorKind, server_says: Option<bool>) -> bool {
    let hopeless = matches!(kind, ErrorKind::Auth | ErrorKind::Quota | ErrorKind::ContextOverflow);
    !hopeless && server_says.unwrap_or(reaction(kind) != Reaction::Stop)
}

/// Whether another model may take over (`llm.fallback`) when a call has failed for good with an error of class `kind`: when
/// it is this model or its server that cannot be used now. What is wrong with the key, the configuration, the request or
/// the conversation is for a person to mend, and a refusal is an answer.
pub fn falls_back(kind: ErrorKind) -> bool {
    match kind {
        ErrorKind::RateLimit
        | ErrorKind::Overloaded
        | ErrorKind::Server
        | ErrorKind::Network
        | ErrorKind::Timeout
        | ErrorKind::Malformed
        | ErrorKind::CutStream
        | ErrorKind::Quota
        | ErrorKind::EmptyAnswer
        | ErrorKind::ToolUseFailed => true,
        ErrorKind::Auth
        | ErrorKind::ContextOverflow
        | ErrorKind::Refusal
        | ErrorKind::Request
        | ErrorKind::OutputSchema
        | ErrorKind::Config
        | ErrorKind::Usage
        | ErrorKind::Session
        | ErrorKind::Internal => false,
    }
}

impl Reaction {
    fn in_words(self) -> &'static str {
        match self {
            Self::Retry => "repeated up to `llm.retries` times",
            Self::AskAgain(1) => "requested again once",
            Self::AskAgain(_) => "requested again twice",
            Self::Stop => "the run ends",
        }
    }
}

/// The table of `agent help errors`.
pub fn table() -> String {
    let mut table =
        String::from("| error.kind | what it is | what happens | `llm.fallback` |\n|---|---|---|---|\n");
    for kind in ErrorKind::ALL {
        let (meaning, happens) = (kind.meaning(), reaction(kind).in_words());
        let then = if falls_back(kind) { "then the next model" } else { "" };
        let _ = writeln!(table, "| `{}` | {meaning} | {happens} | {then} |", kind.name());
    }
    let insisted = |kind: &ErrorKind| !may_repeat(*kind, Some(true));
    let never: Vec<_> =
        ErrorKind::ALL.into_iter().filter(insisted).map(|kind| format!("`{}`", kind.name())).collect();
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
    use crate::llm::retry::{Advice, delay};

    #[test]
    fn lr1_the_table_of_the_manual_says_what_is_repeated() {
        let table = table();
        let never = table.lines().last().unwrap();
        for kind in ErrorKind::ALL {
            let name = format!("`{}`", kind.name());
            let row = table.lines().find(|line| line.starts_with(&format!("| {name} |"))).unwrap();
            let cell = row.split('|').nth(3).unwrap().trim();
            for (says, repeated) in
                [(None, cell != "the run ends"), (Some(true), !never.contains(&name)), (Some(false), false)]
            {
                let error = Advice { should_retry: says, retry_after: None }.applied(LlmError::new(kind, ""));
                assert_eq!(delay(&error, 1, 1, 0).is_some(), repeated, "{name} {says:?}");
            }
        }
    }
}
