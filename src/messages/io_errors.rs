//! What is said where a log, an answer or a journal cannot be written or read whole.

use super::numbers::count;
use crate::core::language::Language;

/// The names of the levels, where another name was given.
pub const LOG_LEVELS: &str = "one of debug, info, human, warn, error";

/// Said at the first interrupt.
pub fn interrupting(language: Language) -> &'static str {
    language.pick(
        "Interrupted: ending the step and saving the session. Press Ctrl+C again to exit at once.",
        "Interrumpido: se termina el paso y se guarda la sesión. Ctrl+C otra vez para salir de inmediato.",
    )
}

/// Said when the answer could not be written to standard output.
pub fn answer_not_written(error: &std::io::Error) -> String {
    format!("The answer could not be written to standard output: {error}. It is kept in the session.")
}

/// Said once when the log file can no longer be written.
pub fn log_file_failed(path: &std::path::Path, error: &std::io::Error) -> String {
    format!("The log file {} is given up: {error}. The run goes on without it.", path.display())
}

/// Said when a resumed journal holds lines that a crash or a disk has damaged.
pub fn journal_damaged(lines: &[usize]) -> String {
    format!(
        "{} of the session's journal damaged and left out ({})",
        count(lines.len() as u64, "record"),
        numbers(lines)
    )
}

/// The first of these line numbers.
fn numbers(lines: &[usize]) -> String {
    let shown: Vec<String> = lines.iter().take(10).map(ToString::to_string).collect();
    let more = if lines.len() > shown.len() { ", …" } else { "" };
    format!("line {}{more}", shown.join(", "))
}

/// Said when records of a resumed journal lack a text that was kept beside it.
pub fn journal_incomplete(lines: &[usize]) -> String {
    let (records, numbers) = (count(lines.len() as u64, "record"), numbers(lines));
    format!(
        "{records} of the session's journal without a text that was kept beside it: the model reads a note in its place ({numbers})"
    )
}

/// What stands in the place of a text that is not beside the journal any more, after its beginning.
pub fn blob_missing(hash: &str) -> String {
    format!(
        "\n[The rest is missing beside the journal of this session: texts/{}.json]",
        hash.escape_default()
    )
}

/// Said when a state that was kept of a resumed session is of no use.
pub fn state_unusable(why: &str) -> String {
    format!("the whole journal of the session was read: of the state that was kept beside it, {why}")
}

/// Said when the state of a session could not be kept beside its journal.
pub fn state_not_stored(error: &std::io::Error) -> String {
    format!(
        "the state of the session could not be kept beside its journal, so that a resume reads more: {error}"
    )
}

/// A thread that could not be started.
pub const NO_THREAD: &str = "error: the system refused another thread: too little memory or too many processes. Raise the \
                             limits (`ulimit -v`, `ulimit -u`) or end other programs";

/// A panic, told where it happened.
pub fn panicked(place: &str, message: &str) -> String {
    format!("error: agent panicked at {place}, which is a bug: {message}")
}
