//! `agent eval`: the same task for several models or configurations, each in worktrees of its own, and their ranking.

pub mod args;

use crate::cli::commands::eval::args::{COMMAND, EvalArgs};
use crate::cli::commands::run_args::RunOptions;
use crate::cli::commands::work::outcome::WorkOutcome;
use crate::cli::commands::work::running::{NewTask, RunWords, RunningWork, WorkTask, run_command, usage};
use crate::cli::commands::work::workers::{WorkerTask, run_workers, verdict};
use crate::cli::commands::work::worktrees::{Worktrees, base_commit, git_launcher, open_repository};
use crate::cli::compose::app::App;
use crate::cli::compose::directories;
use crate::cli::error::{CliError, CliResult};
use crate::core::failure::FailureKind;
use crate::core::price::Usd;
use crate::core::score::{has_passed, rank};
use crate::core::work::{WorkRun, WorkStopReason};
use crate::messages;
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum number of model calls of a run, unless `--max-steps` is given.
const MAX_STEPS: u32 = 50;

/// Runs `agent eval` and returns the exit code.
pub fn eval(app: &App, args: EvalArgs, run_words: RunWords) -> u8 {
    let work = args.work.clone();
    run_command(app, COMMAND, &work, &[], run_words, || app.block_on(run(app, args)))
}

async fn run(app: &App, args: EvalArgs) -> CliResult<WorkOutcome> {
    let mut options = args.work.options.clone();
    let checks = std::mem::take(&mut options.check);
    let names = compared(&args)?;
    let settings = app.load_and_notify(&options.flags())?.settings;
    if options.dry_run {
        return Err(usage(messages::PARALLEL_NEEDS_CHANGES));
    }
    directories::prepare(&settings)?;
    let launcher = git_launcher(app, &settings)?;
    let repository = open_repository(&launcher, &settings).await?;
    let task = match args.work.task(app)? {
        WorkTask::New(task) => {
            let base = base_commit(app, &settings, &repository, (args.base.as_deref(), false)).await?;
            WorkTask::New(NewTask { base: Some(base), ..task })
        }
        recorded @ WorkTask::Recorded(_) => recorded,
    };
    let max_steps = *options.max_steps.get_or_insert(MAX_STEPS);
    let work = RunningWork::begin(app, &settings, options, COMMAND, task)?;
    let worktrees = Worktrees::new(repository, &settings, &work.record)?;
    let (tasks, count) = (tasks(&work, &args, &names)?, settings.parallel.workers);
    let runs = run_workers(app, (&work, &worktrees), &checks, tasks, count).await?;
    drop(worktrees);
    work.end_with(stop_reason(&runs), runs, |result| {
        result.ranking = rank(&runs_by_name(&names, &result.runs, args.repeat), max_steps);
        result.output = messages::ranking(&result.ranking, settings.language);
    })
}

/// Returns the names of what is compared.
fn compared(args: &EvalArgs) -> CliResult<Vec<String>> {
    let names = if args.models.is_empty() { &args.configs } else { &args.models };
    let distinct: BTreeSet<&String> = names.iter().collect();
    if distinct.len() < 2 || distinct.len() < names.len() {
        return Err(usage(messages::EVAL_NEEDS_TWO));
    }
    Ok(names.clone())
}

fn run_name(name: &str, number: u8, repeat: u8) -> String {
    if repeat == 1 { name.to_owned() } else { format!("{name} #{number}") }
}

/// Returns the runs, those of the first repetition of all names first.
fn tasks(work: &RunningWork<'_>, args: &EvalArgs, names: &[String]) -> CliResult<Vec<WorkerTask>> {
    let budget = args.budget_per_model.map(Usd::try_from).transpose();
    let budget = budget.map_err(|error| CliError::new(FailureKind::Usage, error.to_string()))?;
    let prompt = work.record.start().task;
    let task = |number: u8, name: &String| {
        let mut options: RunOptions = work.options.clone();
        if args.models.is_empty() {
            options.common.config = Some(name.into());
        } else {
            options.model = Some(name.clone());
        }
        options.bounds.budget = budget;
        options.bounds.timeout = args.timeout_per_model.map(Duration::from_secs);
        WorkerTask { name: run_name(name, number, args.repeat), prompt: prompt.clone(), options }
    };
    let repetitions = (1..=args.repeat).flat_map(|number| names.iter().map(move |name| (number, name)));
    Ok(repetitions.map(|(number, name)| task(number, name)).collect())
}

fn runs_by_name<'a>(names: &[String], runs: &'a [WorkRun], repeat: u8) -> Vec<(String, Vec<&'a WorkRun>)> {
    let of = |name: &String| {
        let wanted: Vec<String> = (1..=repeat).map(|number| run_name(name, number, repeat)).collect();
        (name.clone(), runs.iter().filter(|run| wanted.contains(&run.name)).collect())
    };
    names.iter().map(of).collect()
}

/// Returns why the command ends: a run that did not pass its checks is no success.
fn stop_reason(runs: &[WorkRun]) -> WorkStopReason {
    match verdict(runs, false) {
        WorkStopReason::Done if !runs.iter().all(has_passed) => WorkStopReason::RunPartial,
        reason => reason,
    }
}
