//! `agent submit`: adds tasks to the queue.

use crate::commands::bundle::store;
use crate::commands::long_prompt::shorten;
use crate::commands::records::{document, open_queue, records};
use crate::commands::tasks::{QueueArgs, WaitArgs, wait};
use crate::error::QueueError;
use crate::location::Location;
use agent_config::flag_values::{parse_mode, parse_seconds_within, parse_usd};
use agent_config::settings::Settings;
use agent_config::task_list::{self, ListedTask, MAX_ATTEMPTS, MAX_FILE_BYTES};
use agent_config::text_file::read_text;
use agent_core::failure::FailureKind;
use agent_core::fleet::{Priority, TaskSpec, check_id};
use agent_engine::policy::Mode;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use agent_run::prompt::{read_prompt, read_stdin};
use clap::Args;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Arguments of `agent submit`.
#[derive(Debug, Clone, Args)]
pub struct SubmitArgs {
    /// The prompt; `-`, or leaving it out of a pipe, reads it from standard input
    #[arg(conflicts_with = "file")]
    pub prompt: Option<String>,
    /// A file of tasks, `-`: standard input: one JSON object a line, or a list in YAML; all are added, or none
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Id of the task; without it a new one
    #[arg(long, conflicts_with = "file", value_parser = |text: &str| check_id(text).map(|()| text.to_owned()))]
    pub id: Option<String>,
    /// Which tasks come first
    #[arg(long, value_name = "high|normal|low", default_value = "normal", hide_default_value = true,
        value_parser = |text: &str| text.parse::<Priority>().map_err(|_| "it is high, normal or low"))]
    pub priority: Priority,
    /// The repository, or a directory in it; without it the workspace
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Send this branch, tag or HEAD of the repository along, for workers that do not have it
    #[arg(long, value_name = "REF")]
    pub bundle: Option<String>,
    /// The agent
    #[arg(short, long, value_name = "NAME")]
    pub agent: Option<String>,
    /// The model: provider/model
    #[arg(long)]
    pub model: Option<String>,
    /// Which calls run without asking; never more than the worker allows
    #[arg(short, long, value_parser = parse_mode, value_name = "confirm-all|confirm-sensitive|auto|yolo")]
    pub mode: Option<Mode>,
    /// Maximum number of model calls
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub max_steps: Option<u32>,
    /// Time limit
    #[arg(long, value_name = "TIME", value_parser = |text: &str| parse_seconds_within(text, 1..=86_400))]
    pub timeout: Option<u64>,
    /// Maximum cost of each attempt
    #[arg(long, value_parser = parse_budget, value_name = "USD")]
    pub budget: Option<f64>,
    /// The program that does the task, one of `fleet.executors` of the worker, instead of the agent itself
    #[arg(long, value_name = "NAME")]
    pub executor: Option<String>,
    /// How many attempts may fail, such as by a server that is down, before the task is dead
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_ATTEMPTS)))]
    pub max_attempts: u32,
    /// Command that must succeed before the task counts as done (repeatable)
    #[arg(long, value_name = "CMD", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub check: Vec<String>,
    /// Wait until the tasks have ended
    #[arg(long)]
    pub wait: bool,
    /// Print one JSON document instead of the ids
    #[arg(long)]
    pub json: bool,
    /// The queue.
    #[command(flatten)]
    pub queue: QueueArgs,
}

/// Adds the tasks, prints their ids, and returns the exit code: that of `agent tasks wait` with `--wait`.
///
/// # Errors
/// Fails for tasks that are not valid, and when the queue refuses them; then none is added.
pub fn submit(app: &App, args: &SubmitArgs) -> AppResult<u8> {
    let settings = app.load_and_notify(&args.queue.common.overrides())?.settings;
    let mut listed = match &args.file {
        None => {
            let prompt = read_prompt(&app.terminal, args.prompt.clone())?;
            let spec = TaskSpec { prompt, ..defaults(args, &settings.workspace) };
            vec![ListedTask { line: 1, id: args.id.clone(), spec }]
        }
        Some(file) => listed(file, &defaults(args, &settings.workspace))?,
    };
    check(app, &settings, &mut listed, args)?;
    let lines: Vec<u64> = listed.iter().map(|task| task.line).collect();
    let id = |id: Option<String>| id.unwrap_or_else(|| app.source.ordered_uuid());
    let tasks = listed.into_iter().map(|task| (id(task.id), task.spec)).collect();
    app.block_on(add(app, &settings, tasks, &lines, args))
}

/// Checks tasks, and sets their directories.
///
/// # Errors
/// All errors, each with the line of its task.
fn check(app: &App, settings: &Settings, tasks: &mut [ListedTask], args: &SubmitArgs) -> AppResult<()> {
    let (mut errors, mut lines) = (Vec::new(), BTreeMap::new());
    let redactor = app.redactor(settings);
    let default = args.dir.as_deref().unwrap_or(&settings.workspace).to_string_lossy();
    for ListedTask { line, id, spec } in tasks {
        let mut wrong = |why: String| {
            let place = args.file.as_ref().map(|file| format!("{}:{line}: ", file.display()));
            errors.push(place.unwrap_or_default() + &why);
        };
        match args.bundle {
            Some(_) if spec.dir != default => {
                wrong(format!("a task with a bundle has no directory of its own: {}", spec.dir));
            }
            Some(_) => spec.dir.clear(),
            None => match directory(settings, args, &spec.dir) {
                Ok(dir) => spec.dir = dir,
                Err(why) => wrong(why),
            },
        }
        if let Some(earlier) = id.as_ref().and_then(|id| lines.insert(id.clone(), *line)) {
            wrong(format!("the task in line {earlier} has the same id"));
        }
        if spec.checks.iter().chain([&spec.prompt]).any(|text| redactor.text(text) != *text) {
            wrong("the task contains a secret: name its environment variable instead".to_owned());
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(usage(errors.join("\n"))) }
}

async fn add(
    app: &App,
    settings: &Settings,
    mut tasks: Vec<(String, TaskSpec)>,
    lines: &[u64],
    args: &SubmitArgs,
) -> AppResult<u8> {
    let now = app.source.unix_time().as_secs();
    let prepared = async {
        let queue = open_queue(app, settings, args.queue.queue.as_deref()).await?;
        for (_, spec) in &mut tasks {
            shorten(&queue, spec, now).await?;
        }
        if let Some(reference) = &args.bundle {
            let dir = args.dir.clone().unwrap_or_default();
            let workspace = directory(settings, args, &dir.to_string_lossy()).map_err(usage)?;
            let settings = Settings { workspace: workspace.into(), ..settings.clone() };
            let bundle = store(app, &settings, &queue, reference).await?;
            for (_, spec) in &mut tasks {
                spec.bundle = Some(bundle.clone());
            }
        }
        Ok(queue)
    };
    let queue = prepared.await.map_err(|error: AppError| match error.kind {
        FailureKind::Network => {
            AppError { cause: error.cause.context("this command stored no task"), ..error }
        }
        _ => error,
    })?;
    queue.submit(&tasks, now).await.map_err(|error| {
        let about = match &error {
            QueueError::TooLong(id, _) | QueueError::Different(id) => {
                tasks.iter().zip(lines).find(|((known, _), _)| known == id)
            }
            _ => None,
        };
        let error = AppError::from(error);
        match (&args.file, about) {
            (Some(file), Some((_, line))) => {
                let place = format!("{}:{line}", file.display());
                AppError { cause: error.cause.context(place), ..error }
            }
            _ => error,
        }
    })?;
    let ids: Vec<String> = tasks.into_iter().map(|(id, _)| id).collect();
    if args.wait {
        return wait(app, &queue, &WaitArgs { ids, timeout: None, json: args.json }).await;
    }
    let text = if args.json {
        document(records(&queue, &ids).await?)?
    } else {
        ids.iter().flat_map(|id| [id.as_str(), "\n"]).collect()
    };
    print(&app.terminal, &text).map(|()| 0)
}

/// Parses a budget above 0.
fn parse_budget(text: &str) -> Result<f64, String> {
    let dollars = parse_usd(text)?;
    if dollars > 0.0 && dollars < 1e6 { Ok(dollars) } else { Err("a budget is above 0".to_owned()) }
}

/// Returns what a task has unless it says otherwise.
fn defaults(args: &SubmitArgs, workspace: &Path) -> TaskSpec {
    let dir = args.dir.as_deref().unwrap_or(workspace);
    TaskSpec {
        priority: args.priority,
        agent: args.agent.clone(),
        model: args.model.clone(),
        mode: args.mode.map(|mode| mode.name().to_owned()),
        max_steps: args.max_steps,
        timeout: args.timeout,
        budget: args.budget,
        executor: args.executor.clone(),
        checks: args.check.clone(),
        ..TaskSpec::new("", dir.to_string_lossy(), args.max_attempts)
    }
}

fn listed(file: &Path, defaults: &TaskSpec) -> AppResult<Vec<ListedTask>> {
    let name = file.display();
    let text = if file == Path::new("-") {
        let text = read_stdin(MAX_FILE_BYTES)?;
        text.ok_or_else(|| usage(format!("-f -: over {} MiB", MAX_FILE_BYTES >> 20)))?
    } else {
        let text = read_text(file, MAX_FILE_BYTES).map_err(|error| usage(format!("-f {name}: {error}")))?;
        text.ok_or_else(|| usage(format!("-f {name}: there is no such file")))?
    };
    task_list::parse(&text, defaults).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(|error| format!("{name}:{error}")).collect();
        usage(lines.join("\n"))
    })
}

/// Returns the absolute path of the directory of a task. One that is not here may be on the machines of a server's workers.
fn directory(settings: &Settings, args: &SubmitArgs, dir: &str) -> Result<String, String> {
    let is_shared = Location::is_server(args.queue.queue.as_deref().or(settings.fleet.queue.as_deref()));
    let is_elsewhere =
        |error: &io::Error| error.kind() == ErrorKind::NotFound && Path::new(dir).is_absolute() && is_shared;
    match settings.workspace.join(dir).canonicalize() {
        Ok(path) => {
            let path = path.into_os_string().into_string();
            path.map_err(|_| "the path of the directory is not valid UTF-8".to_owned())
        }
        Err(error) if is_elsewhere(&error) => Ok(dir.to_owned()),
        Err(error) => Err(format!("the directory {dir}: {error}")),
    }
}

fn usage(message: impl Into<String>) -> AppError {
    AppError::new(FailureKind::Usage, message)
}
