//! A run as a command: its result on standard output, its report, its telemetry and its exit code.

use crate::app::App;
use crate::error::AppResult;
use crate::exit_code::{ExitCode, exit_code};
use crate::perform::{FinishedRun, catch_panic, export_telemetry, perform};
use crate::request::{RunRequest, Task};
use crate::requested_report::RequestedReport;
use crate::run::RunOutcome;
use agent_report as report;
use agent_report::OutputFormat;
use agent_report::answer_shown::AnswerShown;

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
