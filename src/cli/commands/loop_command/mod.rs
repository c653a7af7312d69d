//! `agent loop`: runs a task again and again, each time with a clean conversation, until all checks pass.

pub mod args;
mod iteration;
mod progress_file;

use crate::cli::commands::loop_command::args::{COMMAND, LoopArgs};
use crate::cli::commands::loop_command::iteration::Iterations;
use crate::cli::commands::work::outcome::end_command;
use crate::cli::commands::work::resume::{resume, resumed_id};
use crate::cli::compose::app::App;
use crate::cli::error::CliResult;

/// Runs `agent loop` and returns the exit code. `run_words` runs a command line of this program.
pub fn run_loop(app: &App, args: LoopArgs, run_words: fn(&App, Vec<String>) -> CliResult<u8>) -> u8 {
    let options = args.options.clone();
    if let Some(id) = resumed_id(&args.words) {
        return resume(app, COMMAND, &id, &options, run_words)
            .unwrap_or_else(|error| end_command(app, COMMAND, &options, Err(error)));
    }
    let done = Iterations::prepare(app, args).and_then(|loop_run| app.block_on(loop_run.run()));
    end_command(app, COMMAND, &options, done)
}
