//! State of a resumed session: the fold of its journal.

use crate::session::Session;
use agent_core::event::{Event, Record};
use agent_core::file_change::ChangeAction;
use agent_core::limits::Limits;
use agent_engine::guardrails::counts::SessionCounts;
use agent_journal::file_history::FileHistory;
use agent_journal::interrupted_calls::UnfinishedCalls;
use agent_journal::offered_tools::OfferedTools;
use agent_journal::played_turns::PlayedTurns;
use agent_journal::read::JournalContents;
use agent_tools::background::PreviousCommands;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that is needed to resume a session.
#[derive(Debug, Clone, Default)]
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
#[derive(Debug, Clone, Default, PartialEq)]
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

/// Returns the start of the session that `records` are of, and of its last run.
pub fn session_info(records: &[Record]) -> SessionInfo {
    let mut info = SessionInfo::default();
    for record in records {
        info.apply(record);
    }
    info
}

/// Returns the state of the session with this journal, within these limits.
pub fn session_state(journal: JournalContents, limits: Limits) -> SessionState {
    let mut state =
        SessionState { damaged: journal.damaged, incomplete: journal.incomplete, ..SessionState::default() };
    state.session = state.session.with_limits(limits);
    for record in &journal.records {
        state.apply(record);
    }
    state
}
