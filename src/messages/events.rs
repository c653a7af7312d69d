//! What the human log and the spinner say of events that are no steps: where a session works, what it was given.

use super::numbers::{bytes, counted, thousands};
use crate::core::event::{MessageAuthor, MessageOrigin};
use crate::core::language::Language;

/// Where a session works, and with what program.
pub fn session_place(workspace: &str, program: &str, language: Language) -> String {
    match language {
        Language::En => format!("workspace {workspace}, program {program}"),
        Language::Es => format!("espacio de trabajo {workspace}, programa {program}"),
    }
}

/// What a run may use.
pub fn run_limits(max_steps: u32, tools: &[String], language: Language) -> String {
    let steps = counted(max_steps, ["step", "steps"], ["paso", "pasos"], language);
    let tools = tools.join(", ");
    match language {
        Language::En => format!("at most {steps}; tools: {tools}"),
        Language::Es => format!("como máximo {steps}; herramientas: {tools}"),
    }
}

/// The system message was set.
pub fn system_message(size: usize, language: Language) -> String {
    format!("{}, {}", language.pick("system message", "mensaje de sistema"), bytes(size))
}

/// An earlier conversation was given to the session.
pub fn history_added(messages: usize, language: Language) -> String {
    let number = u64::try_from(messages).unwrap_or(u64::MAX);
    let messages = counted(number, ["message", "messages"], ["mensaje", "mensajes"], language);
    match language {
        Language::En => format!("the task follows {messages} of an earlier conversation"),
        Language::Es => format!("la tarea sigue a {messages} de una conversación anterior"),
    }
}

/// A user message entered the conversation.
pub fn user_message(origin: MessageOrigin, text: &str, language: Language) -> String {
    let from = match origin.author() {
        MessageAuthor::Person => language.pick("prompt", "petición"),
        MessageAuthor::Loop => language.pick("the loop says", "el bucle dice"),
        MessageAuthor::Hook => language.pick("a hook adds", "un hook añade"),
    };
    format!("{from}: {text}")
}

/// A request went out.
pub fn request_sent(attempt: u32, language: Language) -> String {
    format!("{} {attempt}", language.pick("request sent, attempt", "petición enviada, intento"))
}

/// What the spinner says while the model works; `tokens` counts the run's so far.
pub fn spinner_model(step: u32, tokens: u64, language: Language) -> String {
    let waits = match language {
        Language::En => format!("step {step}: waiting for the LLM"),
        Language::Es => format!("paso {step}: en espera del LLM"),
    };
    match tokens {
        0 => waits,
        tokens => {
            let so_far = language.pick("tokens so far", "tokens hasta ahora");
            format!("{waits} · {} {so_far}", thousands(tokens))
        }
    }
}

/// What the spinner says while a tool works.
pub fn spinner_tool(name: &str, summary: &str) -> String {
    format!("{name} {summary}").trim_end().to_owned()
}
