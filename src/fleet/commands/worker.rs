//! `agent worker`: does the tasks of the queue, each in a worktree of its own.

use crate::commands::attempt::{Attempt, settle};
use crate::commands::attempt_directory::{known_directories, remove_abandoned};
use crate::commands::claim::AttemptRun;
use crate::commands::context::{WorkerContext, is_worker_fault};
use crate::commands::hub::context::HubContext;
use crate::commands::hub::{activation, one_agent};
use crate::commands::monitor::{self, Listening, Monitor};
use crate::commands::records::{directories, open_queue};
use crate::commands::shared_budget::{Reservation, SharedBudget};
use crate::commands::task_metrics::TaskMetrics;
use crate::commands::worker_args::{WorkerArgs, WorkerOptions};
use crate::commands::worker_lock::{EndedWorker, WorkerLock};
use crate::commands::worker_name::WorkerName;
use crate::error::QueueError;
use crate::metrics::{Figure, Metrics};
use crate::selection::Selection;
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_core::fleet::{AttemptKey, TaskRecord, TaskState};
use agent_core::hub::Activation;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::exit_code::ExitCode;
use agent_runtime::interrupt::SignalHandlers;
use agent_terminal::Style;
use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

/// How long a change of a database waits for those of other processes: no claim is renewed meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two looks at a queue that has nothing to do.
const IDLE: Duration = Duration::from_secs(1);
/// The same where the worker ends when the last tasks have.
const IDLE_AT_END: Duration = Duration::from_millis(200);

/// A worker.
struct Worker<'a> {
    context: WorkerContext<'a>,
    settings: &'a Settings,
    /// Its name in the records.
    name: WorkerName,
    lock: WorkerLock,
    /// The money of a day of all workers.
    budget: Option<SharedBudget>,
    /// Tasks of other workers of this machine that have ended, whose sessions it resumes.
    left: RefCell<VecDeque<(TaskRecord, EndedWorker)>>,
    /// Numbers of tasks that could not be settled, which was reported.
    not_settled: RefCell<BTreeSet<u64>>,
    /// When the queue was last looked through.
    looked_through: Cell<Option<Instant>>,
}

/// Performs tasks until a signal or an option ends it, and returns the exit code.
///
/// # Errors
/// Fails for an invalid configuration, and when the queue cannot be used.
pub fn worker(app: &App, args: WorkerArgs) -> AppResult<u8> {
    let WorkerArgs { options, lane } = args;
    let WorkerOptions { jobs, once, drain, hub, grace, queue, listen, client } = options;
    let mut request = client.request()?;
    // Its runs have the agents that the Hub names.
    let agent = if hub { request.overrides.agent.take() } else { None };
    if request.dry_run {
        let why = "a worker does tasks: `--dry-run` would end them with nothing done";
        return Err(AppError::new(FailureKind::Usage, why));
    }
    let settings = app.load_and_notify(&request.effective_overrides())?.settings;
    // What is recorded is redacted with the secrets of these settings too.
    app.redactor(&settings);
    let limits = Limits { jobs: usize::from(jobs), once, drain, grace: Duration::from_secs(grace), agent };
    app.block_on(async {
        let hub = hub.then(|| HubContext::new(app, &settings)).transpose()?;
        let budget = SharedBudget::new(&settings, &request)?;
        let request = SharedBudget::bounded(budget.as_ref(), request);
        let listening = Listening::open(app, &settings.fleet, listen.as_deref()).await?;
        let queue = open_queue(app, &settings, queue.as_deref()).await?;
        queue.set_patience(PATIENCE)?;
        let context = WorkerContext {
            app,
            queue,
            request,
            language: settings.language,
            stop: CancellationToken::new(),
            git: Mutex::default(),
            lane,
            hub,
            metrics: Metrics::default(),
            is_away: Cell::default(),
        };
        let worker = Worker::new(context, &settings, budget)?;
        let WorkerContext { metrics, queue, hub, .. } = &worker.context;
        let runner = [("runner_id", worker.name.text.as_str()), ("version", env!("CARGO_PKG_VERSION"))];
        metrics.set(Figure::RunnerInfo, &runner, 1.0);
        let monitor = Monitor { metrics, queue, hub: hub.as_ref() };
        tokio::select! {
            done = Box::pin(worker.work(&limits)) => done,
            never = monitor::listen(listening, monitor) => match never {},
        }
    })
}

/// A claimed task, and what is reserved for its run.
type Claimed = (TaskRecord, Option<Reservation>);

/// How much a worker does.
struct Limits {
    jobs: usize,
    once: bool,
    drain: bool,
    grace: Duration,
    /// The only agent of the Hub that it activates.
    agent: Option<String>,
}

impl<'a> Worker<'a> {
    fn new(
        context: WorkerContext<'a>,
        settings: &'a Settings,
        budget: Option<SharedBudget>,
    ) -> AppResult<Self> {
        let fleet = directories(context.app)?.state.join("fleet");
        let unusable =
            |error: io::Error| AppError::new(FailureKind::Session, format!("{}: {error}", fleet.display()));
        let name = WorkerName::new(&fleet, &context.app.source).map_err(unusable)?;
        let workers = fleet.join("workers").join(context.queue.id());
        let lock = WorkerLock::new(&workers, &name.text).map_err(unusable)?;
        let (left, not_settled, looked_through) = Default::default();
        Ok(Self { context, settings, name, lock, budget, left, not_settled, looked_through })
    }

    /// Finds the tasks of ended workers of this machine whose runs have begun.
    async fn find_left(&self) -> AppResult<()> {
        let left_by = |task: TaskRecord| {
            let worker = task.worker.as_deref().filter(|worker| self.name.is_of_machine(worker))?;
            let is_own = task.session_id.is_some() && task.spec.is_of(self.context.lane);
            let left = self.lock.ended(worker).filter(|_| is_own)?;
            Some((task, left))
        };
        let claimed = self.context.queue.select(Selection::InState(TaskState::Claimed)).await;
        let Some(claimed) = self.context.or_later(claimed)? else { return Ok(()) };
        self.lock.remove_left(|name| claimed.iter().any(|task| task.worker.as_deref() == Some(name)));
        let left: VecDeque<(TaskRecord, EndedWorker)> = claimed.into_iter().filter_map(left_by).collect();
        self.left.replace(left);
        Ok(())
    }

    /// Reports an activation whose worker was killed or could not reach the Hub; returns whether the Hub answers.
    async fn settle_activation(&self, task: &TaskRecord, activation: &Activation) -> AppResult<bool> {
        let WorkerContext { hub, queue, .. } = &self.context;
        let Some(hub) = hub else { return Ok(false) };
        let is_reported = activation::report_activated(&self.context, hub, task, activation).await;
        if is_reported {
            self.context.or_later(queue.set_settled(task).await)?;
        }
        Ok(is_reported)
    }

    /// Removes the directories that killed workers of this machine have left, and whose tasks are done by others.
    async fn remove_abandoned(&self) -> AppResult<()> {
        let Worker { context, settings, lock, .. } = self;
        let mut left = known_directories(context.queue.id(), &directories(context.app)?.state);
        left.retain(|(_, worker, _)| !lock.is_alive(worker));
        for selection in [Selection::InState(TaskState::Claimed), Selection::Unsettled { until: u64::MAX }] {
            if left.is_empty() {
                return Ok(());
            }
            let Some(tasks) = context.or_later(context.queue.select(selection).await)? else { return Ok(()) };
            let needed: HashSet<AttemptKey> = tasks.iter().map(TaskRecord::newest_attempt).collect();
            left.retain(|(.., key)| !needed.contains(key));
        }
        let paths: Vec<PathBuf> = left.into_iter().map(|(path, ..)| path).collect();
        if paths.is_empty() { Ok(()) } else { remove_abandoned(context, settings, &paths).await }
    }

    async fn work(&self, limits: &Limits) -> AppResult<u8> {
        let interrupt = self.arm_interrupt(limits.grace)?;
        self.find_left().await?;
        self.settle_all(self.context.now()).await?;
        // A claim goes on while tasks run, and is never dropped: the store may have made it.
        let mut running: FuturesUnordered<LocalBoxFuture<'_, AppResult<Option<TaskState>>>> =
            FuturesUnordered::new();
        let (mut claiming, mut looking) = (FuturesUnordered::new(), FuturesUnordered::new());
        let mut after_grace = pin!(self.after_grace(&interrupt, limits.grace));
        let (mut claimed, mut all_done, mut failed) = (0_usize, true, None);
        let (mut found_nothing, mut next_claim) = (false, Instant::now());
        loop {
            let is_enough = limits.once && claimed > 0 || self.is_used_up();
            let claims = !interrupt.is_cancelled() && failed.is_none() && !is_enough;
            if interrupt.is_cancelled() {
                looking.clear();
            }
            let is_idle = running.is_empty() && claiming.is_empty();
            if is_idle && looking.is_empty() && (!claims || found_nothing && self.may_end(limits).await?) {
                break;
            }
            if found_nothing && claims && looking.is_empty() && self.is_look_due(is_idle) {
                looking.push(self.look_through());
            }
            if claims && claiming.is_empty() && running.len() < limits.jobs && next_claim <= Instant::now() {
                claiming.push(self.claim_within_budget(limits));
            }
            let waits = claims && claiming.is_empty() && running.len() < limits.jobs;
            tokio::select! {
                Some(ended) = running.next() => match ended {
                    Ok(state) => all_done &= state == Some(TaskState::Done),
                    Err(error) => failed = Some(error),
                },
                Some(claim) = claiming.next() => {
                    found_nothing = matches!(claim, Ok(None));
                    match claim {
                        Ok(Some(claim)) if interrupt.is_cancelled() => running.push(Box::pin(self.give_back(claim))),
                        Ok(Some(claim)) => running.push(Box::pin(self.perform(claim))),
                        Ok(None) => next_claim = Instant::now() + self.idle(limits),
                        Err(error) => failed = Some(error),
                    }
                    claimed += usize::from(!found_nothing);
                }
                Some(looked) = looking.next() => failed = failed.or(looked.err()),
                () = sleep_until(next_claim), if waits => {}
                () = interrupt.cancelled(), if waits => {}
                () = &mut after_grace, if !self.context.stop.is_cancelled() => self.context.stop.cancel(),
            }
        }
        self.end(limits, failed, claimed, all_done)
    }

    /// Returns the exit code after so many claims, unless an error has ended the worker.
    fn end(
        &self,
        limits: &Limits,
        failed: Option<AppError>,
        claimed: usize,
        all_done: bool,
    ) -> AppResult<u8> {
        match failed {
            Some(error) => {
                if error.kind == FailureKind::Network {
                    // Without the file the tasks are done anew, which loses nothing else.
                    let _ = self.lock.keep();
                }
                Err(error)
            }
            // Why was logged.
            None if limits.once && claimed == 0 && self.context.is_away.get() => Err(AppError::new(
                FailureKind::Network,
                "no task was claimed, because the queue cannot be used",
            )),
            None => Ok(if limits.once && !all_done { ExitCode::Partial } else { ExitCode::Success }.code()),
        }
    }

    /// Gives back a task that was claimed when a signal arrived.
    async fn give_back(&self, (task, reserved): Claimed) -> AppResult<Option<TaskState>> {
        let context = &self.context;
        self.settle_budget(reserved, &AttemptRun::default()).await?;
        let given_back = async || context.queue.give_back(&task, context.now()).await;
        context.until_answered(given_back).await.map(|_| None)
    }

    /// Lets the first signal end the worker after a time of grace, and the second one end it at once.
    fn arm_interrupt(&self, grace: Duration) -> AppResult<CancellationToken> {
        let WorkerContext { app, language, .. } = &self.context;
        let (terminal, text) = (Arc::clone(&app.terminal), messages::worker_ends(grace.as_secs(), *language));
        Ok(app.interrupt()?.arm(SignalHandlers {
            on_first_signal: Box::new(move || drop(terminal.eprintln(Style::Warning, &text))),
            on_second_signal: Box::new(|| ()),
        }))
    }

    /// Ends when a signal has arrived and the time of grace has passed.
    async fn after_grace(&self, interrupt: &CancellationToken, grace: Duration) {
        interrupt.cancelled().await;
        sleep(grace).await;
    }

    /// Checks whether the worker has nothing more to do.
    async fn may_end(&self, limits: &Limits) -> AppResult<bool> {
        if limits.once || self.is_used_up() || !limits.drain || limits.agent.is_some() {
            return Ok(limits.once || self.is_used_up() || limits.drain);
        }
        let is_open = self.context.queue.has_open_tasks(self.context.lane).await;
        let is_used_up = self.budget.as_ref().is_some_and(SharedBudget::is_used_up);
        Ok(is_used_up || self.context.or_later(is_open)? == Some(false))
    }

    /// Checks whether the money or the tokens of all tasks together are used up.
    fn is_used_up(&self) -> bool {
        self.context.request.total_budget.as_ref().is_some_and(|total| total.is_used_up())
    }

    /// Claims the next task, if its run fits into the money of the day.
    async fn claim_within_budget(&self, limits: &Limits) -> AppResult<Option<Claimed>> {
        self.context.set_heartbeat();
        let Some(budget) = &self.budget else {
            return Ok(self.claim(limits).await?.map(|task| (task, None)));
        };
        let is_open = self.context.queue.has_open_tasks(self.context.lane).await;
        if limits.agent.is_none() && self.context.or_later(is_open)? != Some(true) {
            return Ok(None);
        }
        let Some(reserved) = budget.reserve(&self.context, &self.name.text).await? else { return Ok(None) };
        match self.claim(limits).await {
            Ok(Some(task)) => Ok(Some((task, Some(reserved)))),
            none => {
                budget.settle(&self.context, reserved, &AttemptRun::default()).await.and(none.map(|_| None))
            }
        }
    }

    /// Counts what the run of a task has cost of what was reserved for it.
    async fn settle_budget(&self, reserved: Option<Reservation>, run: &AttemptRun) -> AppResult<()> {
        match (&self.budget, reserved) {
            (Some(budget), Some(reserved)) => budget.settle(&self.context, reserved, run).await,
            _ => Ok(()),
        }
    }

    /// Takes over the task of a worker that has ended, or claims the next one.
    async fn claim(&self, limits: &Limits) -> AppResult<Option<TaskRecord>> {
        let next = || self.left.borrow_mut().pop_front();
        while let Some((task, ended)) = next() {
            let has_failed = ended == EndedWorker::Killed;
            let adopted = self.context.queue.adopt(&task, &self.name.text, has_failed).await;
            match self.context.or_later(adopted)? {
                Some(Some(task))
                    if Attempt::new(&self.context, &task, &AttemptRun::default()).begins_anew() =>
                {
                    self.context
                        .log(Style::Plain, &messages::task_begins_anew(&task.id, self.context.language));
                    Box::pin(self.give_back((task, None))).await?;
                }
                Some(Some(task)) => return Ok(Some(task)),
                Some(None) => {}
                None => {
                    self.left.borrow_mut().push_front((task, ended));
                    return Ok(None);
                }
            }
        }
        if let (Some(hub), Some(agent)) = (&self.context.hub, &limits.agent) {
            let is_asked_for = limits.once || limits.drain;
            return Box::pin(one_agent::claim(&self.context, hub, agent, is_asked_for, &self.name.text))
                .await;
        }
        let claimed = self.context.queue.claim(self.context.lane, &self.name.text, self.context.now()).await;
        Ok(self.context.or_later(claimed)?.flatten())
    }

    /// Returns the time until the next look at a queue that had nothing to do.
    fn idle(&self, limits: &Limits) -> Duration {
        match &self.context.hub {
            // Each look asks the Hub.
            Some(hub) if limits.agent.is_some() => Duration::from_secs(hub.settings.poll_interval.into()),
            _ if limits.drain => IDLE_AT_END,
            _ => IDLE,
        }
    }

    /// Performs the newest attempt of a task; returns the state in which it leaves the task, if that still exists.
    async fn perform(&self, (task, reserved): Claimed) -> AppResult<Option<TaskState>> {
        let text = messages::task_started(&task.id, task.attempt, &task.spec.prompt, self.context.language);
        self.context.log(Style::Bold, &text);
        let (metrics, run) = (TaskMetrics::begin(&self.context, &task), AttemptRun::default());
        let performed = match (&task.spec.activation, &self.context.hub) {
            (Some(activation), Some(hub)) => {
                Box::pin(activation::perform(&self.context, hub, &task, activation, &run)).await
            }
            _ => Box::pin(Attempt::new(&self.context, &task, &run).perform()).await,
        };
        if performed.as_ref().is_err_and(is_worker_fault) {
            self.settle_budget(reserved, &run).await?;
            return performed.map(|()| None);
        }
        performed?;
        let read = async || match self.context.queue.record(&task.id).await {
            Err(QueueError::Unknown(_)) => Ok(None),
            task => task.map(Some),
        };
        let ended = self.context.until_answered(read).await?;
        self.settle_budget(reserved, &run).await?;
        let Some(task) = ended else { return Ok(None) };
        metrics.end(&task, run.get());
        let style = if task.state == TaskState::Done { Style::Plain } else { Style::Warning };
        self.context.log(style, &messages::task_ended(&task, self.context.language));
        Ok(Some(task.state))
    }

    /// Checks whether the queue is to be looked through: once in the time of a lease; in a database, which itself finds the tasks that wait,
    /// only when this worker has nothing else to do.
    fn is_look_due(&self, is_idle: bool) -> bool {
        let queue = &self.context.queue;
        let is_recent = self.looked_through.get().is_some_and(|last| last.elapsed() < queue.lease());
        !is_recent && (is_idle || queue.is_shared())
    }

    /// Looks for what killed workers have left, and for tasks that wait although nothing was found to claim.
    async fn look_through(&self) -> AppResult<()> {
        let Worker { context, looked_through, .. } = self;
        looked_through.set(Some(Instant::now()));
        context.or_later(context.queue.sweep(context.now()).await)?;
        // Tasks that ended a moment ago are still settled by their own workers.
        self.settle_all(context.now().saturating_sub(context.queue.lease().as_secs())).await?;
        self.remove_abandoned().await?;
        for why in context.queue.take_unreadable() {
            context.log(Style::Warning, &why);
        }
        Ok(())
    }

    /// Creates the branches of tasks whose worker was killed before it could, and removes what such workers of this machine have left; of
    /// tasks that ended by `until`, in seconds since the Unix epoch.
    async fn settle_all(&self, until: u64) -> AppResult<()> {
        let Worker { context, not_settled, .. } = self;
        let tasks = context.or_later(context.queue.select(Selection::Unsettled { until }).await)?;
        let mut hub_answers = true;
        for task in tasks.unwrap_or_default() {
            if let Some(activation) = &task.spec.activation {
                if hub_answers {
                    hub_answers = self.settle_activation(&task, activation).await?;
                }
                continue;
            }
            let is_here = !context.queue.is_shared()
                || task.worker.as_deref().is_some_and(|worker| self.name.is_of_machine(worker));
            if !is_here || not_settled.borrow().contains(&task.number) {
                continue;
            }
            match settle(context, &task).await {
                Ok(()) => {}
                Err(error) if error.kind == FailureKind::Network => {
                    context.log(Style::Warning, &error.to_string());
                }
                Err(error) => {
                    context.app.report_error(&error);
                    not_settled.borrow_mut().insert(task.number);
                }
            }
        }
        Ok(())
    }
}
