//! What the loop says to the model and to people before a run ends.

use super::numbers::{duration, thousands};
use crate::core::price::Usd;
use std::time::Duration;

/// What the model is told when its answer was cut by the output limit.
pub const CONTINUE_CUT_ANSWER: &str = "[SYSTEM] Your answer was cut off by the output limit. Go on exactly where it stopped; repeat \
                            nothing and do not start over.";

/// What the model is told when an ended session is resumed without a word.
pub const RESUME_MESSAGE: &str = "Go on with the task. If it is done, say so and summarise the result.";

/// What the model reads as the result of a call that was running when the process died.
pub const OUTCOME_UNKNOWN: &str = "interrupted; outcome unknown: check before repeating";

/// Characters shown of arguments that a hook changed: enough for paths and commands, not for whole files.
const MAX_SHOWN_ARGUMENTS_CHARS: usize = 500;

/// Said when a workspace could not be compared before and after one command.
pub const CHANGES_NOT_LISTED: &str = "files changed by this command are not listed and cannot be undone: there are too many files to be looked at in time";

/// Said once when that is no longer tried.
pub const CHANGES_NEVER_LISTED: &str = "files changed by commands are not listed in the rest of this run and cannot be undone: the workspace has \
     too many files";

/// Said when an edit was killed and what it displaced may be somebody's work.
pub fn leftover_file(path: &str) -> String {
    format!(
        "an edit was interrupted; {path} holds what it displaced, which may be somebody's save: look at it, then remove it"
    )
}

/// What the model reads as the result of a call beyond the cap.
pub const TOOL_CALLS_EXHAUSTED: &str = "This call did not run: the run has used up its tool calls.";

/// What the model reads as the result of the first call beyond those of one answer that may run.
pub fn too_many_calls(cap: usize) -> String {
    format!(
        "This call did not run, and neither did any after it: of one answer at most {cap} calls run. Make those that \
         are still needed in your next answer, fewer at a time."
    )
}

/// What the model reads before what a call has said that took too long.
pub fn call_timed_out(time: Duration) -> String {
    format!("The call was ended: it took longer than the {} that a call may take here.", duration(time))
}

/// What the model is told when little is left of what the run may use.
pub fn limits_nearly_reached(what: &[String]) -> String {
    format!(
        "[SYSTEM] Little is left of this run: {}. Do what matters most, leave the rest, and end with an answer that says what \
         is done and what is not.",
        what.join(", ")
    )
}

/// Time that is left.
pub fn time_left(left: Duration, of: Duration) -> String {
    format!("about {} of {}", duration(left), duration(of))
}

/// Money that is left.
pub fn money_left(left: Usd, of: Usd) -> String {
    format!("{left} of {of}")
}

/// Tokens that are left.
pub fn tokens_left(left: u64, of: u64) -> String {
    format!("{} of {} tokens", thousands(left), thousands(of))
}

/// What the model is told by a hook.
pub fn hook_context(text: &str) -> String {
    format!("[Hook context]: {text}")
}

/// What the model is told when a hook replaced the arguments of its call.
pub fn arguments_changed(args: &str) -> String {
    let shown: String = args.chars().take(MAX_SHOWN_ARGUMENTS_CHARS).collect();
    let rest = if shown.len() < args.len() { "…" } else { "" };
    format!("A hook changed the arguments of this call to {shown}{rest}")
}
