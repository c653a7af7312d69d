//! `agent approve` and `agent deny`: write the user's answer to a pending call into the journal of its session.

use crate::commands::approvals::pending_calls;
use crate::commands::common_args::CommonArgs;
use agent_core::approval::ApprovalAnswer;
use agent_core::event::Event;
use agent_core::failure::FailureKind;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::memory::CorrectionStore;
use agent_run::output::print;
use agent_run::session::answer_seal;
use agent_run::session_history::{SessionHistory, journal_write_error};
use agent_terminal::{Style, one_line};

/// Maximum length in characters of a reason for the model.
const REASON_CHARS: usize = 1000;
/// Maximum length in characters of a displayed id or call.
const SHOWN_CHARS: usize = 300;

/// Denies a pending call (`agent deny`); the model receives the reason.
///
/// # Errors
/// Fails as [`answer`] does.
pub fn deny(app: &App, id: &str, reason: Option<String>, common: &CommonArgs) -> AppResult<()> {
    let reason = reason.map(|reason| one_line(reason.trim(), REASON_CHARS));
    let reason = reason.filter(|reason| !reason.is_empty());
    answer(app, id, &ApprovalAnswer::Deny { reason }, common)
}

/// Answers the pending call `id`; until the call runs, the last answer counts.
///
/// # Errors
/// Fails for an invalid configuration, an unknown id, a session in use by another process, and a journal that
/// cannot be written.
pub fn answer(app: &App, id: &str, answer: &ApprovalAnswer, common: &CommonArgs) -> AppResult<()> {
    let none = || AppError::new(FailureKind::Session, messages::no_pending_call(&one_line(id, SHOWN_CHARS)));
    let mut settings = app.load_and_notify(&common.overrides())?.settings;
    let mut found = pending_calls(&settings)?;
    // A project that was renamed has its sessions elsewhere.
    let mut elsewhere = settings.directories.workspace_states().into_iter();
    let session = loop {
        if let Some(call) = found.into_iter().find(|call| call.approval.id == id) {
            break call.session_id;
        }
        settings.state = elsewhere.next().ok_or_else(none)?;
        found = pending_calls(&settings).unwrap_or_default();
    };
    // The pending call is checked again when the session is locked.
    let mut loaded_session = SessionHistory::open_locked(app, &common.overrides(), Some(&session))?;
    let asked =
        loaded_session.approvals.all().iter().find(|waiting| waiting.approval.id == id).ok_or_else(none)?;
    let asked = asked.approval.clone();
    let signature = answer_seal(&settings, &session)?.sign(&asked, answer);
    let event = Event::ApprovalAnswered { id: id.to_owned(), answer: answer.clone(), signature };
    loaded_session.approvals.apply(&event);
    loaded_session
        .emitter
        .emit(event)
        .and_then(|_| loaded_session.emitter.sync())
        .map_err(journal_write_error)?;
    if let ApprovalAnswer::Deny { reason: Some(reason) } = answer {
        let store = CorrectionStore::new(&settings, app.redactor(&settings), &app.source);
        for notice in store.iter().flat_map(|store| store.store(reason)) {
            app.notify(Style::Dim, &notice);
        }
    }
    let call = one_line(&format!("{} {}", asked.tool, asked.summary), SHOWN_CHARS);
    let then = messages::resume_hint(&session, loaded_session.approvals.unanswered().count());
    let text = format!("{}: {call}\n{then}\n", messages::answer_label(answer));
    print(&app.terminal, &loaded_session.redact(&text))
}
