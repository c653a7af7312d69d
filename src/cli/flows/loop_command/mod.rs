//! `agent loop`: runs a task again and again, each time with a clean conversation, until all checks pass.

pub mod args;
mod iteration;
mod progress_file;

use crate::flows::loop_command::args::{COMMAND, LoopArgs};
use crate::flows::loop_command::iteration::Iterations;
use crate::flows::work::running::{RunWords, run_command};
use agent_run::app::App;

/// Runs `agent loop` and returns the exit code.
pub fn run_loop(app: &App, args: LoopArgs, run_words: RunWords) -> u8 {
    let work = args.work.clone();
    run_command(app, COMMAND, &work, &[], run_words, || {
        Iterations::prepare(app, args).and_then(|loop_run| app.block_on(loop_run.run()))
    })
}
