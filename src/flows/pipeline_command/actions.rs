//! What a step of a pipeline does: runs of agents, a command, a debate, or steps of its own.

use crate::pipeline_command::interrupted_command::StatesBefore;
use crate::pipeline_command::steps::{BegunStep, Steps, no_run, why_stopped};
use crate::work::debate::{HeldDebate, check_distinct};
use crate::work::record::EndedRun;
use crate::work::running::{Stop, is_no_success};
use crate::work::workers::{concurrent_request, read_only_request};
use agent_config::pipeline::variables::replace;
use agent_config::pipeline::{Action, Debate, Schema, Step};
use agent_core::failure::FailureKind;
use agent_core::price::Usd;
use agent_core::run_result::RunResult;
use agent_core::stop_reason::{Status, StopReason};
use agent_core::work::{Consolidation, WorkRun, WorkStopReason};
use agent_engine::guardrails::quality_gate::QualityGate;
use agent_messages as messages;
use agent_process::launch::ExitReason;
use agent_run::error::{AppError, AppResult};
use agent_run::preparation::PromptData;
use agent_run::request::{AnswerSchema, RunRequest, Task};
use std::time::Duration;

impl Steps<'_> {
    /// Does what the step is about; returns why it failed, if it did.
    pub(super) async fn act(&self, begun: &BegunStep<'_>) -> AppResult<Option<WorkStopReason>> {
        match &begun.step.action {
            Action::Prompt(prompt) => self.run_agents(begun, prompt, &[]).await,
            Action::Chain { prompt, agents } => self.run_agents(begun, prompt, agents).await,
            Action::Run(command) => self.run_command(begun, command).await,
            Action::Parallel(steps) => self.run_parallel(begun, steps).await,
            Action::Consolidate(debate) => self.hold_debate(begun, debate).await,
        }
    }

    /// Runs the agents of a chain one after another; without any, that of the step.
    async fn run_agents(
        &self,
        begun: &BegunStep<'_>,
        prompt: &str,
        agents: &[String],
    ) -> AppResult<Option<WorkStopReason>> {
        let prompt = replace(prompt, &begun.outputs.variables);
        let mut data = Vec::new();
        for number in 1..=agents.len().max(1) {
            let mut request = run_request(begun, agents.get(number - 1).cloned(), number >= agents.len())?;
            request.task = Task::new(prompt.clone()).with_data(std::mem::take(&mut data));
            let request = match begun.limits.for_next_run(&request) {
                Ok(request) => request,
                Err(reason) => return Ok(Some(reason)),
            };
            let name = run_name(begun.step, number);
            let result = match self.run_agent(begun, request, &name).await {
                Ok(result) => result,
                Err(error) => return self.not_started(begun, name, error).map(Some),
            };
            if result.status != Status::Success {
                return Ok(Some(why_stopped(&result)));
            }
            let (heading, text) = (messages::CHAIN_ANSWER.to_owned(), result.output.text().into_owned());
            data.push(PromptData::background(heading, text));
        }
        Ok(None)
    }

    /// Performs a run. One of several at the same time only reads: the workspace is the same for all.
    async fn run_agent(
        &self,
        begun: &BegunStep<'_>,
        request: RunRequest,
        name: &str,
    ) -> AppResult<RunResult> {
        let record = begun.record();
        if let Some(interrupt) = begun.interrupt {
            let (app, request) =
                (self.app.for_worker(), read_only_request(concurrent_request(request, interrupt)));
            let ended = Box::pin(record.run(&app, &request, name, is_no_success)).await?;
            return Ok(ended.result);
        }
        let EndedRun { result, shown } = record.run(self.app, &request, name, is_no_success).await?;
        // A signal from here on interrupts the checks.
        self.app.interrupt()?.disarm();
        begun.work.shown.replace(shown);
        Ok(result)
    }

    /// Holds a debate of several models; the result of the step is the summary.
    async fn hold_debate(&self, begun: &BegunStep<'_>, debate: &Debate) -> AppResult<Option<WorkStopReason>> {
        let question = replace(&debate.question, &begun.outputs.variables);
        let debate = Debate { question, ..debate.clone() };
        let (prefix, request) = (format!("{}/", begun.step.name), run_request(begun, None, true)?);
        if let Err(error) = check_distinct(self.app, &request, &debate).await {
            return self.not_started(begun, begun.step.name.clone(), error).map(Some);
        }
        let (work, limits) = (begun.work, &begun.limits);
        let held = HeldDebate { work, limits, request: &request, prefix: &prefix, debate: &debate };
        match held.hold().await {
            Ok(Consolidation { summary, .. }) => {
                let result =
                    RunResult { status: Status::Success, output: summary.as_str().into(), ..no_run() };
                let name = begun.step.name.clone();
                begun.record().add_result(WorkRun { name, result, ..WorkRun::default() })?;
                Ok(None)
            }
            Err(Stop::Reason(WorkStopReason::RunPartial)) => Ok(Some(WorkStopReason::StepFailed)),
            Err(Stop::Reason(reason)) => Ok(Some(reason)),
            Err(Stop::Error(error)) => self.not_started(begun, begun.step.name.clone(), error).map(Some),
        }
    }

    /// Records that a run could not start.
    ///
    /// # Errors
    /// Fails with `error` if it is the first one of the pipeline: nothing has happened.
    fn not_started(&self, begun: &BegunStep<'_>, name: String, error: AppError) -> AppResult<WorkStopReason> {
        let is_first = begun.record().ended_runs().iter().all(|run| run.skipped.is_some());
        if is_first && begun.interrupt.is_none() {
            return Err(error);
        }
        self.app.report_error(&error);
        let result = RunResult { error: self.app.not_started(&error).error, ..no_run() };
        begun.record().add_result(WorkRun { name, result, ..WorkRun::default() })?;
        Ok(WorkStopReason::RunFailed)
    }

    async fn run_command(&self, begun: &BegunStep<'_>, command: &str) -> AppResult<Option<WorkStopReason>> {
        let (step, record) = (begun.step, begun.record());
        let has_succeeded = |run: &WorkRun| run.name == step.name && run.result.status == Status::Success;
        if record.ended_runs().iter().any(has_succeeded) {
            return Ok(None);
        }
        let mut gate = QualityGate::from_command_line(command.to_owned());
        gate.timeout = step.timeout.unwrap_or(gate.timeout);
        let states = self.states_before(begun).await?;
        let command = self.command(begun, gate);
        let run = match &states {
            Some(states) => states.while_running(command).await?,
            None => command.await?,
        };
        let Some(run) = run else {
            states.inspect(StatesBefore::remove);
            return Ok(Some(WorkStopReason::UserInterrupt));
        };
        let timed_out = run.exit.as_ref().is_some_and(|exit| exit.reason == ExitReason::TimedOut);
        let (status, stop) = match (run.result.passed, timed_out) {
            (true, _) => (Status::Success, None),
            (false, true) => (Status::Partial, Some(WorkStopReason::Timeout)),
            (false, false) => (Status::Failed, Some(WorkStopReason::RunFailed)),
        };
        let stdout = run.exit.map(|exit| exit.stdout).unwrap_or_default();
        let bytes: Vec<u8> = stdout.head.into_iter().chain(stdout.tail).collect();
        let text = self.app.redact(&String::from_utf8_lossy(&bytes));
        let result = RunResult {
            status,
            stop_reason: timed_out.then_some(StopReason::Timeout),
            output: text.trim_end_matches('\n').into(),
            duration_seconds: Duration::from_millis(run.result.duration_ms).as_secs_f64(),
            sandbox: Some(self.launcher.tier().name().to_owned()),
            ..no_run()
        };
        begun.log_checks(std::slice::from_ref(&run.result));
        let (name, checks) = (step.name.clone(), vec![run.result]);
        record.add_result(WorkRun { name, checks, result, ..WorkRun::default() })?;
        states.inspect(StatesBefore::remove);
        Ok(stop)
    }
}

/// Returns the request of a run of the step, without the limits.
fn run_request(begun: &BegunStep<'_>, agent: Option<String>, is_last: bool) -> AppResult<RunRequest> {
    let (step, mut request) = (begun.step, begun.work.request.clone());
    request.overrides.agent = agent.or_else(|| step.agent.clone()).or(request.overrides.agent);
    request.overrides.model = step.model.clone().or(request.overrides.model);
    let budget = step.budget.map(Usd::try_from).transpose();
    let budget = budget.map_err(|error| AppError::new(FailureKind::Config, error.to_string()))?;
    request.bounds.budget = [request.bounds.budget, budget].into_iter().flatten().min();
    match step.output_schema.as_ref().filter(|_| is_last) {
        Some(Schema::File(file)) => request.schema = Some(AnswerSchema::File(file.into())),
        Some(Schema::Inline(schema)) => request.schema = Some(AnswerSchema::Text(schema.to_string())),
        None => {}
    }
    Ok(request)
}

/// Returns the name of a run of the step; `number` counts the agents of a chain from 1.
fn run_name(step: &Step, number: usize) -> String {
    match step.action {
        Action::Chain { .. } => format!("{}/{number}", step.name),
        Action::Prompt(_) | Action::Run(_) | Action::Parallel(_) | Action::Consolidate(_) => {
            step.name.clone()
        }
    }
}
