//! What protected paths are before the commands that run at one time, with what is needed to put them back.

use super::openat;
use crate::process::sandbox::SandboxPolicy;
use crate::process::tier::Tier;
use rustix::fs::{FileType, Stat};
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// The bytes of protected files that are kept. Configuration is small; what is longer is told apart by its times and
/// cannot be put back.
const MAX_STORED_BYTES: u64 = 8 * 1024 * 1024;

/// The files that are looked at; a repository with many submodules has some thousand in `.git/modules` without objects.
const MAX_ENTRIES: usize = 10_000;

/// The depth to which directories are looked into; git's own are not deeper than branch names have slashes.
const MAX_DEPTH: usize = 24;

/// The bulk of repositories inside of a repository, where no program is configured.
const BULK: [&str; 4] = ["objects", "lfs", "logs", "refs"];

/// The step of the clock that file systems stamp files with is at most this long: a file that was changed within it may be
/// changed again without being given another time.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// Which of the protected paths need our care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of them.
    All,
    /// Those that do not exist, and links; mounts hold the others.
    Unmounted,
}

impl Extent {
    /// That of a command that `tier` holds; none where it is not confined.
    pub fn of(tier: Tier) -> Option<Self> {
        match tier {
            Tier::Full | Tier::Bubblewrap => Some(Self::Unmounted),
            Tier::Rules => Some(Self::All),
            Tier::Namespace | Tier::Subreaper | Tier::Group => None,
        }
    }
}

/// What one path was.
#[derive(Debug)]
pub(super) enum PathState {
    /// Nothing.
    Absent,
    /// Nothing, and what is protected is below it: a directory may come, anything else may not.
    AbsentDirectory,
    /// The directory above something protected.
    Ancestor(Stat, OwnedFd),
    /// A file; its bytes where they could be kept.
    File(FileStamp, Option<Vec<u8>>),
    /// A symbolic link.
    Link(CString),
    /// A directory, protected with all that is in it.
    Directory(Stat, BTreeMap<OsString, Self>),
    /// Something that cannot be made again, or was beyond the limits.
    Other(FileStamp),
}

/// How a file looked.
#[derive(Debug)]
pub(super) struct FileStamp {
    pub(super) stat: Stat,
    /// Whether the time of its last change would show another one.
    is_reliable: bool,
}

/// The protected paths before the commands that run at one time.
#[derive(Debug)]
pub struct Snapshot {
    pub(super) paths: BTreeMap<PathBuf, PathState>,
    /// The directory that may be changed, and by their path in it those that are put back only where the directory that they were
    /// in is.
    pub(super) workspace: PathBuf,
    pub(super) compared: BTreeMap<PathBuf, PathState>,
    /// Locked by the one guard that puts things back; two at once would find the other's work half done.
    pub(super) restore_lock: OwnedFd,
}

/// What may still be looked at and kept.
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

    /// Whether `now` is certainly the same file with the same content.
    pub(super) fn is_unchanged(&self, now: &Stat) -> bool {
        let key = |stat: &Stat| {
            let times = (stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec);
            (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mode, times)
        };
        self.is_reliable && key(&self.stat) == key(now)
    }
}

/// When `stat` was last changed, since 1970.
fn changed_at(stat: &Stat) -> Duration {
    let seconds = u64::try_from(stat.st_ctime).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_nanos(stat.st_ctime_nsec)
}

/// The time, since 1970, by the clock that files are stamped with.
#[expect(
    clippy::disallowed_methods,
    reason = "compared with the times of files, in a process that has no other clock"
)]
pub(super) fn now() -> Duration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}

impl Snapshot {
    /// The protected paths of `policy`, as far as they are of `extent`. What lies in no writable directory needs no care. Guards
    /// that put things back lock `restore_lock`.
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
            // What we cannot look at, the command cannot change: it has no more rights than we.
            let _not_reachable = taken.add((root, at), path, extent, &mut budget);
        }
        taken.compare(policy, &mut budget);
        taken
    }

    /// Adds those of `policy` that are only compared.
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

    /// Adds `path`, or the first above it, below `root`, that is no directory.
    fn add(
        &mut self,
        (root, root_handle): (&Path, &OwnedFd),
        path: &Path,
        extent: Extent,
        budget: &mut Budget,
    ) -> rustix::io::Result<()> {
        let mut here = root.to_owned();
        if !self.paths.contains_key(root) {
            let kept = root_handle.try_clone().map_err(|_| rustix::io::Errno::MFILE)?;
            self.paths.insert(root.to_owned(), PathState::Ancestor(rustix::fs::fstat(root_handle)?, kept));
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
            let kept = handle.try_clone().map_err(|_| rustix::io::Errno::MFILE)?;
            self.paths.entry(here.clone()).or_insert(PathState::Ancestor(stat, kept));
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

/// What `name` in `at` is.
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

/// Whether `path` is a part of a repository's own directory.
pub(super) fn is_in_git(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == ".git")
}

/// The names in `directory` that matter: of a repository inside of another, not its bulk.
pub(super) fn relevant_names(directory: &OwnedFd, in_git: bool) -> std::io::Result<Vec<OsString>> {
    let mut names = openat::names(directory, MAX_ENTRIES + 1)?;
    if in_git && ["HEAD", "config"].iter().all(|name| names.iter().any(|found| found == name)) {
        names.retain(|name| !BULK.iter().any(|bulk| name == bulk));
    }
    Ok(names)
}
