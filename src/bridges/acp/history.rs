//! Sessions on disk: the list of them, and the earlier messages of one.

use super::session::Session;
use crate::json_rpc::message::failed;
use crate::json_rpc::outbox::Outbox;
use crate::json_rpc::session_page::session_page;
use agent_client_protocol_schema::v1::{Error, ListSessionsResponse, SessionInfo};
use agent_config::load;
use agent_config::overrides::Overrides;
use agent_core::event::Event;
use agent_journal::read;
use agent_journal::session_store::SessionStore;
use agent_journal::summary::SessionSummary;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::session::{check_workspace, session_store};
use agent_terminal::one_line;
use jiff::Timestamp;
use std::rc::Rc;

/// Characters of a title.
const TITLE_CHARS: usize = 80;
/// Bytes of texts up to which a session is shown.
const MAX_REPLAY_BYTES: usize = 16 << 20;

/// Returns the sessions of the workspace of `flags`, newest first. `cursor` is that of the page before.
///
/// # Errors
/// When the workspace cannot be opened or the cursor is not one.
pub fn list(app: &App, flags: &Overrides, cursor: Option<&str>) -> Result<ListSessionsResponse, Error> {
    let (state, workspace) = load::state_and_workspace(flags, &app.environment)
        .map_err(|error| failed(&app.redact(&error.to_string())))?;
    let store = SessionStore::new(state.join("sessions"));
    let (sessions, next) = session_page(&store, cursor, |id| {
        let summary = SessionSummary::read(&store.journal_path(&id).ok()?).ok()?;
        let mut info = SessionInfo::new(id, workspace.clone());
        info.title = Some(one_line(&app.redact(&summary.task), TITLE_CHARS));
        let last = i64::try_from(summary.last_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
        info.updated_at = last.map(|last| last.to_string());
        Some(info)
    })?;
    Ok(ListSessionsResponse::new(sessions).next_cursor(next))
}

/// Checks that a session is on disk and belongs to its workspace; with `outbox`, sends its earlier messages.
///
/// # Errors
/// When there is no such session, or it cannot be read.
pub fn reopen(session: &Session, outbox: Option<&Rc<Outbox>>) -> Result<(), Error> {
    let unknown = |_| Error::session_not_found(session.id.clone());
    let path = session_store(&session.settings).journal_path(&session.id).map_err(unknown)?;
    let updates = outbox.map(|outbox| session.updates(outbox));
    let (mut bytes, mut is_elsewhere, mut agent) = (0_usize, false, None);
    read::for_each_record(&path, |_line, record| {
        let Some(record) = record else { return true };
        if let Event::SessionStart { workspace: began, .. } = &record.event {
            is_elsewhere = check_workspace(&session.settings, &session.id, Some(began)).is_err();
        }
        match &record.event {
            Event::RunStart { agent: name, .. } => agent = Some(name.clone()),
            Event::Imported => agent = None,
            _ => {}
        }
        let shown_before = bytes;
        bytes = bytes.saturating_add(text_bytes(&record.event));
        match &updates {
            Some(updates) if !is_elsewhere && bytes <= MAX_REPLAY_BYTES => updates.replay(&record),
            Some(updates) if !is_elsewhere && shown_before <= MAX_REPLAY_BYTES => {
                updates.message(messages::replay_cut(session.settings.language));
            }
            _ => {}
        }
        !is_elsewhere
    })
    .map_err(|error| failed(&error))?;
    if is_elsewhere {
        let mut elsewhere = Error::session_not_found(session.id.clone());
        "the session belongs to another workspace".clone_into(&mut elsewhere.message);
        return Err(elsewhere);
    }
    if let Some(agent) = agent {
        session.keep_agent(&agent);
    }
    Ok(())
}

/// Returns the bytes of the texts that are sent of an event, about. A diff has at most a fixed number of bytes.
fn text_bytes(event: &Event) -> usize {
    match event {
        Event::ToolCallEnd { result, .. } => result.text.len(),
        Event::ToolCallStart { call, .. } => call.arguments.len(),
        Event::UserMessage { text, .. } => text.len(),
        Event::ModelResponse { message, .. } => message.joined_text().len(),
        _ => 0,
    }
}
