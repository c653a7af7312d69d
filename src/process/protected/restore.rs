//! Restores protected paths and moves what a command created there to quarantine.

use super::openat::{self, MODE_BITS};
use super::report::{ChangeKind, MAX_REPORTED, ProtectedChange};
use super::safe_repository::is_safe;
use super::snapshot::{self, FileStamp, PathState, Snapshot};
use super::unlocked_dirs::{UnlockedDirs, WRITE_MODE};
use crate::sandbox::repositories::is_linked_worktree;
use agent_runtime::private_file::create_private_dir;
use rustix::event::Timespec;
use rustix::fs::{FileType, FlockOperation, Stat};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Maximum bytes of one item that moves to another file system.
const MAX_MOVED_BYTES: u64 = 64 * 1024 * 1024;

/// Number of rounds, and length of one, that a restore waits for git to finish the removal of linked worktrees.
const REMOVAL_ROUNDS: u32 = 40;
const REMOVAL_ROUND: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

impl Snapshot {
    /// Compares each path with the snapshot and restores it. What the command created moves to `quarantine`, which is created
    /// when needed. Returns the changes found, at most [`MAX_REPORTED`].
    pub fn restore(&self, quarantine: &Path) -> Vec<ProtectedChange> {
        // A lock of the process. It is released when the guard ends.
        let _in_turn = rustix::fs::fcntl_lock(&self.restore_lock, FlockOperation::LockExclusive);
        let mut pass = RestorePass::into(quarantine);
        let mut skipped: Option<&Path> = None;
        let mut opened: Option<(&Path, OwnedFd)> = None;
        let mut removal_rounds = REMOVAL_ROUNDS;
        for (path, before) in &self.paths {
            if skipped.is_some_and(|skipped| path.starts_with(skipped)) {
                continue;
            }
            pass.in_git = snapshot::is_in_git(path);
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { continue };
            let shared = opened.take().filter(|(of, _)| *of == parent);
            let at = match shared.map_or_else(|| openat::open_real(parent), |(_, at)| Ok(at)) {
                Ok(at) => at,
                Err(_gone) if matches!(before, PathState::Absent | PathState::AbsentDirectory) => continue,
                Err(error) => {
                    pass.report(path, ChangeKind::Removed, None, &Err(error.into()));
                    continue;
                }
            };
            wait_for_removal(path, before, &mut removal_rounds);
            match new_repository(&at, name, before) {
                // Git does not work there, so nothing is to be put back.
                None if is_linked_worktree(path) && is_in_removed_worktree(path) => skipped = Some(path),
                Some(true) => skipped = Some(path),
                // Removing only parts of it would leave a broken repository.
                Some(false) => pass.replace(&at, name, &PathState::Absent, path, true),
                None => pass.restore_path(&at, name, before, path),
            }
            // Paths in the same directory share its handle until something is moved.
            opened = pass.found.is_empty().then_some((parent, at));
        }
        pass.in_git = false;
        for (path, before) in &self.compared {
            let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { continue };
            if let Some(at) = pass.open(&self.workspace, directory) {
                pass.restore_path(&at, name, before, &self.workspace.join(path));
            }
        }
        pass.locked.relock();
        // Another run may have removed a linked worktree meanwhile.
        pass.found.retain(|change| {
            change.restore_error.is_none() || !is_in_removed_worktree(Path::new(&change.path))
        });
        pass.found
    }
}

/// Checks whether the linked worktree that `path` is, or is in, was removed: by git, for a command or for another run.
fn is_in_removed_worktree(path: &Path) -> bool {
    let is_gone = |above: &Path| is_linked_worktree(above) && above.symlink_metadata().is_err();
    path.ancestors().any(is_gone)
}

/// Waits until git has removed the linked worktree from which the file `path` is missing, for at most `rounds`. Git removes a worktree
/// file by file. A file that is put back meanwhile would keep the directory.
fn wait_for_removal(path: &Path, before: &PathState, rounds: &mut u32) {
    let worktree = path.ancestors().skip(1).find(|above| is_linked_worktree(above));
    let Some(worktree) = worktree.filter(|_| matches!(before, PathState::File(..))) else { return };
    while *rounds > 0 && path.symlink_metadata().is_err() && worktree.symlink_metadata().is_ok() {
        *rounds -= 1;
        let _interrupted = rustix::event::poll(&mut [], Some(&REMOVAL_ROUND));
    }
}

/// Moves new items at `paths` to `quarantine`.
pub(super) fn quarantine_paths(paths: &[PathBuf], quarantine: &Path) -> Vec<ProtectedChange> {
    let mut pass = RestorePass::into(quarantine);
    for (path, (at, name)) in paths.iter().filter_map(|path| Some((path, openat::parent_and_name(path)?))) {
        pass.locked.unlock(&at, WRITE_MODE);
        pass.replace(&at, &name, &PathState::Absent, path, true);
    }
    pass.locked.relock();
    pass.found
}

/// Checks whether the new repository `name` in `at` runs nothing. `None` if there is no new one.
fn new_repository(at: &OwnedFd, name: &OsStr, before: &PathState) -> Option<bool> {
    if !matches!(before, PathState::AbsentDirectory) || name != ".git" {
        return None;
    }
    Some(is_safe(&openat::open_directory(at, name).ok()?))
}

/// State of one comparison.
struct RestorePass<'a> {
    quarantine: &'a Path,
    moved: usize,
    found: Vec<ProtectedChange>,
    locked: UnlockedDirs,
    in_git: bool,
}

impl<'a> RestorePass<'a> {
    fn into(quarantine: &'a Path) -> Self {
        Self { quarantine, moved: 0, found: Vec::new(), locked: UnlockedDirs::default(), in_git: false }
    }

    /// Opens the directory `below` the one at `root` after unlocking both and all between. `None` if one is missing.
    fn open(&mut self, root: &Path, below: &Path) -> Option<OwnedFd> {
        let mut directory = openat::open_real(root).ok()?;
        self.locked.unlock(&directory, WRITE_MODE);
        for name in below {
            directory = openat::open_directory(&directory, name).ok()?;
            self.locked.unlock(&directory, WRITE_MODE);
        }
        Some(directory)
    }

    /// Restores `name` in `at` to the state `before`. `path` is its name in the report.
    fn restore_path(&mut self, at: &OwnedFd, name: &OsStr, before: &PathState, path: &Path) {
        let now = match openat::stat_at(at, name) {
            Ok(now) => now,
            Err(error) => return self.report(path, ChangeKind::Changed, None, &Err(error.into())),
        };
        let kind = now.as_ref().map(openat::kind);
        let is_directory = kind == Some(FileType::Directory);
        match before {
            PathState::Absent if now.is_none() => {}
            PathState::AbsentDirectory if now.is_none() || is_directory => {}
            PathState::Ancestor(stat, handle)
                if is_directory && now.is_some_and(|now| same_file(stat, &now)) =>
            {
                self.locked.unlock(handle, WRITE_MODE);
            }
            PathState::Ancestor(stat, handle) => {
                let (moved, done) = self.restore_directory(at, name, stat, handle, now.is_some());
                let act = if now.is_some() { ChangeKind::Changed } else { ChangeKind::Removed };
                self.report(path, act, moved, &done);
            }
            PathState::Directory(stat, entries) if is_directory => {
                if now.is_some_and(|now| now.st_mode & MODE_BITS != stat.st_mode & MODE_BITS) {
                    self.report(path, ChangeKind::Changed, None, &openat::set_rights(at, name, stat));
                }
                self.restore_entries(at, name, path, entries);
            }
            PathState::File(stamp, bytes)
                if now.is_some_and(|now| is_same(at, name, stamp, bytes.as_deref(), &now)) => {}
            PathState::Other(stamp)
                if now.is_some_and(|now| stamp.is_unchanged(&now) || is_unread(stamp, &now)) => {}
            PathState::Link(to) if openat::read_link_at(at, name).is_ok_and(|now| now == *to) => {}
            _ => self.replace(at, name, before, path, now.is_some()),
        }
    }

    /// Moves away the current item and creates the earlier one.
    fn replace(&mut self, at: &OwnedFd, name: &OsStr, before: &PathState, path: &Path, is_there: bool) {
        let act = match before {
            PathState::Absent | PathState::AbsentDirectory => ChangeKind::Created,
            _ if is_there => ChangeKind::Changed,
            _ => ChangeKind::Removed,
        };
        let moved = if is_there { self.move_away(at, name).map(Some) } else { Ok(None) };
        match moved {
            Ok(moved) => self.report(path, act, moved, &make(at, name, before)),
            Err(error) => self.report(path, act, None, &Err(error)),
        }
    }

    /// Moves the parent directory of a protected path back to its place, wherever it is now. Also returns the new place of the
    /// item that stood there.
    fn restore_directory(
        &mut self,
        at: &OwnedFd,
        name: &OsStr,
        stat: &Stat,
        handle: &OwnedFd,
        is_there: bool,
    ) -> (Option<PathBuf>, io::Result<()>) {
        self.locked.unlock(handle, WRITE_MODE);
        let mut moved = None;
        let done = (|| {
            if is_there {
                moved = Some(self.move_away(at, name)?);
            }
            let Some((from, called)) =
                openat::current_path(handle).and_then(|now| openat::parent_and_name(&now))
            else {
                return openat::make_directory(at, name, stat);
            };
            let is_it = openat::stat_at(&from, &called)?.is_some_and(|now| same_file(stat, &now));
            if is_it {
                return Ok(rustix::fs::renameat(&from, &called, at, name)?);
            }
            openat::make_directory(at, name, stat)
        })();
        (moved, done)
    }

    fn restore_entries(
        &mut self,
        at: &OwnedFd,
        name: &OsStr,
        path: &Path,
        entries: &BTreeMap<OsString, PathState>,
    ) {
        let found = openat::open_directory(at, name).map_err(io::Error::from).and_then(|directory| {
            let names = snapshot::relevant_names(&directory, self.in_git)?;
            Ok((directory, names))
        });
        let (directory, names) = match found {
            Ok(found) => found,
            Err(error) => return self.report(path, ChangeKind::Changed, None, &Err(error)),
        };
        let names: BTreeSet<&OsString> = names.iter().chain(entries.keys()).collect();
        for name in names {
            let before = entries.get(name).unwrap_or(&PathState::Absent);
            self.restore_path(&directory, name, before, &path.join(name));
        }
    }

    /// Moves `name` in `at` to a unique name in the quarantine.
    fn move_away(&mut self, at: &OwnedFd, name: &OsStr) -> io::Result<PathBuf> {
        create_private_dir(self.quarantine)?;
        let mut called = OsString::from(format!("{:03}-", self.moved));
        called.push(name);
        self.moved += 1;
        let to = self.quarantine.join(called);
        openat::move_away(at, name, &to, MAX_MOVED_BYTES)?;
        Ok(to)
    }

    fn report(&mut self, path: &Path, act: ChangeKind, moved_to: Option<PathBuf>, done: &io::Result<()>) {
        let left = done.as_ref().err().map(ToString::to_string);
        if self.found.len() == MAX_REPORTED && left.is_some() {
            self.found.pop();
        }
        if self.found.len() < MAX_REPORTED {
            self.found.push(ProtectedChange {
                path: path.to_string_lossy().into_owned(),
                kind: act,
                restore_error: left,
                moved_to,
                ran_concurrently: false,
            });
        }
    }
}

/// Creates `name` in `at`, where nothing exists now, with the state `before`.
fn make(at: &OwnedFd, name: &OsStr, before: &PathState) -> io::Result<()> {
    match before {
        PathState::Absent | PathState::AbsentDirectory => Ok(()),
        PathState::Ancestor(stat, _) => openat::make_directory(at, name, stat),
        PathState::File(stamp, Some(bytes)) => openat::make_file(at, name, bytes, &stamp.stat),
        PathState::Link(to) => Ok(rustix::fs::symlinkat(to.as_c_str(), at, name)?),
        PathState::Directory(stat, entries) => {
            openat::make_directory(at, name, stat)?;
            let directory = openat::open_directory(at, name)?;
            entries.iter().try_for_each(|(name, before)| make(&directory, name, before))
        }
        PathState::File(_, None) | PathState::Other(_) => Err(io::Error::other("it was too large to store")),
    }
}

/// Checks whether a file has the same content and mode as before.
fn is_same(at: &OwnedFd, name: &OsStr, stamp: &FileStamp, bytes: Option<&[u8]>, now: &Stat) -> bool {
    if stamp.is_unchanged(now) {
        return true;
    }
    let same_rights = stamp.stat.st_mode == now.st_mode && stamp.stat.st_uid == now.st_uid;
    let length = bytes.map_or(0, |bytes| bytes.len() as u64);
    same_rights
        && bytes.is_some()
        && openat::read_file_at(at, name, length).is_ok_and(|now| now.as_deref() == bytes)
}

/// Checks whether an unreadable item appears unchanged, by its metadata.
fn is_unread(stamp: &FileStamp, now: &Stat) -> bool {
    openat::kind(now) != FileType::RegularFile && same_file(&stamp.stat, now)
}

fn same_file(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}
