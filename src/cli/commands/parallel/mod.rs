//! `agent parallel`: several tasks at the same time, each in a worktree and on a branch of its own.

pub mod args;
mod cleanup;
mod tasks;

use crate::cli::commands::parallel::args::{COMMAND, ParallelArgs, Required};
use crate::cli::commands::parallel::tasks::ParallelTask;
use crate::cli::commands::run_args::RunOptions;
use crate::cli::commands::work::limits::WorkLimits;
use crate::cli::commands::work::outcome::{WorkOutcome, exit_code};
use crate::cli::commands::work::record::{WorkRecord, WorkStart};
use crate::cli::commands::work::resume::{kept_words, resume, resumed_id};
use crate::cli::commands::work::workers::{WorkerTask, Workers, verdict};
use crate::cli::commands::work::worktrees::{Worktrees, base_commit, git_launcher};
use crate::cli::compose;
use crate::cli::compose::app::App;
use crate::cli::compose::directories;
use crate::cli::error::{CliError, CliResult};
use crate::config::settings::Settings;
use crate::core::failure::FailureKind;
use crate::core::price::Usd;
use crate::core::stop_reason::Status;
use crate::core::work::{WorkResult, WorkRun, WorkStopReason};
use crate::messages;
use crate::report::OutputFormat;
use crate::report::answer_shown::AnswerShown;
use crate::terminal::Style;
pub use cleanup::clean_up;
use std::time::Duration;

/// Runs `agent parallel` and returns the exit code. `run_words` runs a command line of this program.
pub fn parallel(app: &App, args: ParallelArgs, run_words: fn(&App, Vec<String>) -> CliResult<u8>) -> u8 {
    let options = args.options.clone();
    if let Some(id) = resumed_id(&args.words) {
        return match resume(app, COMMAND, &id, &options, run_words) {
            Ok(code) => code,
            Err(error) => {
                let (outcome, code) = WorkOutcome::not_started(app, COMMAND, &error);
                outcome.write(app, &options).map_or(1, |()| code)
            }
        };
    }
    let (outcome, code) = match app.block_on(run(app, args)) {
        Ok(outcome) => {
            let code = exit_code(&outcome.result, options.exit_code_on_partial);
            (outcome, code)
        }
        Err(error) => WorkOutcome::not_started(app, COMMAND, &error),
    };
    outcome.write(app, &options).map_or(1, |()| code)
}

async fn run(app: &App, args: ParallelArgs) -> CliResult<WorkOutcome> {
    let mut options = args.options.clone();
    let settings = app.load_and_notify(&options.flags())?.settings;
    if options.dry_run {
        return Err(CliError::new(FailureKind::Usage, messages::PARALLEL_NEEDS_CHANGES));
    }
    directories::prepare(&settings)?;
    let record = record(app, &settings, &args).await?;
    let limits = WorkLimits::take(&app.source, &mut options, &record)?;
    let launcher = git_launcher(app, &settings)?;
    let worktrees = Worktrees::open(&launcher, &settings, &record).await?;
    let interrupt = compose::arm_interrupt(app, &launcher, settings.language)?;
    let tasks = tasks::parse(&record.start().data.unwrap_or_default())
        .map_err(|why| CliError::new(FailureKind::Session, why))?;
    let tasks = worker_tasks(tasks, &options, &args, &settings)?;
    let language = settings.language;
    let (worktrees, record) = (&worktrees, &record);
    let workers = Workers { app, record, limits: &limits, worktrees, interrupt: &interrupt, language };
    let count = args.workers.unwrap_or(settings.parallel.workers);
    let mut runs = workers.run(tasks, usize::from(count)).await?;
    if args.merge && !interrupt.is_cancelled() {
        merge(worktrees, &mut runs).await?;
    }
    app.interrupt()?.disarm();
    let result = result(record, &args, runs);
    record.finish(&result)?;
    if options.format() == OutputFormat::Text && !options.quiet {
        app.notify(Style::Plain, &messages::branches(&result, language));
    }
    Ok(WorkOutcome { result, shown: AnswerShown::default(), language })
}

/// Creates the record, or opens the one to resume.
async fn record(app: &App, settings: &Settings, args: &ParallelArgs) -> CliResult<WorkRecord> {
    if let Some(id) = &args.resume_work {
        return WorkRecord::open(app, settings, id);
    }
    let tasks = tasks::read(app, args)?;
    let base = base_commit(app, settings, args.base.as_deref(), args.include_uncommitted).await?;
    let start = WorkStart {
        command: COMMAND.to_owned(),
        words: kept_words(app.environment.arguments()),
        directory: app.environment.current_dir().to_string_lossy().into_owned(),
        task: messages::tasks(&tasks.iter().map(|task| task.task.as_str()).collect::<Vec<_>>()),
        data: Some(tasks::to_lines(&tasks)),
        base: Some(base),
    };
    WorkRecord::create(app, settings, start)
}

fn worker_tasks(
    tasks: Vec<ParallelTask>,
    options: &RunOptions,
    args: &ParallelArgs,
    settings: &Settings,
) -> CliResult<Vec<WorkerTask>> {
    let section = &settings.parallel;
    let budget = args.budget_per_worker.or(section.budget_per_worker).map(Usd::try_from).transpose();
    let budget = budget.map_err(|error| CliError::new(FailureKind::Usage, error.to_string()))?;
    let timeout = args.timeout_per_worker.or(section.timeout_per_worker).map(Duration::from_secs);
    let with_options = |(at, task): (usize, ParallelTask)| {
        let mut options = options.clone();
        options.model = task.model.or(options.model);
        options.agent = task.agent.or(options.agent).or_else(|| section.agent.clone());
        options.max_steps = options.max_steps.or(Some(section.max_steps));
        (options.bounds.budget, options.bounds.timeout) = (budget, timeout);
        WorkerTask { name: format!("task {}", at.saturating_add(1)), prompt: task.task, options }
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

/// Returns the result of the command: a branch that should have been merged and was not is no success.
fn result(record: &WorkRecord, args: &ParallelArgs, runs: Vec<WorkRun>) -> WorkResult {
    let unmerged = |run: &WorkRun| {
        let worktree = run.worktree.as_ref().filter(|worktree| worktree.commit.is_some());
        run.result.status == Status::Success && worktree.is_some_and(|worktree| worktree.merged.is_none())
    };
    let reason = match verdict(&runs, args.require == Required::Any) {
        WorkStopReason::Done if args.merge && runs.iter().any(unmerged) => WorkStopReason::NotMerged,
        reason => reason,
    };
    let mut result = WorkResult::new(COMMAND, &record.id, reason, runs);
    result.output = messages::worker_answers(&result.runs);
    result
}
