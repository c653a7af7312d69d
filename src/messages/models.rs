//! What is said about the model in use: that another took over, that the conversation no longer fits.

use super::numbers::thousands;
use crate::core::language::Language;

/// Why `agent doctor` fails.
pub const NO_USABLE_MODEL: &str =
    "a model cannot be used yet: what is missing stands above (agent help providers)";

/// A prompt of about `prompt` tokens does not fit into a window of `window`, which `source` says; when it is the `first`, no
/// other session would do better.
pub fn context_overflow(prompt: u64, window: u64, source: &str, first: bool) -> String {
    let advice = if first {
        ": instructions, tools and task alone are too long; choose a model that holds more, or have its server provide more"
    } else {
        ""
    };
    format!(
        "the conversation has about {} tokens, too many for the model's window of {} ({source}), so it was not sent{advice}",
        thousands(prompt),
        thousands(window)
    )
}

/// What is wrong with an answer that does not count, with what became of its calls.
pub fn incomplete_answer(what: &str, calls: usize) -> String {
    match calls {
        0 => what.to_owned(),
        1 => format!("{what}; its tool call did not run"),
        calls => format!("{what}; its {calls} tool calls did not run"),
    }
}

/// Why the last of several models could not be used, and why those before it could not; `unusable` says it of each.
pub fn fallbacks_failed(model: &str, message: &str, unusable: &[String]) -> String {
    match unusable {
        [] => message.to_owned(),
        before => format!("{model}: {message}; before that, {}", before.join("; ")),
    }
}

/// Another model takes over.
pub fn model_switched(from: &str, to: &str, language: Language) -> String {
    match language {
        Language::En => format!("{from} cannot be used, {to} takes over for the rest of the run"),
        Language::Es => {
            format!("no se puede usar {from}; {to} lo sustituye durante el resto de la ejecución")
        }
    }
}

/// What the model reads that wants to write the marker of a secret.
pub fn secret_marker_refused(marker: &str) -> String {
    format!(
        "`{marker}` stands for a secret that you are not shown; this call would put those words in its place. The file \
         still holds the real text: change the parts around it with edit_file, without the line of the marker."
    )
}
