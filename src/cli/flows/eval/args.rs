//! Arguments of `agent eval`.

use crate::commands::common_args::CommonArgs;
use crate::commands::run_args::parse_usd;
use crate::flows::work::running::WorkArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Name of the command in records.
pub const COMMAND: &str = "eval";

/// Arguments of `agent eval`.
#[derive(Debug, Clone, Args)]
#[command(args_override_self = true, args_conflicts_with_subcommands = true)]
pub struct EvalArgs {
    /// What is done in place of a measurement.
    #[command(subcommand)]
    pub action: Option<EvalAction>,
    /// The models to compare, two or more
    #[arg(long, value_name = "MODEL", value_delimiter = ',', conflicts_with_all = ["model", "configs"])]
    pub models: Vec<String>,
    /// The configuration files to compare, two or more
    #[arg(long, value_name = "FILE", value_delimiter = ',', conflicts_with = "config")]
    pub configs: Vec<String>,
    /// Directory of tasks: folders with `task.yaml` and `workspace/`, SWE-bench instances, or polyglot exercises
    #[arg(long, value_name = "DIR", conflicts_with = "base")]
    pub tasks: Option<PathBuf>,
    /// Runs of each model or configuration on each task
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=20))]
    pub repeat: u8,
    /// Maximum cost of each run; only lowers `--budget`, which is that of all runs
    #[arg(long, value_name = "USD", value_parser = parse_usd)]
    pub budget_per_model: Option<f64>,
    /// Time limit of each run; only lowers `--timeout`, which is that of all runs
    #[arg(long, value_name = "SECONDS")]
    pub timeout_per_model: Option<u64>,
    /// Commit or branch that all runs begin with (default: HEAD)
    #[arg(long, value_name = "REF")]
    pub base: Option<String>,
    /// Task and options.
    #[command(flatten)]
    pub work: WorkArgs,
}

/// What `agent eval` does with measurements.
#[derive(Debug, Clone, Subcommand)]
pub enum EvalAction {
    /// Say whether two measurements differ by more than chance
    Compare(CompareArgs),
}

/// Arguments of `agent eval compare`.
#[derive(Debug, Clone, Args)]
pub struct CompareArgs {
    /// Document of `--json` or `--report json`, or id of a record
    #[arg(value_name = "A")]
    pub first: String,
    /// Another one; without it, the best model of A is compared with the others
    #[arg(value_name = "B")]
    pub second: Option<String>,
    /// Print one document
    #[arg(long)]
    pub json: bool,
    /// The configuration file and the workspace.
    #[command(flatten)]
    pub common: CommonArgs,
}
