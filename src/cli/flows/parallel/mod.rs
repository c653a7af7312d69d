//! `agent parallel`: several tasks at the same time, each in a worktree and on a branch of its own.

pub mod args;
mod cleanup;
mod tasks;

use crate::flows::parallel::args::{COMMAND, ParallelArgs, Required};
use crate::flows::parallel::tasks::ParallelTask;
use crate::flows::work::outcome::WorkOutcome;
use crate::flows::work::running::{NewTask, RunWords, RunningWork, WorkTask, run_command, usage};
use crate::flows::work::workers::{WorkerTask, run_workers, verdict};
use crate::flows::work::worktrees::{Worktrees, base_commit, git_launcher, open_repository};
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_core::price::Usd;
use agent_core::stop_reason::Status;
use agent_core::work::{WorkRun, WorkStopReason};
use agent_engine::worktree::Repository;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::directories;
use agent_run::error::{CliError, CliResult};
use agent_run::request::RunRequest;
pub use cleanup::clean_up;
use std::collections::BTreeMap;
use std::time::Duration;

/// Runs `agent parallel` and returns the exit code.
pub fn parallel(app: &App, args: ParallelArgs, run_words: RunWords) -> u8 {
    let work = args.work.clone();
    run_command(app, COMMAND, &work, &[], run_words, || app.block_on(run(app, args)))
}

async fn run(app: &App, args: ParallelArgs) -> CliResult<WorkOutcome> {
    let request = args.work.options.request();
    let settings = app.load_and_notify(&request.flags())?.settings;
    if request.dry_run {
        return Err(usage(messages::PARALLEL_NEEDS_CHANGES));
    }
    directories::prepare(&settings)?;
    let launcher = git_launcher(app, &settings)?;
    let repository = open_repository(&launcher, &settings).await?;
    let task = match &args.work.resume_work {
        Some(id) => WorkTask::Recorded(id.clone()),
        None => WorkTask::New(new_task(app, &settings, &repository, &args).await?),
    };
    let work = RunningWork::begin(app, &settings, request, COMMAND, task)?;
    let worktrees = Worktrees::new(repository, &settings, &work.record)?;
    let tasks = tasks::parse(&work.record.start().data.unwrap_or_default())
        .map_err(|why| CliError::new(FailureKind::Session, why))?;
    let tasks = worker_tasks(tasks, &work.request, &args, &settings)?;
    let count = args.workers.unwrap_or(settings.parallel.workers);
    let mut runs = run_workers((&work, &worktrees), tasks, count).await?;
    if args.merge && verdict(&runs, false) != WorkStopReason::UserInterrupt {
        merge(&worktrees, &mut runs).await?;
    }
    drop(worktrees);
    work.end_with(stop_reason(&args, &runs), runs, |result| {
        result.output = messages::worker_answers(&result.runs);
    })
}

async fn new_task(
    app: &App,
    settings: &Settings,
    repository: &Repository<'_>,
    args: &ParallelArgs,
) -> CliResult<NewTask> {
    let tasks = tasks::read(app, args)?;
    let begins_with = (args.base.as_deref(), args.include_uncommitted);
    let base = base_commit(app, settings, repository, begins_with).await?;
    let names: Vec<&str> = tasks.iter().map(|task| task.task.as_str()).collect();
    Ok(NewTask { task: messages::tasks(&names), base: Some(base), data: Some(tasks::to_lines(&tasks)) })
}

fn worker_tasks(
    tasks: Vec<ParallelTask>,
    request: &RunRequest,
    args: &ParallelArgs,
    settings: &Settings,
) -> CliResult<Vec<WorkerTask>> {
    let section = &settings.parallel;
    let budget = args.budget_per_worker.or(section.budget_per_worker).map(Usd::try_from).transpose();
    let budget = budget.map_err(|error| CliError::new(FailureKind::Usage, error.to_string()))?;
    let timeout = args.timeout_per_worker.or(section.timeout_per_worker).map(Duration::from_secs);
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
async fn merge(worktrees: &Worktrees<'_>, runs: &mut [WorkRun]) -> CliResult<()> {
    for run in runs.iter_mut().filter(|run| run.result.status == Status::Success) {
        if let Some(worktree) = run.worktree.take() {
            run.worktree = Some(worktrees.merge(&run.name, worktree).await?);
        }
    }
    Ok(())
}

/// Returns why the command ends: a branch that should have been merged and was not is no success.
fn stop_reason(args: &ParallelArgs, runs: &[WorkRun]) -> WorkStopReason {
    let unmerged = |run: &WorkRun| {
        let worktree = run.worktree.as_ref().filter(|worktree| worktree.commit.is_some());
        run.result.status == Status::Success && worktree.is_some_and(|worktree| worktree.merged.is_none())
    };
    match verdict(runs, args.require == Required::Any) {
        WorkStopReason::Done if args.merge && runs.iter().any(unmerged) => WorkStopReason::NotMerged,
        reason => reason,
    }
}
