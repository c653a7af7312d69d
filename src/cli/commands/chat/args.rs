//! Command-line arguments of `agent chat`.

use crate::commands::run_args::{LIMITS, RunOptions, TASK};
use agent_config::flag_values::parse_usd;
use clap::Args;

/// `agent chat`.
#[derive(Debug, Default, Args)]
#[command(next_display_order = 1)]
#[command(mut_arg("json", |arg| arg.hide_short_help(true)), mut_arg("max_steps", |arg| arg.hide_short_help(true)))]
pub struct ChatArgs {
    /// The first message
    #[arg(value_name = "MESSAGE", help_heading = TASK, display_order = 0)]
    pub message: Option<String>,
    /// Continue the newest session
    ///
    /// Of those of this workspace. `agent -c` does the same.
    #[arg(long, visible_alias = "continue", conflicts_with = "resume", help_heading = TASK)]
    pub last: bool,
    /// Continue this session; without an ID, choose one
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "", help_heading = TASK)]
    pub resume: Option<String>,
    /// Options shared with `run`; they apply to each message.
    #[command(flatten)]
    pub options: RunOptions,
    /// Maximum cost of the whole conversation; `--budget` limits each message
    #[arg(long, value_name = "USD", value_parser = parse_usd, help_heading = LIMITS, hide_short_help = true)]
    pub budget_total: Option<f64>,
}
