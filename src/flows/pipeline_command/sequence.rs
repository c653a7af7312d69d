//! Runs the steps of a pipeline one after another.

use crate::pipeline_command::conditions::Decision;
use crate::pipeline_command::outputs::{MAX_VALUE_BYTES, Outputs};
use crate::pipeline_command::setup::PipelineSetup;
use crate::pipeline_command::steps::{
    BegunStep, Steps, VALUE_CHARS, last_run, no_run, step_name, why_stopped,
};
use crate::work::outcome::WorkOutcome;
use crate::work::record::WorkRecord;
use crate::work::running::{NewTask, RunningWork, WorkTask};
use agent_config::pipeline::Step;
use agent_core::run_result::RunResult;
use agent_core::stop_reason::Status;
use agent_core::work::{WorkRun, WorkStopReason};
use agent_messages as messages;
use agent_report::answer::AnswerShown;
use agent_run::error::AppResult;
use agent_terminal::{Style, one_line, sanitize};
use std::iter;
use std::time::Duration;

impl Steps<'_> {
    /// Runs the steps.
    ///
    /// # Errors
    /// Fails when the record cannot be written, and when a run cannot start.
    pub async fn run(self) -> AppResult<WorkOutcome> {
        let PipelineSetup { command, start, pipeline, settings, request, .. } = &self.setup;
        let file = &command.file;
        let task = match &command.work.record {
            Some(id) => WorkTask::Recorded(id.clone()),
            None => WorkTask::New(NewTask {
                task: if pipeline.name.is_empty() {
                    file.clone()
                } else {
                    format!("{} ({file})", pipeline.name)
                },
                base: None,
                data: serde_json::to_string(start).ok(),
            }),
        };
        let work = RunningWork::begin(self.app, settings, command, request.clone(), task)?;
        let mut outputs = Outputs { variables: self.setup.variables.clone(), ..Outputs::default() };
        let mut reason = None;
        let steps = &self.setup.pipeline.steps;
        for (index, step) in steps.iter().enumerate() {
            if !work.record.has_ended(&step.name) && index < self.setup.first {
                skip(&work, step, messages::BEFORE_FROM_STEP)?;
            }
            let name = one_line(&step.name, VALUE_CHARS);
            let heading = messages::step(index + 1, steps.len(), &name, self.setup.settings.language);
            let limits = work.limits.within(step.timeout.map(Duration::from_secs));
            let (work, outer, outputs_before) = (&work, &work.limits, &outputs);
            let begun =
                BegunStep { work, step, index, outputs: outputs_before, outer, limits, interrupt: None };
            reason = self.step(&begun, &heading).await?;
            if reason.is_some() {
                break;
            }
            self.add(&mut outputs, &work.record, step);
        }
        let at_end = if outputs.has_failed { WorkStopReason::StepFailed } else { WorkStopReason::Done };
        let runs = in_file_order(work.record.ended_runs(), steps);
        work.end_with(reason.unwrap_or(at_end), runs, |_| ())
    }

    /// Runs a step after the line `heading` of the log, unless the record has its end; returns why the pipeline ends, if it does.
    pub(super) async fn step(
        &self,
        begun: &BegunStep<'_>,
        heading: &str,
    ) -> AppResult<Option<WorkStopReason>> {
        let (step, record) = (begun.step, begun.record());
        if record.has_ended(&step.name) {
            return Ok(None);
        }
        if let Some(reason) = begun.outer.reached() {
            return Ok(Some(reason));
        }
        begun.work.log(Style::Bold, heading);
        begun.work.shown.replace(AnswerShown::default());
        let stop = match self.begin(begun).await? {
            Decision::Interrupted => return Ok(Some(WorkStopReason::UserInterrupt)),
            Decision::Skip(why) => return skip(begun.work, step, &why).map(|()| None),
            Decision::Failed(run) => {
                let text = run.result.error.as_ref().map(|error| error.message.clone()).unwrap_or_default();
                self.app.notify(Style::Warning, &self.app.redact(&sanitize(&text)));
                let reason = why_stopped(&run.result);
                record.add_result(*run)?;
                Some(reason)
            }
            Decision::Run => match self.act(begun).await? {
                Some(stop) => Some(stop),
                None => self.check(begun).await?,
            },
        };
        match stop {
            Some(WorkStopReason::UserInterrupt | WorkStopReason::AwaitingApproval) => Ok(stop),
            Some(_) if !step.continue_on_error => Ok(stop),
            _ => record.end_step(&step.name).map(|()| None),
        }
    }

    /// Adds an ended step, and those of a `parallel` step, to the outputs.
    fn add(&self, outputs: &mut Outputs, record: &WorkRecord, step: &Step) {
        for step in step.inner().iter().chain([step]) {
            let run = last_run(record, step).unwrap_or_default();
            if let Some(bytes) = outputs.add(step, &run) {
                let name = one_line(&step.name, VALUE_CHARS);
                let text = messages::output_cut(&name, bytes, MAX_VALUE_BYTES, self.setup.settings.language);
                self.app.notify(Style::Warning, &text);
            }
        }
    }
}

/// Records that a step, with those of a `parallel` step, is skipped.
fn skip(work: &RunningWork<'_>, step: &Step, why: &str) -> AppResult<()> {
    let name = one_line(&step.name, VALUE_CHARS);
    work.log(Style::Plain, &messages::step_skipped(&name, why, work.language));
    for step in step.inner().iter().chain([step]) {
        let result = RunResult { status: Status::Success, ..no_run() };
        let (name, skipped) = (step.name.clone(), Some(why.to_owned()));
        work.record.add_result(WorkRun { name, skipped, result, ..WorkRun::default() })?;
        work.record.end_step(&step.name)?;
    }
    Ok(())
}

/// Returns the runs in the order of the steps; a `parallel` step follows its own steps.
fn in_file_order(mut runs: Vec<WorkRun>, steps: &[Step]) -> Vec<WorkRun> {
    let names: Vec<&str> = steps
        .iter()
        .flat_map(|step| step.inner().iter().chain(iter::once(step)))
        .map(|step| step.name.as_str())
        .collect();
    runs.sort_by_key(|run| names.iter().position(|name| *name == step_name(&run.name)));
    runs
}
