//! Changes several files as one transaction: all or none, even if the process is killed in between.

use crate::Workspace;
use crate::error::FileError;
use crate::file::{hash, hash_reader};
use crate::path::RelPath;
use crate::replace::{AppliedChange, Expected};
use crate::staged_file::StagedFile;
use crate::undo_log::{self, AbandonedRecord, LockedRecord, UnreadableRecord};
use rustix::fs::Mode;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Text file before a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginalFile {
    /// Text of the file.
    pub text: String,
    /// Permission bits.
    pub mode: u32,
}

/// Change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdit {
    /// The file.
    pub path: RelPath,
    /// Required state before. `None` if it must not exist.
    pub before: Option<OriginalFile>,
    /// Text after. `None` to remove the file.
    pub after: Option<String>,
    /// Permission bits of a new file.
    pub mode: Option<u32>,
}

/// Reason why none of the changes were made.
#[derive(Debug, thiserror::Error)]
#[error("{error}{}", not_undone(.not_restored))]
pub struct TransactionError {
    /// The change that failed.
    pub error: FileError,
    /// Files that were changed before and could not be restored.
    pub not_restored: Vec<RelPath>,
}

fn not_undone(left: &[RelPath]) -> String {
    let mut text = String::new();
    if left.is_empty() {
        text.push_str(" No file was changed.");
    }
    for path in left {
        // Writing to a String cannot fail.
        let _ = write!(text, " {path} was changed before that and could not be put back.");
    }
    text
}

/// Data to undo a step.
#[derive(Debug, Serialize, Deserialize)]
struct UndoEntry {
    path: String,
    before: Option<OriginalFile>,
    /// Hash of the content after the step. Absent if the file was removed.
    after: Option<String>,
}

/// File of an interrupted transaction that stays as it is.
#[derive(Debug, PartialEq, Eq)]
pub struct NotRestored {
    /// Path from the workspace root.
    pub path: String,
    /// Record with the earlier content.
    pub record: PathBuf,
}

/// Result of recovering interrupted transactions.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Files that were restored to their earlier state.
    pub restored: Vec<String>,
    /// Files that another program has changed since, or that could not be restored.
    pub not_restored: Vec<NotRestored>,
    /// Records of transactions that cannot be read, so that their changes are unknown.
    pub unreadable: Vec<UnreadableRecord>,
}

impl Workspace {
    /// Makes all changes in order. The new content of all files is on disk before the first one changes.
    ///
    /// # Errors
    /// Fails if a change is refused. The changes before it are undone then.
    pub fn replace_all(&self, steps: &[FileEdit]) -> Result<Vec<AppliedChange>, TransactionError> {
        let undo: Vec<UndoEntry> = steps.iter().map(UndoEntry::of).collect();
        // A single file changes atomically and needs no record.
        let records = self.0.records.get().filter(|_| steps.len() > 1);
        let recorded = records.map(|dir| undo_log::write(dir, &undo)).transpose();
        let _held = recorded.map_err(|error| {
            let path = steps.first().map_or_else(RelPath::root, |step| step.path.clone());
            TransactionError {
                error: FileError::Io { path, action: "write the undo record for", source: error },
                not_restored: Vec::new(),
            }
        })?;
        let mut staged = self.stage_all(steps)?.into_iter();
        let mut done = Vec::with_capacity(steps.len());
        for (step, new) in steps.iter().zip(staged.by_ref()) {
            match self.apply(step, new.as_ref()) {
                Ok(displaced) => done.push(displaced),
                Err(error) => {
                    staged.rev().flatten().for_each(|unused| self.discard_staged(&unused));
                    let undone = undo.iter().zip(&done).rev().zip(steps.iter().take(done.len()).rev());
                    let left = undone.filter(|((undo, _), _)| self.undo(undo).is_none());
                    let left = left.map(|(_, step)| step.path.clone()).collect();
                    self.remove_directories(done.into_iter().map(|it| (it.path, it.directories)));
                    return Err(TransactionError { error, not_restored: left });
                }
            }
        }
        Ok(done)
    }

    /// Stages the new content of all files. `None` for files to remove.
    fn stage_all(&self, steps: &[FileEdit]) -> Result<Vec<Option<StagedFile>>, TransactionError> {
        let mut staged: Vec<Option<StagedFile>> = Vec::with_capacity(steps.len());
        for step in steps {
            let mode = step.mode.map(Mode::from_raw_mode);
            let new = step.after.as_ref().map(|text| self.stage(&step.path, text.as_bytes(), mode));
            match new.transpose() {
                Ok(new) => staged.push(new),
                Err(error) => {
                    staged.iter().rev().flatten().for_each(|unused| self.discard_staged(unused));
                    return Err(TransactionError { error, not_restored: Vec::new() });
                }
            }
        }
        Ok(staged)
    }

    /// Undoes the unfinished transactions of dead processes.
    pub fn recover(&self) -> Recovery {
        let mut recovered = Recovery::default();
        let records = self.0.records.get().map(|dir| undo_log::abandoned::<Vec<UndoEntry>>(dir));
        for abandoned in records.into_iter().flatten() {
            match abandoned {
                AbandonedRecord::Record(held, record) => self.undo_all(held, record, &mut recovered),
                AbandonedRecord::Unreadable(unread) => recovered.unreadable.push(unread),
            }
        }
        recovered
    }

    fn undo_all(&self, mut held: LockedRecord, record: Vec<UndoEntry>, recovered: &mut Recovery) {
        for undo in record.into_iter().rev() {
            let undone = self.undo(&undo);
            if undone.is_some() {
                self.clear_after(&undo);
            }
            match undone {
                Some(true) => recovered.restored.push(undo.path),
                Some(false) => {}
                None => {
                    recovered.not_restored.push(NotRestored { path: undo.path, record: held.set_aside() });
                }
            }
        }
    }

    /// Removes the temporary files of the step next to its restored file.
    fn clear_after(&self, undo: &UndoEntry) {
        if let Ok(path) = self.path(&undo.path) {
            let before = undo.before.as_ref().map(|before| hash(before.text.as_bytes()));
            self.clear_leftovers(&path, before.as_deref());
        }
    }

    fn apply(&self, step: &FileEdit, new: Option<&StagedFile>) -> Result<AppliedChange, FileError> {
        let expected = expected(step.before.as_ref().map(|before| hash(before.text.as_bytes())));
        match new {
            Some(staged) => self.commit_staged(staged, &expected),
            None => self.remove(&step.path, &expected),
        }
    }

    /// Undoes a step if needed. Returns whether it was, or `None` if the file matches neither state or cannot be restored.
    fn undo(&self, undo: &UndoEntry) -> Option<bool> {
        let path = self.path(&undo.path).ok()?;
        let now = match self.open_file(&path) {
            Ok(opened) => Some(hash_reader(opened.file).ok()?),
            Err(FileError::Missing(_)) => None,
            Err(_) => return None,
        };
        if now == undo.before.as_ref().map(|before| hash(before.text.as_bytes())) {
            return Some(false);
        }
        if now != undo.after {
            return None;
        }
        let expected = expected(now);
        let undone = match &undo.before {
            Some(OriginalFile { text, mode }) => {
                let mode = Some(Mode::from_raw_mode(*mode));
                self.replace_with_mode(&path, &expected, text.as_bytes(), mode)
            }
            None => self.remove(&path, &expected),
        };
        undone.is_ok().then_some(true)
    }
}

impl UndoEntry {
    fn of(step: &FileEdit) -> Self {
        Self {
            path: step.path.as_str().to_owned(),
            before: step.before.clone(),
            after: step.after.as_ref().map(|text| hash(text.as_bytes())),
        }
    }
}

fn expected(hash: Option<String>) -> Expected<'static> {
    hash.map_or(Expected::Absent, Expected::Hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[expect(clippy::disallowed_methods, reason = "tests write and read files")]
    fn contents(dir: &Path) -> Vec<(String, String)> {
        let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
        let mut files: Vec<_> = entries
            .map(|entry| {
                let text = std::fs::read_to_string(entry.path()).unwrap();
                (entry.file_name().into_string().unwrap(), text)
            })
            .collect();
        files.sort();
        files
    }

    #[expect(clippy::disallowed_methods, reason = "tests write files")]
    fn write(path: &Path, text: &str) {
        std::fs::write(path, text).unwrap();
    }

    struct TestDir {
        _dir: tempfile::TempDir,
        root: PathBuf,
        records: PathBuf,
        workspace: Workspace,
    }

    /// Creates a workspace with `a` and `b`, and a directory for records.
    fn test_dir() -> TestDir {
        let dir = tempfile::tempdir().unwrap();
        let (root, records) = (dir.path().join("ws"), dir.path().join("records"));
        std::fs::create_dir(&root).unwrap();
        write(&root.join("a"), "one");
        write(&root.join("b"), "two");
        let workspace = Workspace::open(&root).unwrap();
        workspace.set_undo_log_dir(records.clone());
        TestDir { _dir: dir, root, records, workspace }
    }

    fn step(workspace: &Workspace, path: &str, before: Option<&str>, after: Option<&str>) -> FileEdit {
        let before = before.map(|text| OriginalFile { text: text.to_owned(), mode: 0o644 });
        let path = workspace.path(path).unwrap();
        FileEdit { path, before, after: after.map(str::to_owned), mode: None }
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn all_files_change_and_the_record_goes() {
        let TestDir { root, records, workspace, .. } = &test_dir();
        let steps = [
            step(workspace, "a", Some("one"), Some("1")),
            step(workspace, "b", Some("two"), None),
            step(workspace, "c", None, Some("3")),
        ];
        assert_eq!(workspace.replace_all(&steps).unwrap().len(), 3);
        assert_eq!(contents(root), pairs(&[("a", "1"), ("c", "3")]));
        assert_eq!(contents(records), []);
    }

    #[test]
    fn one_refused_change_undoes_those_before_it() {
        let TestDir { root, records, workspace, .. } = &test_dir();
        let steps = [
            step(workspace, "a", Some("one"), Some("1")),
            step(workspace, "c", None, Some("3")),
            step(workspace, "b", Some("not this"), Some("2")),
        ];
        let failed = workspace.replace_all(&steps).unwrap_err();
        assert!(failed.to_string().ends_with("No file was changed."), "{failed}");
        assert_eq!(contents(root), pairs(&[("a", "one"), ("b", "two")]));
        assert_eq!(contents(records), []);
    }

    #[test]
    fn no_file_changes_where_one_cannot_be_written() {
        use std::os::unix::fs::MetadataExt;
        let TestDir { root, records, workspace, .. } = &test_dir();
        let inode = || root.join("a").metadata().unwrap().ino();
        let before = inode();
        let steps = [step(workspace, "a", Some("one"), Some("1")), step(workspace, "b/c", None, Some("3"))];
        let failed = workspace.replace_all(&steps).unwrap_err();
        assert!(failed.to_string().ends_with("No file was changed."), "{failed}");
        assert_eq!(contents(root), pairs(&[("a", "one"), ("b", "two")]));
        assert_eq!(
            (inode(), contents(records)),
            (before, Vec::new()),
            "it is the same file, not one put back"
        );
    }

    /// Returns the recovery and files after a process was killed after `done` of the steps.
    fn killed_after(done: usize) -> (Recovery, Vec<(String, String)>) {
        let TestDir { root, records, workspace, .. } = &test_dir();
        let steps = [
            step(workspace, "a", Some("one"), Some("1")),
            step(workspace, "b", Some("two"), None),
            step(workspace, "c", None, Some("3")),
        ];
        let undo: Vec<UndoEntry> = steps.iter().map(UndoEntry::of).collect();
        std::fs::create_dir(records).unwrap();
        write(&records.join("1.json"), &serde_json::to_string(&undo).unwrap());
        let staged = workspace.stage_all(&steps).unwrap_or_else(|failed| panic!("{failed}"));
        for (step, new) in steps.iter().zip(staged).take(done) {
            workspace.apply(step, new.as_ref()).unwrap();
        }
        let recovered = workspace.recover();
        assert_eq!(contents(records), []);
        (recovered, contents(root))
    }

    #[test]
    fn a_transaction_that_was_cut_off_is_undone_wherever_that_was() {
        for done in 0..=3 {
            let (recovered, files) = killed_after(done);
            assert_eq!(files, pairs(&[("a", "one"), ("b", "two")]), "after {done}");
            assert_eq!((recovered.restored.len(), recovered.not_restored.len()), (done, 0));
        }
    }

    #[test]
    fn what_somebody_made_of_a_file_since_stays() {
        let TestDir { root, records, workspace, .. } = &test_dir();
        let undo = UndoEntry::of(&step(workspace, "a", Some("zero"), Some("1")));
        std::fs::create_dir(records).unwrap();
        write(&records.join("1.json"), &serde_json::to_string(&[undo]).unwrap());
        let record = records.join("1.aside");
        assert_eq!(
            workspace.recover().not_restored,
            [NotRestored { path: "a".to_owned(), record: record.clone() }]
        );
        assert_eq!(contents(root), pairs(&[("a", "one"), ("b", "two")]));
        assert_eq!(workspace.recover(), Recovery::default());
        assert!(contents(records)[0].1.contains("zero"), "what it was is not lost");
    }

    #[test]
    fn the_record_of_a_living_process_is_left_alone_and_half_a_record_goes() {
        let TestDir { records, workspace, .. } = &test_dir();
        let undo = UndoEntry::of(&step(workspace, "a", Some("zero"), Some("one")));
        let held = undo_log::write(records, &[undo]).unwrap();
        write(&records.join("1.part"), "[{");
        assert_eq!(workspace.recover(), Recovery::default());
        assert_eq!(contents(records).len(), 1);
        drop(held);
        assert_eq!(contents(records), []);
    }

    #[test]
    fn an_unreadable_complete_record_is_reported_once_and_set_aside() {
        let TestDir { root, records, workspace, .. } = &test_dir();
        std::fs::create_dir(records).unwrap();
        write(&records.join("1.json"), "[{");
        let unreadable = workspace.recover().unreadable;
        let [UnreadableRecord { path, why }] = unreadable.as_slice() else { panic!("{unreadable:?}") };
        assert_eq!((path, why.contains("EOF")), (&records.join("1.aside"), true), "{why}");
        assert_eq!(workspace.recover(), Recovery::default());
        assert_eq!(contents(records), pairs(&[("1.aside", "[{")]));
        // A later record of the same name does not replace the one set aside.
        write(&records.join("1.json"), "{}");
        assert_eq!(workspace.recover().unreadable[0].path, records.join("1.json"));
        assert_eq!(contents(records), pairs(&[("1.aside", "[{"), ("1.json", "{}")]));
        assert_eq!(contents(root), pairs(&[("a", "one"), ("b", "two")]));
    }

    #[test]
    fn a_record_that_cannot_be_opened_is_reported_and_stays() {
        let TestDir { records, workspace, .. } = &test_dir();
        std::fs::create_dir(records).unwrap();
        for name in ["1.json", "2.part"] {
            std::os::unix::fs::symlink("nowhere", records.join(name)).unwrap();
        }
        let unreadable = workspace.recover().unreadable;
        assert_eq!(unreadable.iter().map(|it| &it.path).collect::<Vec<_>>(), [&records.join("1.json")]);
        assert!(records.join("1.json").is_symlink());
    }

    #[test]
    fn a_file_that_is_made_gets_its_mode() {
        use std::os::unix::fs::PermissionsExt;
        let TestDir { root, workspace, .. } = &test_dir();
        let step = FileEdit { mode: Some(0o750), ..step(workspace, "c", None, Some("3")) };
        workspace.replace_all(&[step]).unwrap();
        assert_eq!(root.join("c").metadata().unwrap().permissions().mode() & 0o7777, 0o750);
    }
}
