//! `agent pipeline`: its arguments.

use crate::commands::run_args::RunOptions;
use crate::commands::work_args::perform_or_resume;
use agent_flows::pipeline_command::{PipelineRequest, validate};
use agent_flows::work::outcome::end_command;
use agent_flows::work::request::{WorkCommand, WorkRequest};
use agent_run::app::App;
use clap::Args;

/// The word before a file that is only checked.
const VALIDATE: &str = "validate";

/// Arguments of `agent pipeline`.
#[derive(Debug, Args)]
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
    /// Options shared with `run`.
    #[command(flatten)]
    pub options: RunOptions,
}

/// Runs `agent pipeline` and returns the exit code.
pub fn pipeline(app: &App, args: PipelineArgs) -> u8 {
    let run = args.options.request();
    if let [word, file] = args.words.as_slice()
        && word == VALIDATE
    {
        return match validate(app, &run.effective_overrides(), file.as_ref()) {
            Ok(()) => 0,
            Err(error) => end_command(app, PipelineRequest::NAME, &run, Err(error)),
        };
    }
    let file = match args.words.as_slice() {
        [file] => file.clone(),
        _ => String::new(),
    };
    let command = PipelineRequest {
        file,
        variables: args.var,
        from_step: args.from_step,
        work: WorkRequest { run, ..WorkRequest::default() },
    };
    perform_or_resume(app, &args.words, command, "give one FILE, `validate FILE` or `resume ID`")
}
