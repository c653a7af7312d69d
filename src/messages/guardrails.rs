//! Messages about guardrails on the conversation, for the model and for users.

use crate::core::guardrail::{ConversationSide, GuardrailAction, TriggeredGuardrail};
use crate::core::language::Language;

/// Text in place of a withheld text.
pub fn withheld_text(name: &str, message: &str) -> String {
    format!("[Withheld by the guardrail `{name}`: {message}]")
}

/// Request to the model for another answer. The reason is in the place of the withheld answer and not here, because the text of
/// a guardrail may come from the project and is not trusted.
pub const ANSWER_WITHHELD: &str = "[SYSTEM] Your last answer was withheld by a guardrail; the text in its place gives the reason. \
                                   Nothing of it was shown, and no call in it ran. Answer again without the content that the guardrail rejects.";

/// Log line about a triggered guardrail.
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
