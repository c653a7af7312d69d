//! Runs of one command at the same time, each in a directory of its own.

use crate::work::checks::{check_gate, run_gates};
use crate::work::limits::WorkLimits;
use crate::work::record::EndedRun;
use crate::work::running::{NextRun, RunningWork, Stop, can_go_on, is_no_success};
use agent_config::overrides::Overrides;
use agent_core::quality_gate::GateResult;
use agent_core::run_result::{ModifiedFile, RunResult};
use agent_core::stop_reason::{Status, StopReason};
use agent_core::work::{WorkRun, WorkStopReason, Worktree};
use agent_engine::guardrails::quality_gate::QualityGate;
use agent_messages as messages;
use agent_process::launch::Launcher;
use agent_report::OutputFormat;
use agent_run::assemble;
use agent_run::client::{RunBounds, RunClient};
use agent_run::error::AppResult;
use agent_run::request::{RunRequest, Task};
use agent_terminal::Style;
use futures_util::future::join_all;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

/// A run of the command.
pub struct WorkerTask {
    /// Its name in the command, such as `task 2`.
    pub name: String,
    /// The prompt.
    pub prompt: String,
    /// Its request, without what the command sets for all its runs.
    pub request: RunRequest,
    /// Commands that check its directory after it.
    pub checks: Vec<String>,
    /// Variables of the checks.
    pub variables: BTreeMap<String, String>,
}

/// Creates the directories of runs, and commits what the runs have changed.
pub trait RunDirectories {
    /// Returns what starts git.
    fn launcher(&self) -> &Launcher;

    /// Returns the worktree of the run `name`, the `number`th of the command, and the directory in which it works. It is recorded, then
    /// created; if the run `has_begun`, it exists.
    ///
    /// # Errors
    /// Fails when it cannot be recorded or created.
    fn create(
        &self,
        name: &str,
        number: usize,
        has_begun: bool,
    ) -> impl Future<Output = AppResult<(Worktree, PathBuf)>>;

    /// Prepares a directory for the checks after its run.
    ///
    /// # Errors
    /// Why the checks cannot run.
    fn prepare_checks(
        &self,
        name: &str,
        task: &str,
        worktree: &Worktree,
    ) -> impl Future<Output = Result<(), String>>;

    /// Commits what a run has changed; `changed` are the files that its result names.
    ///
    /// # Errors
    /// Fails when that cannot be recorded.
    fn commit(
        &self,
        name: &str,
        task: &str,
        worktree: Worktree,
        changed: &[ModifiedFile],
    ) -> impl Future<Output = AppResult<Worktree>>;
}

/// What the runs of a command share.
struct Workers<'a, D> {
    /// The command.
    work: &'a RunningWork<'a>,
    /// Where the runs work.
    directories: &'a D,
    /// Cancelled by a signal.
    interrupt: CancellationToken,
}

/// Runs the tasks, at most `count` at the same time, each followed by its checks in its directory; returns the runs in the order of the
/// tasks. A signal ends all of them.
///
/// # Errors
/// Fails when the record cannot be written.
pub async fn run_workers(
    work: &RunningWork<'_>,
    directories: &impl RunDirectories,
    tasks: Vec<WorkerTask>,
    count: u8,
) -> AppResult<Vec<WorkRun>> {
    let interrupt = assemble::arm_interrupt(work.app, Some(directories.launcher()), work.language)?;
    let workers = Workers { work, directories, interrupt };
    let runs = tasks.into_iter().enumerate().map(|(at, task)| workers.work(at.saturating_add(1), task));
    let runs = stream::iter(runs).buffered(usize::from(count)).try_collect().await;
    work.app.interrupt()?.disarm();
    runs
}

impl<D: RunDirectories> Workers<'_, D> {
    async fn work(&self, number: usize, task: WorkerTask) -> AppResult<WorkRun> {
        let name = task.name.clone();
        if self.interrupt.is_cancelled() {
            return Ok(not_started(name, StopReason::UserInterrupt));
        }
        let request = match self.work.limits.for_next_run(&task.request) {
            Ok(request) => request,
            Err(WorkStopReason::Timeout) => return Ok(not_started(name, StopReason::Timeout)),
            Err(_) => return Ok(not_started(name, StopReason::BudgetExceeded)),
        };
        let run = match self.directories.create(&name, number, self.work.record.has_begun(Some(&name))).await
        {
            Ok((worktree, directory)) => {
                let text =
                    messages::worker_started(&name, &task.prompt, &worktree.branch, self.work.language);
                self.work.log(Style::Bold, &text);
                let mut request = concurrent_request(request, &self.interrupt);
                request.task = Task::new(task.prompt.clone());
                request.overrides.workspace = Some(directory);
                self.run_in(&task, &request, worktree).await?
            }
            Err(error) => WorkRun { name, result: self.work.app.not_started(&error), ..WorkRun::default() },
        };
        let style = if run.result.status == Status::Success { Style::Plain } else { Style::Warning };
        self.work.log(style, &messages::worker_ended(&run, self.work.language));
        Ok(run)
    }

    /// Runs the task, and commits what it has changed.
    async fn run_in(
        &self,
        task: &WorkerTask,
        request: &RunRequest,
        worktree: Worktree,
    ) -> AppResult<WorkRun> {
        let app = self.work.app.for_worker();
        let (name, prompt) = (&task.name, &task.prompt);
        let mut result = match Box::pin(self.work.record.run(&app, request, name, can_go_on)).await {
            Ok(ended) => ended.result,
            Err(error) => app.not_started(&error),
        };
        let checks = self.record_checks(task, request, &result, &worktree).await?;
        let worktree = self.directories.commit(name, prompt, worktree, &result.files_modified).await?;
        if worktree.problem.is_some() {
            result.status = Status::Failed;
        }
        Ok(WorkRun { name: name.clone(), checks, worktree: Some(worktree), result, skipped: None })
    }

    /// Runs the checks in the directory of a run unless it failed or is to be resumed, and returns their recorded results. A run that is
    /// resumed must not see tests that its checks bring.
    async fn record_checks(
        &self,
        task: &WorkerTask,
        request: &RunRequest,
        result: &RunResult,
        worktree: &Worktree,
    ) -> AppResult<Vec<GateResult>> {
        if task.checks.is_empty() || can_go_on(result) {
            return Ok(result.quality_gates.clone());
        }
        let run_all = async {
            let gates: Vec<_> = task.checks.iter().map(|command| check_gate(command)).collect();
            if let Err(why) = self.directories.prepare_checks(&task.name, &task.prompt, worktree).await {
                return Ok(Some(gates.iter().map(|gate| not_run(gate, &why)).collect()));
            }
            let mut settings = self.work.app.load(&request.effective_overrides())?.settings;
            request.bounds.apply(&mut settings);
            let launcher = assemble::launcher(self.work.app, &settings)?;
            let root = settings.workspace.as_path();
            let runs = run_gates(&launcher, root, &gates, &task.variables, &self.interrupt).await;
            let results = runs.into_iter().map(|run| run.result).collect();
            Ok((!self.interrupt.is_cancelled()).then_some(results))
        };
        Ok(self.work.record.checks(&task.name, run_all).await?.unwrap_or_default())
    }
}

/// Returns the request of a run that shares the terminal with others until `interrupt`: it asks no questions, and prints only the events
/// of `stream-json`.
pub fn concurrent_request(request: RunRequest, interrupt: &CancellationToken) -> RunRequest {
    let (client, _) = RunClient::new(interrupt.child_token());
    let streams = request.format == OutputFormat::StreamJson;
    RunRequest {
        format: if streams { OutputFormat::StreamJson } else { OutputFormat::Json },
        quiet: true,
        prompt_is_data: true,
        client: Some(client),
        ..request
    }
}

/// Returns the request of a run that changes no file and runs no command.
pub fn read_only_request(request: RunRequest) -> RunRequest {
    let bounds = RunBounds { read_only: true, ..request.bounds };
    let overrides = Overrides { no_commands: true, ..request.overrides };
    RunRequest { overrides, bounds, ..request }
}

/// Performs runs at the same time in the workspace, which they may only read, or returns their recorded results; in the order of the runs.
///
/// # Errors
/// Why the command does not go on: all runs have ended, and the first one with an error decides.
pub async fn run_together(
    work: &RunningWork<'_>,
    limits: &WorkLimits,
    runs: Vec<NextRun>,
) -> Result<Vec<RunResult>, Stop> {
    let interrupt = assemble::arm_interrupt(work.app, None, work.language)?;
    let ended = join_all(runs.into_iter().map(|next| run_beside(work, limits, &interrupt, next))).await;
    work.app.interrupt()?.disarm();
    if interrupt.is_cancelled() {
        return Err(Stop::Reason(WorkStopReason::UserInterrupt));
    }
    ended.into_iter().collect()
}

/// Performs one of several runs at the same time.
async fn run_beside(
    work: &RunningWork<'_>,
    limits: &WorkLimits,
    interrupt: &CancellationToken,
    next: NextRun,
) -> Result<RunResult, Stop> {
    let NextRun { name, heading, request, goes_on } = next;
    let request = limits.for_next_run(&request).map_err(Stop::Reason)?;
    let request = read_only_request(concurrent_request(request, interrupt));
    work.log(Style::Bold, &heading);
    let app = work.app.for_worker();
    let EndedRun { result, .. } = Box::pin(work.record.run(&app, &request, &name, goes_on)).await?;
    let run = WorkRun { name, result, ..WorkRun::default() };
    let has_stopped = goes_on(&run.result);
    work.log(
        if has_stopped { Style::Warning } else { Style::Plain },
        &messages::worker_ended(&run, work.language),
    );
    if has_stopped { Err(Stop::Reason(WorkStopReason::for_run(&run.result))) } else { Ok(run.result) }
}

/// Returns a run that did not start because of a limit or an interrupt.
fn not_started(name: String, reason: StopReason) -> WorkRun {
    let result = RunResult { status: reason.status(), stop_reason: Some(reason), ..RunResult::default() };
    WorkRun { name, result, ..WorkRun::default() }
}

/// Returns the result of a check that could not run.
fn not_run(gate: &QualityGate, why: &str) -> GateResult {
    GateResult {
        name: gate.label().to_owned(),
        required: gate.required,
        passed: false,
        output: why.to_owned(),
        duration_ms: 0,
    }
}

/// The reasons why a command of several runs did not succeed, the most important first.
const REASONS: [WorkStopReason; 5] = [
    WorkStopReason::RunFailed,
    WorkStopReason::Timeout,
    WorkStopReason::BudgetExceeded,
    WorkStopReason::AwaitingApproval,
    WorkStopReason::RunPartial,
];

/// Returns why a command ended with these runs. With `any`, one success is enough.
pub fn verdict(runs: &[WorkRun], any: bool) -> WorkStopReason {
    let others = runs.iter().filter(|run| is_no_success(&run.result));
    let reasons: Vec<WorkStopReason> = others.map(|run| WorkStopReason::for_run(&run.result)).collect();
    if reasons.contains(&WorkStopReason::UserInterrupt) {
        return WorkStopReason::UserInterrupt;
    }
    if any && reasons.len() < runs.len() {
        return WorkStopReason::Done;
    }
    REASONS.into_iter().find(|reason| reasons.contains(reason)).unwrap_or(WorkStopReason::Done)
}
