//! A session on disk, locked by this process: a new one, or an existing one that is resumed.

use crate::app::App;
use crate::error::{AppError, AppResult};
use agent_config::load::LoadedConfig;
use agent_config::overrides::Overrides;
use agent_config::settings::Settings;
use agent_core::event::Event;
use agent_core::failure::FailureKind;
use agent_engine::approver::NoApprover;
use agent_engine::policy::Mode;
use agent_journal::answer_signature::AnswerSigner;
use agent_journal::approvals::Approvals;
use agent_journal::read::{JournalContents, read};
use agent_journal::session_store::{SessionError, SessionStore};
use agent_journal::summary::SessionSummary;
use agent_journal::write::Journal;
use agent_messages as messages;
use agent_session::session_state::{SessionInfo, session_info};
use std::path::Path;

/// Number of attempts to find an id that no other process uses in the same millisecond.
const ID_TRIES: u32 = 5;

/// Name of the directory of sessions in the state directory of a workspace.
pub const SESSIONS: &str = "sessions";

/// Returns the store of the workspace's sessions.
pub fn session_store(settings: &Settings) -> SessionStore {
    SessionStore::new(settings.state.join(SESSIONS)).of_workspace(settings.workspace.clone())
}

/// Points `settings` to the state directory with session `id`, if only that of another workspace has it. A project that was
/// renamed has its sessions there.
pub fn use_state_with(settings: &mut Settings, id: Option<&str>) {
    let has = |state: &Path, id| SessionStore::new(state.join(SESSIONS)).journal_path(id).is_ok();
    let Some(id) = id.filter(|id| !has(&settings.state, id)) else { return };
    let mut states = settings.directories.workspace_states().into_iter();
    if let Some(state) = states.find(|state| has(state, id)) {
        settings.state = state;
    }
}

/// Checks whether the workspace `path` is a worktree in a state directory.
pub fn is_in_state(settings: &Settings, path: &str) -> bool {
    let state = &settings.directories.state;
    Path::new(path).starts_with(state)
        || state.canonicalize().is_ok_and(|real| Path::new(path).starts_with(real))
}

/// Checks that session `id`, which began in `began`, can work in the present workspace: it began there, or nothing is at that
/// path any more and it was not a worktree.
///
/// # Errors
/// Names the workspace of the session.
pub fn check_workspace(settings: &Settings, id: &str, began: Option<&str>) -> Result<(), SessionError> {
    let is_elsewhere = |path: &&str| {
        Path::new(path) != settings.workspace && (Path::new(path).exists() || is_in_state(settings, path))
    };
    match began.filter(is_elsewhere) {
        // The model has read files of the other workspace.
        Some(other) => Err(unreadable(id, &messages::other_workspace(other))),
        None => Ok(()),
    }
}

/// Checks that session `id` in `store` can work in the present workspace, as [`check_workspace`] does.
///
/// # Errors
/// Fails also if there is no such session, or it cannot be read.
pub fn check_session(settings: &Settings, store: &SessionStore, id: &str) -> Result<(), SessionError> {
    let summary = SessionSummary::read(&store.journal_path(id)?).map_err(|error| unreadable(id, &error))?;
    check_workspace(settings, id, summary.workspace.as_deref())
}

/// Returns the signer that proves that an approval in session `id` was given on this machine.
///
/// # Errors
/// Fails when the key cannot be created, or is not trustworthy.
pub fn answer_seal(settings: &Settings, id: &str) -> AppResult<AnswerSigner> {
    AnswerSigner::load_or_create(&settings.state, id).map_err(|error| {
        AppError::new(FailureKind::Session, messages::answer_key_unusable(&settings.state, &error))
    })
}

/// Returns the `approvals` of session `id` with the answers whose signature is valid.
///
/// # Errors
/// Fails as [`answer_seal`] does.
pub fn verify_approvals(settings: &Settings, id: &str, approvals: Approvals) -> AppResult<Approvals> {
    if approvals.all().iter().all(|pending| pending.answer.is_none()) {
        return Ok(approvals);
    }
    Ok(approvals.verify_answers(&answer_seal(settings, id)?))
}

/// A session on disk, locked by this process.
pub struct LockedSession {
    /// Its id.
    pub id: String,
    /// Its journal, locked by this process.
    pub journal: Journal,
    /// What its journal holds.
    pub contents: JournalContents,
    /// Its workspace and its last run.
    pub about: SessionInfo,
}

impl LockedSession {
    /// Creates an empty session, with the id `reserved` if there is one.
    ///
    /// # Errors
    /// Fails when the session cannot be created.
    pub fn create(app: &App, store: &SessionStore, reserved: Option<String>) -> AppResult<Self> {
        let tries = if reserved.is_some() { 0 } else { ID_TRIES };
        let mut id = reserved.unwrap_or_else(|| app.source.session_id());
        let mut created = store.create(&id);
        for _ in 0..tries {
            if !matches!(created, Err(SessionError::Busy(_) | SessionError::AlreadyExists(_))) {
                break;
            }
            id = app.source.session_id();
            created = store.create(&id);
        }
        Ok(Self {
            id,
            journal: created?,
            contents: JournalContents::default(),
            about: SessionInfo::default(),
        })
    }

    /// Opens and locks session `id`, or the newest one.
    ///
    /// # Errors
    /// Fails when there is no such session, another process uses it, or it cannot be resumed.
    pub fn open(settings: &Settings, id: Option<&str>) -> AppResult<Self> {
        let store = session_store(settings);
        let id = store.id_or_newest_own(id)?;
        let journal = store.open(&id)?;
        let path = store.journal_path(&id)?;
        let contents = read(&path).map_err(|error| unreadable(&id, &error))?;
        let about = session_info(&contents.records);
        if contents.is_newer_version {
            return Err(unreadable(&id, &"a later version of agent has written to it").into());
        }
        if about.next_seq == 0 {
            return Err(unreadable(&id, &"its journal holds no intact record").into());
        }
        check_workspace(settings, &id, about.workspace.as_deref())?;
        Ok(Self { id, journal, contents, about })
    }

    /// Returns the mode of its last run.
    pub fn mode(&self) -> Option<Mode> {
        let Some(Event::RunStart { mode, .. }) = &self.about.last_run else { return None };
        Mode::ALL.into_iter().find(|known| known.name() == mode)
    }

    /// Completes `flags` with values of the session: its agent, whether it pauses for approvals and, without
    /// a configured model, its model.
    #[must_use]
    pub fn with_session_defaults(&self, flags: Overrides, loaded: &LoadedConfig) -> Overrides {
        let Some(Event::RunStart { agent, model, .. }) = self.about.last_run.clone() else { return flags };
        let pauses = self.about.pauses;
        Overrides {
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
