//! Opens the queue, and shows its records.

use crate::location::Location;
use crate::nats::NatsStore;
use crate::nats::connection::{Credentials, NatsServer};
use crate::queue::Queue;
use crate::sqlite::SqliteStore;
use agent_config::environment::Directories;
use agent_config::fleet::NatsSettings;
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_core::fleet::{TaskRecord, TaskState, TasksDocument};
use agent_report::json;
use agent_run::app::App;
use agent_run::assemble;
use agent_run::error::{AppError, AppResult};
use agent_terminal::one_line;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

/// Characters of a prompt or a cause in a list.
const TEXT_CHARS: usize = 60;

/// Returns the directories of the user.
///
/// # Errors
/// Fails when there is no home directory.
pub fn directories(app: &App) -> AppResult<Directories> {
    Directories::from_environment(&app.environment)
        .map_err(|error| AppError { kind: FailureKind::Config, cause: error.into() })
}

/// Opens the queue `url`, by default the configured one.
///
/// # Errors
/// Fails for another kind of queue, and when it cannot be used.
pub async fn open_queue(app: &App, settings: &Settings, url: Option<&str>) -> AppResult<Queue> {
    let state = directories(app)?.state;
    let location = Location::parse(url.or(settings.fleet.queue.as_deref()), &state);
    let lease = Duration::from_secs(settings.fleet.lease_seconds.into());
    let wrong = |why: String| AppError::new(FailureKind::Config, why);
    Ok(match location.map_err(wrong)? {
        Location::Sqlite(path) if assemble::is_in_workspace(&path, settings) && !path.starts_with(&state) => {
            return Err(wrong(format!(
                "the queue {} is in the workspace, where commands could change it: take another place",
                path.display()
            )));
        }
        Location::Sqlite(path) => Queue::Sqlite(SqliteStore::open(&path, lease)?),
        Location::Nats(url) => {
            let server = nats_server(app, &settings.fleet.nats, url)?;
            Queue::Nats(Box::new(NatsStore::open(&server, lease, Rc::clone(&app.source)).await?))
        }
    })
}

/// Returns the server at `url`, by default the configured one.
fn nats_server(app: &App, settings: &NatsSettings, url: Option<String>) -> AppResult<NatsServer> {
    let wrong = |why: String| AppError::new(FailureKind::Config, why);
    let value = |name: &String| {
        let value = app.environment.get(name).map(str::to_owned);
        value.ok_or_else(|| wrong(format!("the environment variable {name} is not set")))
    };
    let user = settings.user_env.as_ref().map(value).transpose()?;
    let token = settings.token_env.as_ref().map(value).transpose()?;
    let credentials = match (user, token) {
        (None, None) => Credentials::None,
        (None, Some(token)) => Credentials::Token(token),
        (Some(user), None) => {
            let parts = user.split_once(':');
            let (user, password) =
                parts.ok_or_else(|| wrong("fleet.nats.user_env: write `USER:PASSWORD`".to_owned()))?;
            Credentials::User(user.to_owned(), password.to_owned())
        }
        (Some(_), Some(_)) => {
            return Err(wrong("set `fleet.nats.user_env` or `fleet.nats.token_env`, not both".to_owned()));
        }
    };
    let server = NatsServer {
        url: url.unwrap_or_else(|| settings.url.clone()),
        credentials,
        ca_file: settings.ca_file.as_ref().map(PathBuf::from),
        insecure: settings.insecure,
        prefix: settings.prefix.clone(),
        replicas: settings.replicas.into(),
    };
    server.check().map_err(wrong)?;
    Ok(server)
}

/// Returns the tasks with these ids.
///
/// # Errors
/// Fails if one does not exist, and when the queue cannot be used.
pub async fn records(queue: &Queue, ids: &[String]) -> AppResult<Vec<TaskRecord>> {
    let mut tasks = Vec::with_capacity(ids.len());
    for id in ids {
        tasks.push(queue.get(id).await?);
    }
    Ok(tasks)
}

/// Returns the document of these tasks, as one line of JSON.
///
/// # Errors
/// Only when a task cannot be written as JSON, which is a bug.
pub fn document(tasks: Vec<TaskRecord>) -> AppResult<String> {
    json::line(&TasksDocument::new(tasks))
        .map_err(|error| AppError { kind: FailureKind::Internal, cause: error.into() })
}

/// Returns a line about each task.
pub fn lines(tasks: &[TaskRecord]) -> String {
    let mut text = String::new();
    for task in tasks {
        let what = match (&task.cause, task.state) {
            (Some(cause), TaskState::Failed | TaskState::Dead | TaskState::Cancelled) => cause,
            _ => &task.spec.prompt,
        };
        let state = task.state.name();
        let _infallible = writeln!(
            text,
            "{}  {state:<9}  attempt {}  {}",
            task.id,
            task.attempt,
            one_line(what, TEXT_CHARS)
        );
    }
    text
}
