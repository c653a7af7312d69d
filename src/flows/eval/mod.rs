//! `agent eval`: the same tasks for several models or configurations, each run in a directory of its own, and their ranking.

mod compare;
pub mod directories;
mod measurement;

use crate::eval::directories::TaskDirectories;
use crate::eval::measurement::Measurement;
use crate::work::outcome::WorkOutcome;
use crate::work::request::{WorkCommand, WorkRequest};
use crate::work::running::{NewTask, RunningWork, WorkTask, usage};
use crate::work::workers::{RunDirectories, run_workers, verdict};
use crate::work::worktrees::{Worktrees, base_commit, git_launcher, open_repository};
use agent_config::eval_tasks::{self, EvalTask, TaskFiles};
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_core::score::{has_passed, rank, scores};
use agent_core::work::{WorkRun, WorkStopReason};
use agent_messages as messages;
use agent_process::launch::Launcher;
use agent_run::app::App;
use agent_run::directories as state_directories;
use agent_run::error::{AppError, AppResult};
use agent_run::request::RunRequest;
use agent_terminal::one_line;
pub use compare::compare_measurements;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Characters of a task without a name in the scores.
const TASK_CHARS: usize = 200;

/// What `agent eval` is requested with.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct EvalRequest {
    /// The models to compare.
    pub models: Vec<String>,
    /// The configuration files to compare.
    pub configs: Vec<String>,
    /// Directory of tasks.
    pub tasks: Option<PathBuf>,
    /// Runs of each model or configuration on each task; without it, one.
    pub repeat: Option<u8>,
    /// Maximum cost of each run, in US dollars.
    pub budget_per_model: Option<f64>,
    /// Time limit of each run, in seconds.
    pub timeout_per_model: Option<u64>,
    /// Commit or branch that all runs begin with; without it, HEAD.
    pub base: Option<String>,
    /// Task and runs.
    pub work: WorkRequest,
}

impl WorkCommand for EvalRequest {
    const NAME: &'static str = "eval";

    fn work(&self) -> &WorkRequest {
        &self.work
    }

    fn work_mut(&mut self) -> &mut WorkRequest {
        &mut self.work
    }

    fn conflict(&self) -> Option<[&'static str; 2]> {
        let overrides = &self.work.run.overrides;
        let (models, configs) = (!self.models.is_empty(), !self.configs.is_empty());
        let pairs = [
            (models && configs, ["--models", "--configs"]),
            (models && overrides.model.is_some(), ["--models", "--model"]),
            (configs && overrides.config.is_some(), ["--configs", "--config"]),
            (self.tasks.is_some() && self.base.is_some(), ["--tasks", "--base"]),
        ];
        pairs.into_iter().find(|(are_set, _)| *are_set).map(|(_, pair)| pair)
    }

    fn perform(self, app: &App) -> AppResult<WorkOutcome> {
        app.block_on(run(app, &self))
    }
}

impl EvalRequest {
    /// Returns the request of each run, whose checks are made after it and not by it.
    fn runs(&self) -> RunRequest {
        RunRequest { checks: Vec::new(), ..self.work.run.clone() }
    }
}

async fn run(app: &App, command: &EvalRequest) -> AppResult<WorkOutcome> {
    let names = compared(command)?;
    let settings = app.load_and_notify(&command.work.run.effective_overrides())?.settings;
    if command.work.run.dry_run {
        return Err(usage(messages::PARALLEL_NEEDS_CHANGES));
    }
    state_directories::prepare(&settings)?;
    let launcher = git_launcher(app, &settings)?;
    match &command.tasks {
        None => one_task(app, &settings, &launcher, command, names).await,
        Some(directory) => many_tasks(app, &settings, &launcher, command, names, directory).await,
    }
}

/// Measures the task of the command line, in worktrees of the workspace.
async fn one_task(
    app: &App,
    settings: &Settings,
    launcher: &Launcher,
    command: &EvalRequest,
    names: &[String],
) -> AppResult<WorkOutcome> {
    let repository = open_repository(launcher, settings).await?;
    let task = match command.work.read_task(app)? {
        WorkTask::New(task) => {
            let base = base_commit(app, settings, &repository, command.base.as_deref(), false).await?;
            WorkTask::New(NewTask { base: Some(base), ..task })
        }
        recorded @ WorkTask::Recorded(_) => recorded,
    };
    let work = RunningWork::begin(app, settings, command, command.runs(), task)?;
    let worktrees = Worktrees::new(repository, settings, &work.record)?;
    let start = work.record.start();
    let commit = start.base.unwrap_or_default();
    let files = TaskFiles::Commit { clone: settings.workspace.clone(), commit };
    let task = EvalTask::new(one_line(&start.task, TASK_CHARS), start.task, files);
    let measurement = Measurement { command, names, tasks: vec![task] };
    let runs = measure(settings, &work, &worktrees, &measurement, Vec::new()).await?;
    drop(worktrees);
    end(work, runs, &measurement)
}

/// Measures the tasks of `directory`, in repositories of their own.
async fn many_tasks(
    app: &App,
    settings: &Settings,
    launcher: &Launcher,
    command: &EvalRequest,
    names: &[String],
    directory: &Path,
) -> AppResult<WorkOutcome> {
    let unusable = |why: String| AppError::new(FailureKind::Config, why);
    let directory = directory
        .canonicalize()
        .map_err(|error| unusable(format!("--tasks {}: {error}", directory.display())))?;
    let state = settings.state.canonicalize().map_err(|error| unusable(error.to_string()))?;
    if state.starts_with(&directory) {
        return Err(unusable(messages::tasks_contain_state(&directory.to_string_lossy())));
    }
    let task = match &command.work.record {
        Some(id) => WorkTask::Recorded(id.clone()),
        None if command.work.task.is_some() => return Err(usage(messages::TASK_AND_TASKS)),
        None => {
            let tasks = eval_tasks::read(&directory, !command.work.run.checks.is_empty());
            let tasks = tasks.map_err(|errors| unusable(messages::task_errors(&errors)))?;
            let data = serde_json::to_string(&tasks);
            let data = data.map_err(|error| AppError::new(FailureKind::Internal, error.to_string()))?;
            let task = messages::tasks_of(tasks.len(), &directory.to_string_lossy());
            WorkTask::New(NewTask { task, base: None, data: Some(data) })
        }
    };
    let work = RunningWork::begin(app, settings, command, command.runs(), task)?;
    let tasks: Vec<EvalTask> = serde_json::from_str(&work.record.start().data.unwrap_or_default())
        .map_err(|error| AppError::new(FailureKind::Session, error.to_string()))?;
    let measurement = Measurement { command, names, tasks };
    let by_run = measurement.tasks_by_run()?;
    let directories = TaskDirectories::new(app, settings, launcher, &work.record, by_run);
    let runs = measure(settings, &work, &directories, &measurement, vec![directory]).await?;
    drop(directories);
    end(work, runs, &measurement)
}

/// Makes the runs, whose commands cannot see the `hidden` paths.
async fn measure(
    settings: &Settings,
    work: &RunningWork<'_>,
    directories: &impl RunDirectories,
    measurement: &Measurement<'_>,
    hidden: Vec<PathBuf>,
) -> AppResult<Vec<WorkRun>> {
    let mut request = work.request.clone();
    request.bounds.hidden = hidden;
    let tasks = measurement.worker_tasks(&request)?;
    run_workers(work, directories, tasks, settings.parallel.workers).await
}

/// Records the end with the scores and the ranking.
fn end(work: RunningWork<'_>, runs: Vec<WorkRun>, measurement: &Measurement<'_>) -> AppResult<WorkOutcome> {
    let language = work.language;
    work.end_with(stop_reason(&runs), runs, |result| {
        result.task_scores = scores(&measurement.task_runs(&result.runs));
        result.ranking = rank(&result.task_scores);
        result.output = messages::ranking(&result.ranking, language);
    })
}

/// Returns the names of what is compared.
fn compared(command: &EvalRequest) -> AppResult<&[String]> {
    let names = if command.models.is_empty() { &command.configs } else { &command.models };
    let distinct: BTreeSet<&String> = names.iter().collect();
    if distinct.len() < 2 || distinct.len() < names.len() {
        return Err(usage(messages::EVAL_NEEDS_TWO));
    }
    Ok(names)
}

/// Returns why the command ends: a run that did not pass its checks is no success.
fn stop_reason(runs: &[WorkRun]) -> WorkStopReason {
    match verdict(runs, false) {
        WorkStopReason::Done if !runs.iter().all(has_passed) => WorkStopReason::RunPartial,
        reason => reason,
    }
}
