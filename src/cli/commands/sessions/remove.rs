//! `agent sessions rm` and `agent sessions cleanup`: sessions that nobody needs any more.

use super::CommandContext;
use crate::cli::compose;
use crate::cli::compose::app::App;
use crate::cli::compose::output::print;
use crate::cli::error::{CliError, CliResult};
use crate::config::settings::Settings;
use crate::core::failure::FailureKind;
use crate::engine::git::delete_references;
use crate::journal::retention::{CleanupReport, expired_sessions, remove_expired};
use crate::messages;
use crate::terminal::Style;
use std::fmt::Write;

/// Removes the sessions `ids`: all that are there, whatever becomes of the others.
///
/// # Errors
/// When one of them is not there, another process works on it, or it cannot be removed.
pub fn rm(app: &App, settings: &Settings, context: &CommandContext<'_>, ids: &[String]) -> CliResult<()> {
    let (mut checkpoints, mut problems) = (Vec::new(), Vec::new());
    for id in ids {
        match context.store.remove(id) {
            Ok(its) => checkpoints.extend(its),
            Err(error) => problems.push(error.to_string()),
        }
    }
    delete_checkpoints(app, settings, &checkpoints);
    if problems.is_empty() {
        return Ok(());
    }
    Err(CliError::new(FailureKind::Session, problems.join("\n")))
}

/// Removes the sessions in which nothing has happened for `days`, or only names them.
///
/// # Errors
/// When nobody said for how many days, or the sessions cannot be listed.
pub fn cleanup(
    app: &App,
    settings: &Settings,
    context: &CommandContext<'_>,
    days: Option<u32>,
    dry_run: bool,
) -> CliResult<()> {
    let Some(days) = days else {
        let message = "how old must a session be? `--older-than DAYS`, or `sessions.cleanup_after_days` in the configuration";
        return Err(CliError::new(FailureKind::Usage, message));
    };
    let now = app.source.unix_time();
    let mut text = String::new();
    if dry_run {
        for id in expired_sessions(&context.store, days, now)? {
            let _infallible = writeln!(text, "{id}");
        }
        return print(context.terminal, &text);
    }
    let CleanupReport { removed, checkpoints, failures: kept } = remove_expired(&context.store, days, now)?;
    delete_checkpoints(app, settings, &checkpoints);
    let noun = if removed == 1 { "session" } else { "sessions" };
    let _infallible = writeln!(text, "{removed} {noun} removed");
    for error in kept {
        let _infallible = writeln!(text, "kept: {error}");
    }
    print(context.terminal, &text)
}

/// Lets the checkpoints of removed sessions go, or says why they stay.
fn delete_checkpoints(app: &App, settings: &Settings, checkpoints: &[String]) {
    if checkpoints.is_empty() {
        return;
    }
    let work = async {
        let launcher = compose::launcher(app, settings)?;
        let forgotten = delete_references(&launcher, &settings.workspace, checkpoints).await;
        forgotten.map_err(|reason| CliError::new(FailureKind::Internal, reason))
    };
    if let Err(error) = app.block_on(work) {
        let text = messages::checkpoints_stay(&error.cause.to_string());
        app.notify(Style::Warning, &app.redact(&text));
    }
}
