//! Messages of the agent loop during a run, for the model and for users.

use super::numbers::{duration, thousands};
use agent_core::price::Usd;
use std::time::Duration;

/// Message to the model after its answer was cut off by the output limit.
pub const CONTINUE_CUT_ANSWER: &str = "[SYSTEM] Your answer was cut off by the output limit. Continue exactly where it stopped; repeat \
                            nothing and do not start over.";

/// User message when an ended session is resumed without a prompt.
pub const RESUME_MESSAGE: &str = "Continue with the task. If it is done, say so and summarise the result.";

/// Result of a call that was running when the process died.
pub const OUTCOME_UNKNOWN: &str = "interrupted; outcome unknown: check before repeating";

/// Characters shown of arguments that a hook changed: enough for paths and commands, not for whole files.
const MAX_SHOWN_ARGUMENTS_CHARS: usize = 500;

/// Warning that the changes of one command are unknown.
pub const CHANGES_NOT_LISTED: &str = "files changed by this command are not listed and cannot be undone: the workspace has too many files to scan in time";

/// Warning, once per run, that changes of commands are no longer determined.
pub const CHANGES_NEVER_LISTED: &str = "files changed by commands are not listed in the rest of this run and cannot be undone: the workspace has \
     too many files";

/// Warning about the leftover file of an interrupted edit, which may contain another program's save.
pub fn leftover_file(path: &str) -> String {
    format!(
        "an edit was interrupted; {path} contains the content that it replaced, possibly another program's save: check it, then remove it"
    )
}

/// Result of a call beyond the limit of tool calls.
pub const TOOL_CALLS_EXHAUSTED: &str = "This call did not run: the run has used up its tool calls.";

/// Result of the first call beyond the limit of calls per answer.
pub fn too_many_calls(cap: usize) -> String {
    format!(
        "This call did not run, and neither did any after it: at most {cap} calls of one answer run. Make the calls that \
         are still needed in your next answer, fewer at a time."
    )
}

/// Line before the partial output of a call that exceeded its time limit.
pub fn call_timed_out(time: Duration) -> String {
    format!("The call was ended: it took longer than the {} that a call may take.", duration(time))
}

/// Message to the model when limits of the run are nearly reached.
pub fn limits_nearly_reached(what: &[String]) -> String {
    format!(
        "[SYSTEM] Little is left of this run: {}. Do what matters most, skip the rest, and end with an answer that states what \
         is done and what is not.",
        what.join(", ")
    )
}

/// Remaining time.
pub fn time_left(left: Duration, of: Duration) -> String {
    format!("about {} of {}", duration(left), duration(of))
}

/// Remaining budget in US dollars.
pub fn money_left(left: Usd, of: Usd) -> String {
    format!("{left} of {of}")
}

/// Remaining tokens.
pub fn tokens_left(left: u64, of: u64) -> String {
    format!("{} of {} tokens", thousands(left), thousands(of))
}

/// Context that a hook adds for the model.
pub fn hook_context(text: &str) -> String {
    format!("[Hook context]: {text}")
}

/// Error for arguments that the approver gave instead of those of the call, and that the tool does not accept.
pub fn approved_arguments_invalid(problem: &str) -> String {
    format!("The call was approved with other arguments, which are invalid: {problem}")
}

/// Note to the model that a hook or the approver changed the arguments of its call.
pub fn arguments_changed(args: &str) -> String {
    let shown: String = args.chars().take(MAX_SHOWN_ARGUMENTS_CHARS).collect();
    let rest = if shown.len() < args.len() { "…" } else { "" };
    format!("The arguments of this call were changed to {shown}{rest}")
}
