//! Resumes a command from its record: runs its command line again, with the id of the record.

use crate::commands::run_args::RunOptions;
use crate::flows::work::record::{RecordedWork, work_store};
use agent_core::failure::FailureKind;
use agent_core::work::WorkStopReason;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::error::{CliError, CliResult};

/// Option whose value is secret.
const KEY_OPTION: &str = "--api-key";
/// The hidden option that names the record.
const RECORD_OPTION: &str = "--resume-work";
/// The word in place of a task.
const RESUME: &str = "resume";

/// Returns the id of `resume ID`.
pub fn resumed_id(words: &[String]) -> Option<String> {
    match words {
        [resume, id] if resume == RESUME => Some(id.clone()),
        _ => None,
    }
}

/// Runs the command line of record `id` again, with the options of this one added, and returns its exit code.
///
/// # Errors
/// Fails for an unknown record, one of another command or directory, and one that ended with success.
pub fn resume(
    app: &App,
    command: &str,
    id: &str,
    options: &RunOptions,
    run_words: fn(&App, Vec<String>) -> CliResult<u8>,
) -> CliResult<u8> {
    let settings = app.load(&options.request().flags())?.settings;
    let (work, _) = RecordedWork::read(&work_store(&settings), id)?;
    let refuse = |why: String| Err(CliError::new(FailureKind::Session, why));
    if work.start.command != command {
        return refuse(messages::other_work(id, &work.start.command));
    }
    if work.start.directory != app.environment.current_dir().to_string_lossy() {
        return refuse(messages::other_directory(id, &work.start.directory));
    }
    if work.result.is_some_and(|result| result.stop_reason == Some(WorkStopReason::Done)) {
        return refuse(messages::work_is_done(id));
    }
    let added = added_words(app.environment.arguments(), id);
    let record = [RECORD_OPTION.to_owned(), id.to_owned()];
    run_words(app, work.start.words.into_iter().chain(added).chain(record).collect())
}

/// Returns the words of a command line without the command and `resume ID`.
fn added_words(words: &[String], id: &str) -> Vec<String> {
    let mut added = words.get(1..).unwrap_or_default().to_vec();
    for word in [RESUME, id] {
        if let Some(at) = added.iter().position(|added| added == word) {
            added.remove(at);
        }
    }
    added
}

/// Returns the words of a command line that a record keeps: those without the option `--api-key` and its value.
pub fn kept_words(words: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.strip_prefix(KEY_OPTION) {
            Some("") => drop(words.next()),
            Some(value) if value.starts_with('=') => {}
            _ => kept.push(word.clone()),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_beside_the_id_are_added_also_those_with_the_same_words() {
        let words = ["loop", "resume", "ID", "--agent", "resume", "--max-iterations", "9"].map(str::to_owned);
        assert_eq!(added_words(&words, "ID"), ["--agent", "resume", "--max-iterations", "9"]);
    }

    #[test]
    fn a_key_is_not_kept_in_either_form() {
        let words =
            ["loop", "--api-key", "secret", "--check", "x", "--api-key=secret", "task"].map(str::to_owned);
        assert_eq!(kept_words(&words), ["loop", "--check", "x", "task"]);
    }
}
