//! `agent approvals`: lists the pending approvals.

use crate::args::ApprovalsCommand;
use crate::commands::common_args::CommonArgs;
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_journal::approvals::Approvals;
use agent_journal::session_store::SessionError;
use agent_journal::summary::has_completed;
use agent_messages as messages;
use agent_report::pending_approvals::{self, PendingApprovalDetails};
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use agent_run::session::{session_store, verify_approvals};
use agent_terminal::{one_line, sanitize};
use std::io;
use std::time::Duration;

/// Prints the pending approvals in the sessions of the workspace, newest session first, with secrets redacted.
///
/// # Errors
/// Fails for an invalid configuration, an unreadable session, and when standard output cannot be written.
pub fn approvals(app: &App, command: &ApprovalsCommand, common: &CommonArgs) -> AppResult<()> {
    let ApprovalsCommand::List { json } = command;
    let settings = app.load_and_notify(&common.overrides())?.settings;
    let redactor = app.redactor(&settings);
    let mut all = pending_calls(&settings)?;
    for call in &mut all {
        redactor.redact_approval(&mut call.approval);
    }
    let text = if *json {
        let document = pending_approvals::document(all);
        document.map_err(|error| AppError { kind: FailureKind::Internal, cause: error.into() })?
    } else {
        list(&all, app.source.unix_time())
    };
    print(&app.terminal, &text)
}

/// Returns every pending call, including those that were answered and have not run yet.
///
/// # Errors
/// Fails for an unreadable session.
pub fn pending_calls(settings: &Settings) -> AppResult<Vec<PendingApprovalDetails>> {
    let (store, mut all) = (session_store(settings), Vec::new());
    for id in store.list()? {
        let path = store.journal_path(&id)?;
        let unreadable = |error: io::Error| SessionError::Unreadable(id.clone(), error.to_string());
        if has_completed(&path).map_err(unreadable)? {
            continue;
        }
        let approvals = Approvals::read(&path).map_err(unreadable)?;
        let approvals = verify_approvals(settings, &id, approvals)?;
        all.extend(approvals.all().iter().map(|waiting| PendingApprovalDetails {
            session_id: id.clone(),
            approval: waiting.approval.clone(),
            answer: waiting.effective_answer().cloned(),
        }));
    }
    Ok(all)
}

/// Formats the calls for the user, each complete.
fn list(all: &[PendingApprovalDetails], now: Duration) -> String {
    if all.is_empty() {
        return messages::NO_PENDING_CALLS.to_owned();
    }
    let text: String = all.iter().map(|call| describe(call, now)).collect();
    format!("{text}{}", messages::HOW_TO_ANSWER)
}

fn describe(call: &PendingApprovalDetails, now: Duration) -> String {
    let asked = &call.approval;
    let line = |text: &str| one_line(text, usize::MAX);
    let ago = messages::ago(now.saturating_sub(Duration::from_millis(asked.asked_ms)));
    let state = call.answer.as_ref().map_or(messages::NOT_ANSWERED, messages::answer_label);
    let head = format!("{}  {} {}\n", line(&asked.id), line(&asked.tool), line(&asked.summary));
    let about = messages::pending_call_details(&call.session_id, &ago, state, &line(&asked.reason));
    let notes = asked.notes.iter().map(|note| format!("   {}\n", line(note)));
    let preview = sanitize(asked.preview.as_deref().unwrap_or_default());
    let preview = preview.lines().map(|line| format!("   {line}\n"));
    let below: String = notes.chain(preview).collect();
    format!("{head}{about}{below}\n")
}
