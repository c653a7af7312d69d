//! Finds the repositories and configurations of a workspace, with one full scan and later scans of changed directories only.

use super::openat;
use super::snapshot::{FileStamp, now};
use super::unlocked_dirs::{LIST_MODE, UnlockedDirs};
use crate::sandbox::protected_names::{is_project_directory, is_tool_configuration};
use crate::sandbox::repositories::{BARE, is_bare, is_git};
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Maximum number of directories in the first scan, topmost first. They are compared around commands at about a microsecond
/// each. Larger workspaces are rare, and their repositories are near the top.
const MAX_DIRECTORIES: usize = 2000;

/// Maximum number of directories created during a run to scan. Enough for several package installations.
const MAX_NEW_DIRECTORIES: usize = 10_000;

/// Maximum number of entries in the first scan, for directories with very many files.
const MAX_ENTRIES: usize = 50_000;

/// Items that make programs run, by path.
#[derive(Debug, Default)]
pub struct ScanResult {
    /// `.git` entries of any kind, and directories that are repositories themselves. In the first scan the topmost come first.
    pub repositories: Vec<PathBuf>,
    /// Configurations of agents and editors below the root.
    pub configurations: Vec<PathBuf>,
}

/// State of the directories of a workspace.
#[derive(Debug)]
pub struct WorkspaceScan {
    workspace: PathBuf,
    /// Handle of the workspace, which shortens the paths to look up.
    root: OwnedFd,
    /// Metadata of each directory when it was listed, by path in the workspace. `None` for those beyond the limits of the first
    /// scan.
    directories: BTreeMap<PathBuf, Option<FileStamp>>,
    /// Directories that no command created.
    original: BTreeSet<PathBuf>,
    before: BTreeSet<PathBuf>,
    since: BTreeSet<PathBuf>,
    /// Remaining number of directories to scan.
    left: usize,
}

/// State of one scan.
struct ScanPass {
    open: VecDeque<PathBuf>,
    entries: usize,
    found: ScanResult,
    /// Directories that a command made inaccessible. `None` in the first scan, which unlocks no directory.
    locked: Option<UnlockedDirs>,
}

impl WorkspaceScan {
    /// Runs the first scan and returns its findings.
    ///
    /// # Errors
    /// Fails if the workspace cannot be opened.
    pub fn start(workspace: &Path) -> rustix::io::Result<(Self, ScanResult)> {
        let mut scan = Self {
            workspace: workspace.to_owned(),
            root: openat::open_real(workspace)?,
            directories: BTreeMap::new(),
            original: BTreeSet::new(),
            before: BTreeSet::new(),
            since: BTreeSet::new(),
            left: MAX_DIRECTORIES,
        };
        let open = VecDeque::from([PathBuf::new()]);
        let mut first = ScanPass { open, entries: MAX_ENTRIES, found: ScanResult::default(), locked: None };
        scan.scan_open(&mut first);
        scan.original = scan.directories.keys().cloned().collect();
        scan.before = first.found.repositories.iter().chain(&first.found.configurations).cloned().collect();
        scan.left = MAX_NEW_DIRECTORIES;
        Ok((scan, first.found))
    }

    /// Accepts the current configurations as original, because no command is running that could have created them.
    pub fn accept_configurations(&mut self) {
        let mut pass = self.scan_changed();
        self.note(&pass.found.repositories);
        self.before.extend(std::mem::take(&mut pass.found.configurations));
        pass.relock();
    }

    /// Calls `judge` with the items that are new since the first scan, while all directories are accessible: all repositories,
    /// and the configurations added since the previous scan to original directories. Returns its result.
    pub fn judge_new<T>(&mut self, judge: impl FnOnce(&BTreeSet<PathBuf>, &[PathBuf]) -> T) -> T {
        let mut pass = self.scan_changed();
        self.note(&pass.found.repositories);
        self.since.retain(|path| path.symlink_metadata().is_ok());
        let mut configurations = std::mem::take(&mut pass.found.configurations);
        configurations.retain(|path| !self.before.contains(path) && self.is_in_original(path));
        let judgement = judge(&self.since, &configurations);
        pass.relock();
        judgement
    }

    fn note(&mut self, repositories: &[PathBuf]) {
        self.since.extend(repositories.iter().filter(|path| !self.before.contains(*path)).cloned());
    }

    fn is_in_original(&self, path: &Path) -> bool {
        let directory = path.parent().and_then(|parent| parent.strip_prefix(&self.workspace).ok());
        directory.is_some_and(|directory| self.original.contains(directory))
    }

    /// Scans the directories that changed since the previous scan. They stay accessible until they are locked again.
    fn scan_changed(&mut self) -> ScanPass {
        let mut changed = Vec::new();
        self.directories.retain(|path, stamp| {
            let Some(stamp) = stamp else { return true };
            match rustix::fs::statat(&self.root, path, AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH) {
                Ok(stat) if stamp.is_unchanged(&stat) => true,
                Err(Errno::NOENT | Errno::NOTDIR) => false,
                Ok(_) | Err(_) => {
                    changed.push(path.clone());
                    true
                }
            }
        });
        let (found, locked) = (ScanResult::default(), Some(UnlockedDirs::default()));
        let mut pass = ScanPass { open: VecDeque::new(), entries: usize::MAX, found, locked };
        for directory in changed {
            self.list(directory, &mut pass);
        }
        self.scan_open(&mut pass);
        pass
    }

    /// Lists the pending directories and those found below them, within the limits.
    fn scan_open(&mut self, pass: &mut ScanPass) {
        while let Some(directory) = pass.open.pop_front() {
            if self.directories.contains_key(&directory) {
                continue;
            }
            if self.left == 0 || pass.entries == 0 {
                self.directories.insert(directory, None);
            } else {
                self.left -= 1;
                self.list(directory, pass);
            }
        }
    }

    /// Lists one directory and stores its metadata from just before.
    fn list(&mut self, directory: PathBuf, pass: &mut ScanPass) {
        match openat::open_real(&self.workspace.join(&directory)) {
            Ok(handle) => {
                let stamp = pass.list(&self.workspace, &directory, &handle);
                self.directories.insert(directory, stamp);
            }
            // An inaccessible directory is recorded as original, because it existed in the first scan.
            Err(Errno::ACCESS) if pass.locked.is_none() => drop(self.directories.insert(directory, None)),
            Err(_gone) => drop(self.directories.remove(&directory)),
        }
    }
}

impl ScanPass {
    fn relock(&mut self) {
        self.locked.iter_mut().for_each(UnlockedDirs::relock);
    }

    /// Records what `directory` contains and which directories below it to scan. Returns the metadata from before, or `None` if
    /// it could not be listed completely.
    fn list(&mut self, workspace: &Path, directory: &Path, handle: &OwnedFd) -> Option<FileStamp> {
        self.locked.iter_mut().for_each(|locked| locked.unlock(handle, LIST_MODE));
        let stamp = FileStamp::of(rustix::fs::fstat(handle).ok()?, now());
        let Self { open, entries, found, locked } = self;
        let directory_path = workspace.join(directory);
        let is_held = directory != Path::new("") && is_project_directory(directory);
        let mut names = BTreeSet::new();
        let listed = openat::visit_entries(handle, *entries, |name, kind| {
            *entries -= 1;
            if is_held && is_tool_configuration(name) {
                found.configurations.push(directory_path.join(name));
            }
            if is_git(name) {
                found.repositories.push(directory_path.join(name));
            } else if kind == FileType::Directory {
                open.push_back(directory.join(name));
            }
            names.extend(BARE.into_iter().filter(|one| name == *one));
        });
        if listed.is_err() && locked.is_none() {
            return None;
        }
        if is_bare(|name| names.contains(name)) {
            found.repositories.push(directory_path);
        }
        (self.entries > 0).then_some(stamp)
    }
}
