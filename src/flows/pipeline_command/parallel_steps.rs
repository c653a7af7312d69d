//! Runs the steps of a `parallel` step at the same time.

use crate::pipeline_command::steps::{BegunStep, Steps, VALUE_CHARS, last_run, no_run};
use agent_config::pipeline::Step;
use agent_core::run_result::RunResult;
use agent_core::stop_reason::Status;
use agent_core::work::{WorkRun, WorkStopReason};
use agent_messages as messages;
use agent_run::assemble;
use agent_run::error::AppResult;
use agent_terminal::{Style, one_line};
use futures_util::{StreamExt, TryStreamExt, stream};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Why a `parallel` step fails, the most important reason first.
const REASONS: [WorkStopReason; 6] = [
    WorkStopReason::UserInterrupt,
    WorkStopReason::AwaitingApproval,
    WorkStopReason::RunFailed,
    WorkStopReason::Timeout,
    WorkStopReason::BudgetExceeded,
    WorkStopReason::StepFailed,
];

impl Steps<'_> {
    /// Runs `steps`, at most `parallel.workers` of them at the same time; all of them end. Returns why the `parallel` step failed, if it did.
    pub(super) async fn run_parallel(
        &self,
        begun: &BegunStep<'_>,
        steps: &[Step],
    ) -> AppResult<Option<WorkStopReason>> {
        let settings = &self.setup.settings;
        let interrupt = assemble::arm_interrupt(self.app, Some(&self.launcher), settings.language)?;
        let ended = steps.iter().map(|step| self.inner_step(begun, step, &interrupt));
        let ended = stream::iter(ended).buffered(settings.parallel.workers.into());
        let stops: Vec<Option<WorkStopReason>> = ended.try_collect().await?;
        self.app.interrupt()?.disarm();
        if interrupt.is_cancelled() {
            return Ok(Some(WorkStopReason::UserInterrupt));
        }
        let reason = REASONS.into_iter().find(|reason| stops.contains(&Some(*reason)));
        if reason != Some(WorkStopReason::AwaitingApproval) {
            add_result(begun, steps, &stops, reason)?;
        }
        Ok(reason)
    }

    async fn inner_step(
        &self,
        outer: &BegunStep<'_>,
        step: &Step,
        interrupt: &CancellationToken,
    ) -> AppResult<Option<WorkStopReason>> {
        if outer.record().has_ended(&step.name) {
            return Ok(None);
        }
        if interrupt.is_cancelled() {
            return Ok(Some(WorkStopReason::UserInterrupt));
        }
        let limits = outer.limits.within(step.timeout.map(Duration::from_secs));
        let &BegunStep { work, index, outputs, .. } = outer;
        let begun = BegunStep {
            work,
            step,
            index,
            outputs,
            outer: &outer.limits,
            limits,
            interrupt: Some(interrupt),
        };
        let [outer_name, name] = [outer.step, step].map(|step| one_line(&step.name, VALUE_CHARS));
        let heading = messages::inner_step(&outer_name, &name, self.setup.settings.language);
        let stop = Box::pin(self.step(&begun, &heading)).await?;
        if let Some(run) = last_run(begun.record(), step).filter(|run| run.skipped.is_none()) {
            let style = if stop.is_none() { Style::Plain } else { Style::Warning };
            work.log(style, &messages::worker_ended(&run, self.setup.settings.language));
        }
        Ok(stop)
    }
}

/// Records the result of the `parallel` step itself: the outputs of its steps, and the first reason of a failure.
fn add_result(
    begun: &BegunStep<'_>,
    steps: &[Step],
    stops: &[Option<WorkStopReason>],
    reason: Option<WorkStopReason>,
) -> AppResult<()> {
    let last = |step: &Step| last_run(begun.record(), step);
    let runs: Vec<WorkRun> = steps.iter().filter_map(last).collect();
    let failed = stops.iter().position(|stop| stop.is_some() && *stop == reason);
    let failed = failed.and_then(|at| last(steps.get(at)?));
    let result = RunResult {
        status: reason.map_or(Status::Success, WorkStopReason::status),
        stop_reason: failed.and_then(|run| run.result.stop_reason),
        output: messages::worker_answers(&runs).as_str().into(),
        ..no_run()
    };
    let name = begun.step.name.clone();
    begun.record().add_result(WorkRun { name, result, ..WorkRun::default() })
}
