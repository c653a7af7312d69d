//! The session of a run on a queue that other machines use: an object of the queue has it, in the form of `agent sessions export`.

use crate::commands::context::WorkerContext;
use crate::error::QueueError;
use crate::queue::Queue;
use agent_cli::commands::sessions::export::{PathReplacements, write_session};
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_core::fleet::TaskRecord;
use agent_core::run_result::RunResult;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use agent_run::session::session_store;
use agent_terminal::Style;
use agent_text::invisible::escape_json;

/// Stores the session of `result` for the newest attempt of `task`, if other machines use the queue. What cannot be stored is logged: the
/// session stays on this machine.
///
/// # Errors
/// Fails when the queue cannot be used.
pub async fn store_session(
    worker: &WorkerContext<'_>,
    task: &TaskRecord,
    settings: &Settings,
    result: &RunResult,
) -> AppResult<()> {
    let Some(id) = result.session_id.as_deref().filter(|_| worker.queue.is_shared()) else { return Ok(()) };
    let (store, redactor) = (session_store(settings), worker.app.redactor(settings));
    let mut bytes = Vec::new();
    let paths = PathReplacements::default();
    if let Err(error) = write_session(&mut bytes, &store, &redactor, id, &paths) {
        worker.log(Style::Warning, &error.to_string());
        return Ok(());
    }
    let put = async || match worker.queue.put_object(&bytes, worker.now()).await {
        Err(error @ QueueError::State(_)) => Ok(Err(error)),
        put => put.map(Ok),
    };
    match worker.until_answered(put).await? {
        Ok(object) => {
            let record = |task: &mut TaskRecord| task.session_object = Some(object.clone());
            let set = async || worker.queue.update(task, record).await;
            worker.until_answered(set).await.map(drop)
        }
        Err(error) => {
            worker.log(Style::Warning, &error.to_string());
            Ok(())
        }
    }
}

/// Prints the session of a task, for `agent sessions import`.
///
/// # Errors
/// Fails for a task whose session is on the machine of its worker only, and when the queue cannot be used.
pub async fn print_session(app: &App, queue: &Queue, id: &str) -> AppResult<()> {
    let task = queue.record(id).await?;
    let wrong = |why: String| AppError::new(FailureKind::Usage, format!("the task {id} {why}"));
    let Some(object) = &task.session_object else {
        let session = task.session_id.as_deref();
        let why = session.map(|session| format!("has no stored session: its machine has it, as {session}"));
        return Err(wrong(why.unwrap_or_else(|| "has no session".to_owned())));
    };
    let bytes = queue.object(object).await?;
    let bytes =
        bytes.ok_or_else(|| wrong("has a session that is gone: it is kept for 60 days".to_owned()))?;
    print(&app.terminal, &escape_json(&String::from_utf8_lossy(&bytes)))
}
