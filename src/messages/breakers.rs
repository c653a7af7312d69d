//! What is said when a run goes nowhere: to the model, and to people.

use crate::core::language::Language;
use crate::text::lines::one_line;

/// Characters of a name that is shown; it may be whatever the model made up.
const NAME_CHARS: usize = 60;

/// How a message of ours to the model begins.
const SYSTEM_PREFIX: &str = "[SYSTEM] ";

/// What the model is told when its answer only announces an action.
pub const ANNOUNCED_ACTION: &str = "[SYSTEM] Your answer announces an action, but it holds no tool call, so nothing was done. If the action is \
                             still needed, do it now with a tool call. If the task is done, say in one sentence that it is \
                             done; what you have answered stays.";

fn name(text: &str) -> String {
    one_line(text, NAME_CHARS)
}

/// The same call in a row.
pub fn same_call(tool: &str, times: u32) -> String {
    format!("`{}` is called {times} times in a row with the same arguments", name(tool))
}

/// The same calls in turn.
pub fn same_round(tools: &[String]) -> String {
    let tools: Vec<String> = tools.iter().map(|tool| format!("`{}`", name(tool))).collect();
    format!(
        "the same {} calls ({}) are made round after round, with the same results",
        tools.len(),
        tools.join(", ")
    )
}

/// Errors in a row.
pub fn errors_in_a_row(count: u32) -> String {
    format!("{count} calls in a row failed, and a few more end the run")
}

/// The same class of error again.
pub fn same_error(tool: &str, answers: u32) -> String {
    format!(
        "`{}` failed in {answers} answers with the same kind of error, whatever its arguments",
        name(tool)
    )
}

/// The same result again.
pub fn same_result(tool: &str, answers: u32) -> String {
    format!("`{}` gave the same result in {answers} answers, although its arguments differ", name(tool))
}

/// A file that goes back and forth.
pub fn reverted_edits(path: &str, times: u32) -> String {
    format!("`{}` went back {times} times to a content that it had before", name(path))
}

/// What the model reads as the result of a call that would repeat itself once too often.
pub fn repeated_call_refused(pattern: &str) -> String {
    format!(
        "This call did not run: {pattern}. Its last result stands above. It runs again after another call; make one that \
         brings something new, or answer."
    )
}

/// What the model is told first.
pub fn no_progress_warning(pattern: &str) -> String {
    format!(
        "{SYSTEM_PREFIX}You seem to go round in circles: {pattern}. Look at the results that you have, find out why they are as they \
         are, and do something else. If the task cannot be done, say in your answer what stands in the way."
    )
}

/// What the model is told when that did not help.
pub fn no_progress_last_warning(pattern: &str) -> String {
    format!(
        "{SYSTEM_PREFIX}Your plan must change: {pattern}, and you were told before. If this goes on, the run ends. Take another way \
         to the goal now, or answer with what is done and what is missing."
    )
}

/// What of such a message is for people.
pub fn no_progress_notice(text: &str, language: Language) -> String {
    let said = text.strip_prefix(SYSTEM_PREFIX).unwrap_or(text);
    format!("{}: {said}", language.pick("the model is told", "se le dice al modelo"))
}
