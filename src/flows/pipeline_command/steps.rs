//! What the steps of a pipeline share, and a step that has begun.

use crate::pipeline_command::outputs::Outputs;
use crate::pipeline_command::setup::PipelineSetup;
use crate::work::limits::WorkLimits;
use crate::work::record::WorkRecord;
use crate::work::running::RunningWork;
use agent_config::pipeline::Step;
use agent_core::price::Usd;
use agent_core::quality_gate::GateResult;
use agent_core::run_result::{Cost, RESULT_SCHEMA_VERSION, RunResult};
use agent_core::work::{WorkRun, WorkStopReason};
use agent_engine::policy::Policy;
use agent_messages as messages;
use agent_process::launch::Launcher;
use agent_run::app::App;
use agent_run::assemble;
use agent_run::directories;
use agent_run::error::AppResult;
use agent_terminal::{Style, sanitize};
use agent_workspace::Workspace;
use std::rc::Rc;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Characters of a value in a message.
pub const VALUE_CHARS: usize = 100;

/// What the steps of a pipeline share.
pub struct Steps<'a> {
    pub(super) app: &'a App,
    pub(super) setup: PipelineSetup,
    pub(super) launcher: Rc<Launcher>,
    pub(super) workspace: Workspace,
    pub(super) policy: Arc<Policy>,
}

/// A step that has begun.
pub struct BegunStep<'a> {
    /// The command.
    pub work: &'a RunningWork<'a>,
    /// The step.
    pub step: &'a Step,
    /// Its index in the pipeline; that of the `parallel` step for one of its steps.
    pub index: usize,
    /// The outputs of the steps before it.
    pub outputs: &'a Outputs,
    /// The limits within which it runs.
    pub outer: &'a WorkLimits,
    /// The limits of its runs, with its own time limit.
    pub limits: WorkLimits,
    /// Ends the steps that run at the same time; `None` if no other one does.
    pub interrupt: Option<&'a CancellationToken>,
}

impl BegunStep<'_> {
    /// Returns the record of the command.
    pub fn record(&self) -> &WorkRecord {
        &self.work.record
    }

    /// Writes the results of checks to the log, with the output of those that failed.
    pub(super) fn log_checks(&self, checks: &[GateResult]) {
        self.work.log(Style::Plain, &sanitize(&messages::checks(checks, self.work.language)));
        for check in checks.iter().filter(|check| !check.passed) {
            self.work.log(Style::Plain, &sanitize(&check.output));
        }
    }
}

impl<'a> Steps<'a> {
    /// Prepares what all steps share.
    ///
    /// # Errors
    /// Fails for an invalid configuration.
    pub fn prepare(app: &'a App, mut setup: PipelineSetup) -> AppResult<Self> {
        directories::prepare(&setup.settings)?;
        setup.settings.timeout = None;
        let launcher = assemble::launcher(app, &setup.settings)?;
        let (workspace, policy) = assemble::guarded_workspace(app, &setup.settings, launcher.tier())?;
        Ok(Self { app, setup, launcher, workspace, policy })
    }
}

/// Returns the last ended run of a step.
pub fn last_run(record: &WorkRecord, step: &Step) -> Option<WorkRun> {
    record.last_run(|name| step_name(name) == step.name)
}

/// Returns the name of the step of a run.
pub fn step_name(run_name: &str) -> &str {
    run_name.split_once('/').map_or(run_name, |(name, _)| name)
}

/// Returns the result of a step without a model: nothing was spent.
pub fn no_run() -> RunResult {
    let cost = Cost { total_usd: Some(Usd::ZERO), ..Cost::default() };
    RunResult { schema_version: RESULT_SCHEMA_VERSION, cost, ..RunResult::default() }
}

/// Returns why the pipeline stops after a run that is no success.
pub fn why_stopped(result: &RunResult) -> WorkStopReason {
    match WorkStopReason::for_run(result) {
        WorkStopReason::RunPartial => WorkStopReason::StepFailed,
        reason => reason,
    }
}
