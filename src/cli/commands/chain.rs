//! `agent chain`: its arguments.

use crate::commands::work_args::{WorkArgs, perform_work};
use agent_flows::chain::ChainRequest;
use agent_run::app::App;
use clap::Args;

/// Arguments of `agent chain`.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub struct ChainArgs {
    /// The agents, in order, at most 20
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub agents: Vec<String>,
    /// Task and options.
    #[command(flatten)]
    pub work: WorkArgs,
}

/// Runs `agent chain` and returns the exit code.
pub fn chain(app: &App, args: ChainArgs) -> u8 {
    let command = ChainRequest { work: args.work.request(), agents: args.agents };
    perform_work(app, &args.work.words, command)
}
