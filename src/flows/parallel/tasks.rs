//! The tasks of `agent parallel`: from the command line, a file of JSON lines, or the record of a command that is resumed.

use crate::parallel::ParallelRequest;
use agent_config::text_file::read_text;
use agent_core::failure::FailureKind;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::prompt::read_prompt;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Maximum number of tasks.
const MAX_TASKS: usize = 1000;
/// Maximum bytes of the file with tasks.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// A task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParallelTask {
    /// The prompt.
    pub task: String,
    /// The agent, if it is not that of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model, if it is not that of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Reads the tasks that a request names.
///
/// # Errors
/// Fails without a task, for too many, and for a file that cannot be read.
pub fn read(app: &App, command: &ParallelRequest) -> AppResult<Vec<ParallelTask>> {
    let first = match &command.work.task {
        None if !command.tasks.is_empty() || command.tasks_file.is_some() => None,
        task => Some(read_prompt(&app.terminal, task.clone())?),
    };
    let of = |task| ParallelTask { task, ..ParallelTask::default() };
    let mut tasks: Vec<_> = first.into_iter().chain(command.tasks.iter().cloned()).map(of).collect();
    if let Some(file) = &command.tasks_file {
        tasks.extend(read_file(file)?);
    }
    if tasks.iter().any(|task| task.task.trim().is_empty()) {
        return Err(usage("a task is empty"));
    }
    let tasks = with_models(tasks, &command.models);
    match tasks.len() {
        0 => Err(usage("there is no task")),
        1..=MAX_TASKS => Ok(tasks),
        count => Err(usage(&format!("{count} tasks are more than {MAX_TASKS}"))),
    }
}

fn read_file(file: &Path) -> AppResult<Vec<ParallelTask>> {
    let unusable = |why: String| usage(&format!("--tasks-file {}: {why}", file.display()));
    let text = read_text(file, MAX_FILE_BYTES).map_err(|error| unusable(error.to_string()))?;
    parse(&text.ok_or_else(|| unusable("there is no such file".to_owned()))?).map_err(unusable)
}

/// Parses tasks as JSON lines; empty lines are skipped.
///
/// # Errors
/// Names the first line that is no task.
pub fn parse(text: &str) -> Result<Vec<ParallelTask>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let parse = |(at, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at.saturating_add(1)))
    };
    lines.map(parse).collect()
}

/// Returns the tasks as JSON lines, for the record.
pub fn to_lines(tasks: &[ParallelTask]) -> String {
    tasks.iter().filter_map(|task| serde_json::to_string(task).ok()).collect::<Vec<_>>().join("\n")
}

/// Returns the tasks with their models: a single task is given to each model, several ones to the models in turn.
fn with_models(tasks: Vec<ParallelTask>, models: &[String]) -> Vec<ParallelTask> {
    let with = |task: ParallelTask, model: &String| {
        let model = task.model.clone().or_else(|| Some(model.clone()));
        ParallelTask { model, ..task }
    };
    match tasks.as_slice() {
        [only] if !models.is_empty() => models.iter().map(|model| with(only.clone(), model)).collect(),
        _ if models.is_empty() => tasks,
        _ => tasks.into_iter().zip(models.iter().cycle()).map(|(task, model)| with(task, model)).collect(),
    }
}

fn usage(message: &str) -> AppError {
    AppError::new(FailureKind::Usage, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(tasks: &[&str], models: &[&str]) -> Vec<(String, Option<String>)> {
        let tasks =
            tasks.iter().map(|task| ParallelTask { task: (*task).to_owned(), ..ParallelTask::default() });
        let models: Vec<String> = models.iter().map(|model| (*model).to_owned()).collect();
        with_models(tasks.collect(), &models).into_iter().map(|task| (task.task, task.model)).collect()
    }

    #[test]
    fn one_task_goes_to_each_model_and_several_in_turn() {
        let pair = |task: &str, model: &str| (task.to_owned(), Some(model.to_owned()));
        assert_eq!(models(&["x"], &["a", "b"]), [pair("x", "a"), pair("x", "b")]);
        assert_eq!(models(&["x", "y", "z"], &["a", "b"]), [pair("x", "a"), pair("y", "b"), pair("z", "a")]);
        assert_eq!(models(&["x"], &[]), [("x".to_owned(), None)]);
    }

    #[test]
    fn a_line_that_is_no_task_is_named() {
        let parsed = parse("{\"task\": \"a\", \"model\": \"m\"}\n\n{\"task\": \"b\"}\n").unwrap();
        assert_eq!(parsed.len(), 2);
        assert_eq!(parse(&to_lines(&parsed)).unwrap(), parsed);
        assert!(
            parse("{\"task\": \"a\"}\n{\"tusk\": 1}")
                .unwrap_err()
                .starts_with("line 2: unknown field `tusk`")
        );
    }
}
