//! `agent pipeline`: runs the steps of a file.

mod actions;
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

use crate::pipeline_command::setup::PipelineSetup;
use crate::pipeline_command::source::read_pipeline;
use crate::pipeline_command::steps::Steps;
use crate::work::outcome::WorkOutcome;
use crate::work::request::{WorkCommand, WorkRequest};
use agent_config::overrides::Overrides;
use agent_run::app::App;
use agent_run::error::AppResult;
use agent_run::output::print;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What `agent pipeline` is requested with.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PipelineRequest {
    /// The pipeline file.
    pub file: String,
    /// Values of variables, as `NAME=VALUE`.
    pub variables: Vec<String>,
    /// The first step that runs; those before it are skipped.
    pub from_step: Option<String>,
    /// Runs; the file has their tasks.
    pub work: WorkRequest,
}

impl WorkCommand for PipelineRequest {
    const NAME: &'static str = "pipeline";

    fn work(&self) -> &WorkRequest {
        &self.work
    }

    fn work_mut(&mut self) -> &mut WorkRequest {
        &mut self.work
    }

    fn perform(self, app: &App) -> AppResult<WorkOutcome> {
        let is_plan = self.work.run.dry_run;
        let setup = PipelineSetup::prepare(app, self)?;
        if is_plan {
            return Ok(plan::outcome(&setup));
        }
        Steps::prepare(app, setup).and_then(|steps| app.block_on(steps.run()))
    }
}

/// Checks a pipeline file and prints that it is a pipeline.
///
/// # Errors
/// Fails for an invalid configuration, a file that is no pipeline, and when standard output cannot be written.
pub fn validate(app: &App, flags: &Overrides, file: &Path) -> AppResult<()> {
    let settings = app.load(flags)?.settings;
    let (_, pipeline) = read_pipeline(&settings, file)?;
    print(&app.terminal, &format!("{}: valid, {} steps\n", file.display(), pipeline.all_steps().count()))
}
