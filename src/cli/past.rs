//! A session of the past: what it changed, and the files as they are now.

use crate::change::FileState;
use crate::cli::app::App;
use crate::cli::compose;
use crate::cli::earlier::store;
use crate::cli::error::{CliError, CliResult};
use crate::cli::place::PlaceArgs;
use crate::emit::Emitter;
use crate::event::Event;
use crate::failure::ErrorKind;
use crate::journal::approvals::Approvals;
use crate::journal::history::History;
use crate::journal::read;
use crate::journal::store::{SessionError, Store};
use crate::journal::write::Journal;
use crate::redactor::Redactor;
use crate::workspace::Workspace;
use crate::workspace::contents::Contents;
use crate::workspace::error::FileError;
use crate::workspace::file::hash_reader;
use crate::workspace::path::RelPath;
use std::rc::Rc;
use std::sync::Arc;

/// A session, its workspace and what its changes displaced.
pub struct Past {
    /// The session's id.
    pub id: String,
    /// What it did to files.
    pub history: History,
    /// Its calls that wait for an answer.
    pub approvals: Approvals,
    /// The number that its next record gets.
    pub next_seq: u64,
    /// The files.
    pub workspace: Workspace,
    /// The contents that were displaced.
    pub contents: Contents,
    /// Keeps secrets out of what is told.
    pub redactor: Arc<Redactor>,
}

impl Past {
    /// Session `id`, or the newest, to look at.
    ///
    /// # Errors
    /// When the configuration is wrong, or there is no such session or it cannot be read.
    pub fn look(app: &App, place: &PlaceArgs, id: Option<&str>) -> CliResult<Self> {
        Self::open(app, place, id, |_, _| Ok(())).map(|(past, ())| past)
    }

    /// Session `id`, or the newest, with its journal, which no other process has then.
    ///
    /// # Errors
    /// As [`look`](Self::look), and when another process works on it.
    pub fn hold(app: &App, place: &PlaceArgs, id: Option<&str>) -> CliResult<(Self, Journal)> {
        Self::open(app, place, id, Store::open)
    }

    /// The journal is read once it is held: until then somebody may write to it.
    fn open<T>(
        app: &App,
        place: &PlaceArgs,
        id: Option<&str>,
        hold: impl Fn(&Store, &str) -> Result<T, SessionError>,
    ) -> CliResult<(Self, T)> {
        let settings = app.load_place(place)?.settings;
        let store = store(&settings);
        let id = id.map_or_else(|| store.last(), |id| Ok(id.to_owned()))?;
        let held = hold(&store, &id)?;
        let reading = read::read(&store.journal_path(&id)?)
            .map_err(|error| SessionError::Unreadable(id.clone(), error.to_string()))?;
        let workspace = Workspace::open(&settings.workspace)
            .map_err(|error| CliError { kind: ErrorKind::Config, cause: error.into() })?;
        let contents = compose::displaced(app, &settings);
        workspace.keep_displaced(contents.clone());
        let past = Self {
            id,
            history: History::of(&reading.records),
            approvals: Approvals::of(&reading.records),
            next_seq: reading.next_seq(),
            workspace,
            contents,
            redactor: app.redactor(&settings),
        };
        Ok((past, held))
    }

    /// Writes what the person did into the session's journal.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn tell(&self, app: &App, journal: Journal, event: Event) -> CliResult<()> {
        let (source, run) = (Rc::clone(&app.source), app.source.short_id());
        let emitter = Emitter::new(source, run, self.next_seq, vec![Box::new(journal)]);
        let emitter = emitter.redacting(Arc::clone(&self.redactor));
        let told = emitter.emit(event).and_then(|_| emitter.sync());
        told.map_err(|error| CliError { kind: ErrorKind::Internal, cause: error.into() })
    }

    /// What `file`, as a person wrote it, is called in the history.
    ///
    /// # Errors
    /// When it is not in the workspace.
    pub fn name_of(&self, file: &str) -> CliResult<String> {
        let real = self.workspace.resolve(&self.path(file)?);
        let real = real.map_err(|error| CliError { kind: ErrorKind::Usage, cause: error.into() })?;
        Ok(real.as_str().to_owned())
    }

    /// What is at `path` now.
    ///
    /// # Errors
    /// When that is no file, or cannot be read.
    pub fn state_of(&self, path: &str) -> CliResult<FileState> {
        let path = self.path(path)?;
        let found = match self.workspace.open_file(&path) {
            Ok(opened) => hash_reader(opened.file)
                .map(FileState::Content)
                .map_err(|error| FileError::io(&path, "read", error)),
            Err(FileError::Missing(_) | FileError::NotDirectory(_)) => Ok(FileState::Absent),
            Err(error) => Err(error),
        };
        found.map_err(|error| CliError { kind: ErrorKind::Request, cause: error.into() })
    }

    /// The path that a person or the journal names.
    ///
    /// # Errors
    /// When it is not in the workspace.
    pub fn path(&self, raw: &str) -> CliResult<RelPath> {
        self.workspace.path(raw).map_err(|error| CliError { kind: ErrorKind::Usage, cause: error.into() })
    }
}
