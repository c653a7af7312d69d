//! `agent tasks top`: a table of the queue and of what its workers do, drawn again all the time.

use crate::error::QueueError;
use crate::queue::Queue;
use crate::selection::Selection;
use agent_core::failure::FailureKind;
use agent_core::fleet::{TaskRecord, TaskState};
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_terminal::{PrintOutcome, one_line, row_count};
use std::fmt::Write as _;
use std::time::Duration;
use tokio::time::sleep;

/// Rows for tasks that workers do.
const MAX_TASKS: usize = 20;
/// Columns of a task id. The last characters of the id are shown, because they are random: ids of tasks that were added together begin alike.
const ID_COLUMNS: usize = 9;
/// Columns of a worker.
const WORKER_COLUMNS: usize = 16;
/// Columns of a prompt, where standard output is no terminal.
const PROMPT_COLUMNS: usize = 80;

/// Draws the table until it is interrupted; once if standard output is no terminal.
///
/// # Errors
/// Fails when the queue cannot be used, and when standard output cannot be written.
pub async fn top(app: &App, queue: &Queue, interval: Duration) -> AppResult<()> {
    let is_live = app.terminal.stream_info().stdout.is_terminal();
    let mut rows = 0;
    loop {
        let columns = usize::from(app.terminal.width());
        let now = app.source.unix_time().as_secs();
        let text = match read(queue).await {
            Ok((counts, tasks)) => table(&counts, &tasks, now, is_live.then_some(columns)),
            // It may answer again.
            Err(error @ QueueError::Away(_)) if is_live => {
                format!("{}\n", one_line(&error.to_string(), columns))
            }
            Err(error) => return Err(error.into()),
        };
        let drawn = app.terminal.redraw(&app.redact(&text), rows);
        let drawn = drawn.map_err(|error| AppError::new(FailureKind::Internal, error.to_string()))?;
        if !is_live || drawn == PrintOutcome::Closed {
            return Ok(());
        }
        rows = row_count(&text, columns);
        sleep(interval).await;
    }
}

async fn read(queue: &Queue) -> Result<(Vec<(TaskState, u64)>, Vec<TaskRecord>), QueueError> {
    Ok((queue.counts().await?, queue.select(Selection::InState(TaskState::Claimed)).await?))
}

/// Returns the text about the queue at `now`, with lines of at most so many columns.
fn table(counts: &[(TaskState, u64)], tasks: &[TaskRecord], now: u64, columns: Option<usize>) -> String {
    let counts: Vec<String> =
        counts.iter().map(|(state, count)| format!("{count} {}", state.name())).collect();
    let mut lines = vec![counts.join(", ")];
    if !tasks.is_empty() {
        lines.push(format!(
            "{:<ID_COLUMNS$}  attempt  seconds  {:<WORKER_COLUMNS$}  prompt",
            "task", "worker"
        ));
    }
    for task in tasks.iter().take(MAX_TASKS) {
        let worker = one_line(task.worker.as_deref().unwrap_or_default(), PROMPT_COLUMNS);
        let (worker, id) =
            (end_of(&worker, WORKER_COLUMNS), end_of(&one_line(&task.id, PROMPT_COLUMNS), ID_COLUMNS));
        let seconds = now.saturating_sub(task.changed_at);
        let prompt = one_line(&task.spec.prompt, columns.unwrap_or(PROMPT_COLUMNS));
        lines.push(format!(
            "{id:<ID_COLUMNS$}  {:>7}  {seconds:>7}  {worker:<WORKER_COLUMNS$}  {prompt}",
            task.attempt
        ));
    }
    if tasks.len() > MAX_TASKS {
        lines.push(format!("and {} more", tasks.len() - MAX_TASKS));
    }
    let mut text = String::new();
    for line in lines {
        let line: String = line.chars().take(columns.unwrap_or(usize::MAX)).collect();
        let _infallible = writeln!(text, "{line}");
    }
    text
}

/// Returns a name, or the end of a long one, where those of one machine differ.
fn end_of(name: &str, columns: usize) -> String {
    let length = name.chars().count();
    if length <= columns {
        return name.to_owned();
    }
    let end: String = name.chars().skip(length + 1 - columns).collect();
    format!("…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::fleet::TaskSpec;

    #[test]
    fn the_table_has_the_counts_and_a_line_for_each_task_that_a_worker_does() {
        let mut task = TaskRecord::new("t1", 1, &TaskSpec::new("fix it\nnow", "/", 2), 10);
        task.claim("host-1", 90);
        let counts = [(TaskState::Queued, 7), (TaskState::Claimed, 1)];
        let text = table(&counts, &[task.clone()], 100, None);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["7", "queued,", "1", "claimed"]);
        assert_eq!(lines[2], ["t1", "1", "10", "host-1", "fix", "it\\nnow"]);
        let many = table(&counts, &vec![task; 23], 100, Some(20));
        assert_eq!(many.lines().last(), Some("and 3 more"));
        assert!(many.lines().all(|line| line.chars().count() <= 20), "{many}");
    }
    #[test]
    fn u20_the_table_has_room_for_the_prompt_on_a_terminal_of_80_columns() {
        let id = "0192e3a4-7b1c-7def-8a9b-0123456789ab";
        let mut task = TaskRecord::new(id, 1, &TaskSpec::new("add tests for the parser", "/", 2), 10);
        task.claim("a-host-with-a-long-name.example.org-12345-7", 90);
        let text = table(&[(TaskState::Claimed, 1)], &[task], 100, Some(80));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("\n…456789ab ") && text.contains("add tests for the parser\n"), "{text}");
    }
}
