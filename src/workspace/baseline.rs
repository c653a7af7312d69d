//! What commands may change, kept before they run: afterwards is too late.
//!
//! The files are looked at from outside before and after each command; what is new since the look before is read and kept.
//! So the first command of a run waits until all files are kept, as far as the limits allow, and later ones hardly.

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

/// Bytes read for one look. The smallest files come first: they are what people wrote.
const MAX_LOOK_BYTES: u64 = 128 << 20;

/// Time for reading and keeping in one look; what is left is for the next one.
const MAX_LOOK_TIME: Duration = Duration::from_secs(1);

/// Looks in a row that come to no end before none is tried any more: one may have met a busy machine.
const MAX_MISSES: u32 = 2;

/// Changes listed for one command.
const MAX_CHANGES: usize = 10_000;

/// What one command changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CommandChanges {
    /// By path; without hashes where contents are not kept.
    pub listed: Vec<Change>,
    /// How many more there are.
    pub left_out: usize,
    /// Those of the listed whose content before was to be kept, and was not.
    pub not_stored: Vec<String>,
}

/// Bytes of what is written of a baseline: more than the largest one that is looked at.
const MAX_WRITTEN_BYTES: u64 = 64 << 20;

/// The files of a workspace as they were at the last look, and their contents where the workspace keeps them.
#[derive(Debug)]
pub struct Baseline {
    workspace: Workspace,
    /// Where it is written before a command, for whoever comes after a process that was killed.
    place: Option<PathBuf>,
    /// Nothing before the first look, and where there are too many files.
    looks: Option<Snapshot>,
    /// The hashes of the contents that are kept, by path.
    hashes: BTreeMap<String, String>,
    /// Looks in a row that came to no end.
    misses: u32,
    /// Whether what is written is no longer all that is known.
    is_ahead: bool,
}

/// A baseline as it is written.
#[derive(Serialize, Deserialize)]
struct StoredBaseline<L, H> {
    looks: L,
    hashes: H,
}

impl Baseline {
    /// A baseline that knows nothing yet, and is written to `place`.
    pub fn new(workspace: Workspace, place: Option<PathBuf>) -> Self {
        Self { workspace, place, looks: None, hashes: BTreeMap::new(), misses: 0, is_ahead: true }
    }

    /// The baseline that a process has written to `place` before it was killed.
    pub fn load(workspace: Workspace, place: &Path) -> Option<Self> {
        let mut text = Vec::new();
        File::open(place).ok()?.take(MAX_WRITTEN_BYTES).read_to_end(&mut text).ok()?;
        let StoredBaseline { looks, hashes } = serde_json::from_slice(&text).ok()?;
        Some(Self { workspace, place: None, looks: Some(looks), hashes, misses: 0, is_ahead: true })
    }

    /// Whether there are too many files to be compared, for as long as the run lasts.
    pub fn has_given_up(&self) -> bool {
        self.misses >= MAX_MISSES
    }

    fn snapshot(&mut self) -> Option<Snapshot> {
        let taken = if self.has_given_up() { None } else { Snapshot::take(self.workspace.root()) };
        self.misses = if taken.is_some() { 0 } else { self.misses.saturating_add(1) };
        self.is_ahead |= taken.is_none();
        taken
    }

    /// Looks before a command: keeps whatever is not kept yet. `false` when there are too many files to be compared.
    pub fn before_command(&mut self) -> bool {
        let now = self.snapshot();
        let before = self.looks.take().unwrap_or_default();
        if let Some(now) = &now {
            self.forget(&before.differences(now));
            let missing = now.sizes().filter(|(path, _)| !self.hashes.contains_key(*path));
            self.keep(missing.map(|(path, size)| (path.to_owned(), size)).collect());
            self.write(now);
        }
        self.looks = now;
        self.looks.is_some()
    }

    /// Forgets the contents of files that are different now.
    fn forget(&mut self, differences: &[Difference]) {
        self.is_ahead |= !differences.is_empty();
        for difference in differences {
            self.hashes.remove(&difference.path);
        }
    }

    /// Writes what is known, unless it is written already. Not synced, as the kept contents are not; a part of it is as good
    /// as none.
    fn write(&mut self, looks: &Snapshot) {
        let Some(place) = self.place.as_ref().filter(|_| self.is_ahead) else { return };
        let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(place);
        let written = StoredBaseline { looks, hashes: &self.hashes };
        let done = file.and_then(|file| {
            let mut file = BufWriter::new(file);
            serde_json::to_writer(&mut file, &written)?;
            file.flush()
        });
        self.is_ahead = done.is_err();
    }

    /// Looks after a command: what is different. Nothing when there are too many files to be compared.
    pub fn after_command(&mut self) -> Option<CommandChanges> {
        let before = self.looks.take()?;
        let now = self.snapshot()?;
        let differences = before.differences(&now);
        let was: Vec<FileState> = differences.iter().map(|it| self.state(&it.path, it.before)).collect();
        self.forget(&differences);
        let new = differences.iter().filter_map(|it| Some((it.path.clone(), it.after?.size)));
        self.keep(new.collect());
        let changes = differences.iter().zip(was).map(|(it, was)| self.change(&before, it, &was)).collect();
        self.looks = Some(now);
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

    /// What a file is that looks like this, as far as its content is kept.
    fn state(&self, path: &str, look: Option<FileStamp>) -> FileState {
        match (look, self.hashes.get(path)) {
            (None, _) => FileState::Absent,
            (Some(look), Some(hash)) => FileState::from_mode(hash.clone(), look.mode),
            (Some(_), None) => FileState::Unknown,
        }
    }

    fn summarize(&self, mut changes: Vec<Change>) -> CommandChanges {
        // A file that was only touched.
        changes.retain(|change| change.before.is_none() || change.before_state() != change.after_state());
        let left_out = changes.len().saturating_sub(MAX_CHANGES);
        changes.truncate(MAX_CHANGES);
        let keeps = self.workspace.content_store().is_some();
        let is_lost =
            |change: &&Change| keeps && change.before.is_none() && change.action != ChangeAction::Created;
        let not_stored = changes.iter().filter(is_lost).map(|change| change.path.clone()).collect();
        CommandChanges { listed: changes, left_out, not_stored }
    }

    /// Keeps `files`, the smallest first, as far as the limits allow.
    fn keep(&mut self, mut files: Vec<(String, u64)>) {
        let Some(contents) = self.workspace.content_store().cloned() else { return };
        let (began, mut bytes) = (Instant::now(), 0u64);
        files.retain(|(_, size)| *size <= MAX_FILE_BYTES);
        files.sort_unstable_by_key(|(_, size)| *size);
        for (path, size) in files {
            bytes = bytes.saturating_add(size);
            if bytes > MAX_LOOK_BYTES || began.elapsed() > MAX_LOOK_TIME {
                return;
            }
            let named = self.workspace.path(&path).ok();
            if let Some(hash) = named.and_then(|named| self.workspace.store(&named, &contents).ok()) {
                self.hashes.insert(path, hash);
                self.is_ahead = true;
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

    fn baseline(dir: &Path, keeps: bool) -> Baseline {
        let root = dir.join("ws");
        std::fs::create_dir_all(&root).unwrap();
        let workspace = Workspace::open(&root).unwrap();
        if keeps {
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
        let told: Vec<_> = found
            .listed
            .iter()
            .map(|change| (change.path.as_str(), change.before.clone(), change.after.clone()))
            .collect();
        let some = |text: &str| Some(hash(text.as_bytes()));
        assert_eq!(
            told,
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
        let (file, place) = (dir.path().join("ws/a"), dir.path().join("written"));
        baseline.place = Some(place.clone());
        let found_dead = |baseline: &Baseline| {
            let mut dead = Baseline::load(baseline.workspace.clone(), &place).unwrap();
            dead.after_command().unwrap().listed.into_iter().map(|change| change.path).collect::<Vec<_>>()
        };
        for text in ["one", "other", "third"] {
            std::fs::write(&file, text).unwrap();
            assert!(baseline.before_command());
            assert!(found_dead(&baseline).is_empty(), "{text}");
        }
        std::fs::remove_file(&place).unwrap();
        assert!(baseline.before_command());
        assert!(!place.exists(), "written again, with nothing new");
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
