//! Log and spinner texts for session start, input messages and requests.

use super::numbers::{bytes, counted, thousands};
use agent_core::event::{MessageAuthor, MessageOrigin};
use agent_core::language::Language;
use agent_core::price::Usd;

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

/// How far a run is, for the spinner.
#[derive(Debug, Clone, Default)]
pub struct RunProgress {
    /// The model.
    pub model: String,
    /// What the model does.
    pub activity: ModelActivity,
    /// The step of the session.
    pub step: u32,
    /// Steps that the run may still take after this one.
    pub steps_left: u32,
    /// Tokens of the run so far.
    pub tokens: u64,
    /// Known cost of the run so far.
    pub cost: Usd,
    /// The budget of the run.
    pub budget: Option<Usd>,
}

/// What a model does during a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ModelActivity {
    /// Nothing has arrived yet.
    #[default]
    Awaited,
    /// Thoughts arrive.
    Thinks,
    /// Text arrives.
    Writes,
}

/// Spinner text during a model call.
pub fn spinner_model(run: &RunProgress, language: Language) -> String {
    let (step, left) = (run.step, run.steps_left);
    let does = match run.activity {
        ModelActivity::Awaited => {
            format!("{} {}", language.pick("waiting for", "en espera de"), run.model)
        }
        ModelActivity::Thinks => format!("{} {}", run.model, language.pick("thinks", "piensa")),
        ModelActivity::Writes => format!("{} {}", run.model, language.pick("writes", "escribe")),
    };
    let mut parts = vec![match language {
        Language::En => format!("step {step} ({left} left): {does}"),
        Language::Es => format!("paso {step} (quedan {left}): {does}"),
    }];
    if run.tokens > 0 {
        let so_far = language.pick("tokens so far", "tokens hasta ahora");
        parts.push(format!("{} {so_far}", thousands(run.tokens)));
    }
    if run.cost > Usd::ZERO {
        parts.push(format!("${:.4}", f64::from(run.cost)));
    }
    if let Some(budget) = run.budget {
        let left = f64::from(budget.saturating_sub(run.cost));
        parts.push(format!("${left:.2} {}", language.pick("left", "restantes")));
    }
    parts.join(" · ")
}

/// Spinner text during a tool call.
pub fn spinner_tool(name: &str, summary: &str) -> String {
    format!("{name} {summary}").trim_end().to_owned()
}
