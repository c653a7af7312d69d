//! Snapshot of protected paths before the commands that run concurrently, with the data needed to restore them.

use super::openat;
use crate::sandbox::SandboxPolicy;
use crate::tier::Tier;
use rustix::fs::{FileType, Stat};
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// Maximum bytes of protected files to store. Configuration is small. Larger files are compared by their times and cannot be
/// restored.
const MAX_STORED_BYTES: u64 = 8 * 1024 * 1024;

/// Maximum number of files to read. A repository with many submodules has some thousand in `.git/modules` without objects.
const MAX_ENTRIES: usize = 10_000;

/// Maximum depth of directories. Git's own are no deeper than the slashes of branch names.
const MAX_DEPTH: usize = 24;

/// Data directories of nested repositories, which contain no program configuration.
const BULK: [&str; 4] = ["objects", "lfs", "logs", "refs"];

/// Upper bound for the resolution of file timestamps. A file changed within it may change again without a new timestamp.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// Set of protected paths to compare and restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All protected paths.
    All,
    /// Paths that do not exist, and links. Mounts protect the others.
    Unmounted,
}

impl Extent {
    /// Returns the set for commands in `tier`. `None` if the tier does not confine.
    pub fn of(tier: Tier) -> Option<Self> {
        match tier {
            Tier::Full | Tier::Bubblewrap => Some(Self::Unmounted),
            Tier::Rules => Some(Self::All),
            Tier::Namespace | Tier::Subreaper | Tier::Group => None,
        }
    }
}

/// State of one path.
#[derive(Debug)]
pub(super) enum PathState {
    /// Does not exist.
    Absent,
    /// Does not exist, and a protected path is below it. It may become a directory but nothing else.
    AbsentDirectory,
    /// Parent directory of a protected path.
    Ancestor(Stat, OwnedFd),
    /// File, with its bytes if they could be stored.
    File(FileStamp, Option<Vec<u8>>),
    /// Symbolic link.
    Link(CString),
    /// Directory, protected with all its content.
    Directory(Stat, BTreeMap<OsString, Self>),
    /// Item that cannot be recreated or exceeded the limits.
    Other(FileStamp),
}

/// Metadata of a file.
#[derive(Debug)]
pub(super) struct FileStamp {
    pub(super) stat: Stat,
    /// Whether the timestamp would differ after another change.
    is_reliable: bool,
}

/// Protected paths before the commands that run concurrently.
#[derive(Debug)]
pub struct Snapshot {
    pub(super) paths: BTreeMap<PathBuf, PathState>,
    /// Workspace directory. Paths in `compared` are relative to it and are restored only if their directory still exists.
    pub(super) workspace: PathBuf,
    pub(super) compared: BTreeMap<PathBuf, PathState>,
    /// Lock for the guards that restore files. Two at once would find each other's partial work.
    pub(super) restore_lock: OwnedFd,
}

/// Remaining files and bytes to read.
struct Budget {
    bytes: u64,
    entries: usize,
    in_git: bool,
    now: Duration,
}

impl FileStamp {
    pub(super) fn of(stat: Stat, now: Duration) -> Self {
        let is_reliable = changed_at(&stat) + CLOCK_STEP < now;
        Self { stat, is_reliable }
    }

    /// Checks whether `now` is certainly the same file with the same content.
    pub(super) fn is_unchanged(&self, now: &Stat) -> bool {
        let key = |stat: &Stat| {
            let times = (stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec);
            (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mode, times)
        };
        self.is_reliable && key(&self.stat) == key(now)
    }
}

/// Returns the time of the last change in `stat`, since 1970.
fn changed_at(stat: &Stat) -> Duration {
    let seconds = u64::try_from(stat.st_ctime).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_nanos(stat.st_ctime_nsec)
}

/// Returns the time since 1970 by the clock of file timestamps.
#[expect(
    clippy::disallowed_methods,
    reason = "compared with the times of files, in a process that has no other clock"
)]
pub(super) fn now() -> Duration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}

impl Snapshot {
    /// Takes a snapshot of the protected paths of `policy` in `extent`. Paths outside writable directories are skipped. Guards
    /// that restore files lock `restore_lock`.
    pub fn take(policy: &SandboxPolicy, extent: Extent, restore_lock: OwnedFd) -> Self {
        let mut taken = Self {
            paths: BTreeMap::new(),
            workspace: PathBuf::new(),
            compared: BTreeMap::new(),
            restore_lock,
        };
        let mut budget = Budget { bytes: MAX_STORED_BYTES, entries: MAX_ENTRIES, in_git: false, now: now() };
        let mut opened = BTreeMap::new();
        for path in &policy.read_only {
            let root = policy.writable.iter().filter(|root| path.starts_with(root)).min();
            let Some(root) = root else { continue };
            let Ok(at) = opened.entry(root).or_insert_with(|| openat::open_real(root)) else { continue };
            budget.in_git = is_in_git(path);
            // The command cannot change an item that this process cannot read, because it has no more rights.
            let _not_reachable = taken.add(root, at, path, extent, &mut budget);
        }
        taken.compare(policy, &mut budget);
        taken
    }

    /// Adds the paths of `policy` that are only compared.
    fn compare(&mut self, policy: &SandboxPolicy, budget: &mut Budget) {
        let Some(workspace) = policy.writable.first() else { return };
        self.workspace.clone_from(workspace);
        budget.in_git = false;
        for path in policy.compared.iter().filter_map(|path| path.strip_prefix(workspace).ok()) {
            let Some((at, name)) = openat::parent_and_name(&workspace.join(path)) else { continue };
            if let Ok(Some(stat)) = openat::stat_at(&at, &name) {
                self.compared.insert(path.to_owned(), before(&at, &name, stat, budget, 0));
            }
        }
    }

    /// Adds `path`, or the topmost parent of it, below `root`, that is not a directory.
    fn add(
        &mut self,
        root: &Path,
        root_handle: &OwnedFd,
        path: &Path,
        extent: Extent,
        budget: &mut Budget,
    ) -> rustix::io::Result<()> {
        let mut here = root.to_owned();
        if !self.paths.contains_key(root) {
            let stored = root_handle.try_clone().map_err(|_| rustix::io::Errno::MFILE)?;
            self.paths.insert(root.to_owned(), PathState::Ancestor(rustix::fs::fstat(root_handle)?, stored));
        }
        let mut opened;
        let mut at = root_handle;
        let names = path.strip_prefix(root).unwrap_or(Path::new("")).components();
        let names: Vec<&OsStr> =
            names.filter(|part| matches!(part, Component::Normal(_))).map(Component::as_os_str).collect();
        let Some((last, above)) = names.split_last() else { return Ok(()) };
        for name in above {
            here.push(name);
            let Some(stat) = openat::stat_at(at, name)? else {
                self.paths.entry(here).or_insert(PathState::AbsentDirectory);
                self.paths.insert(path.to_owned(), PathState::Absent);
                return Ok(());
            };
            if openat::kind(&stat) != FileType::Directory {
                let before = before(at, name, stat, budget, 0);
                self.paths.insert(here, before);
                return Ok(());
            }
            let handle = openat::open_directory(at, name)?;
            let stored = handle.try_clone().map_err(|_| rustix::io::Errno::MFILE)?;
            self.paths.entry(here.clone()).or_insert(PathState::Ancestor(stat, stored));
            opened = handle;
            at = &opened;
        }
        match openat::stat_at(at, last)? {
            None => drop(self.paths.insert(path.to_owned(), PathState::Absent)),
            Some(stat) if extent == Extent::All || openat::kind(&stat) == FileType::Symlink => {
                self.paths.insert(path.to_owned(), before(at, last, stat, budget, 0));
            }
            Some(_) => {}
        }
        Ok(())
    }
}

/// Returns the state of `name` in `at`.
fn before(at: &OwnedFd, name: &OsStr, stat: Stat, budget: &mut Budget, depth: usize) -> PathState {
    let look = FileStamp::of(stat, budget.now);
    match openat::kind(&stat) {
        FileType::RegularFile => {
            let bytes = openat::read_file_at(at, name, budget.bytes).ok().flatten();
            budget.bytes = budget.bytes.saturating_sub(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64));
            PathState::File(look, bytes)
        }
        FileType::Symlink => openat::read_link_at(at, name).map_or(PathState::Other(look), PathState::Link),
        FileType::Directory if depth < MAX_DEPTH && budget.entries > 0 => {
            let entries = openat::open_directory(at, name).map_err(Into::into);
            let entries = entries.and_then(|directory| entries_of(&directory, budget, depth));
            entries.map_or(PathState::Other(look), |entries| PathState::Directory(stat, entries))
        }
        _ => PathState::Other(look),
    }
}

fn entries_of(
    directory: &OwnedFd,
    budget: &mut Budget,
    depth: usize,
) -> std::io::Result<BTreeMap<OsString, PathState>> {
    let mut entries = BTreeMap::new();
    for name in relevant_names(directory, budget.in_git)? {
        if budget.entries == 0 {
            return Err(std::io::Error::from(std::io::ErrorKind::FileTooLarge));
        }
        budget.entries -= 1;
        if let Some(stat) = openat::stat_at(directory, &name)? {
            let before = before(directory, &name, stat, budget, depth + 1);
            entries.insert(name, before);
        }
    }
    Ok(entries)
}

/// Checks whether `path` is part of a repository's own directory.
pub(super) fn is_in_git(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == ".git")
}

/// Lists the relevant names in `directory`. Skips the data directories of a nested repository.
pub(super) fn relevant_names(directory: &OwnedFd, in_git: bool) -> std::io::Result<Vec<OsString>> {
    let mut names = openat::names(directory, MAX_ENTRIES + 1)?;
    if in_git && ["HEAD", "config"].iter().all(|name| names.iter().any(|found| found == name)) {
        names.retain(|name| !BULK.iter().any(|bulk| name == bulk));
    }
    Ok(names)
}
