//! What is said when a run ends: to the model that closes it, and to people.

use super::figures::{count, duration, thousands};
use crate::price::Usd;
use crate::stop_reason::StopReason;
use std::time::Duration;

/// What the model is told when its answer was cut by the output limit.
pub const CONTINUE: &str = "[SYSTEM] Your answer was cut off by the output limit. Go on exactly where it stopped; repeat \
                            nothing and do not start over.";

/// What the model is told when an ended session is resumed without a word.
pub const GO_ON: &str = "Go on with the task. If it is done, say so and summarise the result.";

/// What the model reads when the person refused a call, with the reason that was given.
pub fn said_no(reason: Option<&str>) -> String {
    let said = reason.map_or_else(|| ".".to_owned(), |reason| format!(": {reason}"));
    format!(
        "The person said no to this action{said}\nIt did not run. Go on without it, or ask in your answer what to do \
         instead."
    )
}

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
pub fn leftover_kept(path: &str) -> String {
    format!(
        "an edit was interrupted; {path} holds what it displaced, which may be somebody's save: look at it, then remove it"
    )
}

/// What the model reads as the result of a call that comes after a hook has ended the run.
pub const STOPPED_BY_HOOK: &str = "not executed: a hook has ended the run";

/// What the model reads as the result of a call beyond the cap.
pub const CALLS_USED_UP: &str = "This call did not run: the run has used up its tool calls.";

/// What the model reads as the result of the first call beyond those of one answer that may run.
pub fn too_many_calls(cap: usize) -> String {
    format!(
        "This call did not run, and neither did any after it: of one answer at most {cap} calls run. Make those that \
         are still needed in your next answer, fewer at a time."
    )
}

/// What the model reads before what a call has said that took too long.
pub fn call_out_of_time(time: Duration) -> String {
    format!("The call was ended: it took longer than the {} that a call may take here.", duration(time))
}

/// What the model is told when little is left of what the run may use.
pub fn little_left(what: &[String]) -> String {
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

/// What the model is told when a watchdog ends the run and it is asked, without tools, for a closing summary; nothing
/// for the reasons that end a run without asking it again.
pub fn closing_instruction(reason: StopReason) -> Option<&'static str> {
    match reason {
        StopReason::MaxSteps => Some(
            "[SYSTEM] The step limit of this run is reached and no more tools can be called. Answer now, in text: \
             what is done, what was checked, what is still missing, and the next thing to do. Claim nothing that the \
             tool results above do not show.",
        ),
        StopReason::BudgetExceeded => Some(
            "[SYSTEM] The budget of this run is used up and no more tools can be called. Answer now and briefly, in \
             text: what is done, what was checked, what is still missing, and the next thing to do. Claim nothing that \
             the tool results above do not show.",
        ),
        StopReason::Timeout => Some(
            "[SYSTEM] The time of this run is up and no more tools can be called. Answer now and briefly, in text: \
             what is done, what was checked, what is still missing, and the next thing to do. Claim nothing that the \
             tool results above do not show.",
        ),
        StopReason::RepeatedCall => Some(
            "[SYSTEM] You made the same tool calls again and again, so the run ends and no more tools can be called. \
             Answer now, in text: what is done, what you were trying to find or do, what stood in the way, and what is \
             still missing.",
        ),
        StopReason::ConsecutiveErrors => Some(
            "[SYSTEM] Too many of your tool calls in a row failed, so the run ends and no more tools can be called. \
             Answer now, in text: what is done, what you were trying to do last, why it failed, and what is still \
             missing.",
        ),
        StopReason::NoProgress => Some(
            "[SYSTEM] Your last steps led nowhere, so the run ends and no more tools can be called. Answer now, in \
             text: what is done, what you tried, what stood in the way, and what is still missing.",
        ),
        StopReason::ContextFull => Some(
            "[SYSTEM] The conversation fills the model's window and could not be made short enough, so no more tools can be \
             called. Answer now and briefly, in text: what is done, what was checked, what is still missing, and the next \
             thing to do. Claim nothing that the conversation above does not show.",
        ),
        StopReason::LlmDone
        | StopReason::Truncated
        | StopReason::Guardrail
        | StopReason::ContentFilter
        | StopReason::AwaitingApproval
        | StopReason::UserInterrupt
        | StopReason::LlmError
        | StopReason::AuthError
        | StopReason::InternalError => None,
    }
}

/// The answer of a run that ended early and has no closing summary, because it was not asked for or did not come.
pub fn fixed_closing(reason: StopReason, steps: u32) -> String {
    let how_to_go_on = match (reason, steps) {
        (StopReason::ContextFull, 0) => FULL_FROM_THE_START,
        (StopReason::ContextFull, _) => AFTER_CONTEXT_FULL,
        (StopReason::AwaitingApproval, _) => AFTER_AN_ANSWER,
        _ => "",
    };
    format!(
        "The run ended early ({reason}: {}) after {}. What was done until then stands; there is no summary of it.\
         {how_to_go_on}",
        reason_in_words(reason),
        count(steps, "step")
    )
}

/// How to go on when the conversation is too long for its model.
const AFTER_CONTEXT_FULL: &str = " To go on, give the rest of the task to a new session (`agent run`), or resume this one with \
                                  a model that holds more (`agent resume --last --model …`).";

/// How to go on when a call waits for an answer.
const AFTER_AN_ANSWER: &str = " `agent approvals list` shows the calls that wait; answer with `agent approve ID` or `agent \
                               deny ID`, then go on with `agent resume`.";

/// The same where nothing was said yet: a new session would be as long.
const FULL_FROM_THE_START: &str = " Instructions, tools and task alone are too long: resume with a model that holds \
                                   more (`agent resume --last --model …`), or have its server provide more.";

/// Why a run ended, for people.
pub fn reason_in_words(reason: StopReason) -> &'static str {
    match reason {
        StopReason::LlmDone => "the LLM decided it was done",
        StopReason::MaxSteps => "the step limit was reached",
        StopReason::BudgetExceeded => "what is left of the budget does not pay for another call",
        StopReason::ContextFull => "the conversation no longer fits into the model's window",
        StopReason::Timeout => "the time limit was reached",
        StopReason::RepeatedCall => "the same tool calls were made again and again",
        StopReason::ConsecutiveErrors => "too many tool calls in a row failed",
        StopReason::NoProgress => "the last steps led nowhere",
        StopReason::Guardrail => "a guardrail or a hook ended the run",
        StopReason::ContentFilter => "the model refused, or its provider filtered the answer",
        StopReason::Truncated => "the answer stayed cut by the output limit",
        StopReason::AwaitingApproval => "a tool call waits for your answer",
        StopReason::UserInterrupt => "it was interrupted",
        StopReason::LlmError => "the LLM could not be used",
        StopReason::AuthError => "the provider refused the key, or there is none",
        StopReason::InternalError => "an internal error, or the session can no longer be written",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_closing_instruction_is_its_own_and_marked_as_ours() {
        let mut instructions: Vec<_> =
            StopReason::ALL.iter().filter_map(|&reason| closing_instruction(reason)).collect();
        assert!(instructions.iter().all(|text| text.starts_with("[SYSTEM] ")));
        let all = instructions.len();
        instructions.sort_unstable();
        instructions.dedup();
        assert_eq!(instructions.len(), all);
    }

    #[test]
    fn a_fixed_closing_names_the_reason_and_the_steps() {
        assert_eq!(
            fixed_closing(StopReason::MaxSteps, 1),
            "The run ended early (max_steps: the step limit was reached) after 1 step. What was done until then \
             stands; there is no summary of it."
        );
    }

    #[test]
    fn a_new_session_is_advised_only_where_it_would_help() {
        let advised = |steps| fixed_closing(StopReason::ContextFull, steps).contains("to a new session");
        assert_eq!((advised(0), advised(1)), (false, true));
    }
}
