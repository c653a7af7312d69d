//! `agent eval`: its arguments.

use crate::commands::common_args::CommonArgs;
use crate::commands::work_args::{WorkArgs, perform_work};
use agent_config::flag_values::{parse_seconds, parse_usd};
use agent_flows::eval::{self, EvalRequest};
use agent_run::app::App;
use agent_run::error::AppResult;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of `agent eval`.
#[derive(Debug, Args)]
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
    /// Runs of each model or configuration on each task, 1 to 20 (default: 1)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=20))]
    pub repeat: Option<u8>,
    /// Maximum cost of each run; only lowers `--budget`, which is that of all runs
    #[arg(long, value_name = "USD", value_parser = parse_usd)]
    pub budget_per_model: Option<f64>,
    /// Time limit of each run; only lowers `--timeout`, which is that of all runs
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub timeout_per_model: Option<u64>,
    /// Commit or branch that all runs begin with (default: HEAD)
    #[arg(long, value_name = "REF")]
    pub base: Option<String>,
    /// Task and options.
    #[command(flatten)]
    pub work: WorkArgs,
}

/// What `agent eval` does with measurements.
#[derive(Debug, Subcommand)]
pub enum EvalAction {
    /// Say whether two measurements differ by more than chance
    Compare(CompareArgs),
}

/// Arguments of `agent eval compare`.
#[derive(Debug, Args)]
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

/// Runs `agent eval` and returns the exit code.
pub fn eval(app: &App, args: EvalArgs) -> u8 {
    let command = EvalRequest {
        work: args.work.request(),
        models: args.models,
        configs: args.configs,
        tasks: args.tasks,
        repeat: args.repeat,
        budget_per_model: args.budget_per_model,
        timeout_per_model: args.timeout_per_model,
        base: args.base,
    };
    perform_work(app, &args.work.words, command)
}

/// Compares measurements and prints the result.
///
/// # Errors
/// As [`eval::compare_measurements`].
pub fn compare(app: &App, args: &CompareArgs) -> AppResult<()> {
    let settings = app.load_and_notify(&args.common.overrides())?.settings;
    eval::compare_measurements(app, &settings, &args.first, args.second.as_deref(), args.json)
}
