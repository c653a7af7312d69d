//! `agent loop`: its arguments.

use crate::commands::work_args::{WorkArgs, perform_work};
use agent_config::flag_values::{parse_seconds, parse_usd};
use agent_flows::loop_command::LoopRequest;
use agent_run::app::App;
use clap::Args;
use std::path::PathBuf;

/// Arguments of `agent loop`.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub struct LoopArgs {
    /// File with the task
    #[arg(long, value_name = "FILE")]
    pub spec: Option<PathBuf>,
    /// Maximum number of iterations, 1 to 100 (default: `ralph.max_iterations`)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub max_iterations: Option<u32>,
    /// Maximum cost of all iterations; the same as `--budget`
    #[arg(long, value_parser = parse_usd, value_name = "USD")]
    pub max_cost: Option<f64>,
    /// Time limit of all iterations; the same as `--timeout`
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub max_time: Option<u64>,
    /// Word that the last answer must contain
    #[arg(long, value_name = "WORD", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub completion_tag: Option<String>,
    /// Work in a git worktree and on a branch of its own; what has changed is committed there
    #[arg(long)]
    pub worktree: bool,
    /// File to which each iteration is added, and that the next one is shown
    #[arg(long, value_name = "FILE")]
    pub progress_file: Option<PathBuf>,
    /// Task and options.
    #[command(flatten)]
    pub work: WorkArgs,
}

/// Runs `agent loop` and returns the exit code.
pub fn run_loop(app: &App, args: LoopArgs) -> u8 {
    let command = LoopRequest {
        work: args.work.request(),
        spec: args.spec,
        max_iterations: args.max_iterations,
        max_cost: args.max_cost,
        max_time: args.max_time,
        completion_tag: args.completion_tag,
        worktree: args.worktree,
        progress_file: args.progress_file,
    };
    perform_work(app, &args.work.words, command)
}
