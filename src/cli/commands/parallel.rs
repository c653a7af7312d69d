//! `agent parallel` and `agent parallel-cleanup`: their arguments.

use crate::commands::common_args::CommonArgs;
use crate::commands::work_args::{WorkArgs, perform_or_resume};
use agent_config::flag_values::{parse_seconds, parse_usd};
use agent_flows::parallel::{self, ParallelRequest, Required};
use agent_run::app::App;
use agent_run::error::AppResult;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Arguments of `agent parallel`.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub struct ParallelArgs {
    /// One more task (repeatable)
    #[arg(long, value_name = "TASK")]
    pub task: Vec<String>,
    /// File of JSON lines with `task`, and optionally `agent` and `model`
    #[arg(long, value_name = "FILE")]
    pub tasks_file: Option<PathBuf>,
    /// Tasks at the same time, 1 to 10 (default: `parallel.workers`)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=10))]
    pub workers: Option<u8>,
    /// Models: a single task is given to each of them, several tasks are given to them in turn
    #[arg(long, value_name = "MODEL", value_delimiter = ',', conflicts_with = "model")]
    pub models: Vec<String>,
    /// Maximum cost of each task; only lowers `--budget`, which is that of all tasks
    #[arg(long, value_name = "USD", value_parser = parse_usd)]
    pub budget_per_worker: Option<f64>,
    /// Time limit of each task; only lowers `--timeout`, which is that of all tasks
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub timeout_per_worker: Option<u64>,
    /// Whether exit code 0 needs the success of all tasks or of any (default: all)
    #[arg(long, value_name = "all|any", hide_possible_values = true)]
    pub require: Option<RequireArg>,
    /// Commit or branch that the worktrees begin with (default: HEAD)
    #[arg(long, value_name = "REF")]
    pub base: Option<String>,
    /// Take uncommitted and untracked files along into the worktrees
    #[arg(long)]
    pub include_uncommitted: bool,
    /// Merge the branches of successful tasks into the current branch, in the order of the tasks
    #[arg(long)]
    pub merge: bool,
    /// Task and options.
    #[command(flatten)]
    pub work: WorkArgs,
}

/// How many tasks must succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RequireArg {
    /// All.
    All,
    /// One of them.
    Any,
}

/// Arguments of `agent parallel-cleanup`.
#[derive(Debug, Args)]
pub struct CleanupArgs {
    /// Id of the record whose worktrees are removed; without it, those of all records
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// Also give up commits that are on no other branch
    #[arg(long)]
    pub force: bool,
    /// The configuration file and the workspace.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Runs `agent parallel` and returns the exit code.
pub fn parallel(app: &App, args: ParallelArgs) -> u8 {
    let command = ParallelRequest {
        work: args.work.request(),
        tasks: args.task,
        tasks_file: args.tasks_file,
        workers: args.workers,
        models: args.models,
        budget_per_worker: args.budget_per_worker,
        timeout_per_worker: args.timeout_per_worker,
        require: args.require.map(|require| match require {
            RequireArg::All => Required::All,
            RequireArg::Any => Required::Any,
        }),
        base: args.base,
        include_uncommitted: args.include_uncommitted,
        merge: args.merge,
    };
    perform_or_resume(
        app,
        &args.work.words,
        command,
        "give one task as a word, and further ones with `--task`",
    )
}

/// Removes worktrees and branches; returns the exit code.
///
/// # Errors
/// As [`parallel::clean_up`].
pub fn clean_up(app: &App, args: &CleanupArgs) -> AppResult<u8> {
    parallel::clean_up(app, &args.common.overrides(), args.id.as_deref(), args.force)
}
