//! Arguments of `agent pipeline`.

use crate::commands::run_args::RunOptions;
use clap::Args;

/// Name of the command in records.
pub const COMMAND: &str = "pipeline";

/// Arguments of `agent pipeline`.
#[derive(Debug, Clone, Args)]
#[command(args_override_self = true)]
pub struct PipelineArgs {
    /// The pipeline file; `validate` and the file only checks it; `resume` and an id goes on with a pipeline
    #[arg(value_name = "FILE | validate FILE | resume ID", num_args = 1..=2, required = true)]
    pub words: Vec<String>,
    /// Value of a variable (repeatable)
    #[arg(long, value_name = "NAME=VALUE")]
    pub var: Vec<String>,
    /// Begin with this step; those before it are skipped
    #[arg(long, value_name = "STEP")]
    pub from_step: Option<String>,
    /// Id of the record to go on with.
    #[arg(long, hide = true, value_name = "ID")]
    pub resume_work: Option<String>,
    /// Options shared with `run`.
    #[command(flatten)]
    pub options: RunOptions,
}
