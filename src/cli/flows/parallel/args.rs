//! Arguments of `agent parallel` and `agent parallel-cleanup`.

use crate::commands::common_args::CommonArgs;
use crate::commands::run_args::parse_usd;
use crate::flows::work::running::WorkArgs;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Name of the command in records.
pub const COMMAND: &str = "parallel";

/// Arguments of `agent parallel`.
#[derive(Debug, Clone, Args)]
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
    #[arg(long, value_name = "SECONDS")]
    pub timeout_per_worker: Option<u64>,
    /// Whether exit code 0 needs the success of all tasks or of any
    #[arg(long, value_name = "all|any", default_value = "all", hide_possible_values = true)]
    pub require: Required,
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
pub enum Required {
    /// All.
    All,
    /// One of them.
    Any,
}

/// Arguments of `agent parallel-cleanup`.
#[derive(Debug, Clone, Args)]
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
