//! Command-line arguments of `agent chat`.

use crate::commands::run_args::RunOptions;
use agent_config::flag_values::parse_usd;
use clap::Args;

/// `agent chat`.
#[derive(Debug, Default, Args)]
pub struct ChatArgs {
    /// The first message
    #[arg(value_name = "MESSAGE")]
    pub message: Option<String>,
    /// Continue the newest session of this workspace
    #[arg(long, visible_alias = "continue", conflicts_with = "resume")]
    pub last: bool,
    /// Continue this session; without an ID, choose one from a list
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    pub resume: Option<String>,
    /// Maximum cost of the whole conversation; `--budget` limits each message
    #[arg(long, value_name = "USD", value_parser = parse_usd)]
    pub budget_total: Option<f64>,
    /// Options shared with `run`; they apply to each message.
    #[command(flatten)]
    pub options: RunOptions,
}
