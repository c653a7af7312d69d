//! Arguments of `agent eval`.

use crate::cli::commands::run_args::parse_usd;
use crate::cli::commands::work::running::WorkArgs;
use clap::Args;

/// Name of the command in records.
pub const COMMAND: &str = "eval";

/// Arguments of `agent eval`.
#[derive(Debug, Clone, Args)]
#[command(args_override_self = true)]
pub struct EvalArgs {
    /// The models to compare, two or more
    #[arg(long, value_name = "MODEL", value_delimiter = ',', conflicts_with_all = ["model", "configs"])]
    pub models: Vec<String>,
    /// The configuration files to compare, two or more
    #[arg(long, value_name = "FILE", value_delimiter = ',', conflicts_with = "config")]
    pub configs: Vec<String>,
    /// Runs of each model or configuration
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
