//! Messages about interrupts, panics and failures to write or read logs, answers and journals.

use super::numbers::count;
use agent_core::language::Language;

/// Valid log levels, for an error about an unknown one.
pub const LOG_LEVELS: &str = "one of debug, info, human, warn, error";

/// Notice after the first interrupt.
pub fn interrupting(language: Language) -> &'static str {
    language.pick(
        "Interrupted: ending the step and saving the session. Press Ctrl+C again to exit at once.",
        "Interrumpido: se termina el paso y se guarda la sesión. Ctrl+C otra vez para salir de inmediato.",
    )
}

/// Error for an answer that could not be written to standard output.
pub fn answer_not_written(error: &std::io::Error) -> String {
    format!("The answer could not be written to standard output: {error}. It is stored in the session.")
}

/// Warning, once per run, that the log file can no longer be written.
pub fn log_file_failed(path: &std::path::Path, error: &std::io::Error) -> String {
    format!("Cannot write the log file {}: {error}. The run continues without it.", path.display())
}

/// Warning about damaged lines of a resumed journal; `lines` are line numbers.
pub fn journal_damaged(lines: &[usize]) -> String {
    format!(
        "{} of the session's journal damaged and left out ({})",
        count(lines.len() as u64, "record"),
        numbers(lines)
    )
}

/// Lists the first 10 line numbers.
fn numbers(lines: &[usize]) -> String {
    let shown: Vec<String> = lines.iter().take(10).map(ToString::to_string).collect();
    let more = if lines.len() > shown.len() { ", …" } else { "" };
    format!("line {}{more}", shown.join(", "))
}

/// Warning about journal records whose text is missing from the blob store; `lines` are line numbers.
pub fn journal_incomplete(lines: &[usize]) -> String {
    let (records, numbers) = (count(lines.len() as u64, "record"), numbers(lines));
    format!(
        "{records} of the session's journal without its stored text: the model reads a note in its place ({numbers})"
    )
}

/// Note after the prefix of a text whose blob is missing.
pub fn blob_missing(hash: &str) -> String {
    format!("\n[The rest is missing from the files of this session: texts/{}.json]", hash.escape_default())
}

/// Error for a thread that could not be started.
pub const NO_THREAD: &str = "error: the system refused another thread: too little memory or too many processes. Raise the \
                             limits (`ulimit -v`, `ulimit -u`) or end other programs";

/// Error for a panic, with its source location.
pub fn panicked(place: &str, message: &str) -> String {
    format!("error: agent panicked at {place}, which is a bug: {message}")
}
