//! What is known of a session that is gone on with: the fold of its journal, which is kept beside it from time to time.

use crate::agent::session::Session;
use crate::core::event::{Event, Record};
use crate::core::file_change::ChangeAction;
use crate::core::limits::Limits;
use crate::engine::guardrails::counts::SessionCounts;
use crate::journal::file_history::FileHistory;
use crate::journal::interrupted_calls::UnfinishedCalls;
use crate::journal::offered_tools::OfferedTools;
use crate::journal::read::{self, JournalContents};
use crate::journal::saved_state::{self, SavedState, SavedStateError, next_at};
use crate::tools::background::PreviousCommands;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

/// What whoever goes on must know.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionState {
    /// Where it began and how it was worked on last.
    pub about: SessionInfo,
    /// The conversation and its figures.
    pub session: Session,
    /// What it did to files.
    pub history: FileHistory,
    /// What counts towards limits of guardrails.
    pub counts: SessionCounts,
    /// Calls that have begun and not ended.
    pub unfinished: UnfinishedCalls,
    /// The tools that the model has heard of.
    pub offered: OfferedTools,
    /// Background commands.
    pub commands: PreviousCommands,
    /// The files that were put back since the last run.
    pub restored: BTreeSet<String>,
    /// The files that the model has seen, with the hashes they had.
    pub seen: BTreeMap<String, String>,
    /// Line numbers of the journal that could not be read.
    pub damaged: Vec<usize>,
    /// Line numbers of records with a text that is missing beside the journal.
    pub incomplete: Vec<usize>,
}

/// Where a session began and how it was worked on last: what must be known before limits are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionInfo {
    /// The workspace it began in.
    pub workspace: Option<String>,
    /// How the last run began.
    pub last_run: Option<Event>,
    /// Whether it has a system message.
    pub has_system: bool,
    /// Whether a call of it has waited for an answer.
    pub pauses: bool,
    /// The number that the next record gets; 0 before anything happened.
    pub next_seq: u64,
}

/// A session that is gone on with: what was kept of it, and what its journal tells since.
#[derive(Debug, Default)]
pub struct LoadedSession {
    /// What was kept; nothing known when nothing was.
    pub stored: SessionState,
    /// What happened since.
    pub reading: JournalContents,
    /// Why a state that was kept is of no use, so that all was read.
    pub problem: Option<String>,
    /// What names the state that was kept.
    pub hash: Option<String>,
    /// The length of the journal at which the next one is due.
    pub next_at: u64,
}

impl SessionInfo {
    /// Takes note of a record.
    pub fn apply(&mut self, record: &Record) {
        self.next_seq = record.seq.saturating_add(1);
        match &record.event {
            Event::SessionStart { workspace, .. } if self.workspace.is_none() => {
                self.workspace = Some(workspace.clone());
            }
            event @ Event::RunStart { .. } => self.last_run = Some(event.clone()),
            Event::System { .. } => self.has_system = true,
            Event::ToolCallPending { .. } => self.pauses = true,
            _ => {}
        }
    }
}

impl SessionState {
    /// Takes note of a record.
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
    /// A session in which nothing has happened yet.
    pub fn empty() -> Self {
        Self { next_at: next_at(0, 0), ..Self::default() }
    }

    /// The session whose journal is at `path`.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn load(path: &Path) -> io::Result<Self> {
        let known = saved_state::load_last(path).and_then(|kept| kept.map(parsed).transpose());
        let problem = known.as_ref().err().map(ToString::to_string);
        let Ok(Some((known, kept))) = known else {
            let reading = read::read(path)?;
            return Ok(Self { reading, problem, ..Self::empty() });
        };
        let (reading, next_at) = (read::read_from(path, kept.start)?, kept.next_at());
        Ok(Self { stored: known, reading, problem, hash: Some(kept.hash), next_at })
    }

    /// Where it began and how it was worked on last.
    pub fn info(&self) -> SessionInfo {
        let mut about = self.stored.about.clone();
        self.reading.records.iter().for_each(|record| about.apply(record));
        about
    }

    /// What is known of it, within these limits.
    pub fn into_state(self, limits: Limits) -> SessionState {
        let Self { stored: mut known, reading, .. } = self;
        known.session = known.session.with_limits(limits);
        reading.records.iter().for_each(|record| known.apply(record));
        known.damaged.extend(reading.damaged);
        known.incomplete.extend(reading.incomplete);
        known
    }
}

fn parsed(kept: SavedState) -> Result<(SessionState, SavedState), SavedStateError> {
    let known = serde_json::from_slice(&kept.json)?;
    Ok((known, kept))
}

#[cfg(test)]
#[path = "session_state_tests.rs"]
mod tests;
