//! What a session did to files, as its journal tells it: which changes stand, how to undo them, and how to redo what was undone.

use crate::change::{Change, FileState};
use crate::event::{Event, Record, Way};
use std::collections::{BTreeMap, BTreeSet};

/// One change that stands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Standing {
    step: u32,
    before: FileState,
    after: FileState,
    /// How many directories were made for it.
    directories: u32,
}

/// One file that the session changed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Trail {
    /// The changes that were not undone, oldest first.
    standing: Vec<Standing>,
    /// What the session, or the last undo or redo, left.
    left: FileState,
}

/// One undo that was not redone: the changes it took away, by file.
type Undone = BTreeMap<String, Vec<Standing>>;

/// One step that changed files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
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
    pub mixed: bool,
    /// How many of the directories that it is in go with it, from the innermost, if nothing else is in them.
    pub directories: u32,
}

/// The fold of a journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    trails: BTreeMap<String, Trail>,
    undone: Vec<Undone>,
    steps: Vec<Step>,
    /// Steps of the runs before the last one.
    earlier: u32,
    /// The last step of the last run.
    last: u32,
}

/// The files that were put back since the last run, each once.
pub fn restored(records: &[Record]) -> Vec<String> {
    let mut files = BTreeSet::new();
    for record in records {
        match &record.event {
            Event::RunStart { .. } => files.clear(),
            Event::Restored { changed, .. } => files.extend(changed.iter().map(|change| change.path.clone())),
            _ => {}
        }
    }
    files.into_iter().collect()
}

impl History {
    /// What `records` tell.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut history = Self::default();
        records.into_iter().for_each(|record| history.add(record));
        history
    }

    /// The steps that changed files, oldest first.
    pub fn steps(&self) -> &[Step] {
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
            .filter_map(|(path, changes)| {
                let left = self.trails.get(path)?.left.clone();
                let wanted = changes.last()?.after.clone();
                Some(Restoration { path: path.clone(), left, wanted, mixed: false, directories: 0 })
            })
            .collect()
    }

    /// Takes note of the next record.
    pub fn add(&mut self, record: &Record) {
        match &record.event {
            Event::RunStart { .. } => {
                self.earlier = self.earlier.saturating_add(std::mem::take(&mut self.last));
            }
            Event::ToolEnd { changed, .. } if !changed.is_empty() => {
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
            Event::Restored { way: Way::Undo, to_step, changed } => self.undid(*to_step, changed),
            Event::Restored { way: Way::Redo, changed, .. } => self.redid(changed),
            _ => {}
        }
        if !matches!(record.event, Event::Restored { .. }) {
            self.last = self.last.max(record.step);
        }
    }

    /// The step with this number, which is the last.
    fn step(&mut self, number: u32) -> &mut Step {
        let known = self.steps.pop_if(|step| step.number == number);
        self.steps.push_mut(known.unwrap_or_else(|| Step { number, ..Step::default() }))
    }

    fn change(&mut self, step: u32, change: &Change) {
        let (before, after) = (change.was(), change.became());
        let trail = self.trail(&change.path, &before);
        let new = Standing { step, before, after, directories: change.directories };
        // Of calls that ran together each may have told it.
        let is_known =
            |last: &Standing| last.step == new.step && last.before == new.before && last.after == new.after;
        if !trail.standing.last().is_some_and(is_known) {
            trail.left = new.after.clone();
            trail.standing.push(new);
        }
    }

    fn trail(&mut self, path: &str, left: &FileState) -> &mut Trail {
        let new = || Trail { standing: Vec::new(), left: left.clone() };
        self.trails.entry(path.to_owned()).or_insert_with(new)
    }

    fn undid(&mut self, to_step: u32, changed: &[Change]) {
        let mut undone = Undone::new();
        for change in changed {
            let trail = self.trail(&change.path, &change.was());
            let kept = trail.standing.partition_point(|standing| standing.step <= to_step);
            undone.insert(change.path.clone(), trail.standing.split_off(kept));
            trail.left = change.became();
        }
        self.undone.push(undone);
    }

    fn redid(&mut self, changed: &[Change]) {
        let Some(mut undone) = self.undone.pop() else { return };
        for change in changed {
            let again = undone.remove(&change.path).unwrap_or_default();
            let trail = self.trail(&change.path, &change.was());
            trail.standing.extend(again);
            trail.left = change.became();
        }
        if !undone.is_empty() {
            self.undone.push(undone);
        }
    }
}

/// What puts one file back; nothing when no step after `step` changed it.
fn restoration(path: &str, trail: &Trail, step: u32) -> Option<Restoration> {
    let kept = trail.standing.partition_point(|standing| standing.step <= step);
    let undone = trail.standing.get(kept..)?;
    let Standing { before, directories, .. } = undone.first()?;
    let mixed = undone.windows(2).any(|pair| matches!(pair, [one, next] if !one.after.agrees(&next.before)));
    Some(Restoration {
        path: path.to_owned(),
        left: trail.left.clone(),
        wanted: before.clone(),
        mixed,
        directories: *directories,
    })
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
