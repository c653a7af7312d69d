//! `agent tasks`: shows and changes the tasks of the queue.

use crate::commands::bundle::fetch;
use crate::commands::long_prompt::with_prompt;
use crate::commands::records::{document, lines, open_queue, records};
use crate::commands::stored_session::print_session;
use crate::commands::top::top;
use crate::error::QueueError;
use crate::queue::Queue;
use crate::selection::Selection;
use agent_cli::commands::common_args::CommonArgs;
use agent_config::flag_values::{parse_seconds, parse_seconds_within};
use agent_core::failure::FailureKind;
use agent_core::fleet::{TaskRecord, TaskState};
use agent_messages as messages;
use agent_report::json;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::exit_code::ExitCode;
use agent_run::output::print;
use agent_terminal::Style;
use clap::{Args, Subcommand};
use std::fmt::Write as _;
use std::io;
use std::time::Duration;
use tokio::time::sleep;

/// Time between two looks at tasks that are waited for, in a database.
const LOOK: Duration = Duration::from_millis(100);
/// The same on a server, which may be asked by many.
const LOOK_AT_SERVER: Duration = Duration::from_secs(1);

/// Arguments of `agent tasks`.
#[derive(Debug, Clone, Args)]
pub struct TasksArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Option<TasksCommand>,
    /// The queue.
    #[command(flatten)]
    pub queue: QueueArgs,
}

/// Arguments about the queue.
#[derive(Debug, Clone, Args)]
pub struct QueueArgs {
    /// The queue: `sqlite:/absolute/path`, `nats://HOST:PORT` or `nats:` for the configured server
    #[arg(long, value_name = "URL", global = true)]
    pub queue: Option<String>,
    /// Configuration and workspace.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Arguments of `agent tasks wait`.
#[derive(Debug, Clone, Args)]
pub struct WaitArgs {
    /// Ids of the tasks
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
    /// Wait no longer than this
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub timeout: Option<u64>,
    /// Print one JSON document instead of a line for each task
    #[arg(long)]
    pub json: bool,
}

/// Subcommands of `agent tasks`.
#[derive(Debug, Clone, Subcommand)]
pub enum TasksCommand {
    /// List the tasks, in the order of their submission
    List {
        /// Only tasks in this state
        #[arg(long, value_name = "queued|claimed|done|failed|dead|cancelled", value_parser = parse_state)]
        state: Option<TaskState>,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show a task and its result
    Show {
        /// Its id
        id: String,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Wait until tasks have ended: exit code 0 if all are done, 2 if not, 5 after --timeout
    Wait(WaitArgs),
    /// Show a table of the queue and of what its workers do, until Ctrl+C
    Top {
        /// Time between two looks
        #[arg(long, value_name = "TIME", default_value = "2s", value_parser = |text: &str| parse_seconds_within(text, 1..=3_600))]
        interval: u64,
    },
    /// Cancel tasks; the run of one that is under way ends
    Cancel {
        /// Ids of the tasks
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Queue tasks again that ended without success
    Retry {
        /// Ids of the tasks
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Create the branches of tasks with a bundle in the repository of the workspace
    Fetch {
        /// Ids of the tasks
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Print the session of a task on a server, for `agent sessions import -`
    Session {
        /// Its id
        id: String,
    },
    /// Print all tasks as JSON lines, which `agent submit -f` takes
    Export,
    /// Remove tasks that have ended; their branches stay
    Rm {
        /// Ids of the tasks
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}

fn parse_state(text: &str) -> Result<TaskState, String> {
    text.parse().map_err(|_| "the states are queued, claimed, done, failed, dead and cancelled".to_owned())
}

/// Runs a subcommand, by default the list; returns the exit code.
///
/// # Errors
/// Fails for an unknown task, one whose state does not allow it, and when the queue cannot be used.
pub fn tasks(app: &App, args: TasksArgs) -> AppResult<u8> {
    app.block_on(perform(app, args))
}

async fn perform(app: &App, args: TasksArgs) -> AppResult<u8> {
    let settings = app.load_and_notify(&args.queue.common.overrides())?.settings;
    let queue = open_queue(app, &settings, args.queue.queue.as_deref()).await?;
    let now = app.source.unix_time().as_secs();
    let text = match args.command.unwrap_or(TasksCommand::List { state: None, json: false }) {
        TasksCommand::List { state, json } => {
            let tasks = queue.select(state.map_or(Selection::All, Selection::InState)).await?;
            for why in queue.take_unreadable() {
                app.notify(Style::Warning, &app.redact(&why));
            }
            match (json, tasks.is_empty()) {
                (true, _) => {
                    let mut whole = Vec::with_capacity(tasks.len());
                    for task in tasks {
                        match queue.get(&task.id).await {
                            // It was removed meanwhile.
                            Err(QueueError::Unknown(_)) => {}
                            task => whole.push(task?),
                        }
                    }
                    document(whole)?
                }
                (false, true) => "no tasks: `agent submit` adds some\n".to_owned(),
                (false, false) => lines(&tasks),
            }
        }
        TasksCommand::Show { id, json } => {
            let task = queue.get(&id).await?;
            if json { document(vec![task])? } else { shown(&task) }
        }
        TasksCommand::Top { interval } => {
            return top(app, &queue, Duration::from_secs(interval)).await.map(|()| 0);
        }
        TasksCommand::Wait(args) => return wait(app, &queue, &args).await,
        TasksCommand::Cancel { ids } => {
            queue.cancel(&ids, now).await?;
            return Ok(0);
        }
        TasksCommand::Retry { ids } => {
            queue.retry(&ids, now).await?;
            return Ok(0);
        }
        TasksCommand::Fetch { ids } => {
            for id in ids {
                let branch = fetch(app, &settings, &queue, &id).await?;
                print(&app.terminal, &format!("{branch}\n"))?;
            }
            return Ok(0);
        }
        TasksCommand::Session { id } => return print_session(app, &queue, &id).await.map(|()| 0),
        TasksCommand::Export => exported(app, &queue).await?,
        TasksCommand::Rm { ids } => {
            queue.remove(&ids).await?;
            return Ok(0);
        }
    };
    print(&app.terminal, &text).map(|()| 0)
}

/// Waits until tasks have ended, prints them, and returns the exit code.
///
/// # Errors
/// Fails for an unknown task, and when the queue cannot be used.
pub async fn wait(app: &App, queue: &Queue, args: &WaitArgs) -> AppResult<u8> {
    let (begun, mut is_away) = (app.source.elapsed(), false);
    let (states, has_ended) = loop {
        let states = queue.states(&args.ids).await;
        let waited = app.source.elapsed().saturating_sub(begun).as_secs();
        let is_over = args.timeout.is_some_and(|timeout| waited >= timeout);
        match states {
            Ok(states) => {
                is_away = false;
                let has_ended = states.iter().all(|state| state.has_ended());
                if has_ended || is_over {
                    break (states, has_ended);
                }
            }
            Err(error @ QueueError::Away(_)) if !is_over => {
                // Once in an outage.
                if !std::mem::replace(&mut is_away, true) {
                    app.notify(Style::Warning, &app.redact(&error.to_string()));
                }
            }
            Err(error) => return Err(error.into()),
        }
        sleep(if queue.is_shared() { LOOK_AT_SERVER } else { LOOK }).await;
    };
    let tasks = records(queue, &args.ids).await?;
    print(&app.terminal, &if args.json { document(tasks)? } else { lines(&tasks) })?;
    let code = match (has_ended, states.iter().all(|state| *state == TaskState::Done)) {
        (false, _) => ExitCode::Timeout,
        (true, true) => ExitCode::Success,
        (true, false) => ExitCode::Partial,
    };
    Ok(code.code())
}

/// Returns the text about one task.
fn shown(task: &TaskRecord) -> String {
    let mut text = lines(std::slice::from_ref(task));
    let answer = task.result.as_ref().map(|result| result.output.text().into_owned());
    let more = [
        ("directory", Some(task.spec.dir.clone()).filter(|dir| !dir.is_empty())),
        ("worker", task.worker.clone()),
        ("cause", task.cause.clone()),
        ("session", task.session_id.clone()),
        ("branch", task.branch.clone()),
        ("commit", task.commit.clone()),
        ("not in the commit", (!task.left_out.is_empty()).then(|| messages::list_paths(&task.left_out))),
        ("kept with its changes", task.worktree.clone()),
    ];
    for (name, value) in more.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        let _infallible = writeln!(text, "{name}: {value}");
    }
    for part in [Some(task.spec.prompt.clone()), answer].into_iter().flatten() {
        let _infallible = writeln!(text, "\n{}", part.trim_end());
    }
    text
}

/// Returns the tasks as a file for `agent submit -f`. Those of a Hub, and those with a bundle, which is in this queue only, are left out.
async fn exported(app: &App, queue: &Queue) -> AppResult<String> {
    let mut text = String::new();
    for task in queue.select(Selection::All).await? {
        if task.spec.bundle.is_some() {
            app.notify(Style::Warning, &format!("{} is left out: it has a bundle", task.id));
        }
        if task.spec.bundle.is_some() || task.spec.activation.is_some() {
            continue;
        }
        let spec = match &task.spec.long_prompt {
            None => task.spec,
            Some(object) => match with_prompt(task.spec.clone(), queue.object(object).await?) {
                Ok(spec) => spec,
                Err(error) => {
                    app.notify(Style::Warning, &format!("{} is left out: {error}", task.id));
                    continue;
                }
            },
        };
        let line = serde_json::to_value(&spec).map_err(io::Error::from).and_then(|mut spec| {
            if let Some(fields) = spec.as_object_mut() {
                fields.insert("id".to_owned(), task.id.clone().into());
            }
            json::line(&spec)
        });
        text += &line.map_err(|error| AppError { kind: FailureKind::Internal, cause: error.into() })?;
    }
    Ok(text)
}
