//! Performs a request as a command does: with a log on standard error, events on standard output, a log file and telemetry.

use crate::app::App;
use crate::error::{AppError, AppResult};
use crate::exit_code::{ExitCode, exit_code};
use crate::request::{RunRequest, Task};
use crate::requested_report::RequestedReport;
use crate::run::{Run, RunOutcome};
use crate::telemetry::{export_telemetry, telemetry};
use agent_config::verbosity::Verbosity;
use agent_core::budget_share::BudgetCap;
use agent_core::failure::FailureKind;
use agent_messages as messages;
use agent_report::answer::AnswerShown;
use agent_report::telemetry::Telemetry;
use agent_report::{self as report, EventSinks, OutputFormat, ReportOptions};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;

/// A run that has ended, with what follows the result of a run at the terminal.
pub struct FinishedRun {
    /// How it ended.
    pub outcome: RunOutcome,
    /// Whether the answer was already shown.
    pub shown: AnswerShown,
    /// Its spans, to be exported after the result is written.
    pub telemetry: Option<Telemetry>,
}

/// Performs `request` with the listeners that it asks for.
///
/// # Errors
/// Fails when the configuration, the session or the model is unusable; a run that ends early is no error.
pub async fn perform(app: &App, request: &RunRequest) -> AppResult<FinishedRun> {
    let mut run = Run::prepare(app, request).await?;
    let telemetry = telemetry(app, &mut run);
    let EventSinks { sinks, answer_shown: shown, stream_end } =
        listeners(app, request, &run, telemetry.clone())?;
    for sink in sinks {
        run.add_sink(sink);
    }
    let outcome = run.perform().await;
    // What is queued for standard output comes before the result.
    drop(stream_end);
    Ok(FinishedRun { outcome: outcome?, shown, telemetry })
}

/// Creates the listeners at the terminal, the log file and `telemetry`.
fn listeners(
    app: &App,
    request: &RunRequest,
    run: &Run<'_>,
    telemetry: Option<Telemetry>,
) -> AppResult<EventSinks> {
    let settings = run.settings();
    let report = ReportOptions {
        format: request.format,
        language: settings.language,
        detail: request.detail(settings),
        // The answer of a review is JSON, from which the findings on standard output are made.
        answer_detail: if request.review().is_some() { Verbosity::Debug } else { Verbosity::Human },
        names_commands: settings.workspace == app.environment.current_dir(),
        log_file: settings.logging.file.as_ref().map(Into::into),
        dry_run: request.dry_run,
        show_costs: request.show_costs,
        chat: request.chat.clone(),
        session_id: run.resumed_id().map(str::to_owned),
        telemetry,
    };
    report::build_sinks(&app.terminal, report)
        .map_err(|error| AppError { kind: FailureKind::Config, cause: error.into() })
}

/// Performs the request with `task`, or reports why there is no task; writes the result and returns the exit code.
pub fn run_task(app: &App, request: RunRequest, task: AppResult<Task>) -> u8 {
    let report = RequestedReport::of(app, &request);
    let (format, on_partial, review) =
        (request.format, request.exit_code_on_partial, request.review().cloned());
    let done = task.and_then(|task| {
        let request = RunRequest { task, ..request };
        catch_panic(|| app.block_on(perform(app, &request)))
    });
    let (result, shown, settings, telemetry, code) = match done {
        Ok(FinishedRun { outcome, shown, telemetry }) => {
            let RunOutcome { result, settings, .. } = outcome;
            let code = exit_code(&result, on_partial);
            let code = review.as_ref().map_or(code, |review| review.exit_code(app, &settings, &result, code));
            (result, shown, Some(settings), telemetry, code)
        }
        Err(error) => {
            app.report_error(&error);
            (app.not_started(&error), AnswerShown::default(), None, None, error.exit_code().code())
        }
    };
    if let Some(report) = report {
        // A panic in it has been reported and does not change the result of the run.
        let _reported = catch_panic(|| {
            report.write(app, settings.as_ref(), &result);
            Ok(())
        });
    }
    let written = match (&review, &settings) {
        (Some(review), Some(settings)) if format == OutputFormat::Text => {
            review.write(app, settings, &result)
        }
        _ => report::write_result(&app.terminal, format, &result, &shown),
    };
    export_telemetry(app, telemetry);
    match written {
        Err(_) if code == 0 => ExitCode::Failed.code(),
        _ => code,
    }
}

/// Turns a panic, which the panic hook has reported, into an error, so that it gets an exit code and a result document.
///
/// # Errors
/// Fails with the error of `work`, and after a panic.
pub fn catch_panic<T>(work: impl FnOnce() -> AppResult<T>) -> AppResult<T> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let message = "a bug in agent ended the run; what was done stands, and the session can be resumed";
        Err(AppError::new(FailureKind::Internal, message))
    })
}

/// Runs the task within the budget that is left for all runs, exports its telemetry and returns how it ended.
///
/// # Errors
/// Fails when the run cannot start, or nothing is left of the budget; a run that ends early is no error. A panic, which the panic
/// hook has reported, is one.
pub async fn run_for_client(app: &App, request: &RunRequest) -> AppResult<FinishedRun> {
    let Some(total) = &request.total_budget else {
        return run_and_export(app, request).await?;
    };
    if total.is_used_up() {
        return Err(AppError::new(FailureKind::Quota, messages::TOTAL_BUDGET_USED));
    }
    let mut request = request.clone();
    let BudgetCap { usd, tokens } = total.at_most();
    request.bounds.budget = request.bounds.budget.into_iter().chain(usd).min();
    request.bounds.tokens = request.bounds.tokens.into_iter().chain(tokens).min();
    run_and_export(app, &request).await?
}

/// Runs the task and exports its telemetry. The outer error is a panic, the inner one a run that cannot start.
async fn run_and_export(app: &App, request: &RunRequest) -> AppResult<AppResult<FinishedRun>> {
    let run = async {
        let mut finished = Box::pin(perform(app, request)).await?;
        if let Some(telemetry) = finished.telemetry.take() {
            telemetry.export(&app.terminal).await;
        }
        Ok(finished)
    };
    AssertUnwindSafe(run)
        .catch_unwind()
        .await
        .map_err(|_| AppError::new(FailureKind::Internal, "a bug in agent ended the run"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_internal_error_that_exits_1() {
        let error = catch_panic::<()>(|| panic!("a bug")).unwrap_err();
        assert_eq!(error.exit_code(), ExitCode::Failed);
    }
}
