//! The checks after a step of a pipeline, and how its commands run.

use crate::pipeline_command::steps::{BegunStep, Steps, last_run};
use crate::work::checks::{Commands, check_gate, run_gates};
use agent_config::pipeline::Action;
use agent_config::pipeline::variables::environment;
use agent_core::work::WorkStopReason;
use agent_engine::gate_runner::GateRun;
use agent_engine::guardrails::quality_gate::QualityGate;
use agent_run::error::AppResult;

impl Steps<'_> {
    /// Runs the checks of the step, and writes its checkpoint; returns why the step failed, if it did.
    pub(super) async fn check(&self, begun: &BegunStep<'_>) -> AppResult<Option<WorkStopReason>> {
        let (step, record) = (begun.step, begun.record());
        let mut run = last_run(record, step).unwrap_or_default();
        // The command of the step is the first one.
        run.checks.truncate(usize::from(matches!(step.action, Action::Run(_))));
        let mut checks = Vec::new();
        for command in &step.checks {
            let Some(check) = self.command(begun, check_gate(command)).await? else {
                return Ok(Some(WorkStopReason::UserInterrupt));
            };
            checks.push(check.result);
        }
        if checks.iter().all(|check| check.passed) {
            checks.extend(self.checkpoint(begun).await);
        }
        if checks.is_empty() {
            return Ok(None);
        }
        begun.log_checks(&checks);
        let has_passed = checks.iter().all(|check| check.passed);
        record.set_checks(&run.name, run.checks.into_iter().chain(checks).collect())?;
        Ok(match begun.outer.reached() {
            _ if has_passed => None,
            Some(WorkStopReason::Timeout) => Some(WorkStopReason::Timeout),
            _ => Some(WorkStopReason::StepFailed),
        })
    }

    /// Runs a command of the step with the variables; `None` if a signal interrupted it.
    pub(super) async fn command(
        &self,
        begun: &BegunStep<'_>,
        mut gate: QualityGate,
    ) -> AppResult<Option<GateRun>> {
        if let Some(left) = begun.outer.time_left() {
            gate.timeout = gate.timeout.min(left.as_secs().max(1));
        }
        let (app, launcher, root) = (self.app, &*self.launcher, self.workspace.root());
        let (gates, env) = ([gate], environment(&begun.outputs.variables));
        let runs = if let Some(interrupt) = begun.interrupt {
            let runs = run_gates(launcher, root, &gates, &env, interrupt).await;
            (!interrupt.is_cancelled()).then_some(runs)
        } else {
            Commands { app, launcher, root, language: self.setup.settings.language }.run(&gates, &env).await?
        };
        Ok(runs.and_then(|mut runs| {
            let mut run = runs.pop()?;
            run.result.output = app.redact(&run.result.output);
            Some(run)
        }))
    }
}
