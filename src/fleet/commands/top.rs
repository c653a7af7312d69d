//! `agent tasks top`: a table of the queue and of what its workers do, drawn again all the time.

use crate::error::QueueError;
use crate::queue::Queue;
use crate::selection::Selection;
use agent_core::failure::FailureKind;
use agent_core::fleet::{TaskRecord, TaskState};
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_terminal::{PrintOutcome, StdoutTarget, one_line, row_count};
use std::fmt::Write as _;
use std::time::Duration;
use tokio::time::sleep;

/// Rows for tasks that workers do.
const MAX_TASKS: usize = 20;
/// Columns of an id and of a worker.
const NAME_COLUMNS: usize = 36;

/// Draws the table until it is interrupted; once if standard output is no terminal.
///
/// # Errors
/// Fails when the queue cannot be used, and when standard output cannot be written.
pub async fn top(app: &App, queue: &Queue, interval: Duration) -> AppResult<()> {
    let is_live = app.terminal.stream_info().stdout != StdoutTarget::Elsewhere;
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
            "{:<NAME_COLUMNS$}  {:<NAME_COLUMNS$}  attempt  seconds  prompt",
            "worker", "task"
        ));
    }
    for task in tasks.iter().take(MAX_TASKS) {
        let worker = one_line(task.worker.as_deref().unwrap_or_default(), NAME_COLUMNS - 1);
        let id = one_line(&task.id, NAME_COLUMNS - 1);
        let seconds = now.saturating_sub(task.changed_at);
        let prompt = one_line(&task.spec.prompt, columns.unwrap_or(NAME_COLUMNS));
        lines.push(format!(
            "{worker:<NAME_COLUMNS$}  {id:<NAME_COLUMNS$}  {:>7}  {seconds:>7}  {prompt}",
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
        assert_eq!(lines[2], ["host-1", "t1", "1", "10", "fix", "it\\nnow"]);
        let many = table(&counts, &vec![task; 23], 100, Some(20));
        assert_eq!(many.lines().last(), Some("and 3 more"));
        assert!(many.lines().all(|line| line.chars().count() <= 20), "{many}");
    }
}
