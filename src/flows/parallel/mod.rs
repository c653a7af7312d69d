//! `agent parallel`: several tasks at the same time, each in a worktree and on a branch of its own.

mod cleanup;
mod tasks;

use crate::parallel::tasks::ParallelTask;
use crate::work::outcome::WorkOutcome;
use crate::work::request::{WorkCommand, WorkRequest};
use crate::work::running::{NewTask, RunningWork, WorkTask, usage};
use crate::work::workers::{WorkerTask, run_workers, verdict};
use crate::work::worktrees::{Worktrees, base_commit, git_launcher, open_repository};
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_core::price::Usd;
use agent_core::stop_reason::Status;
use agent_core::work::{WorkRun, WorkStopReason};
use agent_messages as messages;
use agent_run::app::App;
use agent_run::directories;
use agent_run::error::{AppError, AppResult};
use agent_run::request::RunRequest;
use agent_workspace::git::worktree::Repository;
pub use cleanup::clean_up;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// What `agent parallel` is requested with.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ParallelRequest {
    /// Further tasks.
    pub tasks: Vec<String>,
    /// File of JSON lines with `task`, and optionally `agent` and `model`.
    pub tasks_file: Option<PathBuf>,
    /// Tasks at the same time.
    pub workers: Option<u8>,
    /// Models: a single task is given to each of them, several tasks are given to them in turn.
    pub models: Vec<String>,
    /// Maximum cost of each task, in US dollars.
    pub budget_per_worker: Option<f64>,
    /// Time limit of each task, in seconds.
    pub timeout_per_worker: Option<u64>,
    /// How many tasks must succeed; without it, all.
    pub require: Option<Required>,
    /// Commit or branch that the worktrees begin with; without it, HEAD.
    pub base: Option<String>,
    /// Whether uncommitted and untracked files are taken along into the worktrees.
    pub include_uncommitted: bool,
    /// Whether the branches of successful tasks are merged into the current branch.
    pub merge: bool,
    /// Task and runs.
    pub work: WorkRequest,
}

/// How many tasks must succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Required {
    /// All.
    All,
    /// One of them.
    Any,
}

impl WorkCommand for ParallelRequest {
    const NAME: &'static str = "parallel";

    fn work(&self) -> &WorkRequest {
        &self.work
    }

    fn work_mut(&mut self) -> &mut WorkRequest {
        &mut self.work
    }

    fn conflict(&self) -> Option<[&'static str; 2]> {
        let are_set = !self.models.is_empty() && self.work.run.overrides.model.is_some();
        are_set.then_some(["--models", "--model"])
    }

    fn perform(self, app: &App) -> AppResult<WorkOutcome> {
        app.block_on(run(app, self))
    }
}

async fn run(app: &App, command: ParallelRequest) -> AppResult<WorkOutcome> {
    let request = command.work.run.clone();
    let settings = app.load_and_notify(&request.effective_overrides())?.settings;
    if request.dry_run {
        return Err(usage(messages::PARALLEL_NEEDS_CHANGES));
    }
    directories::prepare(&settings)?;
    let launcher = git_launcher(app, &settings)?;
    let repository = open_repository(&launcher, &settings).await?;
    let task = match &command.work.record {
        Some(id) => WorkTask::Recorded(id.clone()),
        None => WorkTask::New(new_task(app, &settings, &repository, &command).await?),
    };
    let work = RunningWork::begin(app, &settings, &command, request, task)?;
    let worktrees = Worktrees::new(repository, &settings, &work.record)?;
    let tasks = tasks::parse(&work.record.start().data.unwrap_or_default())
        .map_err(|why| AppError::new(FailureKind::Session, why))?;
    let tasks = worker_tasks(tasks, &work.request, &command, &settings)?;
    let count = command.workers.unwrap_or(settings.parallel.workers);
    let mut runs = run_workers(&work, &worktrees, tasks, count).await?;
    if command.merge && verdict(&runs, false) != WorkStopReason::UserInterrupt {
        merge(&worktrees, &mut runs).await?;
    }
    drop(worktrees);
    work.end_with(stop_reason(&command, &runs), runs, |result| {
        result.output = messages::worker_answers(&result.runs);
    })
}

async fn new_task(
    app: &App,
    settings: &Settings,
    repository: &Repository<'_>,
    command: &ParallelRequest,
) -> AppResult<NewTask> {
    let tasks = tasks::read(app, command)?;
    let base = command.base.as_deref();
    let base = base_commit(app, settings, repository, base, command.include_uncommitted).await?;
    let names: Vec<&str> = tasks.iter().map(|task| task.task.as_str()).collect();
    Ok(NewTask { task: messages::tasks(&names), base: Some(base), data: Some(tasks::to_lines(&tasks)) })
}

fn worker_tasks(
    tasks: Vec<ParallelTask>,
    request: &RunRequest,
    command: &ParallelRequest,
    settings: &Settings,
) -> AppResult<Vec<WorkerTask>> {
    let section = &settings.parallel;
    let budget = command.budget_per_worker.or(section.budget_per_worker).map(Usd::try_from).transpose();
    let budget = budget.map_err(|error| AppError::new(FailureKind::Usage, error.to_string()))?;
    let timeout = command.timeout_per_worker.or(section.timeout_per_worker).map(Duration::from_secs);
    let with_options = |(at, task): (usize, ParallelTask)| {
        let mut request = request.clone();
        request.overrides.model = task.model.or(request.overrides.model);
        request.overrides.agent = task.agent.or(request.overrides.agent).or_else(|| section.agent.clone());
        request.overrides.max_steps = request.overrides.max_steps.or(Some(section.max_steps));
        (request.bounds.budget, request.bounds.timeout) = (budget, timeout);
        WorkerTask {
            name: format!("task {}", at.saturating_add(1)),
            prompt: task.task,
            request,
            checks: Vec::new(),
            variables: BTreeMap::new(),
        }
    };
    Ok(tasks.into_iter().enumerate().map(with_options).collect())
}

/// Merges the branches of successful runs, one by one.
async fn merge(worktrees: &Worktrees<'_>, runs: &mut [WorkRun]) -> AppResult<()> {
    for run in runs.iter_mut().filter(|run| run.result.status == Status::Success) {
        if let Some(worktree) = run.worktree.take() {
            run.worktree = Some(worktrees.merge(&run.name, worktree).await?);
        }
    }
    Ok(())
}

/// Returns why the command ends: a branch that should have been merged and was not is no success.
fn stop_reason(command: &ParallelRequest, runs: &[WorkRun]) -> WorkStopReason {
    let unmerged = |run: &WorkRun| {
        let worktree = run.worktree.as_ref().filter(|worktree| worktree.commit.is_some());
        run.result.status == Status::Success && worktree.is_some_and(|worktree| worktree.merged.is_none())
    };
    match verdict(runs, command.require == Some(Required::Any)) {
        WorkStopReason::Done if command.merge && runs.iter().any(unmerged) => WorkStopReason::NotMerged,
        reason => reason,
    }
}
