//! `agent consolidate`: its arguments.

use crate::commands::work_args::{WorkArgs, perform_work};
use agent_core::work::MAX_ROUNDS;
use agent_flows::consolidate::ConsolidateRequest;
use agent_run::app::App;
use clap::Args;

/// Arguments of `agent consolidate`.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub struct ConsolidateArgs {
    /// The models that answer, 2 to 8
    #[arg(long, value_name = "P/M,P/M,…", value_delimiter = ',')]
    pub models: Vec<String>,
    /// The model that judges and sums up; none of those that answer
    #[arg(long, value_name = "P/M")]
    pub judge: Option<String>,
    /// Maximum number of rounds, 1 to 10 (default: 3)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_ROUNDS)))]
    pub rounds: Option<u32>,
    /// Question and options.
    #[command(flatten)]
    pub work: WorkArgs,
}

/// Runs `agent consolidate` and returns the exit code.
pub fn consolidate(app: &App, args: ConsolidateArgs) -> u8 {
    let ConsolidateArgs { models, judge, rounds, work } = args;
    perform_work(app, &work.words, ConsolidateRequest { models, judge, rounds, work: work.request() })
}
