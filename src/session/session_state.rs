//! State of a resumed session: the fold of its journal, which is saved next to the journal from time to time.

use crate::session::Session;
use agent_core::event::{Event, Record};
use agent_core::file_change::ChangeAction;
use agent_core::limits::Limits;
use agent_engine::guardrails::counts::SessionCounts;
use agent_journal::file_history::FileHistory;
use agent_journal::interrupted_calls::UnfinishedCalls;
use agent_journal::offered_tools::OfferedTools;
use agent_journal::played_turns::PlayedTurns;
use agent_journal::read::{self, JournalContents};
use agent_journal::saved_state::{self, SavedState, SavedStateError, next_at};
use agent_tools::background::PreviousCommands;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

/// Everything that is needed to resume a session.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionState {
    /// Start of the session and of its last run.
    pub about: SessionInfo,
    /// The conversation and its figures.
    pub session: Session,
    /// The changes of files.
    pub history: FileHistory,
    /// Counts for the limits of guardrails.
    pub counts: SessionCounts,
    /// Calls that have started and not ended.
    pub unfinished: UnfinishedCalls,
    /// The tools that were offered to the model.
    pub offered: OfferedTools,
    /// Background commands.
    pub commands: PreviousCommands,
    /// Files that were restored since the last run.
    pub restored: BTreeSet<String>,
    /// Files that the model has read, with their hashes at that time.
    pub seen: BTreeMap<String, String>,
    /// Line numbers of the journal that could not be read.
    pub damaged: Vec<usize>,
    /// Line numbers of records whose text in the blob store is missing.
    pub incomplete: Vec<usize>,
}

/// Start of a session and of its last run; needed before the limits of the next run are known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionInfo {
    /// Workspace in which the session started.
    pub workspace: Option<String>,
    /// The start event of the last run.
    pub last_run: Option<Event>,
    /// Whether it has a system message.
    pub has_system: bool,
    /// Whether a call of it has waited for approval.
    pub pauses: bool,
    /// The turns that its scripted models have played.
    pub played_turns: PlayedTurns,
    /// Sequence number of the next record; 0 for an empty journal.
    pub next_seq: u64,
}

/// A session read from disk: its saved state and the records written since.
#[derive(Debug, Default)]
pub struct LoadedSession {
    /// The saved state, or the initial state.
    pub stored: SessionState,
    /// The journal records after the saved state.
    pub reading: JournalContents,
    /// Why a saved state was unusable, so that the whole journal was read.
    pub problem: Option<String>,
    /// Hash of the saved state.
    pub hash: Option<String>,
    /// Length of the journal in bytes at which the next state is due.
    pub next_at: u64,
}

impl SessionInfo {
    /// Applies a record.
    pub fn apply(&mut self, record: &Record) {
        self.next_seq = record.seq.saturating_add(1);
        self.played_turns.apply(&record.event);
        match &record.event {
            Event::SessionStart { workspace, .. } if self.workspace.is_none() => {
                self.workspace = Some(workspace.clone());
            }
            event @ Event::RunStart { .. } => self.last_run = Some(event.clone()),
            Event::System { .. } => self.has_system = true,
            Event::ToolCallPending { .. } => self.pauses = true,
            Event::Imported => (self.last_run, self.pauses) = (None, false),
            _ => {}
        }
    }
}

impl SessionState {
    /// Applies a record.
    pub fn apply(&mut self, record: &Record) {
        self.about.apply(record);
        self.session.apply(&record.event);
        self.history.apply(record);
        self.counts.apply(&record.event);
        self.unfinished.apply(&record.event);
        self.offered.apply(&record.event);
        self.commands.note(&record.event);
        match &record.event {
            Event::RunStart { .. } => self.restored.clear(),
            Event::Restored { changed, .. } => {
                self.restored.extend(changed.iter().map(|change| change.path.clone()));
            }
            Event::ToolCallEnd { seen, changed, .. } => {
                self.seen.extend(seen.iter().map(|seen| (seen.path.clone(), seen.hash.clone())));
                let deleted = changed.iter().filter(|change| change.action == ChangeAction::Deleted);
                deleted.for_each(|change| drop(self.seen.remove(&change.path)));
            }
            _ => {}
        }
    }
}

impl LoadedSession {
    /// Returns a session without records.
    pub fn empty() -> Self {
        Self { next_at: next_at(0, 0), ..Self::default() }
    }

    /// Reads the session whose journal is at `path`.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn load(path: &Path) -> io::Result<Self> {
        let state = saved_state::load_last(path).and_then(|saved| saved.map(parsed).transpose());
        let problem = state.as_ref().err().map(ToString::to_string);
        let Ok(Some((state, saved))) = state else {
            let reading = read::read(path)?;
            return Ok(Self { reading, problem, ..Self::empty() });
        };
        let (reading, next_at) = (read::read_from(path, saved.start)?, saved.next_at());
        Ok(Self { stored: state, reading, problem, hash: Some(saved.hash), next_at })
    }

    /// Returns the start of the session and of its last run.
    pub fn info(&self) -> SessionInfo {
        let mut about = self.stored.about.clone();
        self.reading.records.iter().for_each(|record| about.apply(record));
        about
    }

    /// Returns the complete state, within these limits.
    pub fn into_state(self, limits: Limits) -> SessionState {
        let Self { stored: mut state, reading, .. } = self;
        state.session = state.session.with_limits(limits);
        reading.records.iter().for_each(|record| state.apply(record));
        state.damaged.extend(reading.damaged);
        state.incomplete.extend(reading.incomplete);
        state
    }
}

fn parsed(saved: SavedState) -> Result<(SessionState, SavedState), SavedStateError> {
    let state = serde_json::from_slice(&saved.json)?;
    Ok((state, saved))
}

#[cfg(test)]
#[path = "session_state_tests.rs"]
mod tests;
