//! A run for a program that drives this one.

use crate::cli::commands::run::run_session;
use crate::cli::commands::run_args::RunOptions;
use crate::cli::commands::run_setup::Task;
use crate::cli::compose::app::App;
use crate::cli::error::{CliError, CliResult};
use crate::core::failure::FailureKind;
use crate::core::run_result::RunResult;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;

/// Runs the task, exports its telemetry and returns its result. A panic, which the panic hook has reported, is an error.
///
/// # Errors
/// Fails when the run cannot start; a run that ends early is no error.
pub async fn run_for_client(app: &App, options: &RunOptions, task: Task) -> CliResult<RunResult> {
    let run = async {
        let finished = Box::pin(run_session(app, options, task)).await?;
        if let Some(telemetry) = finished.telemetry {
            telemetry.export(&app.terminal).await;
        }
        Ok(finished.result)
    };
    AssertUnwindSafe(run)
        .catch_unwind()
        .await
        .unwrap_or_else(|_| Err(CliError::new(FailureKind::Internal, "a bug in agent ended the run")))
}
