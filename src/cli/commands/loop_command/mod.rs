//! `agent loop`: runs a task again and again, each time with a clean conversation, until all checks pass.

pub mod args;
mod iteration;
mod progress_file;

use crate::cli::commands::loop_command::args::{COMMAND, LoopArgs};
use crate::cli::commands::loop_command::iteration::Iterations;
use crate::cli::commands::work::outcome::{WorkOutcome, exit_code};
use crate::cli::commands::work::resume::{resume, resumed_id};
use crate::cli::compose::app::App;
use crate::cli::error::CliResult;

/// Runs `agent loop` and returns the exit code. `run_words` runs a command line of this program.
pub fn run_loop(app: &App, args: LoopArgs, run_words: fn(&App, Vec<String>) -> CliResult<u8>) -> u8 {
    let options = args.options.clone();
    if let Some(id) = resumed_id(&args.words) {
        return match resume(app, COMMAND, &id, &options, run_words) {
            Ok(code) => code,
            Err(error) => {
                let (outcome, code) = WorkOutcome::not_started(app, COMMAND, &error);
                outcome.write(app, &options).map_or(1, |()| code)
            }
        };
    }
    let done = Iterations::prepare(app, args).and_then(|loop_run| app.block_on(loop_run.run()));
    let (outcome, code) = match done {
        Ok(outcome) => {
            let code = exit_code(&outcome.result, options.exit_code_on_partial);
            (outcome, code)
        }
        Err(error) => WorkOutcome::not_started(app, COMMAND, &error),
    };
    outcome.write(app, &options).map_or(1, |()| code)
}
