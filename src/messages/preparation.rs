//! What is said before the work begins: of a plan, and of what has changed in the repository.

use super::stop_reason::stop_reason_text;
use crate::core::language::Language;
use crate::core::stop_reason::StopReason;

/// What the model is told of the plan that another agent has made, which stands between marks; `unfinished` is why that one ended early.
pub fn plan(plan: &str, unfinished: Option<StopReason>) -> String {
    let early = unfinished.map_or_else(String::new, |reason| {
        format!(
            " It did not finish ({}), so look further where it stops.",
            stop_reason_text(reason, Language::En)
        )
    });
    format!(
        "[SYSTEM] The agent `plan` has studied the project for this task.{early} Its plan, which rests on what it has read:\n{plan}\nCarry the task out now. \
         Depart from the plan where the code shows that it is wrong, and say so."
    )
}

/// Said when there is no plan.
pub fn no_plan(why: &str) -> String {
    format!("planning failed, and the work begins without a plan: {why}")
}

/// What the model is shown of the repository.
pub fn git_diff(reference: &str, changes: &str) -> String {
    format!("## Changes in this branch (vs {reference})\n{changes}")
}

/// Said when there is nothing to show.
pub fn no_git_diff(reference: &str) -> String {
    format!("--context-git-diff: nothing differs from {reference}")
}

/// Said when it is not known what has changed.
pub fn git_diff_unknown(reference: &str, why: &str) -> String {
    format!("--context-git-diff: what differs from {reference} is not known: {why}")
}
