//! Runs the steps of a pipeline: conditions, runs or a command, checks, checkpoint.

use crate::cli::commands::pipeline_command::args::COMMAND;
use crate::cli::commands::pipeline_command::outputs::{MAX_VALUE_BYTES, Outputs};
use crate::cli::commands::pipeline_command::setup::PipelineSetup;
use crate::cli::commands::run_args::RunOptions;
use crate::cli::commands::work::checks::{Commands, check_gate};
use crate::cli::commands::work::limits::WorkLimits;
use crate::cli::commands::work::outcome::WorkOutcome;
use crate::cli::commands::work::record::{EndedRun, WorkRecord};
use crate::cli::commands::work::running::{NewTask, RunningWork, WorkTask, is_no_success};
use crate::cli::compose;
use crate::cli::compose::app::App;
use crate::cli::compose::directories;
use crate::cli::compose::preparation::{Preparation, PromptData};
use crate::cli::error::{CliError, CliResult};
use crate::config::pipeline::variables::{environment, is_true, replace};
use crate::config::pipeline::{Action, Schema, Step, expression};
use crate::core::failure::{Failure, FailureKind};
use crate::core::price::Usd;
use crate::core::quality_gate::GateResult;
use crate::core::run_result::{Cost, RESULT_SCHEMA_VERSION, RunResult};
use crate::core::stop_reason::{Status, StopReason};
use crate::core::work::{WorkRun, WorkStopReason};
use crate::engine::gate_runner::GateRun;
use crate::engine::guardrails::quality_gate::QualityGate;
use crate::engine::policy::Policy;
use crate::messages;
use crate::process::launch::{ExitReason, Launcher};
use crate::report::OutputFormat;
use crate::report::answer_shown::AnswerShown;
use crate::terminal::{Style, one_line, sanitize};
use crate::workspace::Workspace;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Characters of a value in a message.
const VALUE_CHARS: usize = 100;

/// The steps of a pipeline, and what all of them share.
pub struct Steps<'a> {
    pub(super) app: &'a App,
    pub(super) setup: PipelineSetup,
    pub(super) launcher: Rc<Launcher>,
    pub(super) workspace: Workspace,
    pub(super) policy: Arc<Policy>,
}

/// Whether a step runs.
enum Decision {
    Run,
    /// It is skipped, with the reason.
    Skip(String),
    /// It cannot be decided.
    Failed(Box<WorkRun>),
    Interrupted,
}

/// A step that has begun.
struct BegunStep<'a> {
    index: usize,
    step: &'a Step,
    /// Options of its runs, within the remaining budget and time of the pipeline.
    options: RunOptions,
    started_at: Duration,
}

impl<'a> Steps<'a> {
    /// Prepares what all steps share.
    ///
    /// # Errors
    /// Fails for an invalid configuration.
    pub fn prepare(app: &'a App, mut setup: PipelineSetup) -> CliResult<Self> {
        directories::prepare(&setup.settings)?;
        setup.settings.timeout = None;
        let launcher = compose::launcher(app, &setup.settings)?;
        let (workspace, policy) = compose::guarded_workspace(app, &setup.settings, launcher.tier())?;
        Ok(Self { app, setup, launcher, workspace, policy })
    }

    /// Runs the steps.
    ///
    /// # Errors
    /// Fails when the record cannot be written, and when a run cannot start.
    pub async fn run(mut self) -> CliResult<WorkOutcome> {
        let PipelineSetup { file, start, pipeline, resumed, settings, options, .. } = &self.setup;
        let task = match resumed {
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
        let work = RunningWork::begin(self.app, settings, options.clone(), COMMAND, task)?;
        self.setup.options = work.options.clone();
        let mut outputs = Outputs { variables: self.setup.variables.clone(), ..Outputs::default() };
        let mut reason = None;
        for (index, step) in self.setup.pipeline.steps.iter().enumerate() {
            reason = self.step(&work.record, &work.limits, &mut outputs, (index, step)).await?;
            if reason.is_some() {
                break;
            }
        }
        let at_end = if outputs.has_failed { WorkStopReason::StepFailed } else { WorkStopReason::Done };
        let outcome = work.end(Ok(reason.unwrap_or(at_end)), |_| ())?;
        Ok(WorkOutcome { shown: outputs.shown, ..outcome })
    }

    /// Runs a step; returns why the pipeline ends, if it does.
    async fn step(
        &self,
        record: &WorkRecord,
        limits: &WorkLimits,
        outputs: &mut Outputs,
        (index, step): (usize, &Step),
    ) -> CliResult<Option<WorkStopReason>> {
        let language = self.setup.settings.language;
        if record.has_ended(&step.name) {
            self.add(outputs, step, &last_run(record, step));
            return Ok(None);
        }
        if index < self.setup.first {
            return self.skip(record, outputs, step, messages::BEFORE_FROM_STEP.to_owned()).map(|()| None);
        }
        let options = match limits.for_next_run(&self.setup.options) {
            Ok(options) => options,
            Err(reason) => return Ok(Some(reason)),
        };
        let (number, of) = (index + 1, self.setup.pipeline.steps.len());
        let name = one_line(&step.name, VALUE_CHARS);
        self.log(Style::Bold, &messages::step(number, of, &name, language));
        outputs.shown = AnswerShown::default();
        let begun = BegunStep { index, step, options, started_at: self.app.source.elapsed() };
        let stop = match self.begin(record, outputs, &begun).await? {
            Decision::Interrupted => return Ok(Some(WorkStopReason::UserInterrupt)),
            Decision::Skip(why) => return self.skip(record, outputs, step, why).map(|()| None),
            Decision::Failed(run) => {
                let text = run.result.error.as_ref().map(|error| error.message.clone()).unwrap_or_default();
                self.app.notify(Style::Warning, &self.app.redact(&sanitize(&text)));
                let reason = why_stopped(&run.result);
                record.add_result(*run)?;
                Some(reason)
            }
            Decision::Run => match self.act(record, outputs, &begun).await? {
                Some(stop) => Some(stop),
                None => self.check(record, limits, outputs, &begun).await?,
            },
        };
        match stop {
            Some(WorkStopReason::UserInterrupt | WorkStopReason::AwaitingApproval) => Ok(stop),
            Some(_) if !step.continue_on_error => Ok(stop),
            _ => {
                self.add(outputs, step, &last_run(record, step));
                record.end_step(&step.name).map(|()| None)
            }
        }
    }

    /// Adds an ended step to the outputs.
    fn add(&self, outputs: &mut Outputs, step: &Step, run: &WorkRun) {
        if let Some(bytes) = outputs.add(step, run) {
            let name = one_line(&step.name, VALUE_CHARS);
            let text = messages::output_cut(&name, bytes, MAX_VALUE_BYTES, self.setup.settings.language);
            self.app.notify(Style::Warning, &text);
        }
    }

    fn skip(&self, record: &WorkRecord, outputs: &mut Outputs, step: &Step, why: String) -> CliResult<()> {
        let name = one_line(&step.name, VALUE_CHARS);
        self.log(Style::Plain, &messages::step_skipped(&name, &why, self.setup.settings.language));
        let result = RunResult { status: Status::Success, ..no_run() };
        let run = WorkRun { name: step.name.clone(), skipped: Some(why), result, ..WorkRun::default() };
        self.add(outputs, step, &run);
        record.add_result(run)?;
        record.end_step(&step.name)
    }

    /// Decides whether a step runs, and records that it begins.
    async fn begin(
        &self,
        record: &WorkRecord,
        outputs: &Outputs,
        begun: &BegunStep<'_>,
    ) -> CliResult<Decision> {
        let step = begun.step;
        if record.begun_step(&step.name).is_some() {
            return Ok(Decision::Run);
        }
        let decision = self.decide(outputs, begun).await?;
        if let Decision::Run = decision {
            match self.changed_before(step).await {
                Ok(files) => record.begin_step(&step.name, files)?,
                Err(why) => return Ok(undecided(step, format!("checkpoint: {why}"), false)),
            }
        }
        Ok(decision)
    }

    /// Evaluates the conditions of a step.
    async fn decide(&self, outputs: &Outputs, begun: &BegunStep<'_>) -> CliResult<Decision> {
        let step = begun.step;
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
        let Some(run) = self.command(begun, gate, outputs).await? else { return Ok(Decision::Interrupted) };
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

    /// Does what the step is about; returns why it failed, if it did.
    async fn act(
        &self,
        record: &WorkRecord,
        outputs: &mut Outputs,
        begun: &BegunStep<'_>,
    ) -> CliResult<Option<WorkStopReason>> {
        match &begun.step.action {
            Action::Prompt(prompt) => self.run_agents(record, outputs, begun, (prompt, &[])).await,
            Action::Chain { prompt, agents } => {
                self.run_agents(record, outputs, begun, (prompt, agents)).await
            }
            Action::Run(command) => self.run_command(record, outputs, begun, command).await,
        }
    }

    /// Runs the agents of a chain one after another; without any, that of the step.
    async fn run_agents(
        &self,
        record: &WorkRecord,
        outputs: &mut Outputs,
        begun: &BegunStep<'_>,
        (prompt, agents): (&str, &[String]),
    ) -> CliResult<Option<WorkStopReason>> {
        let prompt = replace(prompt, &outputs.variables);
        let mut data = Vec::new();
        for number in 1..=agents.len().max(1) {
            let agent = agents.get(number - 1);
            let options = self.run_options(begun, agent.cloned(), number >= agents.len())?;
            let preparation = Preparation { data: std::mem::take(&mut data), ..Preparation::default() };
            let name = run_name(begun.step, number);
            let ended =
                record.run(self.app, &options, &name, is_no_success, (prompt.clone(), preparation)).await;
            let EndedRun { result, shown } = match ended {
                Err(error) if record.ended_runs().iter().any(|run| run.skipped.is_none()) => {
                    return self.not_started(record, name, &error).map(Some);
                }
                ended => ended?,
            };
            // A signal from here on interrupts the checks.
            self.app.interrupt()?.disarm();
            outputs.shown = shown;
            if result.status != Status::Success {
                return Ok(Some(why_stopped(&result)));
            }
            let (heading, text) = (messages::CHAIN_ANSWER.to_owned(), result.output.text().into_owned());
            data.push(PromptData::background(heading, text));
        }
        Ok(None)
    }

    /// Records that a run could not start, after others have ended.
    fn not_started(&self, record: &WorkRecord, name: String, error: &CliError) -> CliResult<WorkStopReason> {
        self.app.report_error(error);
        let result = RunResult { error: self.app.not_started(error).error, ..no_run() };
        record.add_result(WorkRun { name, result, ..WorkRun::default() })?;
        Ok(WorkStopReason::RunFailed)
    }

    /// Returns the options of a run of the step.
    fn run_options(
        &self,
        begun: &BegunStep<'_>,
        agent: Option<String>,
        is_last: bool,
    ) -> CliResult<RunOptions> {
        let (step, mut options) = (begun.step, begun.options.clone());
        options.agent = agent.or_else(|| step.agent.clone()).or(options.agent);
        options.model = step.model.clone().or(options.model);
        let time = step.timeout.map(Duration::from_secs);
        let elapsed = self.app.source.elapsed().saturating_sub(begun.started_at);
        let time = time.map(|time| time.saturating_sub(elapsed));
        options.bounds.timeout = [options.bounds.timeout, time].into_iter().flatten().min();
        let budget = step.budget.map(Usd::try_from).transpose();
        let budget = budget.map_err(|error| CliError::new(FailureKind::Config, error.to_string()))?;
        options.bounds.budget = [options.bounds.budget, budget].into_iter().flatten().min();
        match step.output_schema.as_ref().filter(|_| is_last) {
            Some(Schema::File(file)) => options.output_schema = Some(file.into()),
            Some(Schema::Inline(schema)) => options.schema = Some(schema.to_string()),
            None => {}
        }
        Ok(options)
    }

    async fn run_command(
        &self,
        record: &WorkRecord,
        outputs: &Outputs,
        begun: &BegunStep<'_>,
        command: &str,
    ) -> CliResult<Option<WorkStopReason>> {
        let step = begun.step;
        let has_succeeded = |run: &WorkRun| run.name == step.name && run.result.status == Status::Success;
        if record.ended_runs().iter().any(has_succeeded) {
            return Ok(None);
        }
        let mut gate = QualityGate::from_command_line(command.to_owned());
        gate.timeout = step.timeout.unwrap_or(gate.timeout);
        let Some(run) = self.command(begun, gate, outputs).await? else {
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
        self.log_checks(std::slice::from_ref(&run.result));
        let (name, checks) = (step.name.clone(), vec![run.result]);
        record.add_result(WorkRun { name, checks, result, ..WorkRun::default() })?;
        Ok(stop)
    }

    /// Runs the checks of the step, and writes its checkpoint; returns why the step failed, if it did.
    async fn check(
        &self,
        record: &WorkRecord,
        limits: &WorkLimits,
        outputs: &Outputs,
        begun: &BegunStep<'_>,
    ) -> CliResult<Option<WorkStopReason>> {
        let step = begun.step;
        let mut run = last_run(record, step);
        // The command of the step is the first one.
        run.checks.truncate(usize::from(matches!(step.action, Action::Run(_))));
        let mut checks = Vec::new();
        for command in &step.checks {
            let Some(check) = self.command(begun, check_gate(command), outputs).await? else {
                return Ok(Some(WorkStopReason::UserInterrupt));
            };
            checks.push(check.result);
        }
        if checks.iter().all(|check| check.passed) {
            let before = record.begun_step(&step.name).unwrap_or_default();
            checks.extend(self.checkpoint(&record.id, (begun.index, step), &before).await);
        }
        if checks.is_empty() {
            return Ok(None);
        }
        self.log_checks(&checks);
        let has_passed = checks.iter().all(|check| check.passed);
        record.set_checks(&run.name, run.checks.into_iter().chain(checks).collect())?;
        Ok(match limits.for_next_run(&self.setup.options) {
            _ if has_passed => None,
            Err(WorkStopReason::Timeout) => Some(WorkStopReason::Timeout),
            _ => Some(WorkStopReason::StepFailed),
        })
    }

    /// Runs a command of the step with the variables; `None` if a signal interrupted it.
    async fn command(
        &self,
        begun: &BegunStep<'_>,
        mut gate: QualityGate,
        outputs: &Outputs,
    ) -> CliResult<Option<GateRun>> {
        if let Some(time) = begun.options.bounds.timeout {
            let left = time.saturating_sub(self.app.source.elapsed().saturating_sub(begun.started_at));
            gate.timeout = gate.timeout.min(left.as_secs().max(1));
        }
        let (app, launcher, language) = (self.app, &*self.launcher, self.setup.settings.language);
        let commands = Commands { app, launcher, root: self.workspace.root(), language };
        let runs = commands.run(&[gate], &environment(&outputs.variables)).await?;
        Ok(runs.and_then(|mut runs| {
            let mut run = runs.pop()?;
            run.result.output = app.redact(&run.result.output);
            Some(run)
        }))
    }

    /// Writes a line of the log for users.
    pub(super) fn log(&self, style: Style, text: &str) {
        let options = &self.setup.options;
        if options.format() == OutputFormat::Text && !options.quiet {
            self.app.notify(style, text);
        }
    }

    /// Writes the results of checks to the log, with the output of those that failed.
    fn log_checks(&self, checks: &[GateResult]) {
        self.log(Style::Plain, &sanitize(&messages::checks(checks, self.setup.settings.language)));
        for check in checks.iter().filter(|check| !check.passed) {
            self.log(Style::Plain, &sanitize(&check.output));
        }
    }
}

/// Returns the name of a run of the step; `number` counts the agents of a chain from 1.
fn run_name(step: &Step, number: usize) -> String {
    match step.action {
        Action::Chain { .. } => format!("{}/{number}", step.name),
        Action::Prompt(_) | Action::Run(_) => step.name.clone(),
    }
}

/// Returns the last recorded run of a step that has one.
fn last_run(record: &WorkRecord, step: &Step) -> WorkRun {
    let is_own =
        |run: &WorkRun| run.name.split_once('/').map_or(run.name.as_str(), |(name, _)| name) == step.name;
    record.ended_runs().into_iter().rfind(is_own).unwrap_or_default()
}

/// Returns the result of a step without a model: nothing was spent.
fn no_run() -> RunResult {
    let cost = Cost { total_usd: Some(Usd::ZERO), ..Cost::default() };
    RunResult { schema_version: RESULT_SCHEMA_VERSION, cost, ..RunResult::default() }
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

/// Returns why the pipeline stops after a run that is no success.
fn why_stopped(result: &RunResult) -> WorkStopReason {
    match WorkStopReason::for_run(result) {
        WorkStopReason::RunPartial => WorkStopReason::StepFailed,
        reason => reason,
    }
}
