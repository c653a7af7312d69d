//! A session on disk, locked: a new one, or an earlier one that is gone on with.

use crate::agent::session_state::{LoadedSession, SessionInfo};
use crate::cli::compose::app::App;
use crate::cli::error::{CliError, CliResult};
use crate::config::flags::Flags;
use crate::config::load::LoadedConfig;
use crate::config::settings::Settings;
use crate::core::event::Event;
use crate::core::failure::FailureKind;
use crate::engine::approver::NoApprover;
use crate::journal::answer_signature::AnswerSigner;
use crate::journal::approvals::Approvals;
use crate::journal::session_store::{SessionError, SessionStore};
use crate::journal::write::Journal;
use crate::messages;

/// How often a new session looks for an id that no other process took in the same millisecond.
const ID_TRIES: u32 = 5;

/// The sessions of the workspace.
pub fn session_store(settings: &Settings) -> SessionStore {
    SessionStore::new(settings.state.join("sessions"))
}

/// What shows that an answer in session `id` was given here.
///
/// # Errors
/// When the key cannot be made, or cannot be believed.
pub fn answer_seal(settings: &Settings, id: &str) -> CliResult<AnswerSigner> {
    AnswerSigner::load_or_create(&settings.state, id).map_err(|error| {
        CliError::new(FailureKind::Session, messages::answer_key_unusable(&settings.state, &error))
    })
}

/// The `approvals` of session `id`, knowing which answers were given here.
///
/// # Errors
/// As [`seal`].
pub fn verify_approvals(settings: &Settings, id: &str, approvals: Approvals) -> CliResult<Approvals> {
    if approvals.all().iter().all(|waiting| waiting.answer.is_none()) {
        return Ok(approvals);
    }
    Ok(approvals.verify_answers(&answer_seal(settings, id)?))
}

/// A session on disk, locked.
pub struct LockedSession {
    /// Its id.
    pub id: String,
    /// Its journal, which no other process has.
    pub journal: Journal,
    /// What is known of it.
    pub opened: LoadedSession,
    /// Where it began and how it was worked on last.
    pub about: SessionInfo,
}

impl LockedSession {
    /// A session in which nothing has happened yet.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(app: &App, store: &SessionStore) -> CliResult<Self> {
        let mut id = app.source.session_id();
        let mut created = store.create(&id);
        for _ in 0..ID_TRIES {
            if !matches!(created, Err(SessionError::Busy(_) | SessionError::AlreadyExists(_))) {
                break;
            }
            id = app.source.session_id();
            created = store.create(&id);
        }
        Ok(Self { id, journal: created?, opened: LoadedSession::empty(), about: SessionInfo::default() })
    }

    /// Session `id`, or the newest.
    ///
    /// # Errors
    /// When there is no such session here, it is busy, or it cannot be gone on with.
    pub fn open(settings: &Settings, id: Option<&str>) -> CliResult<Self> {
        let store = session_store(settings);
        let id = match id {
            Some(id) => id.to_owned(),
            None => store.last()?,
        };
        let journal = store.open(&id)?;
        let path = store.journal_path(&id)?;
        let opened = LoadedSession::load(&path).map_err(|error| unreadable(&id, &error))?;
        let about = opened.info();
        if opened.reading.is_newer_version {
            return Err(unreadable(&id, &"a later version of agent has written to it").into());
        }
        if about.next_seq == 0 {
            return Err(unreadable(&id, &"its journal holds no intact record").into());
        }
        if let Some(other) =
            about.workspace.as_ref().filter(|began| **began != settings.workspace.to_string_lossy())
        {
            // What the model has read is not what is here.
            return Err(unreadable(&id, &format!("it belongs to another workspace, {other}")).into());
        }
        Ok(Self { id, journal, opened, about })
    }

    /// `flags` with what the session knows and nobody said otherwise: its agent, whether it waits for answers and, without
    /// a configured one, its model.
    #[must_use]
    pub fn with_session_defaults(&self, flags: Flags, loaded: &LoadedConfig) -> Flags {
        let Some(Event::RunStart { agent, model, .. }) = self.about.last_run.clone() else { return flags };
        let pauses = self.about.pauses;
        Flags {
            approvals: flags.approvals.or_else(|| pauses.then_some(NoApprover::Pause)),
            agent: flags.agent.or(Some(agent)),
            model: flags.model.or_else(|| loaded.settings.llm.model.is_none().then_some(model)),
            ..flags
        }
    }
}

fn unreadable(id: &str, why: &impl ToString) -> SessionError {
    SessionError::Unreadable(id.to_owned(), why.to_string())
}
