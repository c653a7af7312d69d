//! Which repositories there are in a workspace, and which have come since the first command: a look at all directories, and
//! afterwards only at those that were changed.

use super::locked::Locked;
use super::place;
use super::snapshot::{Look, now};
use crate::process::sandbox::repositories::{is_bare, is_git};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The directories that are looked into at first, the uppermost first, and compared after each command, which takes about a
/// microsecond each; a larger workspace is rare, and its repositories are near the top.
const MAX_DIRECTORIES: usize = 2000;

/// The directories that a run may make and we look into: some installations of packages.
const MAX_NEW_DIRECTORIES: usize = 10_000;

/// The entries that are looked at at first, for directories with very many files.
const MAX_ENTRIES: usize = 50_000;

/// What is known of the directories of a workspace.
#[derive(Debug)]
pub struct Survey {
    /// How each looked when it was listed; `None` for those that were there and beyond the limits.
    directories: BTreeMap<PathBuf, Option<Look>>,
    before: BTreeSet<PathBuf>,
    since: BTreeSet<PathBuf>,
    /// The directories that may still be looked into.
    left: usize,
}

/// One look.
struct Looking {
    open: VecDeque<PathBuf>,
    entries: usize,
    found: Vec<PathBuf>,
    locked: Locked,
}

impl Survey {
    /// The first look, and what it found, the uppermost first: `.git` entries of any kind, and directories that are
    /// repositories themselves.
    pub fn of(workspace: &Path) -> (Self, Vec<PathBuf>) {
        let mut survey = Self {
            directories: BTreeMap::new(),
            before: BTreeSet::new(),
            since: BTreeSet::new(),
            left: MAX_DIRECTORIES,
        };
        let found = survey.look(VecDeque::new(), VecDeque::from([workspace.to_owned()]), MAX_ENTRIES);
        survey.before = found.iter().cloned().collect();
        survey.left = MAX_NEW_DIRECTORIES;
        (survey, found)
    }

    /// The repositories that are there now and were not at first.
    pub fn since(&mut self) -> Vec<PathBuf> {
        let mut changed = VecDeque::new();
        self.directories.retain(|path, look| {
            let Some(look) = look else { return true };
            match rustix::fs::lstat(path) {
                Ok(stat) if look.is(&stat) => true,
                Err(Errno::NOENT | Errno::NOTDIR) => false,
                Ok(_) | Err(_) => {
                    changed.push_back(path.clone());
                    true
                }
            }
        });
        let found = self.look(changed, VecDeque::new(), usize::MAX);
        self.since.extend(found.into_iter().filter(|path| !self.before.contains(path)));
        self.since.retain(|path| path.symlink_metadata().is_ok());
        self.since.iter().cloned().collect()
    }

    /// Lists what was `changed`, and then, as far as the limits go, what is `open` and all that is new below either.
    fn look(&mut self, changed: VecDeque<PathBuf>, open: VecDeque<PathBuf>, entries: usize) -> Vec<PathBuf> {
        let mut looking = Looking { open, entries, found: Vec::new(), locked: Locked::default() };
        for directory in changed {
            self.list(directory, &mut looking);
        }
        while let Some(directory) = looking.open.pop_front() {
            if self.directories.contains_key(&directory) {
                continue;
            }
            if self.left == 0 || looking.entries == 0 {
                self.directories.insert(directory, None);
            } else {
                self.left -= 1;
                self.list(directory, &mut looking);
            }
        }
        looking.locked.lock_again();
        looking.found
    }

    /// Lists one directory and keeps how it looked just before.
    fn list(&mut self, directory: PathBuf, looking: &mut Looking) {
        let look = match place::open_real(&directory) {
            Ok(handle) => looking.list(&directory, &handle),
            Err(Errno::ACCESS) => None,
            Err(_gone) => return drop(self.directories.remove(&directory)),
        };
        self.directories.insert(directory, look);
    }
}

impl Looking {
    /// Notes the repositories in `directory`, and what is to be looked into below it. How it looked before; `None` when the
    /// limits were reached in it.
    fn list(&mut self, directory: &Path, handle: &OwnedFd) -> Option<Look> {
        let stat = rustix::fs::fstat(handle).ok()?;
        let look = Look::of(stat, now());
        self.locked.unlock(handle, &stat);
        let mut below = Vec::new();
        let mut names = BTreeSet::new();
        for (name, kind) in place::listed(handle, self.entries).unwrap_or_default() {
            self.entries = self.entries.saturating_sub(1);
            if is_git(&name) {
                self.found.push(directory.join(&name));
            } else if kind == FileType::Directory {
                below.push(directory.join(&name));
            }
            names.insert(name);
        }
        if is_bare(|name| names.contains(OsStr::new(name))) {
            self.found.push(directory.to_owned());
        }
        self.open.extend(below);
        (self.entries > 0).then_some(look)
    }
}
