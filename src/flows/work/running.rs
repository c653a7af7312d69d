//! A command of several runs while it works: its runs within its limits, its log, and its end.

use crate::work::limits::WorkLimits;
use crate::work::outcome::WorkOutcome;
use crate::work::record::{EndedRun, WorkRecord, WorkStart};
use crate::work::request::{WorkCommand, to_value};
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_core::language::Language;
use agent_core::run_result::RunResult;
use agent_core::stop_reason::{Status, StopReason};
use agent_core::work::{WorkResult, WorkRun, WorkStopReason};
use agent_report::OutputFormat;
use agent_report::answer::AnswerShown;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::request::RunRequest;
use agent_terminal::Style;
use std::cell::RefCell;

/// A new task.
#[derive(Debug, Clone, Default)]
pub struct NewTask {
    /// The task.
    pub task: String,
    /// The commit from which changes are counted.
    pub base: Option<String>,
    /// What the command needs to go on, in a form of its own.
    pub data: Option<String>,
}

impl From<String> for NewTask {
    fn from(task: String) -> Self {
        Self { task, ..Self::default() }
    }
}

/// The task of a command.
pub enum WorkTask {
    /// A new one.
    New(NewTask),
    /// That of the record with this id.
    Recorded(String),
}

/// Creates a usage error.
pub fn usage(message: impl Into<String>) -> AppError {
    AppError::new(FailureKind::Usage, message)
}

/// Why a command does not go on.
#[derive(Debug)]
pub enum Stop {
    /// It ends for this reason.
    Reason(WorkStopReason),
    /// A run could not start, or the record could not be written.
    Error(AppError),
}

impl From<AppError> for Stop {
    fn from(error: AppError) -> Self {
        Self::Error(error)
    }
}

/// Checks whether a run did not succeed: what follows it needs its success, so it goes on when the command is resumed.
pub fn is_no_success(result: &RunResult) -> bool {
    result.status != Status::Success
}

/// Checks whether a run is resumed with its command although nothing needs its success: it was interrupted, waits for approval, or failed.
pub fn can_go_on(result: &RunResult) -> bool {
    let has_paused =
        [StopReason::UserInterrupt, StopReason::AwaitingApproval].map(Some).contains(&result.stop_reason);
    has_paused || result.status == Status::Failed
}

/// The next run of a command.
pub struct NextRun {
    /// Its name in the command.
    pub name: String,
    /// Line of the log for users.
    pub heading: String,
    /// Its request.
    pub request: RunRequest,
    /// Checks whether a run with this result stops the command, and goes on when the command is resumed.
    pub goes_on: fn(&RunResult) -> bool,
}

/// A command of several runs while it works.
pub struct RunningWork<'a> {
    /// Its record.
    pub record: WorkRecord,
    /// The request of its runs, without the limits of all of them together.
    pub request: RunRequest,
    /// Language of its log.
    pub language: Language,
    /// The application.
    pub app: &'a App,
    command: &'static str,
    /// The limits of all runs together.
    pub limits: WorkLimits,
    /// Whether the last answer was already shown.
    pub shown: RefCell<AnswerShown>,
}

impl<'a> RunningWork<'a> {
    /// Creates the record of `command`, or opens the one to resume; budget, tokens and time of `request`, the request of each run, limit all runs
    /// together.
    ///
    /// # Errors
    /// Fails when the record cannot be written or opened, and for an invalid budget.
    pub fn begin<C: WorkCommand>(
        app: &'a App,
        settings: &Settings,
        command: &C,
        mut request: RunRequest,
        task: WorkTask,
    ) -> AppResult<Self> {
        request.prompt_is_data = true;
        let record = match task {
            WorkTask::Recorded(id) => WorkRecord::open(app, settings, &id)?,
            WorkTask::New(NewTask { task, base, data }) => {
                let (name, request) = (C::NAME.to_owned(), to_value(command)?);
                let directory = app.environment.current_dir().to_string_lossy().into_owned();
                let start = WorkStart { command: name, request, directory, task, data, base };
                WorkRecord::create(app, settings, start)?
            }
        };
        let limits = WorkLimits::take(&app.source, &mut request, &record)?;
        let shown = RefCell::default();
        Ok(Self { record, request, language: settings.language, app, command: C::NAME, limits, shown })
    }

    /// Writes a line of the log for users.
    pub fn log(&self, style: Style, text: &str) {
        if self.request.format == OutputFormat::Text && !self.request.quiet {
            self.app.notify(style, &self.app.redact(text));
        }
    }

    /// Performs a run within the remaining budget and time of `limits`, or returns its recorded result.
    ///
    /// # Errors
    /// Why the command does not go on.
    pub async fn run(&self, limits: &WorkLimits, next: NextRun) -> Result<RunResult, Stop> {
        let NextRun { name, heading, request, goes_on } = next;
        let request = limits.for_next_run(&request).map_err(Stop::Reason)?;
        self.log(Style::Bold, &heading);
        let EndedRun { result, shown } = self.record.run(self.app, &request, &name, goes_on).await?;
        // A signal from here on interrupts what follows the run.
        self.app.interrupt()?.disarm();
        self.shown.replace(shown);
        if goes_on(&result) { Err(Stop::Reason(WorkStopReason::for_run(&result))) } else { Ok(result) }
    }

    /// Records the end, and returns it; `complete` adds what the result of the command has besides its runs.
    ///
    /// # Errors
    /// Fails with the error that stopped the command, and when the record cannot be written.
    pub fn end(
        self,
        ended: Result<WorkStopReason, Stop>,
        complete: impl FnOnce(&mut WorkResult),
    ) -> AppResult<WorkOutcome> {
        let reason = match ended {
            Ok(reason) | Err(Stop::Reason(reason)) => reason,
            Err(Stop::Error(error)) => return Err(error),
        };
        let runs = self.record.ended_runs();
        self.end_with(reason, runs, complete)
    }

    /// Records the end of a command with these runs, some of which may not have started, and returns it.
    ///
    /// # Errors
    /// Fails when the record cannot be written.
    pub fn end_with(
        self,
        reason: WorkStopReason,
        runs: Vec<WorkRun>,
        complete: impl FnOnce(&mut WorkResult),
    ) -> AppResult<WorkOutcome> {
        let mut result = WorkResult::new(self.command, &self.record.id, reason, runs);
        complete(&mut result);
        self.record.finish(&result)?;
        Ok(WorkOutcome { result, shown: self.shown.take(), language: self.language })
    }
}
