//! Decides whether a step of a pipeline runs.

use crate::pipeline_command::steps::{BegunStep, Steps, VALUE_CHARS, no_run};
use crate::work::checks::check_gate;
use agent_config::pipeline::variables::{is_true, replace};
use agent_config::pipeline::{Step, expression};
use agent_core::failure::{Failure, FailureKind};
use agent_core::run_result::RunResult;
use agent_core::stop_reason::{Status, StopReason};
use agent_core::work::WorkRun;
use agent_process::launch::ExitReason;
use agent_run::error::AppResult;
use agent_terminal::one_line;

/// Whether a step runs.
pub enum Decision {
    /// It does.
    Run,
    /// It is skipped, with the reason.
    Skip(String),
    /// It cannot be decided.
    Failed(Box<WorkRun>),
    /// A signal interrupted the decision.
    Interrupted,
}

impl Steps<'_> {
    /// Decides whether a step runs, and records that it begins.
    pub(super) async fn begin(&self, begun: &BegunStep<'_>) -> AppResult<Decision> {
        let (step, record) = (begun.step, begun.record());
        if record.begun_step(&step.name).is_some() {
            return Ok(Decision::Run);
        }
        let decision = self.decide(begun).await?;
        if let Decision::Run = decision {
            match self.changed_before(step).await {
                Ok(files) => record.begin_step(&step.name, files)?,
                Err(why) => return Ok(undecided(step, format!("checkpoint: {why}"), false)),
            }
        }
        Ok(decision)
    }

    /// Evaluates the conditions of a step.
    async fn decide(&self, begun: &BegunStep<'_>) -> AppResult<Decision> {
        let (step, outputs) = (begun.step, begun.outputs);
        if let Some(condition) = &step.condition {
            let value = replace(condition, &outputs.variables);
            if !is_true(&value) {
                let value = one_line(&self.app.redact(&value), VALUE_CHARS);
                return Ok(Decision::Skip(format!("condition is `{value}`")));
            }
        }
        if let Some(text) = &step.if_expression {
            let shown = one_line(text, VALUE_CHARS);
            match expression::evaluate(text, &outputs.variables, &outputs.steps) {
                Ok(true) => {}
                Ok(false) => return Ok(Decision::Skip(format!("if: `{shown}` is false"))),
                Err(why) => return Ok(undecided(step, format!("if: `{shown}`: {why}"), false)),
            }
        }
        let Some(command) = &step.if_command else { return Ok(Decision::Run) };
        let gate = check_gate(command);
        let Some(run) = self.command(begun, gate).await? else { return Ok(Decision::Interrupted) };
        let shown = one_line(command, VALUE_CHARS);
        Ok(match run.exit.as_ref().map(|exit| exit.reason) {
            Some(ExitReason::Code(0)) => Decision::Run,
            Some(ExitReason::Code(code)) => {
                Decision::Skip(format!("if_command: `{shown}` exited with {code}"))
            }
            reason => {
                let timed_out = reason == Some(ExitReason::TimedOut);
                undecided(step, format!("if_command: `{shown}`: {}", run.result.output), timed_out)
            }
        })
    }
}

/// Returns the decision on a step whose conditions cannot be evaluated.
fn undecided(step: &Step, message: String, timed_out: bool) -> Decision {
    let (kind, status) = if timed_out {
        (FailureKind::Timeout, Status::Partial)
    } else {
        (FailureKind::Config, Status::Failed)
    };
    let error = Some(Failure { kind, message, retryable: false });
    let stop_reason = timed_out.then_some(StopReason::Timeout);
    let result = RunResult { status, stop_reason, error, ..no_run() };
    Decision::Failed(Box::new(WorkRun { name: step.name.clone(), result, ..WorkRun::default() }))
}
