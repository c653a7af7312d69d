//! `agent sessions rm` and `agent sessions cleanup`: remove sessions.

use super::CommandContext;
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_journal::retention::{CleanupReport, expired_sessions, remove_expired};
use agent_journal::session_store::SessionError;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::assemble;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use agent_run::session::{check_session, session_store, use_state_with};
use agent_terminal::Style;
use agent_workspace::git::delete_references;
use std::fmt::Write;

/// Removes the sessions `ids`, those of a renamed project too; a failure of one does not stop the others.
///
/// # Errors
/// Fails for an unknown session, one in use by another process, and one that cannot be removed.
pub fn rm(app: &App, settings: &Settings, ids: &[String]) -> AppResult<()> {
    let (mut checkpoints, mut problems) = (Vec::new(), Vec::new());
    for id in ids {
        match remove(settings, id) {
            Ok(its) => checkpoints.extend(its),
            Err(error) => problems.push(error.to_string()),
        }
    }
    delete_checkpoints(app, settings, &checkpoints);
    if problems.is_empty() {
        return Ok(());
    }
    Err(AppError::new(FailureKind::Session, problems.join("\n")))
}

fn remove(settings: &Settings, id: &str) -> Result<Vec<String>, SessionError> {
    let mut of_session = settings.clone();
    use_state_with(&mut of_session, Some(id));
    let store = session_store(&of_session);
    if of_session.state != settings.state {
        check_session(settings, &store, id)?;
    }
    store.remove(id)
}

/// Removes the sessions without activity for `days`, or only lists them.
///
/// # Errors
/// Fails when the number of days is not set, or the sessions cannot be listed.
pub fn cleanup(
    app: &App,
    settings: &Settings,
    context: &CommandContext<'_>,
    days: Option<u32>,
    dry_run: bool,
) -> AppResult<()> {
    let Some(days) = days else {
        let message =
            "no age: use `--older-than DAYS`, or set `sessions.cleanup_after_days` in the configuration";
        return Err(AppError::new(FailureKind::Usage, message));
    };
    let now = app.source.unix_time();
    let mut text = String::new();
    if dry_run {
        for id in expired_sessions(&context.store, days, now)? {
            let _infallible = writeln!(text, "{id}");
        }
        return print(context.terminal, &text);
    }
    let CleanupReport { removed, checkpoints, failures } = remove_expired(&context.store, days, now)?;
    delete_checkpoints(app, settings, &checkpoints);
    let noun = if removed == 1 { "session" } else { "sessions" };
    let _infallible = writeln!(text, "{removed} {noun} removed");
    for error in failures {
        let _infallible = writeln!(text, "not removed: {error}");
    }
    print(context.terminal, &text)
}

/// Deletes the checkpoints of removed sessions, or reports why that failed.
fn delete_checkpoints(app: &App, settings: &Settings, checkpoints: &[String]) {
    if checkpoints.is_empty() {
        return;
    }
    let work = async {
        let launcher = assemble::launcher(app, settings)?;
        let deleted = delete_references(&launcher, &settings.workspace, checkpoints).await;
        deleted.map_err(|reason| AppError::new(FailureKind::Internal, reason))
    };
    if let Err(error) = app.block_on(work) {
        let text = messages::checkpoints_stay(&error.cause.to_string());
        app.notify(Style::Warning, &app.redact(&text));
    }
}
