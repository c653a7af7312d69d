//! Messages about guardrails on the conversation and about hooks, for the model and for users.

use agent_core::guardrail::{ConversationSide, GuardrailAction, TriggeredGuardrail};
use agent_core::language::Language;

/// Warning that a part of the matcher of the hook `key` matches no tool; `similar` are tools that may be meant.
pub fn hook_matches_nothing(key: &str, part: &str, similar: &[String]) -> String {
    let meant = match similar {
        [] => String::new(),
        similar => format!("; did you mean `{}`?", similar.join("|")),
    };
    format!(
        "{key}: `{part}` in `matcher` is the name of no tool, so the hook does not run for it{meant} (agent help hooks)"
    )
}

/// Warning that the hook `key` has a filter which its event never matches.
pub fn hook_without_tool(key: &str, event: &str) -> String {
    format!(
        "{key} never runs: {event} is not about a tool call, so `matcher` and `file_patterns` match nothing (agent help hooks)"
    )
}

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
