//! `agent loop`: runs a task again and again, each time with a clean conversation, until all checks pass.

mod iteration;
mod progress_file;

use crate::loop_command::iteration::Iterations;
use crate::work::outcome::WorkOutcome;
use crate::work::request::{WorkCommand, WorkRequest};
use agent_run::app::App;
use agent_run::error::AppResult;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What `agent loop` is requested with.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct LoopRequest {
    /// File with the task.
    pub spec: Option<PathBuf>,
    /// Maximum number of iterations.
    pub max_iterations: Option<u32>,
    /// Maximum cost of all iterations, in US dollars.
    pub max_cost: Option<f64>,
    /// Time limit of all iterations, in seconds.
    pub max_time: Option<u64>,
    /// Word that the last answer must contain.
    pub completion_tag: Option<String>,
    /// Whether the iterations work in a git worktree and on a branch of its own.
    pub worktree: bool,
    /// File to which each iteration is added, and that the next one is shown.
    pub progress_file: Option<PathBuf>,
    /// Task and runs.
    pub work: WorkRequest,
}

impl WorkCommand for LoopRequest {
    const NAME: &'static str = "loop";

    fn work(&self) -> &WorkRequest {
        &self.work
    }

    fn work_mut(&mut self) -> &mut WorkRequest {
        &mut self.work
    }

    fn perform(self, app: &App) -> AppResult<WorkOutcome> {
        Iterations::prepare(app, self).and_then(|iterations| app.block_on(iterations.run()))
    }
}
