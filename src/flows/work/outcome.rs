//! The end of a command of several runs: its document, report and exit code.

use agent_core::language::Language;
use agent_core::stop_reason::Status;
use agent_core::work::{WorkResult, WorkStopReason};
use agent_messages as messages;
use agent_report::answer::AnswerShown;
use agent_report::{OutputFormat, json, work_report};
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::exit_code::ExitCode;
use agent_run::request::RunRequest;
use agent_run::requested_report::RequestedReport;
use agent_terminal::Style;
use std::io;

/// The result of a command, with what is needed to show it.
pub struct WorkOutcome {
    /// The result.
    pub result: WorkResult,
    /// Whether the last answer was already shown.
    pub shown: AnswerShown,
    /// Language of the messages.
    pub language: Language,
}

impl WorkOutcome {
    /// Returns the outcome of a command that did not start because of `error`, which is reported.
    fn not_started(app: &App, command: &str, error: &AppError) -> (Self, u8) {
        app.report_error(error);
        let failure = app.not_started(error).error;
        let result = WorkResult::not_started(command, failure);
        (Self { result, shown: AnswerShown::default(), language: Language::En }, error.exit_code().code())
    }

    /// Writes the result and the report that is requested.
    ///
    /// # Errors
    /// Fails when standard output cannot be written.
    fn write(&self, app: &App, request: &RunRequest) -> io::Result<()> {
        let Self { result, shown, language } = self;
        let format = request.format;
        if format == OutputFormat::Text && !request.quiet && result.work_id.is_some() {
            let can_resume = !matches!(result.stop_reason, None | Some(WorkStopReason::Done));
            app.notify(Style::Bold, &messages::work_ended(result, can_resume, *language));
            let branches = messages::branches(result, *language);
            if !branches.is_empty() {
                app.notify(Style::Plain, &branches);
            }
        }
        if let Some(report) = RequestedReport::of(app, request) {
            report.write_rendered(app, |form| work_report::render(form, result), result.work_id.as_deref());
        }
        let text = match format {
            OutputFormat::Json => json::line(result)?,
            OutputFormat::StreamJson => json::line(&work_report::StreamLine::WorkResult(result))?,
            OutputFormat::Text if shown.get() || result.output.is_empty() => return Ok(()),
            OutputFormat::Text => result.output.clone(),
        };
        app.terminal.print(&text).map(drop)
    }
}

/// Writes the result of a command, or that it did not start; returns the exit code.
pub fn end_command(app: &App, command: &str, request: &RunRequest, done: AppResult<WorkOutcome>) -> u8 {
    let (outcome, code) = match done {
        Ok(outcome) => {
            let code = exit_code(&outcome.result, request.exit_code_on_partial);
            (outcome, code)
        }
        Err(error) => WorkOutcome::not_started(app, command, &error),
    };
    outcome.write(app, request).map_or(1, |()| code)
}

/// Returns the exit code for a result: that of the last failed run if a run failed; `on_partial` replaces that of a partial one.
fn exit_code(result: &WorkResult, on_partial: Option<u8>) -> u8 {
    let failed = result.runs.iter().rev().find(|run| run.result.status == Status::Failed);
    let failed = failed.and_then(|run| run.result.stop_reason);
    let code = match result.stop_reason {
        None => ExitCode::Config,
        Some(WorkStopReason::Done) => ExitCode::Success,
        Some(
            WorkStopReason::MaxIterations
            | WorkStopReason::BudgetExceeded
            | WorkStopReason::NoProgress
            | WorkStopReason::RunPartial
            | WorkStopReason::NotMerged
            | WorkStopReason::StepFailed
            | WorkStopReason::AwaitingApproval,
        ) => ExitCode::Partial,
        Some(WorkStopReason::Timeout) => ExitCode::Timeout,
        Some(WorkStopReason::UserInterrupt) => ExitCode::Interrupted,
        // A run that succeeded and whose changes could not be committed has failed, too.
        Some(WorkStopReason::RunFailed) => match failed.map(ExitCode::for_stop_reason) {
            None | Some(ExitCode::Success) => ExitCode::Failed,
            Some(code) => code,
        },
    };
    on_partial.filter(|_| code == ExitCode::Partial).unwrap_or_else(|| code.code())
}
