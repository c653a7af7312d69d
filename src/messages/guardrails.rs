//! What is said when a guardrail on the conversation speaks: to the model, and to people.

use crate::core::guardrail::{ConversationSide, GuardrailAction, TriggeredGuardrail};
use crate::core::language::Language;

/// What stands in place of a text that was withheld.
pub fn withheld_text(name: &str, message: &str) -> String {
    format!("[Withheld by the guardrail `{name}`: {message}]")
}

/// Asks the model for another answer. Why stands in the place of the last one, and not here: the words of a guardrail may be
/// those of a project, which does not speak for us.
pub const ANSWER_WITHHELD: &str = "[SYSTEM] Your last answer was withheld by a guardrail; what stands in its place says why. \
                                   Nothing of it was shown, and no call in it ran. Answer again without what it is about.";

/// What a guardrail did, for people.
pub fn guardrail_triggered(triggered: &TriggeredGuardrail, language: Language) -> String {
    let TriggeredGuardrail { name, on, severity, action, message } = triggered;
    let what = match (action, on) {
        (GuardrailAction::Block, ConversationSide::Input) => {
            language.pick("withholds a result from the model", "retiene un resultado ante el modelo")
        }
        (GuardrailAction::Block, ConversationSide::Output) => {
            language.pick("withholds an answer of the model", "retiene una respuesta del modelo")
        }
        (GuardrailAction::Halt, ConversationSide::Input) => language.pick(
            "ends the run before the model reads what it found",
            "termina la ejecución antes de que el modelo lea lo que encontró",
        ),
        (GuardrailAction::Halt, ConversationSide::Output) => language.pick(
            "ends the run for what the model wrote",
            "termina la ejecución por lo que escribió el modelo",
        ),
    };
    let word = language.pick("guardrail", "la regla de protección");
    format!("{word} {name} ({}) {what}: {message}", severity.name())
}
