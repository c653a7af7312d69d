//! Restores the files of a workspace copy to their state at each point of a recorded session.

use agent_core::event::{Event, Record};
use agent_core::file_change::{Change, ChangeAction, FileState};
use agent_workspace::Workspace;
use agent_workspace::content_store::{ContentStore, MAX_FILE_BYTES};
use agent_workspace::file::hash;
use agent_workspace::path::RelPath;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// The files of the copy.
pub struct ReplayedFiles {
    copy: Workspace,
    /// The present workspace, which may still contain recorded contents.
    present: Workspace,
    contents: ContentStore,
    /// Sequence number of the first record that was not applied yet.
    next: Cell<u64>,
    /// Files that could not be restored.
    lost: RefCell<BTreeSet<String>>,
}

impl ReplayedFiles {
    /// Creates the files of `copy`, a copy of `present`; `contents` stores the contents that its sessions have replaced.
    pub fn new(copy: Workspace, present: Workspace, contents: ContentStore) -> Self {
        Self { copy, present, contents, next: Cell::default(), lost: RefCell::default() }
    }

    /// Restores every file to its state before the first of `records` changed it.
    pub fn rewind(&self, records: &[Record]) {
        for change in first_changes(records).into_values() {
            self.restore_to(&change.path, &change.before_state());
            if let (ChangeAction::Created, Ok(path)) = (change.action, self.copy.path(&change.path)) {
                self.copy.remove_directories([(path, change.directories)]);
            }
        }
    }

    /// Applies the changes between the previous run and the run with the records `own`: restored files, changes of interrupted calls, and changes
    /// by others to files that this run changes. The first run starts with the state before the session.
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

    /// Applies the recorded changes of a call that is not repeated.
    pub fn apply_recorded(&self, changes: &[Change]) {
        for change in changes {
            self.restore_to(&change.path, &change.after_state());
        }
    }

    /// Returns, and clears, the files that could not be restored.
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

    /// Returns the content of `path` that has this hash.
    fn content(&self, path: &RelPath, wanted: &str) -> Option<Vec<u8>> {
        self.contents.get(wanted).or_else(|| {
            let found = [&self.copy, &self.present].map(|it| it.content_of(path, MAX_FILE_BYTES));
            found.into_iter().flatten().find(|bytes| hash(bytes) == wanted)
        })
    }
}

/// Whether the event belongs to the work of a run; events before it concern earlier runs.
fn is_work(event: &Event) -> bool {
    matches!(event, Event::StepStart { .. } | Event::ToolCallStart { .. })
}

/// Returns the first change of each file.
fn first_changes(records: &[Record]) -> BTreeMap<&str, &Change> {
    let mut first = BTreeMap::new();
    for record in records {
        for change in record.event.changed() {
            first.entry(change.path.as_str()).or_insert(change);
        }
    }
    first
}
