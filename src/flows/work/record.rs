//! The record of a command of several runs: a journal in the state directory, from which the command is resumed.

use crate::work::next_run::{NextRun, tokens};
use agent_config::settings::Settings;
use agent_core::budget_share::Amount;
use agent_core::event::Event;
use agent_core::event_sink::EventSink;
use agent_core::failure::FailureKind;
use agent_core::price::Usd;
use agent_core::quality_gate::GateResult;
use agent_core::run_result::RunResult;
use agent_core::work::{WorkEvent, WorkResult, WorkRun, Worktree};
use agent_journal::read;
use agent_journal::session_store::{SessionError, SessionStore};
use agent_journal::write::Journal;
use agent_messages as messages;
use agent_report::answer::AnswerShown;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::perform::FinishedRun;
use agent_run::perform::run_for_client;
use agent_run::request::RunRequest;
use agent_run::session::session_store;
use agent_runtime::emitter::Emitter;
use agent_workspace::git::worktree_commit::Committed;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A run that has ended.
pub struct EndedRun {
    /// Its result.
    pub result: RunResult,
    /// Whether its answer was already shown.
    pub shown: AnswerShown,
}

/// How a command began.
#[derive(Debug, Clone)]
pub struct WorkStart {
    /// The command, such as `loop`.
    pub command: String,
    /// What it was requested with.
    pub request: Value,
    /// The directory in which it was started.
    pub directory: String,
    /// The task.
    pub task: String,
    /// What the command needs to go on, in a form of its own.
    pub data: Option<String>,
    /// The commit from which changes are counted.
    pub base: Option<String>,
}

/// A run of the command, as far as it is recorded.
#[derive(Debug, Clone, Default)]
struct RecordedRun {
    name: String,
    /// Empty if it is no run of an agent, or could not start.
    session_id: String,
    spent: Usd,
    result: Option<RunResult>,
    checks: Option<Vec<GateResult>>,
    skipped: Option<String>,
}

/// A step of a pipeline that has begun.
#[derive(Debug, Clone)]
pub(super) struct RecordedStep {
    pub(super) name: String,
    pub(super) changed_before: Vec<String>,
    pub(super) has_ended: bool,
}

/// What a record says of its command: the fold of its events.
#[derive(Debug)]
pub struct RecordedWork {
    /// How it began.
    pub start: WorkStart,
    /// Its result, if it ended.
    pub result: Option<WorkResult>,
    runs: Vec<RecordedRun>,
    worktrees: BTreeMap<String, Worktree>,
    pub(super) steps: Vec<RecordedStep>,
}

impl RecordedWork {
    /// Reads the record `id`; returns it with the number of its next event.
    ///
    /// # Errors
    /// Fails when there is no such record, or its start cannot be read.
    pub fn read(store: &SessionStore, id: &str) -> AppResult<(Self, u64)> {
        let path = store.journal_path(id).map_err(|error| unknown(id, &error))?;
        let contents = read::read(&path).map_err(|error| unreadable(id, &error.to_string()))?;
        let next_seq = contents.next_seq();
        let mut parts = contents.records.into_iter().filter_map(|record| match record.event {
            Event::Work { part } => Some(part),
            _ => None,
        });
        let Some(WorkEvent::Start { command, request, directory, task, data, base }) = parts.next() else {
            return Err(unreadable(id, "its start is missing"));
        };
        let mut work = Self::new(WorkStart { command, request, directory, task, data, base });
        parts.for_each(|part| work.apply(part));
        Ok((work, next_seq))
    }

    fn new(start: WorkStart) -> Self {
        Self { start, result: None, runs: Vec::new(), worktrees: BTreeMap::new(), steps: Vec::new() }
    }

    fn apply(&mut self, part: WorkEvent) {
        match part {
            WorkEvent::Start { .. } => {}
            WorkEvent::RunStart { name, session_id } => {
                self.put(RecordedRun { name, session_id, ..RecordedRun::default() });
            }
            WorkEvent::StepStart { name, changed_before } => {
                self.result = None;
                self.steps.push(RecordedStep { name, changed_before, has_ended: false });
            }
            WorkEvent::StepResult { run } => {
                let WorkRun { name, skipped, checks, result, worktree: _ } = *run;
                let (result, checks) = (Some(result), (!checks.is_empty()).then_some(checks));
                self.put(RecordedRun { name, result, checks, skipped, ..RecordedRun::default() });
            }
            WorkEvent::StepEnd { name } => {
                self.steps.retain(|step| step.name != name);
                self.steps.push(RecordedStep { name, changed_before: Vec::new(), has_ended: true });
            }
            WorkEvent::RunEnd { name, spent_usd, result } => {
                if let Some(run) = self.runs.iter_mut().find(|run| run.name == name) {
                    (run.spent, run.result) = (spent_usd, Some(*result));
                }
            }
            WorkEvent::Checks { name, results } => {
                if let Some(run) = self.runs.iter_mut().find(|run| run.name == name) {
                    run.checks = Some(results);
                }
            }
            WorkEvent::Worktree { name, worktree } => drop(self.worktrees.insert(name, worktree)),
            WorkEvent::End { result } => self.result = Some(*result),
        }
    }

    /// Adds a run, or replaces the recorded one with its name at the same position: the order is that of the first starts.
    fn put(&mut self, run: RecordedRun) {
        self.result = None;
        match self.runs.iter_mut().find(|known| known.name == run.name) {
            Some(known) => *known = run,
            None => self.runs.push(run),
        }
    }

    /// Returns the worktrees, by the names of their runs.
    pub fn worktrees(&self) -> impl Iterator<Item = (&String, &Worktree)> {
        self.worktrees.iter()
    }

    /// Returns the ended runs, in order.
    pub fn ended_runs(&self) -> Vec<WorkRun> {
        self.runs.iter().filter_map(|run| self.ended(run)).collect()
    }

    /// Returns a run, if it ended.
    fn ended(&self, run: &RecordedRun) -> Option<WorkRun> {
        let checks = run.checks.clone().unwrap_or_default();
        let worktree = self.worktrees.get(&run.name).cloned();
        let (name, skipped) = (run.name.clone(), run.skipped.clone());
        Some(WorkRun { name, skipped, checks, worktree, result: run.result.clone()? })
    }
}

/// The record of a command, locked by this process.
pub struct WorkRecord {
    /// Its id.
    pub id: String,
    emitter: Emitter,
    sessions: SessionStore,
    pub(super) work: RefCell<RecordedWork>,
}

/// Returns the store of the records of the workspace.
pub fn work_store(settings: &Settings) -> SessionStore {
    SessionStore::new(settings.state.join("work"))
}

impl WorkRecord {
    /// Creates a record, locked by this process.
    ///
    /// # Errors
    /// Fails when it cannot be written.
    pub fn create(app: &App, settings: &Settings, start: WorkStart) -> AppResult<Self> {
        let id = app.source.session_id();
        let journal = work_store(settings).create(&id)?;
        let WorkStart { command, request, directory, task, data, base } = start.clone();
        let record = Self::new(app, settings, id, journal, 0, RecordedWork::new(start));
        record.write(WorkEvent::Start { command, request, directory, task, data, base })?;
        Ok(record)
    }

    /// Opens the record `id` to resume its command.
    ///
    /// # Errors
    /// Fails when there is no such record, another process works on it, or it cannot be read.
    pub fn open(app: &App, settings: &Settings, id: &str) -> AppResult<Self> {
        let store = work_store(settings);
        let journal = store.open(id).map_err(|error| unknown(id, &error))?;
        let (work, next_seq) = RecordedWork::read(&store, id)?;
        Ok(Self::new(app, settings, id.to_owned(), journal, next_seq, work))
    }

    fn new(
        app: &App,
        settings: &Settings,
        id: String,
        journal: Journal,
        next_seq: u64,
        work: RecordedWork,
    ) -> Self {
        let sinks: Vec<Box<dyn EventSink>> = vec![Box::new(journal)];
        let emitter = Emitter::new(Rc::clone(&app.source), app.source.short_id(), next_seq, sinks)
            .with_redactor(app.redactor(settings));
        Self { id, emitter, sessions: session_store(settings), work: RefCell::new(work) }
    }

    /// Appends an event, durably.
    pub(super) fn write(&self, part: WorkEvent) -> AppResult<()> {
        let written = self.emitter.emit(Event::Work { part: part.clone() }).and_then(|_| self.emitter.sync());
        written.map_err(|error| AppError { kind: FailureKind::Session, cause: error.into() })?;
        self.work.borrow_mut().apply(part);
        Ok(())
    }

    /// Returns how the command began.
    pub fn start(&self) -> WorkStart {
        self.work.borrow().start.clone()
    }

    /// Returns what the ended runs have used: known costs, and the highest possible ones of calls whose cost is unknown.
    pub fn used(&self) -> Amount {
        let tokens = |run: &RecordedRun| run.result.as_ref().map_or(0, |result| tokens(result.usage));
        let runs = &self.work.borrow().runs;
        runs.iter().fold(Amount::default(), |sum, run| sum + Amount { usd: run.spent, tokens: tokens(run) })
    }

    /// Returns the ended runs, in order.
    pub fn ended_runs(&self) -> Vec<WorkRun> {
        self.work.borrow().ended_runs()
    }

    /// Returns the last ended run whose name `is_meant`.
    pub fn last_run(&self, is_meant: impl Fn(&str) -> bool) -> Option<WorkRun> {
        let work = self.work.borrow();
        work.runs.iter().rev().filter(|run| is_meant(&run.name)).find_map(|run| work.ended(run))
    }

    /// Records a worktree before it is created, or when its branch has changed.
    ///
    /// # Errors
    /// Fails when the record cannot be written.
    pub fn set_worktree(&self, name: &str, worktree: &Worktree) -> AppResult<()> {
        self.write(WorkEvent::Worktree { name: name.to_owned(), worktree: worktree.clone() })
    }

    /// Records the commit of a worktree with what its run has changed, or why there is none.
    ///
    /// # Errors
    /// Fails when the record cannot be written.
    pub fn set_committed(
        &self,
        name: &str,
        worktree: Worktree,
        committed: Result<Committed, String>,
    ) -> AppResult<Worktree> {
        let worktree = match committed {
            Ok(Committed { commit, left_out }) => Worktree { commit, left_out, problem: None, ..worktree },
            Err(why) => Worktree { problem: Some(messages::not_committed(&why)), ..worktree },
        };
        self.set_worktree(name, &worktree)?;
        Ok(worktree)
    }

    /// Returns the worktree with this name.
    pub fn worktree(&self, name: &str) -> Option<Worktree> {
        self.work.borrow().worktrees.get(name).cloned()
    }

    /// Checks whether a run has begun: the one with this name, or any.
    pub fn has_begun(&self, name: Option<&str>) -> bool {
        self.work.borrow().runs.iter().any(|run| name.is_none_or(|name| run.name == name))
    }

    fn recorded(&self, name: &str) -> Option<RecordedRun> {
        self.work.borrow().runs.iter().find(|run| run.name == name).cloned()
    }

    /// Performs `request` as a session of its own, and returns its result. If the record has the run, its
    /// recorded result is returned, or its session is resumed: where it was interrupted, or if a run with its result `goes_on`.
    ///
    /// # Errors
    /// Fails when the run cannot start, or the record cannot be written.
    pub async fn run(
        &self,
        app: &App,
        request: &RunRequest,
        name: &str,
        goes_on: fn(&RunResult) -> bool,
    ) -> AppResult<EndedRun> {
        let recorded = self.recorded(name);
        if let Some(RecordedRun { result: Some(result), .. }) = &recorded
            && !goes_on(result)
        {
            return Ok(EndedRun { result: result.clone(), shown: AnswerShown::default() });
        }
        let known = recorded.map(|run| run.session_id).filter(|id| !id.is_empty());
        let next = NextRun::of(app, &self.sessions, known.as_deref(), goes_on, &request.task)?;
        let (session_id, task, before) = match next {
            NextRun::Start { session_id, task, spent } => (session_id, task, spent),
            NextRun::Ended(result) => {
                let result = self.end(name, Usd::default(), *result)?;
                return Ok(EndedRun { result, shown: AnswerShown::default() });
            }
        };
        self.write(WorkEvent::RunStart { name: name.to_owned(), session_id: session_id.clone() })?;
        let (session_id, work_id) = (Some(session_id), Some(self.id.clone()));
        let request = RunRequest { session_id, work_id, ..request.with_task(task) };
        request.total_budget.iter().for_each(|total| total.add_used(before));
        let FinishedRun { outcome, shown, .. } = run_for_client(app, &request).await?;
        let result = self.end(name, before.usd + outcome.spent, outcome.result)?;
        Ok(EndedRun { result, shown })
    }

    fn end(&self, name: &str, spent: Usd, result: RunResult) -> AppResult<RunResult> {
        let spent_usd = spent.max(result.cost.total_usd.unwrap_or_default());
        let boxed = Box::new(result.clone());
        self.write(WorkEvent::RunEnd { name: name.to_owned(), spent_usd, result: boxed })?;
        Ok(result)
    }

    /// Returns the results of the checks after the run `name`: the recorded ones, or those of `check`; `None` if they were interrupted.
    ///
    /// # Errors
    /// Fails when the record cannot be written.
    pub async fn checks(
        &self,
        name: &str,
        check: impl Future<Output = AppResult<Option<Vec<GateResult>>>>,
    ) -> AppResult<Option<Vec<GateResult>>> {
        if let Some(results) = self.recorded(name).and_then(|run| run.checks) {
            return Ok(Some(results));
        }
        let Some(results) = check.await? else { return Ok(None) };
        self.write(WorkEvent::Checks { name: name.to_owned(), results: results.clone() })?;
        Ok(Some(results))
    }

    /// Records the end of the command.
    ///
    /// # Errors
    /// Fails when the record cannot be written.
    pub fn finish(&self, result: &WorkResult) -> AppResult<()> {
        self.write(WorkEvent::End { result: Box::new(result.clone()) })
    }
}

fn unknown(id: &str, error: &SessionError) -> AppError {
    match error {
        SessionError::NotFound(_) | SessionError::BadId(_) => {
            AppError::new(FailureKind::Session, messages::unknown_work(id))
        }
        SessionError::Busy(_) => AppError::new(FailureKind::Session, messages::work_busy(id)),
        other => AppError::new(FailureKind::Session, other.to_string()),
    }
}

fn unreadable(id: &str, why: &str) -> AppError {
    AppError::new(FailureKind::Session, messages::work_unreadable(id, why))
}
