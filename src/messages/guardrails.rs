//! What is said when a guardrail on the conversation speaks: to the model, and to people.

use crate::guardrail::{Reaction, Side, Triggered};

/// What stands in place of a text that was withheld.
pub fn withheld(name: &str, message: &str) -> String {
    format!("[Withheld by the guardrail `{name}`: {message}]")
}

/// Asks the model for another answer. Why stands in the place of the last one, and not here: the words of a guardrail may be
/// those of a project, which does not speak for us.
pub const ANSWER_WITHHELD: &str = "[SYSTEM] Your last answer was withheld by a guardrail; what stands in its place says why. \
                                   Nothing of it was shown, and no call in it ran. Answer again without what it is about.";

/// What a guardrail did, for people.
pub fn guardrail(Triggered { name, on, severity, action, message }: &Triggered) -> String {
    let what = match (action, on) {
        (Reaction::Block, Side::Input) => "withholds a result from the model",
        (Reaction::Block, Side::Output) => "withholds an answer of the model",
        (Reaction::Halt, Side::Input) => "ends the run before the model reads what it found",
        (Reaction::Halt, Side::Output) => "ends the run for what the model wrote",
    };
    format!("guardrail {name} ({}) {what}: {message}", severity.name())
}
