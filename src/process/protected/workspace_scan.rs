//! Which repositories and configurations there are in a workspace, and which have come since the first command: a look at all
//! directories, and afterwards only at those that were changed.

use super::openat;
use super::snapshot::{FileStamp, now};
use super::unlocked_dirs::{LIST_MODE, UnlockedDirs};
use crate::process::sandbox::protected_names::{is_project_directory, is_tool_configuration};
use crate::process::sandbox::repositories::{is_bare, is_git};
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The directories that are looked into at first, the uppermost first, and compared around commands, which takes about a
/// microsecond each; a larger workspace is rare, and its repositories are near the top.
const MAX_DIRECTORIES: usize = 2000;

/// The directories that a run may make and we look into: some installations of packages.
const MAX_NEW_DIRECTORIES: usize = 10_000;

/// The entries that are looked at at first, for directories with very many files.
const MAX_ENTRIES: usize = 50_000;

/// What there is of a kind that makes programs run, by path.
#[derive(Debug, Default)]
pub struct ScanResult {
    /// `.git` entries of any kind, and directories that are repositories themselves; at first the uppermost come first.
    pub repositories: Vec<PathBuf>,
    /// Configurations of agents and editors below the root.
    pub configurations: Vec<PathBuf>,
}

/// What is known of the directories of a workspace.
#[derive(Debug)]
pub struct WorkspaceScan {
    workspace: PathBuf,
    /// Its directory, from which the way to those below is shorter.
    root: OwnedFd,
    /// How each looked when it was listed, by its path in the workspace; `None` for those that were there and beyond the limits.
    directories: BTreeMap<PathBuf, Option<FileStamp>>,
    /// The directories that no command has made.
    original: BTreeSet<PathBuf>,
    before: BTreeSet<PathBuf>,
    since: BTreeSet<PathBuf>,
    /// The directories that may still be looked into.
    left: usize,
}

/// One look.
struct ScanPass {
    open: VecDeque<PathBuf>,
    entries: usize,
    found: ScanResult,
    /// Those that a command has closed; at first none is opened, for nobody has.
    locked: Option<UnlockedDirs>,
}

impl WorkspaceScan {
    /// The first look, and what it found.
    ///
    /// # Errors
    /// When the workspace cannot be opened.
    pub fn start(workspace: &Path) -> rustix::io::Result<(Self, ScanResult)> {
        let mut survey = Self {
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
        survey.scan_open(&mut first);
        survey.original = survey.directories.keys().cloned().collect();
        survey.before = first.found.repositories.iter().chain(&first.found.configurations).cloned().collect();
        survey.left = MAX_NEW_DIRECTORIES;
        Ok((survey, first.found))
    }

    /// Takes the configurations that are there now for what was there before: no command runs that could have made them.
    pub fn accept_configurations(&mut self) {
        let mut looking = self.scan_changed();
        self.note(&looking.found.repositories);
        self.before.extend(std::mem::take(&mut looking.found.configurations));
        looking.relock();
    }

    /// What `judge` says of what is there now and was not at first, while all directories are open to us: all repositories, and
    /// the configurations that have come since the look before into directories that were there at first.
    pub fn judge_new<T>(&mut self, judge: impl FnOnce(&BTreeSet<PathBuf>, &[PathBuf]) -> T) -> T {
        let mut looking = self.scan_changed();
        self.note(&looking.found.repositories);
        self.since.retain(|path| path.symlink_metadata().is_ok());
        let mut configurations = std::mem::take(&mut looking.found.configurations);
        configurations.retain(|path| !self.before.contains(path) && self.is_in_original(path));
        let judgement = judge(&self.since, &configurations);
        looking.relock();
        judgement
    }

    fn note(&mut self, repositories: &[PathBuf]) {
        self.since.extend(repositories.iter().filter(|path| !self.before.contains(*path)).cloned());
    }

    fn is_in_original(&self, path: &Path) -> bool {
        let directory = path.parent().and_then(|parent| parent.strip_prefix(&self.workspace).ok());
        directory.is_some_and(|directory| self.original.contains(directory))
    }

    /// A look at the directories that were changed since the one before, which are open to us until they are locked again.
    fn scan_changed(&mut self) -> ScanPass {
        let mut changed = Vec::new();
        self.directories.retain(|path, look| {
            let Some(look) = look else { return true };
            match rustix::fs::statat(&self.root, path, AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH) {
                Ok(stat) if look.is_unchanged(&stat) => true,
                Err(Errno::NOENT | Errno::NOTDIR) => false,
                Ok(_) | Err(_) => {
                    changed.push(path.clone());
                    true
                }
            }
        });
        let (found, locked) = (ScanResult::default(), Some(UnlockedDirs::default()));
        let mut looking = ScanPass { open: VecDeque::new(), entries: usize::MAX, found, locked };
        for directory in changed {
            self.list(directory, &mut looking);
        }
        self.scan_open(&mut looking);
        looking
    }

    /// Lists what is open, and what turns up below it, as far as the limits go.
    fn scan_open(&mut self, looking: &mut ScanPass) {
        while let Some(directory) = looking.open.pop_front() {
            if self.directories.contains_key(&directory) {
                continue;
            }
            if self.left == 0 || looking.entries == 0 {
                self.directories.insert(directory, None);
            } else {
                self.left -= 1;
                self.list(directory, looking);
            }
        }
    }

    /// Lists one directory and keeps how it looked just before.
    fn list(&mut self, directory: PathBuf, looking: &mut ScanPass) {
        match openat::open_real(&self.workspace.join(&directory)) {
            Ok(handle) => {
                let look = looking.list((&self.workspace, &directory), &handle);
                self.directories.insert(directory, look);
            }
            // Whoever opens it later has found it here.
            Err(Errno::ACCESS) if looking.locked.is_none() => drop(self.directories.insert(directory, None)),
            Err(_gone) => drop(self.directories.remove(&directory)),
        }
    }
}

impl ScanPass {
    fn relock(&mut self) {
        self.locked.iter_mut().for_each(UnlockedDirs::relock);
    }

    /// Notes what is found in `directory`, and what is to be looked into below it. How it looked before; `None` when it could
    /// not be listed, or not to its end.
    fn list(&mut self, (workspace, directory): (&Path, &Path), handle: &OwnedFd) -> Option<FileStamp> {
        self.locked.iter_mut().for_each(|locked| locked.unlock(handle, LIST_MODE));
        let look = FileStamp::of(rustix::fs::fstat(handle).ok()?, now());
        let listed = match openat::list_dir(handle, self.entries) {
            Err(_not_ours) if self.locked.is_none() => return None,
            listed => listed.unwrap_or_default(),
        };
        self.entries -= listed.len();
        let mut names = BTreeSet::new();
        let is_held = directory != Path::new("") && is_project_directory(directory);
        for (name, kind) in listed {
            if is_held && is_tool_configuration(&name) {
                self.found.configurations.push(workspace.join(directory).join(&name));
            }
            if is_git(&name) {
                self.found.repositories.push(workspace.join(directory).join(&name));
            } else if kind == FileType::Directory {
                self.open.push_back(directory.join(&name));
            }
            names.insert(name);
        }
        if is_bare(|name| names.contains(OsStr::new(name))) {
            self.found.repositories.push(workspace.join(directory));
        }
        (self.entries > 0).then_some(look)
    }
}
