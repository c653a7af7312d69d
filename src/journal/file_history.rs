//! History of a session's file changes, folded from its journal: active changes, and how to undo and redo them.

use agent_core::event::{Event, Record};
use agent_core::file_change::{Change, ChangedBy, FileState, RestoreDirection};
use std::collections::BTreeMap;

/// A change that was not undone.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ActiveChange {
    step: u32,
    by: ChangedBy,
    before: FileState,
    after: FileState,
    /// Number of directories created for the file.
    directories: u32,
}

/// Changes to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileChanges {
    /// The changes that were not undone, oldest first.
    standing: Vec<ActiveChange>,
    /// State of the file after the last change, undo or redo by the session.
    left: FileState,
}

/// Changes to one file that an undo removed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct UndoneChanges {
    /// The changes, oldest first.
    changes: Vec<ActiveChange>,
    /// State that the undo replaced: that of the last change, or a later one by someone else.
    displaced: FileState,
}

/// An undo that was not redone, by file.
type UndoneFiles = BTreeMap<String, UndoneChanges>;

/// A step that changed files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedStep {
    /// Number of the step over all runs of the session, from 1; 0 for changes before the first step.
    pub number: u32,
    /// Time of its last change, in milliseconds since the Unix epoch.
    pub wall_ms: u64,
    /// The files in the order of the changes; a file is repeated for each change.
    pub files: Vec<String>,
    /// The commit with the files as they were after the step, if there is one.
    pub checkpoint: Option<String>,
}

/// Restoration of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restoration {
    /// Path from the workspace root.
    pub path: String,
    /// Expected state of the file, if nobody has changed it since.
    pub left: FileState,
    /// State to restore.
    pub wanted: FileState,
    /// Whether someone else changed the file between the changes to undo; that change would be lost too.
    pub has_foreign_changes: bool,
    /// Number of parent directories to remove with the file, starting from the innermost, if they are empty.
    pub directories: u32,
    /// Whether commands and hooks made all of the changes, which may change files that tools may not.
    pub is_of_commands: bool,
}

/// State folded from a journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileHistory {
    trails: BTreeMap<String, FileChanges>,
    undone: Vec<UndoneFiles>,
    steps: Vec<ChangedStep>,
    /// Steps of all runs before the last one.
    earlier: u32,
    /// The last step of the last run.
    last: u32,
}

impl FileHistory {
    /// Creates the history from `records`.
    pub fn from_records<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut history = Self::default();
        records.into_iter().for_each(|record| history.apply(record));
        history
    }

    /// Returns the steps that changed files, oldest first.
    pub fn steps(&self) -> &[ChangedStep] {
        &self.steps
    }

    /// Returns the number of the last step, counted over all runs.
    pub fn last_step(&self) -> u32 {
        self.earlier.saturating_add(self.last)
    }

    /// Iterates over the files with changes that were not undone.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let changed = self.trails.iter().filter(|(_, trail)| !trail.standing.is_empty());
        changed.map(|(path, _)| path.as_str())
    }

    /// Returns the restorations that undo the steps after `step`, for one `file` or for all.
    pub fn undo(&self, step: u32, file: Option<&str>) -> Vec<Restoration> {
        let wanted = |path: &&String| file.is_none_or(|file| file == *path);
        let trails = self.trails.iter().filter(|(path, _)| wanted(path));
        trails.filter_map(|(path, trail)| restoration(path, trail, step)).collect()
    }

    /// Returns the restorations that redo the last undo, for one `file` or for all.
    pub fn redo(&self, file: Option<&str>) -> Vec<Restoration> {
        let Some(undone) = self.undone.last() else { return Vec::new() };
        let files = undone.iter().filter(|(path, _)| file.is_none_or(|file| file == path.as_str()));
        files
            .filter_map(|(path, taken)| {
                let left = self.trails.get(path)?.left.clone();
                let wanted = taken.displaced.clone();
                Some(Restoration {
                    path: path.clone(),
                    left,
                    wanted,
                    has_foreign_changes: false,
                    directories: 0,
                    is_of_commands: are_of_commands(&taken.changes),
                })
            })
            .collect()
    }

    /// Applies a record.
    pub fn apply(&mut self, record: &Record) {
        let changed = record.event.changed();
        match &record.event {
            Event::RunStart { .. } => {
                self.earlier = self.earlier.saturating_add(std::mem::take(&mut self.last));
            }
            _ if !changed.is_empty() => {
                // An interrupted call is ended by the next process, before its first step.
                let number = self.earlier.saturating_add(record.step.max(self.last));
                let step = self.step(number);
                step.wall_ms = record.wall_ms;
                step.files.extend(changed.iter().map(|change| change.path.clone()));
                for change in changed {
                    self.change(number, change);
                }
            }
            // No file changes lie between the last step and the checkpoint.
            Event::Checkpoint { commit, .. } => {
                if let Some(step) = self.steps.last_mut() {
                    step.checkpoint = Some(commit.clone());
                }
            }
            Event::Restored { direction: RestoreDirection::Undo, to_step, changed } => {
                self.apply_undo(*to_step, changed);
            }
            Event::Restored { direction: RestoreDirection::Redo, changed, .. } => self.apply_redo(changed),
            Event::Imported => (self.trails, self.undone, self.steps) = Default::default(),
            _ => {}
        }
        if !matches!(record.event, Event::Restored { .. }) {
            self.last = self.last.max(record.step);
        }
    }

    /// Returns the step with this number, which is the last one.
    fn step(&mut self, number: u32) -> &mut ChangedStep {
        let known = self.steps.pop_if(|step| step.number == number);
        self.steps.push_mut(known.unwrap_or_else(|| ChangedStep { number, ..ChangedStep::default() }))
    }

    fn change(&mut self, step: u32, change: &Change) {
        let (before, after) = (change.before_state(), change.after_state());
        let trail = self.trail(&change.path, &before);
        let new = ActiveChange { step, by: change.by, before, after, directories: change.directories };
        // Calls that ran in parallel may each report the same change.
        let is_known = |last: &ActiveChange| {
            last.step == new.step && last.before == new.before && last.after == new.after
        };
        if !trail.standing.last().is_some_and(is_known) {
            trail.left = new.after.clone();
            trail.standing.push(new);
        }
    }

    fn trail(&mut self, path: &str, left: &FileState) -> &mut FileChanges {
        let new = || FileChanges { standing: Vec::new(), left: left.clone() };
        self.trails.entry(path.to_owned()).or_insert_with(new)
    }

    fn apply_undo(&mut self, to_step: u32, changed: &[Change]) {
        let mut undone = UndoneFiles::new();
        for change in changed {
            let trail = self.trail(&change.path, &change.before_state());
            let remaining = trail.standing.partition_point(|standing| standing.step <= to_step);
            let changes = trail.standing.split_off(remaining);
            let displaced = match (change.before_state(), changes.last()) {
                (FileState::Unknown, Some(last)) => last.after.clone(),
                (was, _) => was,
            };
            undone.insert(change.path.clone(), UndoneChanges { changes, displaced });
            trail.left = change.after_state();
        }
        self.undone.push(undone);
    }

    fn apply_redo(&mut self, changed: &[Change]) {
        let Some(mut undone) = self.undone.pop() else { return };
        for change in changed {
            let again = undone.remove(&change.path).map(|taken| taken.changes).unwrap_or_default();
            let trail = self.trail(&change.path, &change.before_state());
            trail.standing.extend(again);
            // A change by someone else remains a foreign change after the redo.
            let left = trail.standing.last().map(|last| last.after.clone());
            trail.left = left.unwrap_or_else(|| change.after_state());
        }
        if !undone.is_empty() {
            self.undone.push(undone);
        }
    }
}

fn are_of_commands(changes: &[ActiveChange]) -> bool {
    changes.iter().all(|change| change.by == ChangedBy::Command)
}

/// Returns the restoration of one file; `None` if no step after `step` changed it.
fn restoration(path: &str, trail: &FileChanges, step: u32) -> Option<Restoration> {
    let remaining = trail.standing.partition_point(|standing| standing.step <= step);
    let undone = trail.standing.get(remaining..)?;
    let ActiveChange { before, directories, .. } = undone.first()?;
    let has_foreign_changes = undone
        .windows(2)
        .any(|pair| matches!(pair, [one, next] if !one.after.is_consistent_with(&next.before)));
    Some(Restoration {
        path: path.to_owned(),
        left: trail.left.clone(),
        wanted: before.clone(),
        has_foreign_changes,
        directories: *directories,
        is_of_commands: are_of_commands(undone),
    })
}

#[cfg(test)]
#[path = "file_history_tests.rs"]
mod tests;
