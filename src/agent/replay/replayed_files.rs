//! The files of the copy, brought to what they were at each moment of the session that only its journal tells.

use crate::core::event::{Event, Record};
use crate::core::file_change::{Change, ChangeAction, FileState};
use crate::workspace::Workspace;
use crate::workspace::content_store::{ContentStore, MAX_FILE_BYTES};
use crate::workspace::file::hash;
use crate::workspace::path::RelPath;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// The files of the copy.
pub struct ReplayedFiles {
    copy: Workspace,
    /// Where some of what the session left may still be.
    present: Workspace,
    contents: ContentStore,
    /// The number of the first record that nothing was done for.
    next: Cell<u64>,
    /// Those that are not what they were.
    lost: RefCell<BTreeSet<String>>,
}

impl ReplayedFiles {
    /// Those of `copy`, a copy of `present`; `contents` are those that the changes of its sessions displaced.
    pub fn new(copy: Workspace, present: Workspace, contents: ContentStore) -> Self {
        Self { copy, present, contents, next: Cell::default(), lost: RefCell::default() }
    }

    /// Brings every file to what it was before the first of `records` changed it.
    pub fn rewind(&self, records: &[Record]) {
        for change in first_changes(records).into_values() {
            self.restore_to(&change.path, &change.before_state());
            if let (ChangeAction::Created, Ok(path)) = (change.action, self.copy.path(&change.path)) {
                self.copy.remove_directories([(path, change.directories)]);
            }
        }
    }

    /// Does what happened since the run before, to begin with the run whose records are `own`: what was put back, what a call
    /// that was cut off had done, and what somebody else made of the files that this run changes. The first run begins with what
    /// was before the session.
    pub fn start_run(&self, before: &[Record], own: &[Record]) {
        let between = before.iter().filter(|record| record.seq >= self.next.get());
        let begins = own.iter().position(|record| is_work(&record.event)).unwrap_or(own.len());
        let (beginning, work) = own.split_at(begins);
        for record in between.chain(beginning) {
            match &record.event {
                Event::Restored { changed, .. } => self.apply_recorded(changed),
                event => self.apply_recorded(event.changed()),
            }
        }
        if !before.is_empty() {
            self.rewind(work);
        }
        self.next.set(own.last().map_or(0, |last| last.seq.saturating_add(1)));
    }

    /// Does what a call did then that is not done again.
    pub fn apply_recorded(&self, changes: &[Change]) {
        for change in changes {
            self.restore_to(&change.path, &change.after_state());
        }
    }

    /// The files that could not be brought to what they were, since the last look.
    pub fn lost(&self) -> Vec<String> {
        self.lost.take().into_iter().collect()
    }

    fn restore_to(&self, path: &str, wanted: &FileState) {
        if self.put(path, wanted).is_none() {
            self.lost.borrow_mut().insert(path.to_owned());
        }
    }

    fn put(&self, path: &str, wanted: &FileState) -> Option<()> {
        let path = self.copy.path(path).ok()?;
        let now = self.copy.state_of(&path).ok()?;
        if now.is_consistent_with(wanted) {
            return Some(());
        }
        let done = match wanted {
            FileState::Absent => self.copy.remove_current(&path, &now),
            FileState::Content { hash, .. } => {
                self.copy.restore(&path, &now, &self.content(&path, hash)?, wanted)
            }
            FileState::Unknown => return None,
        };
        done.ok().map(drop)
    }

    /// The content with this hash, which `path` had.
    fn content(&self, path: &RelPath, wanted: &str) -> Option<Vec<u8>> {
        self.contents.get(wanted).or_else(|| {
            let found = [&self.copy, &self.present].map(|it| it.content_of(path, MAX_FILE_BYTES));
            found.into_iter().flatten().find(|bytes| hash(bytes) == wanted)
        })
    }
}

/// Whether a run has begun to work: what it tells before is about what was.
fn is_work(event: &Event) -> bool {
    matches!(event, Event::StepStart { .. } | Event::ToolCallStart { .. })
}

/// The first change of each file.
fn first_changes(records: &[Record]) -> BTreeMap<&str, &Change> {
    let mut first = BTreeMap::new();
    for record in records {
        for change in record.event.changed() {
            first.entry(change.path.as_str()).or_insert(change);
        }
    }
    first
}
