//! Messages about the model in use: fallbacks, context overflow, incomplete answers.

use super::numbers::thousands;
use agent_core::language::Language;

/// Error of `agent doctor`.
pub const NO_USABLE_MODEL: &str = "no usable model: see the missing settings above (agent help providers)";

/// Error for `agent models show` with arguments that have no meaning for it.
pub const MODELS_SHOW_ALONE: &str = "`agent models show` takes a model and nothing else: `agent models --endpoint[=PROVIDER]` lists the models of a server";

/// Error for a model name without a provider that no provider is known to have; `nearest` are similar names with their providers.
pub fn unknown_model(model: &str, nearest: &[&str]) -> String {
    let close = match nearest {
        [] => String::new(),
        names => format!(" (did you mean {}?)", names.join(", ")),
    };
    format!(
        "no known provider has the model `{model}`{close}; a new one needs its provider: --model PROVIDER/{model} (agent models lists those known)"
    )
}

/// Error for a prompt of about `prompt` tokens that exceeds a window of `window` tokens, known from `source`; `first`: whether
/// it is the first prompt of the session, so that a new session would not help.
pub fn context_overflow(prompt: u64, window: u64, source: &str, first: bool) -> String {
    let advice = if first {
        ": instructions, tools and task alone are too long; choose a model with a larger window, or enlarge it on the server"
    } else {
        ""
    };
    format!(
        "the conversation has about {} tokens, too many for the model's window of {} ({source}), so it was not sent{advice}",
        thousands(prompt),
        thousands(window)
    )
}

/// Adds to the problem of a discarded answer that its tool calls did not run.
pub fn incomplete_answer(what: &str, calls: usize) -> String {
    match calls {
        0 => what.to_owned(),
        1 => format!("{what}; its tool call did not run"),
        calls => format!("{what}; its {calls} tool calls did not run"),
    }
}

/// Error of the last fallback model; `unusable` are the errors of the models before it.
pub fn fallbacks_failed(model: &str, message: &str, unusable: &[String]) -> String {
    match unusable {
        [] => message.to_owned(),
        before => format!("{model}: {message}; before that, {}", before.join("; ")),
    }
}

/// Notice of a switch to a fallback model.
pub fn model_switched(from: &str, to: &str, language: Language) -> String {
    match language {
        Language::En => format!("{from} cannot be used; {to} replaces it for the rest of the run"),
        Language::Es => {
            format!("no se puede usar {from}; {to} lo sustituye durante el resto de la ejecución")
        }
    }
}

/// Refusal of a write that contains the marker of a redacted secret.
pub fn secret_marker_refused(marker: &str) -> String {
    format!(
        "`{marker}` stands for a secret that you are not shown; this call would write the marker in its place. The file \
         still contains the real text: change the parts around it with edit_file, without the line of the marker."
    )
}
