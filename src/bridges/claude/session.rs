//! The session of a conversation: a new one, an existing one, or a copy of one.

use super::args::ClaudeArgs;
use super::options::Setup;
use agent_core::failure::FailureKind;
use agent_journal::session_store::SessionError;
use agent_run::error::{AppError, AppResult};
use agent_run::request::Task;
use agent_run::session::{check_session, session_store};

/// Returns the id of the session, which exists on disk unless it is new.
///
/// # Errors
/// When there is no such session, it cannot be copied, or the id of a new one is no UUID or in use.
pub fn open_session(setup: &Setup, args: &ClaudeArgs) -> AppResult<String> {
    let store = session_store(&setup.settings);
    let given = args.session_id.clone();
    if let Some(id) = given.as_ref().filter(|id| !is_uuid(id)) {
        return Err(AppError::new(FailureKind::Usage, format!("--session-id {id}: it is not a UUID")));
    }
    if given.as_ref().is_some_and(|id| store.journal_path(id).is_ok()) {
        return Err(SessionError::AlreadyExists(given.unwrap_or_default()).into());
    }
    let new = || given.clone().unwrap_or_else(|| setup.app.source.uuid());
    if args.resume.is_none() && !args.continues {
        return Ok(new());
    }
    let existing = store.id_or_newest_own(args.resume.as_deref())?;
    store.journal_path(&existing)?;
    if !args.fork_session {
        return Ok(existing);
    }
    check_session(&setup.settings, &store, &existing)?;
    let copy = new();
    store.copy(&existing, None, &copy)?;
    Ok(copy)
}

/// Returns the task of a run with this prompt: the first one creates the session.
pub fn task(setup: &Setup, id: &str, prompt: String) -> Task {
    let exists = session_store(&setup.settings).journal_path(id).is_ok();
    if exists { Task::resume(id, prompt) } else { Task::new(prompt) }
}

fn is_uuid(id: &str) -> bool {
    let parts: Vec<&str> = id.split('-').collect();
    let is_hex = |part: &&str| part.chars().all(|c| c.is_ascii_hexdigit());
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]) && parts.iter().all(is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_uuid_is_one() {
        assert!(is_uuid("0198f2c4-1a2b-4c3d-8e4f-5a6b7c8d9e0f"));
        for other in
            ["", "x", "20260101-000000-aaaaaa", "0198f2c4-1a2b-4c3d-8e4f-5a6b7c8d9e0g", "../../../../etc"]
        {
            assert!(!is_uuid(other), "{other}");
        }
    }
}
