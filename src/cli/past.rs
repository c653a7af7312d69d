//! A session of the past: what it changed, and the files as they are now.

use crate::change::FileState;
use crate::cli::app::App;
use crate::cli::compose;
use crate::cli::cut_off;
use crate::cli::earlier::store;
use crate::cli::error::{CliError, CliResult};
use crate::cli::kept;
use crate::cli::place::PlaceArgs;
use crate::config::settings::Settings;
use crate::emit::{EmitError, Emitter};
use crate::event::EventSink;
use crate::failure::ErrorKind;
use crate::journal::approvals::Approvals;
use crate::journal::cut_off::Unfinished;
use crate::journal::history::History;
use crate::journal::read;
use crate::journal::store::{SessionError, Store};
use crate::terminal::Style;
use crate::workspace::Workspace;
use crate::workspace::contents::Contents;
use crate::workspace::path::RelPath;
use std::rc::Rc;

/// A session, its workspace and what its changes displaced.
pub struct Past {
    /// The session's id.
    pub id: String,
    /// What it did to files.
    pub history: History,
    /// Its calls that wait for an answer.
    pub approvals: Approvals,
    /// Where the session is told what happens: its journal where it is held, and otherwise nowhere.
    pub emitter: Emitter,
    /// The files.
    pub workspace: Workspace,
    /// The contents that were displaced.
    pub contents: Contents,
}

impl Past {
    /// Session `id`, or the newest, to look at.
    ///
    /// # Errors
    /// When the configuration is wrong, or there is no such session or it cannot be read.
    pub fn look(app: &App, place: &PlaceArgs, id: Option<&str>) -> CliResult<Self> {
        let settings = app.load_place(place)?.settings;
        let (store, id) = find(&settings, id)?;
        Self::open(app, &settings, &store, id, Vec::new())
    }

    /// Session `id`, or the newest, which no other process has then; what a killed process left is put in order.
    ///
    /// # Errors
    /// As [`look`](Self::look), and when another process works on it or its journal cannot be written.
    pub fn hold(app: &App, place: &PlaceArgs, id: Option<&str>) -> CliResult<Self> {
        let settings = app.load_place(place)?.settings;
        let (store, id) = find(&settings, id)?;
        let journal = store.open(&id)?;
        Self::open(app, &settings, &store, id, vec![Box::new(journal)])
    }

    /// The journal is read once it is held: until then somebody may write to it.
    fn open(
        app: &App,
        settings: &Settings,
        store: &Store,
        id: String,
        journal: Vec<Box<dyn EventSink>>,
    ) -> CliResult<Self> {
        let is_held = !journal.is_empty();
        let mut reading = read::read(&store.journal_path(&id)?)
            .map_err(|error| SessionError::Unreadable(id.clone(), error.to_string()))?;
        let workspace = Workspace::open(&settings.workspace)
            .map_err(|error| CliError { kind: ErrorKind::Config, cause: error.into() })?;
        let contents = kept::contents(app, settings);
        workspace.keep_displaced(contents.clone());
        workspace.keep_records_in(kept::records(settings));
        let (source, run) = (Rc::clone(&app.source), app.source.short_id());
        let emitter =
            Emitter::new(source, run, reading.next_seq(), journal).redacting(app.redactor(settings));
        let calls = Unfinished::of(&reading.records).cut_off();
        if is_held {
            let cleared = calls.iter().flat_map(|call| cut_off::clear(&workspace, call));
            for text in compose::recover(&workspace).into_iter().chain(cleared) {
                app.tell(Style::Caution, &emitter.redactor().text(&text));
            }
        }
        let baseline = store.baseline_path(&id)?;
        for call in calls {
            let changed = cut_off::made(&workspace, &baseline, &call);
            let ended = emitter.emit(cut_off::ended(call.call, call.summary, changed));
            reading.records.push(ended.map_err(unwritten)?);
        }
        let history = History::of(&reading.records);
        let approvals = Approvals::of(&reading.records);
        Ok(Self { id, history, approvals, emitter, workspace, contents })
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
    /// When that is neither a file nor a link, or cannot be read.
    pub fn state_of(&self, path: &str) -> CliResult<FileState> {
        let found = self.workspace.state_of(&self.path(path)?);
        found.map_err(|error| CliError { kind: ErrorKind::Request, cause: error.into() })
    }

    /// `text` without secrets.
    pub fn clean(&self, text: &str) -> String {
        self.emitter.redactor().text(text).into_owned()
    }

    /// The path that a person or the journal names.
    ///
    /// # Errors
    /// When it is not in the workspace.
    pub fn path(&self, raw: &str) -> CliResult<RelPath> {
        self.workspace.path(raw).map_err(|error| CliError { kind: ErrorKind::Usage, cause: error.into() })
    }
}

/// The sessions there are, and which of them is meant.
fn find(settings: &Settings, id: Option<&str>) -> CliResult<(Store, String)> {
    let store = store(settings);
    let id = id.map_or_else(|| store.last(), |id| Ok(id.to_owned()))?;
    Ok((store, id))
}

/// A journal that cannot be written.
pub fn unwritten(error: EmitError) -> CliError {
    CliError { kind: ErrorKind::Internal, cause: error.into() }
}
