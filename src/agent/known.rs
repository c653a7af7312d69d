//! What is known of a session that is gone on with: the fold of its journal, which is kept beside it from time to time.

use crate::agent::session::Session;
use crate::change::ChangeAction;
use crate::engine::guardrails::counts::Counts;
use crate::event::{Event, Record};
use crate::journal::cut_off::Unfinished;
use crate::journal::history::History;
use crate::journal::offered::Offered;
use crate::journal::read::{self, Reading};
use crate::journal::state::{self, Kept, Unusable, next_at};
use crate::limits::Limits;
use crate::tools::background::EarlierCommands;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

/// What whoever goes on must know.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// Where it began and how it was worked on last.
    pub about: About,
    /// The conversation and its figures.
    pub session: Session,
    /// What it did to files.
    pub history: History,
    /// What counts towards limits of guardrails.
    pub counts: Counts,
    /// Calls that have begun and not ended.
    pub unfinished: Unfinished,
    /// The tools that the model has heard of.
    pub offered: Offered,
    /// Background commands.
    pub commands: EarlierCommands,
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
pub struct About {
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
pub struct Opened {
    /// What was kept; nothing known when nothing was.
    pub kept: Known,
    /// What happened since.
    pub reading: Reading,
    /// Why a state that was kept is of no use, so that all was read.
    pub problem: Option<String>,
    /// What names the state that was kept.
    pub hash: Option<String>,
    /// The length of the journal at which the next one is due.
    pub next_at: u64,
}

impl About {
    /// Takes note of a record.
    pub fn add(&mut self, record: &Record) {
        self.next_seq = record.seq.saturating_add(1);
        match &record.event {
            Event::SessionStart { workspace, .. } if self.workspace.is_none() => {
                self.workspace = Some(workspace.clone());
            }
            event @ Event::RunStart { .. } => self.last_run = Some(event.clone()),
            Event::System { .. } => self.has_system = true,
            Event::ToolWaits { .. } => self.pauses = true,
            _ => {}
        }
    }
}

impl Known {
    /// Takes note of a record.
    pub fn add(&mut self, record: &Record) {
        self.about.add(record);
        self.session.apply(&record.event);
        self.history.add(record);
        self.counts.apply(&record.event);
        self.unfinished.note(&record.event);
        self.offered.note(&record.event);
        self.commands.note(&record.event);
        match &record.event {
            Event::RunStart { .. } => self.restored.clear(),
            Event::Restored { changed, .. } => {
                self.restored.extend(changed.iter().map(|change| change.path.clone()));
            }
            Event::ToolEnd { seen, changed, .. } => {
                self.seen.extend(seen.iter().map(|seen| (seen.path.clone(), seen.hash.clone())));
                let deleted = changed.iter().filter(|change| change.action == ChangeAction::Deleted);
                deleted.for_each(|change| drop(self.seen.remove(&change.path)));
            }
            _ => {}
        }
    }
}

impl Opened {
    /// A session in which nothing has happened yet.
    pub fn of_nothing() -> Self {
        Self { next_at: next_at(0, 0), ..Self::default() }
    }

    /// The session whose journal is at `path`.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn of(path: &Path) -> io::Result<Self> {
        let known = state::last(path).and_then(|kept| kept.map(parsed).transpose());
        let problem = known.as_ref().err().map(ToString::to_string);
        let Ok(Some((known, kept))) = known else {
            let reading = read::read(path)?;
            return Ok(Self { reading, problem, ..Self::of_nothing() });
        };
        let (reading, next_at) = (read::read_from(path, kept.start)?, kept.next_at());
        Ok(Self { kept: known, reading, problem, hash: Some(kept.hash), next_at })
    }

    /// Where it began and how it was worked on last.
    pub fn about(&self) -> About {
        let mut about = self.kept.about.clone();
        self.reading.records.iter().for_each(|record| about.add(record));
        about
    }

    /// What is known of it, within these limits.
    pub fn known(self, limits: Limits) -> Known {
        let Self { kept: mut known, reading, .. } = self;
        known.session = known.session.within(limits);
        reading.records.iter().for_each(|record| known.add(record));
        known.damaged.extend(reading.damaged);
        known.incomplete.extend(reading.incomplete);
        known
    }
}

fn parsed(kept: Kept) -> Result<(Known, Kept), Unusable> {
    let known = serde_json::from_slice(&kept.json)?;
    Ok((known, kept))
}

#[cfg(test)]
#[path = "known_tests.rs"]
mod tests;
