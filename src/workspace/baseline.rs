//! Stores the content of workspace files before commands run, so that changes made by commands can be undone.
//!
//! File metadata is compared before and after each command, and files that are new or changed since the previous scan are read
//! and stored. The first command in a workspace therefore waits until all files are stored, within the limits. Later ones barely
//! wait: a shared file in the content store contains the metadata and hashes that an earlier run found.

use crate::Workspace;
use crate::baseline_file;
use crate::content_store::{ContentStore, MAX_FILE_BYTES};
use crate::file::{BatchReader, ContentHash};
use crate::snapshot::{Difference, FileEntry, Snapshot};
use agent_core::file_change::{Change, ChangeAction, ChangedBy, FileState};
use agent_runtime::clock::Clock;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

/// Maximum number of bytes to store per scan. The smallest files come first, because users usually wrote those.
const MAX_SCAN_BYTES: u64 = 128 << 20;

/// Size in bytes of files that are read in the order of their paths, and stored together.
const SMALL_FILE_BYTES: u64 = 64 << 10;

/// Number of bytes of small files that are stored together.
const BATCH_BYTES: usize = 1 << 20;

/// Time limit for reading and storing in one scan. The next scan continues with the rest.
const MAX_SCAN_TIME: Duration = Duration::from_secs(1);

/// Number of consecutive incomplete scans after which no more are tried. A single one may be due to a busy machine.
const MAX_INCOMPLETE_SCANS: u32 = 2;

/// Maximum number of listed changes per command.
const MAX_CHANGES: usize = 10_000;

/// Number of bytes of new contents, with a page for each file, above which they are noted for later runs. Fewer are read again,
/// which costs less than to write the file for all.
const MAX_UNSHARED_BYTES: u64 = 1 << 20;

/// Bytes that reading a file costs at least.
const PAGE_BYTES: u64 = 4096;

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

/// Workspace files at the last scan, with their contents if the workspace stores them.
#[derive(Debug)]
pub struct Baseline {
    workspace: Workspace,
    /// File of the baseline, written before a command for recovery after a killed process.
    file_path: Option<PathBuf>,
    /// Last snapshot, with the hashes of the stored contents. `None` before the first scan and with too many files.
    last_scan: Option<Snapshot>,
    /// Number of consecutive incomplete scans.
    incomplete_scans: u32,
    /// Whether the baseline differs from its file.
    is_dirty: bool,
    /// Bytes of the contents that later runs would read again.
    unshared_bytes: u64,
    /// Whether nothing has run since the last scan.
    is_current: bool,
}

impl Baseline {
    /// Creates an empty baseline, to be written to `file_path`.
    pub fn new(workspace: Workspace, file_path: Option<PathBuf>) -> Self {
        Self {
            workspace,
            file_path,
            last_scan: None,
            incomplete_scans: 0,
            is_dirty: true,
            unshared_bytes: 0,
            is_current: false,
        }
    }

    /// Loads the baseline that a killed process wrote to `file_path`.
    pub fn load(workspace: Workspace, file_path: &Path) -> Option<Self> {
        let last_scan = baseline_file::read(file_path)?;
        Some(Self { last_scan: Some(last_scan), ..Self::new(workspace, None) })
    }

    /// Checks whether comparisons are disabled for the rest of the run because there are too many files.
    pub fn has_given_up(&self) -> bool {
        self.incomplete_scans >= MAX_INCOMPLETE_SCANS
    }

    fn snapshot(&mut self) -> Option<Snapshot> {
        let now = Clock::new().unix_time();
        let taken = if self.has_given_up() { None } else { Snapshot::take(self.workspace.root(), now) };
        self.incomplete_scans = if taken.is_some() { 0 } else { self.incomplete_scans.saturating_add(1) };
        self.is_dirty |= taken.is_none();
        taken
    }

    /// Notes that files may have changed since the last scan.
    pub fn set_outdated(&mut self) {
        self.is_current = false;
    }

    /// Returns the scan after the last command, if nothing has run since.
    pub fn current_scan(&self) -> Option<&Snapshot> {
        self.last_scan.as_ref().filter(|_| self.is_current)
    }

    /// Scans before a command and stores new contents. Returns `false` if there are too many files to compare.
    pub fn before_command(&mut self) -> bool {
        self.is_current = false;
        let now = self.snapshot();
        let before = self.last_scan.take();
        if let Some(mut now) = now {
            if let Some(before) = &before {
                now.take_hashes(before);
            } else {
                self.take_shared_hashes(&mut now);
            }
            let files = now.files.iter().enumerate();
            let missing = files.filter(|(_, file)| file.hash.is_none()).map(|(at, _)| at).collect();
            self.store_files(&mut now, missing);
            self.share(&now);
            self.is_dirty |= before.is_none_or(|before| !before.has_same_files(&now));
            self.write(&now);
            self.last_scan = Some(now);
        }
        self.last_scan.is_some()
    }

    /// Takes the hashes that earlier runs noted, of contents that are still stored.
    fn take_shared_hashes(&self, now: &mut Snapshot) {
        let Some(contents) = self.workspace.content_store() else { return };
        let shared = baseline_file::shared_path(contents.dir(), self.workspace.root());
        let Some(shared) = shared.and_then(|path| baseline_file::read(&path)) else { return };
        now.take_hashes(&shared);
        for file in &mut now.files {
            file.hash = file.hash.filter(|hash| contents.has(*hash));
        }
    }

    /// Notes the hashes for later runs, if they would otherwise read much again.
    fn share(&mut self, now: &Snapshot) {
        let Some(contents) = self.workspace.content_store() else { return };
        if self.unshared_bytes <= MAX_UNSHARED_BYTES {
            return;
        }
        let path = baseline_file::shared_path(contents.dir(), self.workspace.root());
        // Without it, later runs read the files again.
        let _shared = path.map(|path| baseline_file::share(&path, now));
        self.unshared_bytes = 0;
    }

    /// Writes the baseline if it changed.
    fn write(&mut self, now: &Snapshot) {
        let Some(file_path) = self.file_path.as_ref().filter(|_| self.is_dirty) else { return };
        self.is_dirty = baseline_file::write(file_path, now).is_err();
    }

    /// Scans after a command and returns the changes. `None` if there are too many files to compare.
    pub fn after_command(&mut self) -> Option<CommandChanges> {
        let before = self.last_scan.take()?;
        let mut now = self.snapshot()?;
        now.take_hashes(&before);
        let differences = before.differences(&now);
        self.is_dirty |= !differences.is_empty();
        self.store_files(&mut now, differences.iter().filter_map(|it| it.after).collect());
        self.share(&now);
        let changes = differences.iter().filter_map(|it| self.change(&before, &now, *it)).collect();
        self.last_scan = Some(now);
        self.is_current = true;
        Some(self.summarize(changes))
    }

    fn change(&self, before: &Snapshot, now: &Snapshot, difference: Difference) -> Option<Change> {
        let was = difference.before.and_then(|at| before.files.get(at));
        let is = difference.after.and_then(|at| now.files.get(at));
        let path = &was.or(is)?.path;
        let mut change = Change::between(path, ChangedBy::Command, &self.state(was), &self.state(is));
        if change.action == ChangeAction::Created {
            change.directories = before.missing_directories(path);
        }
        Some(change)
    }

    /// Returns the state of a file. `Unknown` if its content is not stored, or no longer may be.
    fn state(&self, file: Option<&FileEntry>) -> FileState {
        let Some(FileEntry { path, stamp, hash }) = file else { return FileState::Absent };
        match hash.map(|hash| FileState::from_mode(hash.to_string(), stamp.mode)) {
            Some(state) if state.is_link() || !self.workspace.is_sensitive(path) => state,
            _ => FileState::Unknown,
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

    /// Stores the files of `snapshot` at these indexes, the smallest first, within the limits, and sets their hashes.
    fn store_files(&mut self, snapshot: &mut Snapshot, mut missing: Vec<usize>) {
        let Some(contents) = self.workspace.content_store().cloned() else { return };
        let began = Instant::now();
        let size = |at: &usize| snapshot.files.get(*at).map_or(u64::MAX, |file| file.stamp.size);
        missing.retain(|at| size(at) <= MAX_FILE_BYTES);
        missing.sort_by_key(|at| size(at).max(SMALL_FILE_BYTES));
        let workspace = self.workspace.clone();
        let mut batch = Batch { contents: &contents, bytes: Vec::new(), files: Vec::new() };
        let (mut reader, mut total) = (BatchReader::new(&workspace), 0_u64);
        for at in missing {
            let Some(FileEntry { path, stamp, .. }) = snapshot.files.get(at) else { continue };
            total = total.saturating_add(stamp.size);
            if total > MAX_SCAN_BYTES || began.elapsed() > MAX_SCAN_TIME {
                break;
            }
            let start = batch.bytes.len();
            if reader.read(path, stamp.is_link(), MAX_FILE_BYTES, &mut batch.bytes).is_none() {
                batch.bytes.truncate(start);
                continue;
            }
            batch.files.push((at, start..batch.bytes.len()));
            if batch.bytes.len() > BATCH_BYTES {
                self.unshared_bytes += batch.store(snapshot);
            }
        }
        self.unshared_bytes += batch.store(snapshot);
    }
}

/// Contents that were read, to be stored together.
struct Batch<'a> {
    contents: &'a ContentStore,
    bytes: Vec<u8>,
    /// Indexes of the files, and where their contents are in `bytes`.
    files: Vec<(usize, Range<usize>)>,
}

impl Batch<'_> {
    /// Stores the contents and sets the hashes in `snapshot`. Returns the bytes that this cost.
    fn store(&mut self, snapshot: &mut Snapshot) -> u64 {
        let contents: Vec<(ContentHash, &[u8])> = self
            .files
            .iter()
            .filter_map(|(_, range)| self.bytes.get(range.clone()))
            .map(|bytes| (ContentHash::of(bytes), bytes))
            .collect();
        let stored = self.contents.store_all(&contents);
        for (((at, _), (hash, _)), is_stored) in self.files.iter().zip(&contents).zip(stored) {
            if let Some(file) = snapshot.files.get_mut(*at) {
                file.hash = is_stored.then_some(*hash);
            }
        }
        let cost =
            (self.bytes.len() as u64).saturating_add(PAGE_BYTES.saturating_mul(self.files.len() as u64));
        self.bytes.clear();
        self.files.clear();
        cost
    }
}

#[cfg(test)]
#[path = "baseline_tests.rs"]
mod tests;
