//! A run for a program that drives this one.

use crate::cli::commands::run::{FinishedRun, run_session};
use crate::cli::commands::run_args::RunOptions;
use crate::cli::commands::run_setup::Task;
use crate::cli::compose::app::App;
use crate::cli::error::{CliError, CliResult};
use crate::core::failure::FailureKind;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;

/// Checks that all options can be honoured for a client, which gets the results.
///
/// # Errors
/// Fails for those that are about the output of one run.
pub fn check_options(options: &RunOptions) -> CliResult<()> {
    let given = [
        ("--report", options.report.is_some()),
        ("--report-file", options.report_file.is_some()),
        ("--exit-code-on-partial", options.exit_code_on_partial.is_some()),
        ("--image", !options.image.is_empty()),
        ("--output-format", options.output_format.is_some()),
        ("--show-costs", options.show_costs),
        ("--cache-clear", options.cache_clear),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((flag, _)) => {
            let message = format!(
                "{flag} is for one run at the command line, not for runs that another program requests"
            );
            Err(CliError::new(FailureKind::Usage, message))
        }
    }
}

/// Runs the task and exports its telemetry. A panic, which the panic hook has reported, is an error.
///
/// # Errors
/// Fails when the run cannot start; a run that ends early is no error.
pub async fn run_for_client(app: &App, options: &RunOptions, task: Task) -> CliResult<FinishedRun> {
    let run = async {
        let mut finished = Box::pin(run_session(app, options, task)).await?;
        if let Some(telemetry) = finished.telemetry.take() {
            telemetry.export(&app.terminal).await;
        }
        Ok(finished)
    };
    AssertUnwindSafe(run)
        .catch_unwind()
        .await
        .unwrap_or_else(|_| Err(CliError::new(FailureKind::Internal, "a bug in agent ended the run")))
}
