//! What a session did to files, as its journal tells it: which changes stand, how to undo them, and how to redo what was undone.

use crate::core::event::{Event, Record};
use crate::core::file_change::{Change, FileState, RestoreDirection};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One change that stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ActiveChange {
    step: u32,
    before: FileState,
    after: FileState,
    /// How many directories were made for it.
    directories: u32,
}

/// One file that the session changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FileChanges {
    /// The changes that were not undone, oldest first.
    standing: Vec<ActiveChange>,
    /// What the session, or the last undo or redo, left.
    left: FileState,
}

/// What an undo took away from one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UndoneChanges {
    /// The changes, oldest first.
    changes: Vec<ActiveChange>,
    /// What it displaced: the last of them, or what somebody else has made of it since.
    displaced: FileState,
}

/// One undo that was not redone, by file.
type UndoneFiles = BTreeMap<String, UndoneChanges>;

/// One step that changed files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedStep {
    /// Counted over all runs of the session, from 1; 0 is what a run did before its first step.
    pub number: u32,
    /// When it changed the last of them, milliseconds since the Unix epoch.
    pub wall_ms: u64,
    /// The files, in the order of the changes, each as often as it was changed.
    pub files: Vec<String>,
    /// The commit that shows them as they were after it, where one was made.
    pub checkpoint: Option<String>,
}

/// How one file is put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restoration {
    /// From the workspace root.
    pub path: String,
    /// What is there if nobody changed it since.
    pub left: FileState,
    /// What is to be there.
    pub wanted: FileState,
    /// Somebody else changed the file between the changes that are to be undone: that would be lost too.
    pub has_foreign_changes: bool,
    /// How many of the directories that it is in go with it, from the innermost, if nothing else is in them.
    pub directories: u32,
}

/// The fold of a journal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHistory {
    trails: BTreeMap<String, FileChanges>,
    undone: Vec<UndoneFiles>,
    steps: Vec<ChangedStep>,
    /// Steps of the runs before the last one.
    earlier: u32,
    /// The last step of the last run.
    last: u32,
}

impl FileHistory {
    /// What `records` tell.
    pub fn from_records<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut history = Self::default();
        records.into_iter().for_each(|record| history.apply(record));
        history
    }

    /// The steps that changed files, oldest first.
    pub fn steps(&self) -> &[ChangedStep] {
        &self.steps
    }

    /// The last step so far, counted over all runs.
    pub fn last_step(&self) -> u32 {
        self.earlier.saturating_add(self.last)
    }

    /// The files that changes stand in.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let changed = self.trails.iter().filter(|(_, trail)| !trail.standing.is_empty());
        changed.map(|(path, _)| path.as_str())
    }

    /// What puts back what the steps after `step` changed, of one `file` or of all.
    pub fn undo(&self, step: u32, file: Option<&str>) -> Vec<Restoration> {
        let wanted = |path: &&String| file.is_none_or(|file| file == *path);
        let trails = self.trails.iter().filter(|(path, _)| wanted(path));
        trails.filter_map(|(path, trail)| restoration(path, trail, step)).collect()
    }

    /// What takes back the last undo, of one `file` or of all.
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
                })
            })
            .collect()
    }

    /// Takes note of a record.
    pub fn apply(&mut self, record: &Record) {
        let changed = record.event.changed();
        match &record.event {
            Event::RunStart { .. } => {
                self.earlier = self.earlier.saturating_add(std::mem::take(&mut self.last));
            }
            _ if !changed.is_empty() => {
                // A call that a killed process left is ended by another one, before its first step.
                let number = self.earlier.saturating_add(record.step.max(self.last));
                let step = self.step(number);
                step.wall_ms = record.wall_ms;
                step.files.extend(changed.iter().map(|change| change.path.clone()));
                for change in changed {
                    self.change(number, change);
                }
            }
            // Nothing was changed between the last step that is known and the checkpoint.
            Event::Checkpoint { commit, .. } => {
                if let Some(step) = self.steps.last_mut() {
                    step.checkpoint = Some(commit.clone());
                }
            }
            Event::Restored { way: RestoreDirection::Undo, to_step, changed } => {
                self.apply_undo(*to_step, changed);
            }
            Event::Restored { way: RestoreDirection::Redo, changed, .. } => self.apply_redo(changed),
            _ => {}
        }
        if !matches!(record.event, Event::Restored { .. }) {
            self.last = self.last.max(record.step);
        }
    }

    /// The step with this number, which is the last.
    fn step(&mut self, number: u32) -> &mut ChangedStep {
        let known = self.steps.pop_if(|step| step.number == number);
        self.steps.push_mut(known.unwrap_or_else(|| ChangedStep { number, ..ChangedStep::default() }))
    }

    fn change(&mut self, step: u32, change: &Change) {
        let (before, after) = (change.before_state(), change.after_state());
        let trail = self.trail(&change.path, &before);
        let new = ActiveChange { step, before, after, directories: change.directories };
        // Of calls that ran together each may have told it.
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
            let kept = trail.standing.partition_point(|standing| standing.step <= to_step);
            let changes = trail.standing.split_off(kept);
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
            // What somebody else had made of it is somebody else's again.
            let left = trail.standing.last().map(|last| last.after.clone());
            trail.left = left.unwrap_or_else(|| change.after_state());
        }
        if !undone.is_empty() {
            self.undone.push(undone);
        }
    }
}

/// What puts one file back; nothing when no step after `step` changed it.
fn restoration(path: &str, trail: &FileChanges, step: u32) -> Option<Restoration> {
    let kept = trail.standing.partition_point(|standing| standing.step <= step);
    let undone = trail.standing.get(kept..)?;
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
    })
}

#[cfg(test)]
#[path = "file_history_tests.rs"]
mod tests;
