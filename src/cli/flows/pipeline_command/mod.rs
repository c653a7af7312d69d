//! `agent pipeline`: runs the steps of a file.

mod actions;
pub mod args;
mod checkpoint;
mod conditions;
mod interrupted_command;
mod outputs;
mod parallel_steps;
mod plan;
mod sequence;
mod setup;
pub mod source;
mod step_checks;
mod steps;

use crate::flows::pipeline_command::args::{COMMAND, PipelineArgs};
use crate::flows::pipeline_command::setup::PipelineSetup;
use crate::flows::pipeline_command::source::read_pipeline;
use crate::flows::pipeline_command::steps::Steps;
use crate::flows::work::outcome::end_command;
use crate::flows::work::resume::{resume, resumed_id};
use agent_run::app::App;
use agent_run::error::CliResult;
use agent_run::output::print;
use std::path::Path;

/// The word before a file that is only checked.
const VALIDATE: &str = "validate";

/// Runs `agent pipeline` and returns the exit code. `run_words` runs a command line of this program.
pub fn run_pipeline(app: &App, args: PipelineArgs, run_words: fn(&App, Vec<String>) -> CliResult<u8>) -> u8 {
    let mut options = args.options.clone();
    let done = match args.words.as_slice() {
        [word, file] if word == VALIDATE => validate(app, &args, file.as_ref()),
        words if let Some(id) = resumed_id(words) => {
            return resume(app, COMMAND, &id, &options, run_words)
                .unwrap_or_else(|error| end_command(app, COMMAND, &options, Err(error)));
        }
        _ => PipelineSetup::prepare(app, args).map(Some),
    };
    let done = match done {
        Ok(None) => return 0,
        Ok(Some(setup)) if options.dry_run => {
            // The plan is the output; nothing ended.
            options.quiet = true;
            Ok(plan::outcome(&setup))
        }
        Ok(Some(setup)) => Steps::prepare(app, setup).and_then(|steps| app.block_on(steps.run())),
        Err(error) => Err(error),
    };
    end_command(app, COMMAND, &options, done)
}

/// Checks a file and prints that it is a pipeline.
fn validate(app: &App, args: &PipelineArgs, file: &Path) -> CliResult<Option<PipelineSetup>> {
    let settings = app.load(&args.options.request().flags())?.settings;
    let (_, pipeline) = read_pipeline(&settings, file)?;
    print(&app.terminal, &format!("{}: valid, {} steps\n", file.display(), pipeline.all_steps().count()))?;
    Ok(None)
}
