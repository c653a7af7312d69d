//! What is said about the model in use: that another took over, that the conversation no longer fits.

use super::figures::thousands;

/// A prompt of about `prompt` tokens does not fit into a window of `window`, which `source` says.
pub fn context_overflow(prompt: u64, window: u64, source: &str) -> String {
    format!(
        "the conversation has about {} tokens, too many for the model's window of {} ({source}), so it was not sent",
        thousands(prompt),
        thousands(window)
    )
}

/// Why the last of several models could not be used, and why those before it could not; `unusable` says it of each.
pub fn after_fallback(model: &str, message: &str, unusable: &[String]) -> String {
    match unusable {
        [] => message.to_owned(),
        before => format!("{model}: {message}; before that, {}", before.join("; ")),
    }
}

/// Another model takes over.
pub fn model_switched(from: &str, to: &str) -> String {
    format!("{from} cannot be used, {to} takes over for the rest of the run")
}
