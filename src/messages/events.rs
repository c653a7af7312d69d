//! Log and spinner texts for session start, input messages and requests.

use super::numbers::{bytes, counted, thousands};
use crate::core::event::{MessageAuthor, MessageOrigin};
use crate::core::language::Language;

/// Workspace and program version of a session.
pub fn session_place(workspace: &str, program: &str, language: Language) -> String {
    match language {
        Language::En => format!("workspace {workspace}, program {program}"),
        Language::Es => format!("espacio de trabajo {workspace}, programa {program}"),
    }
}

/// Step limit and tools of a run.
pub fn run_limits(max_steps: u32, tools: &[String], language: Language) -> String {
    let steps = counted(max_steps, ["step", "steps"], ["paso", "pasos"], language);
    let tools = tools.join(", ");
    match language {
        Language::En => format!("at most {steps}; tools: {tools}"),
        Language::Es => format!("como máximo {steps}; herramientas: {tools}"),
    }
}

/// Size of the system message, in bytes.
pub fn system_message(size: usize, language: Language) -> String {
    format!("{}, {}", language.pick("system message", "mensaje de sistema"), bytes(size))
}

/// Number of messages of an earlier conversation that precede the task.
pub fn history_added(messages: usize, language: Language) -> String {
    let number = u64::try_from(messages).unwrap_or(u64::MAX);
    let messages = counted(number, ["message", "messages"], ["mensaje", "mensajes"], language);
    match language {
        Language::En => format!("the task follows {messages} of an earlier conversation"),
        Language::Es => format!("la tarea sigue a {messages} de una conversación anterior"),
    }
}

/// User message that was added to the conversation.
pub fn user_message(origin: MessageOrigin, text: &str, language: Language) -> String {
    let from = match origin.author() {
        MessageAuthor::Person => language.pick("prompt", "petición"),
        MessageAuthor::Loop => language.pick("agent message", "mensaje del agente"),
        MessageAuthor::Hook => language.pick("hook message", "mensaje de un hook"),
    };
    format!("{from}: {text}")
}

/// Request to the model that was sent.
pub fn request_sent(attempt: u32, language: Language) -> String {
    format!("{} {attempt}", language.pick("request sent, attempt", "petición enviada, intento"))
}

/// Spinner text during a model call; `tokens` is the run's total so far.
pub fn spinner_model(step: u32, tokens: u64, language: Language) -> String {
    let status = match language {
        Language::En => format!("step {step}: waiting for the LLM"),
        Language::Es => format!("paso {step}: en espera del LLM"),
    };
    match tokens {
        0 => status,
        tokens => {
            let so_far = language.pick("tokens so far", "tokens hasta ahora");
            format!("{status} · {} {so_far}", thousands(tokens))
        }
    }
}

/// Spinner text during a tool call.
pub fn spinner_tool(name: &str, summary: &str) -> String {
    format!("{name} {summary}").trim_end().to_owned()
}
