//! Messages of the circuit breakers against runs without progress, for the model and for users.

use agent_core::language::Language;
use agent_text::lines::one_line;

/// Characters shown of a name, which the model may have invented.
const NAME_CHARS: usize = 60;

/// Prefix of the agent's own messages to the model.
pub const SYSTEM_PREFIX: &str = "[SYSTEM] ";

/// Message to the model when its answer announces an action without a tool call.
pub const ANNOUNCED_ACTION: &str = "[SYSTEM] Your answer announces an action, but it contains no tool call, so nothing was done. If the action is \
                             still needed, do it now with a tool call. If the task is done, say in one sentence that it is \
                             done; your answer is already recorded.";

fn name(text: &str) -> String {
    one_line(text, NAME_CHARS)
}

/// Pattern: the same call several times in a row.
pub fn same_call(tool: &str, times: u32) -> String {
    format!("`{}` is called {times} times in a row with the same arguments", name(tool))
}

/// Pattern: a repeated cycle of the same calls.
pub fn same_round(tools: &[String]) -> String {
    let tools: Vec<String> = tools.iter().map(|tool| format!("`{}`", name(tool))).collect();
    format!(
        "the same {} calls ({}) are made round after round, with the same results",
        tools.len(),
        tools.join(", ")
    )
}

/// Pattern: consecutive errors.
pub fn errors_in_a_row(count: u32) -> String {
    format!("{count} calls in a row failed, and a few more end the run")
}

/// Pattern: the same kind of error again.
pub fn same_error(tool: &str, answers: u32) -> String {
    format!(
        "`{}` failed in {answers} answers with the same kind of error, whatever its arguments",
        name(tool)
    )
}

/// Pattern: the same result again.
pub fn same_result(tool: &str, answers: u32) -> String {
    format!("`{}` gave the same result in {answers} answers, although its arguments differ", name(tool))
}

/// Pattern: a file whose content alternates.
pub fn reverted_edits(path: &str, times: u32) -> String {
    format!("`{}` returned {times} times to an earlier content", name(path))
}

/// Result sent to the model for a repeated call that was not run.
pub fn repeated_call_refused(pattern: &str) -> String {
    format!(
        "This call did not run: {pattern}. See its last result above. It can run again after a different call: make a call \
         that gives new information, or answer."
    )
}

/// First warning to the model.
pub fn no_progress_warning(pattern: &str) -> String {
    format!(
        "{SYSTEM_PREFIX}You seem to be going in circles: {pattern}. Check the results that you have, find their cause, and try \
         something else. If the task cannot be done, say in your answer what prevents it."
    )
}

/// Second and last warning to the model.
pub fn no_progress_last_warning(pattern: &str) -> String {
    format!(
        "{SYSTEM_PREFIX}Your plan must change: {pattern}, even after a warning. If this continues, the run ends. Take another \
         approach now, or answer with what is done and what is missing."
    )
}

/// Notice for users that quotes a warning sent to the model.
pub fn no_progress_notice(text: &str, language: Language) -> String {
    let text = text.strip_prefix(SYSTEM_PREFIX).unwrap_or(text);
    format!("{}: {text}", language.pick("message to the model", "mensaje al modelo"))
}
