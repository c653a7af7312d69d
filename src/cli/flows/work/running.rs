//! A command of several runs while it works: its arguments, its runs within its limits, its log, and its end.

use crate::commands::run_args::RunOptions;
use crate::flows::work::limits::WorkLimits;
use crate::flows::work::outcome::{WorkOutcome, end_command};
use crate::flows::work::record::{EndedRun, WorkRecord, WorkStart};
use crate::flows::work::resume::{kept_words, resume, resumed_id};
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_core::language::Language;
use agent_core::run_result::RunResult;
use agent_core::stop_reason::{Status, StopReason};
use agent_core::work::{WorkResult, WorkRun, WorkStopReason};
use agent_messages as messages;
use agent_report::OutputFormat;
use agent_report::answer_shown::AnswerShown;
use agent_run::app::App;
use agent_run::error::{CliError, CliResult};
use agent_run::prompt::read_prompt;
use agent_run::request::RunRequest;
use agent_terminal::Style;
use clap::Args;
use std::cell::RefCell;

/// Runs a command line of this program, and returns its exit code.
pub type RunWords = fn(&App, Vec<String>) -> CliResult<u8>;

/// Arguments that all commands of several runs have.
#[derive(Debug, Clone, Args)]
pub struct WorkArgs {
    /// The task, `-` reads it from standard input; or `resume` and the id of a record
    #[arg(value_name = "TASK | resume ID", num_args = 0..=2)]
    pub words: Vec<String>,
    /// Id of the record to go on with.
    #[arg(long, hide = true, value_name = "ID")]
    pub resume_work: Option<String>,
    /// Options shared with `run`.
    #[command(flatten)]
    pub options: RunOptions,
}

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

impl WorkArgs {
    /// Returns the task, which may be on standard input.
    ///
    /// # Errors
    /// Fails for a task that is missing, empty or of several words.
    pub fn task(&self, app: &App) -> CliResult<WorkTask> {
        match (&self.resume_work, self.words.as_slice()) {
            (Some(id), _) => Ok(WorkTask::Recorded(id.clone())),
            (None, [_, _, ..]) => Err(usage(messages::ONE_TASK)),
            (None, words) => {
                let task = read_prompt(&app.terminal, words.first().cloned())?;
                Ok(WorkTask::New(task.into()))
            }
        }
    }
}

/// Creates a usage error.
pub fn usage(message: impl Into<String>) -> CliError {
    CliError::new(FailureKind::Usage, message)
}

/// Resumes `command` if its words ask for that, otherwise performs `work`; writes the result and returns the exit code. `fixed` are
/// options that cannot change when the command is resumed, each with whether it is given.
pub fn run_command(
    app: &App,
    command: &str,
    args: &WorkArgs,
    fixed: &[(&str, bool)],
    run_words: RunWords,
    work: impl FnOnce() -> CliResult<WorkOutcome>,
) -> u8 {
    let options = &args.options;
    let done = match (resumed_id(&args.words), fixed.iter().find(|(_, is_given)| *is_given)) {
        (Some(_), Some((option, _))) => Err(usage(messages::fixed_option(option))),
        (Some(id), None) => match resume(app, command, &id, options, run_words) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        (None, _) => work(),
    };
    end_command(app, command, options, done)
}

/// Why a command does not go on.
#[derive(Debug)]
pub enum Stop {
    /// It ends for this reason.
    Reason(WorkStopReason),
    /// A run could not start, or the record could not be written.
    Error(CliError),
}

impl From<CliError> for Stop {
    fn from(error: CliError) -> Self {
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
    /// Creates the record of `command`, or opens the one to resume; budget, tokens and time of `request` limit all runs together.
    ///
    /// # Errors
    /// Fails when the record cannot be written or opened, and for an invalid budget.
    pub fn begin(
        app: &'a App,
        settings: &Settings,
        mut request: RunRequest,
        command: &'static str,
        task: WorkTask,
    ) -> CliResult<Self> {
        request.prompt_is_data = true;
        let record = match task {
            WorkTask::Recorded(id) => WorkRecord::open(app, settings, &id)?,
            WorkTask::New(NewTask { task, base, data }) => {
                let words = kept_words(app.environment.arguments());
                let directory = app.environment.current_dir().to_string_lossy().into_owned();
                let start = WorkStart { command: command.to_owned(), words, directory, task, data, base };
                WorkRecord::create(app, settings, start)?
            }
        };
        let limits = WorkLimits::take(&app.source, &mut request, &record)?;
        let shown = RefCell::default();
        Ok(Self { record, request, language: settings.language, app, command, limits, shown })
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
    ) -> CliResult<WorkOutcome> {
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
    ) -> CliResult<WorkOutcome> {
        let mut result = WorkResult::new(self.command, &self.record.id, reason, runs);
        complete(&mut result);
        self.record.finish(&result)?;
        Ok(WorkOutcome { result, shown: self.shown.take(), language: self.language })
    }
}
