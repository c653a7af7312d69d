//! Stores the content of workspace files before commands run, so that changes made by commands can be undone.
//!
//! File metadata is compared before and after each command, and files that are new or changed since the previous scan are read
//! and stored. The first command of a run therefore waits until all files are stored, within the limits. Later ones barely
//! wait.

use crate::core::file_change::{Change, ChangeAction, ChangedBy, FileState};
use crate::workspace::Workspace;
use crate::workspace::content_store::MAX_FILE_BYTES;
use crate::workspace::snapshot::{Difference, FileStamp, Snapshot};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

/// Maximum number of bytes to store per scan. The smallest files come first, because users usually wrote those.
const MAX_SCAN_BYTES: u64 = 128 << 20;

/// Time limit for reading and storing in one scan. The next scan continues with the rest.
const MAX_SCAN_TIME: Duration = Duration::from_secs(1);

/// Number of consecutive incomplete scans after which no more are tried. A single one may be due to a busy machine.
const MAX_INCOMPLETE_SCANS: u32 = 2;

/// Maximum number of listed changes per command.
const MAX_CHANGES: usize = 10_000;

/// Changes made by one command.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CommandChanges {
    /// Listed changes by path. Without hashes if contents are not stored.
    pub listed: Vec<Change>,
    /// Number of further changes.
    pub left_out: usize,
    /// Listed files whose earlier content should have been stored but was not.
    pub not_stored: Vec<String>,
}

/// Maximum size of a baseline file, in bytes. Exceeds that of the largest possible baseline.
const MAX_WRITTEN_BYTES: u64 = 64 << 20;

/// Workspace files at the last scan, with their contents if the workspace stores them.
#[derive(Debug)]
pub struct Baseline {
    workspace: Workspace,
    /// File of the baseline, written before a command for recovery after a killed process.
    file_path: Option<PathBuf>,
    /// Last snapshot. `None` before the first scan and with too many files.
    last_scan: Option<Snapshot>,
    /// Hashes of the stored contents, by path.
    hashes: BTreeMap<String, String>,
    /// Number of consecutive incomplete scans.
    incomplete_scans: u32,
    /// Whether the baseline differs from its file.
    is_dirty: bool,
}

/// Format of the baseline file.
#[derive(Serialize, Deserialize)]
struct StoredBaseline<L, H> {
    looks: L,
    hashes: H,
}

impl Baseline {
    /// Creates an empty baseline, to be written to `file_path`.
    pub fn new(workspace: Workspace, file_path: Option<PathBuf>) -> Self {
        Self {
            workspace,
            file_path,
            last_scan: None,
            hashes: BTreeMap::new(),
            incomplete_scans: 0,
            is_dirty: true,
        }
    }

    /// Loads the baseline that a killed process wrote to `file_path`.
    pub fn load(workspace: Workspace, file_path: &Path) -> Option<Self> {
        let mut text = Vec::new();
        File::open(file_path).ok()?.take(MAX_WRITTEN_BYTES).read_to_end(&mut text).ok()?;
        let StoredBaseline { looks, hashes } = serde_json::from_slice(&text).ok()?;
        Some(Self { last_scan: Some(looks), hashes, ..Self::new(workspace, None) })
    }

    /// Checks whether comparisons are disabled for the rest of the run because there are too many files.
    pub fn has_given_up(&self) -> bool {
        self.incomplete_scans >= MAX_INCOMPLETE_SCANS
    }

    fn snapshot(&mut self) -> Option<Snapshot> {
        let taken = if self.has_given_up() { None } else { Snapshot::take(self.workspace.root()) };
        self.incomplete_scans = if taken.is_some() { 0 } else { self.incomplete_scans.saturating_add(1) };
        self.is_dirty |= taken.is_none();
        taken
    }

    /// Scans before a command and stores new contents. Returns `false` if there are too many files to compare.
    pub fn before_command(&mut self) -> bool {
        let now = self.snapshot();
        let before = self.last_scan.take().unwrap_or_default();
        if let Some(now) = &now {
            self.remove_hashes(&before.differences(now));
            let missing = now.sizes().filter(|(path, _)| !self.hashes.contains_key(*path));
            self.store_files(missing.map(|(path, size)| (path.to_owned(), size)).collect());
            self.write(now);
        }
        self.last_scan = now;
        self.last_scan.is_some()
    }

    /// Removes the hashes of changed files.
    fn remove_hashes(&mut self, differences: &[Difference]) {
        self.is_dirty |= !differences.is_empty();
        for difference in differences {
            self.hashes.remove(&difference.path);
        }
    }

    /// Writes the baseline if it changed. Neither the file nor the stored contents are synced. An incomplete file is ignored
    /// when loading.
    fn write(&mut self, looks: &Snapshot) {
        let Some(file_path) = self.file_path.as_ref().filter(|_| self.is_dirty) else { return };
        let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(file_path);
        let written = StoredBaseline { looks, hashes: &self.hashes };
        let done = file.and_then(|file| {
            let mut file = BufWriter::new(file);
            serde_json::to_writer(&mut file, &written)?;
            file.flush()
        });
        self.is_dirty = done.is_err();
    }

    /// Scans after a command and returns the changes. `None` if there are too many files to compare.
    pub fn after_command(&mut self) -> Option<CommandChanges> {
        let before = self.last_scan.take()?;
        let now = self.snapshot()?;
        let differences = before.differences(&now);
        let was: Vec<FileState> = differences.iter().map(|it| self.state(&it.path, it.before)).collect();
        self.remove_hashes(&differences);
        let new = differences.iter().filter_map(|it| Some((it.path.clone(), it.after?.size)));
        self.store_files(new.collect());
        let changes = differences.iter().zip(was).map(|(it, was)| self.change(&before, it, &was)).collect();
        self.last_scan = Some(now);
        Some(self.summarize(changes))
    }

    fn change(&self, before: &Snapshot, difference: &Difference, was: &FileState) -> Change {
        let Difference { path, after, .. } = difference;
        let mut change = Change::between(path, ChangedBy::Command, was, &self.state(path, *after));
        if change.action == ChangeAction::Created {
            change.directories = before.missing_directories(path);
        }
        change
    }

    /// Returns the state of a file with these metadata. `Unknown` if its content is not stored.
    fn state(&self, path: &str, stamp: Option<FileStamp>) -> FileState {
        match (stamp, self.hashes.get(path)) {
            (None, _) => FileState::Absent,
            (Some(stamp), Some(hash)) => FileState::from_mode(hash.clone(), stamp.mode),
            (Some(_), None) => FileState::Unknown,
        }
    }

    fn summarize(&self, mut changes: Vec<Change>) -> CommandChanges {
        // Drops files of which only the timestamp changed.
        changes.retain(|change| change.before.is_none() || change.before_state() != change.after_state());
        let left_out = changes.len().saturating_sub(MAX_CHANGES);
        changes.truncate(MAX_CHANGES);
        let stores_contents = self.workspace.content_store().is_some();
        let is_lost = |change: &&Change| {
            stores_contents && change.before.is_none() && change.action != ChangeAction::Created
        };
        let not_stored = changes.iter().filter(is_lost).map(|change| change.path.clone()).collect();
        CommandChanges { listed: changes, left_out, not_stored }
    }

    /// Stores `files`, the smallest first, within the limits.
    fn store_files(&mut self, mut files: Vec<(String, u64)>) {
        let Some(contents) = self.workspace.content_store().cloned() else { return };
        let (began, mut bytes) = (Instant::now(), 0u64);
        files.retain(|(_, size)| *size <= MAX_FILE_BYTES);
        files.sort_unstable_by_key(|(_, size)| *size);
        for (path, size) in files {
            bytes = bytes.saturating_add(size);
            if bytes > MAX_SCAN_BYTES || began.elapsed() > MAX_SCAN_TIME {
                return;
            }
            let named = self.workspace.path(&path).ok();
            if let Some(hash) = named.and_then(|named| self.workspace.store(&named, &contents).ok()) {
                self.hashes.insert(path, hash);
                self.is_dirty = true;
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test is the command that changes files")]
mod tests {
    use super::*;
    use crate::workspace::content_store::ContentStore;
    use crate::workspace::file::hash;
    use std::path::Path;

    fn baseline(dir: &Path, stores_contents: bool) -> Baseline {
        let root = dir.join("ws");
        std::fs::create_dir_all(&root).unwrap();
        let workspace = Workspace::open(&root).unwrap();
        if stores_contents {
            workspace.set_content_store(ContentStore::new(dir.join("contents"), std::sync::Arc::default()));
        }
        Baseline::new(workspace, None)
    }

    #[test]
    fn what_a_command_displaces_was_kept_before() {
        let dir = tempfile::tempdir().unwrap();
        let mut baseline = baseline(dir.path(), true);
        let root = dir.path().join("ws");
        for name in ["changed", "gone", "same"] {
            std::fs::write(root.join(name), name).unwrap();
        }
        assert!(baseline.before_command());
        std::fs::write(root.join("changed"), "otherwise").unwrap();
        std::fs::remove_file(root.join("gone")).unwrap();
        std::fs::write(root.join("made"), "made").unwrap();
        let found = baseline.after_command().unwrap();
        let found_changes: Vec<_> = found
            .listed
            .iter()
            .map(|change| (change.path.as_str(), change.before.clone(), change.after.clone()))
            .collect();
        let some = |text: &str| Some(hash(text.as_bytes()));
        assert_eq!(
            found_changes,
            [
                ("gone", some("gone"), None),
                ("changed", some("changed"), some("otherwise")),
                ("made", None, some("made"))
            ]
        );
        assert!(found.not_stored.is_empty());
        let contents = baseline.workspace.content_store().unwrap();
        for text in ["gone", "changed"] {
            assert_eq!(contents.get(&hash(text.as_bytes())), Some(text.as_bytes().to_vec()));
        }
        assert!(baseline.before_command());
        assert_eq!(baseline.after_command(), Some(CommandChanges::default()));
    }

    #[test]
    fn what_is_written_is_what_was_there_before_the_last_command() {
        let dir = tempfile::tempdir().unwrap();
        let mut baseline = baseline(dir.path(), true);
        let (file, file_path) = (dir.path().join("ws/a"), dir.path().join("written"));
        baseline.file_path = Some(file_path.clone());
        let found_dead = |baseline: &Baseline| {
            let mut dead = Baseline::load(baseline.workspace.clone(), &file_path).unwrap();
            dead.after_command().unwrap().listed.into_iter().map(|change| change.path).collect::<Vec<_>>()
        };
        for text in ["one", "other", "third"] {
            std::fs::write(&file, text).unwrap();
            assert!(baseline.before_command());
            assert!(found_dead(&baseline).is_empty(), "{text}");
        }
        std::fs::remove_file(&file_path).unwrap();
        assert!(baseline.before_command());
        assert!(!file_path.exists(), "written again, with nothing new");
        std::fs::write(&file, "by a command").unwrap();
        assert_eq!(baseline.after_command().unwrap().listed.len(), 1);
        assert!(baseline.before_command());
        assert!(found_dead(&baseline).is_empty());
    }

    #[test]
    fn a_file_that_is_only_touched_is_not_changed() {
        let dir = tempfile::tempdir().unwrap();
        let mut baseline = baseline(dir.path(), true);
        let file = dir.path().join("ws/a");
        std::fs::write(&file, "a").unwrap();
        assert!(baseline.before_command());
        let touched = File::options().write(true).open(&file).unwrap();
        touched.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(baseline.after_command(), Some(CommandChanges::default()));
    }

    #[test]
    fn a_file_that_is_too_large_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let mut baseline = baseline(dir.path(), true);
        let file = File::create_new(dir.path().join("ws/large")).unwrap();
        file.set_len(MAX_FILE_BYTES + 1).unwrap();
        assert!(baseline.before_command());
        file.set_len(1).unwrap();
        let found = baseline.after_command().unwrap();
        assert_eq!(found.not_stored, ["large"]);
        assert_eq!(found.listed[0].after, Some(hash(b"\0")));
    }

    #[test]
    fn without_a_place_to_keep_them_changes_are_listed_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let mut baseline = baseline(dir.path(), false);
        assert!(baseline.before_command());
        std::fs::write(dir.path().join("ws/a"), "a").unwrap();
        let found = baseline.after_command().unwrap();
        assert_eq!((found.listed.len(), &found.listed[0].after, found.not_stored.len()), (1, &None, 0));
    }
}
