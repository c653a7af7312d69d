//! What happens after each class of error: one table for the retries, the exit codes and the manual.

use crate::failure::ErrorKind;
use std::fmt::Write;

/// What happens after a model call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// It is repeated after a wait, up to `llm.retries` times, as long as nothing of the answer was shown.
    Retry,
    /// It is asked again once, at once.
    AskAgain,
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
        | ErrorKind::CutStream => Reaction::Retry,
        ErrorKind::EmptyAnswer => Reaction::AskAgain,
        ErrorKind::Auth
        | ErrorKind::Quota
        | ErrorKind::ContextOverflow
        | ErrorKind::Refusal
        | ErrorKind::Malformed
        | ErrorKind::Request
        | ErrorKind::OutputSchema
        | ErrorKind::Config
        | ErrorKind::Usage
        | ErrorKind::Session
        | ErrorKind::Internal => Reaction::Stop,
    }
}

impl Reaction {
    fn in_words(self) -> &'static str {
        match self {
            Self::Retry => "repeated up to `llm.retries` times, unless part of the answer was shown",
            Self::AskAgain => "asked again once",
            Self::Stop => "the run ends",
        }
    }
}

/// The table of `agent help errors`.
pub fn table() -> String {
    let mut table = String::from("| error.kind | what it is | what happens |\n|---|---|---|\n");
    for kind in ErrorKind::ALL {
        let _ = writeln!(table, "| `{}` | {} | {} |", kind.name(), kind.meaning(), reaction(kind).in_words());
    }
    table
}
