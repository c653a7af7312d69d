//! A session on disk, locked: a new one, or an earlier one that is gone on with.

use crate::cli::app::App;
use crate::cli::error::{CliError, CliResult};
use crate::config::flags::Flags;
use crate::config::load::Loaded;
use crate::config::settings::Settings;
use crate::engine::approve::Unanswered;
use crate::event::{Event, Record};
use crate::failure::ErrorKind;
use crate::journal::approvals::Approvals;
use crate::journal::read::{self, Reading};
use crate::journal::seal::Seal;
use crate::journal::store::{SessionError, Store};
use crate::journal::write::Journal;
use crate::messages;
use std::path::Path;

/// How often a new session looks for an id that no other process took in the same millisecond.
const ID_TRIES: u32 = 5;

/// The sessions of the workspace.
pub fn store(settings: &Settings) -> Store {
    Store::new(settings.state.join("sessions"))
}

/// What shows that an answer in session `id` was given here.
///
/// # Errors
/// When the key cannot be made, or cannot be believed.
pub fn seal(settings: &Settings, id: &str) -> CliResult<Seal> {
    Seal::of(&settings.state, id)
        .map_err(|error| CliError::new(ErrorKind::Session, messages::no_seal(&settings.state, &error)))
}

/// The `approvals` of session `id`, knowing which answers were given here.
///
/// # Errors
/// As [`seal`].
pub fn verified(settings: &Settings, id: &str, approvals: Approvals) -> CliResult<Approvals> {
    if approvals.all().iter().all(|waiting| waiting.answer.is_none()) {
        return Ok(approvals);
    }
    Ok(approvals.verified(&seal(settings, id)?))
}

/// A session on disk, locked.
pub struct Earlier {
    /// Its id.
    pub id: String,
    /// Its journal, which no other process has.
    pub journal: Journal,
    /// What the journal holds.
    pub reading: Reading,
}

impl Earlier {
    /// A session in which nothing has happened yet.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(app: &App, store: &Store) -> CliResult<Self> {
        let mut id = app.source.session_id();
        let mut created = store.create(&id);
        for _ in 0..ID_TRIES {
            if !matches!(created, Err(SessionError::Busy(_) | SessionError::Exists(_))) {
                break;
            }
            id = app.source.session_id();
            created = store.create(&id);
        }
        Ok(Self { id, journal: created?, reading: Reading::default() })
    }

    /// Session `id`, or the newest.
    ///
    /// # Errors
    /// When there is no such session here, it is busy, or it cannot be gone on with.
    pub fn open(settings: &Settings, id: Option<&str>) -> CliResult<Self> {
        let store = store(settings);
        let id = match id {
            Some(id) => id.to_owned(),
            None => store.last()?,
        };
        let journal = store.open(&id)?;
        let path = store.journal_path(&id)?;
        let unreadable = |why: String| SessionError::Unreadable(id.clone(), why);
        let reading = read::read(&path).map_err(|error| unreadable(error.to_string()))?;
        if reading.is_later {
            return Err(unreadable("a later version of agent has written to it".to_owned()).into());
        }
        if reading.records.is_empty() {
            return Err(unreadable("its journal holds no intact record".to_owned()).into());
        }
        if let Some(other) = elsewhere(&reading, &settings.workspace) {
            return Err(unreadable(format!("it belongs to another workspace, {other}")).into());
        }
        Ok(Self { id, journal, reading })
    }

    /// `flags` with what the session knows and nobody said otherwise: its agent, whether it waits for answers and, without
    /// a configured one, its model.
    #[must_use]
    pub fn complete(&self, flags: Flags, loaded: &Loaded) -> Flags {
        let last = self.reading.records.iter().rev().find_map(|record| match &record.event {
            Event::RunStart { agent, model, .. } => Some((agent.clone(), model.clone())),
            _ => None,
        });
        let Some((agent, model)) = last else { return flags };
        let waited = |record: &Record| matches!(record.event, Event::ToolWaits { .. });
        let pauses = self.reading.records.iter().any(waited);
        Flags {
            approvals: flags.approvals.or_else(|| pauses.then_some(Unanswered::Pause)),
            agent: flags.agent.or(Some(agent)),
            model: flags.model.or_else(|| loaded.settings.llm.model.is_none().then_some(model)),
            ..flags
        }
    }
}

/// The workspace a session began in, when it is not this one: what the model has read is not what is here.
fn elsewhere(reading: &Reading, here: &Path) -> Option<String> {
    let began = reading.records.iter().find_map(|record| match &record.event {
        Event::SessionStart { workspace, .. } => Some(workspace),
        _ => None,
    });
    began.filter(|began| **began != here.to_string_lossy()).cloned()
}
