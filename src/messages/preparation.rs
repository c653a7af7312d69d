//! Messages before the first step: the plan and the repository's changes.

use super::stop_reason::stop_reason_text;
use agent_core::language::Language;
use agent_core::stop_reason::StopReason;

/// Message to the model with the plan of the agent `plan`, between delimiters; `unfinished` is why planning ended early.
pub fn plan(plan: &str, unfinished: Option<StopReason>) -> String {
    let early = unfinished.map_or_else(String::new, |reason| {
        format!(
            " It did not finish ({}), so look further where it stops.",
            stop_reason_text(reason, None, Language::En)
        )
    });
    format!(
        "[SYSTEM] The agent `plan` has studied the project for this task.{early} Its plan, based on what it has read:\n{plan}\nCarry the task out now. \
         Depart from the plan where the code shows that it is wrong, and say so."
    )
}

/// Warning that planning failed.
pub fn no_plan(why: &str) -> String {
    format!("planning failed, so the run starts without a plan: {why}")
}

/// Section for the model with the `output` of a command that the user ran, between delimiters.
pub fn user_command(command: &str, output: &str) -> String {
    format!("The user ran `{command}` in the workspace:\n{output}")
}

/// Section for the model with the changes since `reference`.
pub fn git_diff(reference: &str, changes: &str) -> String {
    format!("## Changes in this branch (vs {reference})\n{changes}")
}

/// Notice that there are no changes.
pub fn no_git_diff(reference: &str) -> String {
    format!("--context-git-diff: nothing differs from {reference}")
}

/// Warning that the changes could not be determined.
pub fn git_diff_unknown(reference: &str, why: &str) -> String {
    format!("--context-git-diff: cannot determine the changes since {reference}: {why}")
}
