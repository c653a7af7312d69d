//! Snapshot of the workspace files' metadata, to find what a command changed.
//!
//! As in git's index, a file is known by its size, mode, times and inode. Programs can set the modification time, but not the
//! change time. A file that changed just before the scan may change again within one tick of the clock of file timestamps: its
//! metadata are not reliable, and its content is read again.

use crate::file::ContentHash;
use crate::walk::{IGNORE_FILES, IgnoreRules, NEVER_WALKED, has_plain_ignore_files};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Dir, DirEntry, FileType, Mode, OFlags, Stat};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Maximum number of entries. A larger workspace is not compared, because that would take too long.
const MAX_ENTRIES: usize = 50_000;

/// Time limit for one scan of all files.
const MAX_TIME: Duration = Duration::from_millis(150);

/// Number of entries of a directory between two checks of the clock.
const CLOCK_INTERVAL: usize = 256;

/// File that marks a directory as a tool's cache (bford.info/cachedir), such as cargo's `target`.
pub(super) const CACHE_TAG: &str = "CACHEDIR.TAG";

/// Upper bound for the resolution of file timestamps, and for that of file systems that store whole seconds.
const TICK: Duration = Duration::from_millis(20);
const COARSE_TICK: Duration = Duration::from_secs(2);

/// Metadata of every file and link that is not ignored, with the known contents, and the existing directories.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Files in the order of [`compare_paths`].
    pub(super) files: Vec<FileEntry>,
    pub(super) directories: BTreeSet<String>,
    /// Files and directories that were left out: ignored, caches, or unreadable.
    pub(super) left_out: Vec<PathBuf>,
    /// Wall clock before the scan, since the Unix epoch.
    pub(super) began: Duration,
}

/// File or link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// Path from the root.
    pub path: Box<str>,
    /// Metadata at the scan.
    pub stamp: FileStamp,
    /// Hash of the content, if it is stored.
    pub hash: Option<ContentHash>,
}

/// Metadata of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// Size in bytes.
    pub size: u64,
    /// Kind and permission bits (`st_mode`).
    pub mode: u32,
    pub(super) inode: u64,
    pub(super) modified: Timestamp,
    pub(super) changed: Timestamp,
}

/// Time of a file in seconds and nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timestamp {
    pub(super) seconds: i64,
    pub(super) nanoseconds: u32,
}

/// File that differs between two snapshots, or may differ: its indexes in both. `None` if it does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// Index before.
    pub before: Option<usize>,
    /// Index after.
    pub after: Option<usize>,
}

impl Snapshot {
    /// Scans every file below `root`; `now` is the time since the Unix epoch. `None` if there are too many.
    pub fn take(root: &Path, now: Duration) -> Option<Self> {
        Self::take_up_to(MAX_ENTRIES, root, now)
    }

    fn take_up_to(entries: usize, root: &Path, now: Duration) -> Option<Self> {
        let mut scan = Scan {
            root,
            snapshot: Self { began: now, ..Self::default() },
            remaining: entries,
            began: Instant::now(),
            has_rules: has_plain_ignore_files(root),
            pending: vec![PendingDirectory { path: Vec::new(), rules: None }],
            is_lossy: false,
        };
        while let Some(directory) = scan.pending.pop() {
            scan.add_directory(&directory)?;
        }
        Some(scan.finish())
    }

    /// Takes the hashes of files whose metadata show that they have not changed since the snapshot `before`.
    pub fn take_hashes(&mut self, before: &Self) {
        let mut earlier = before.files.iter().peekable();
        for file in &mut self.files {
            while earlier.next_if(|it| compare_paths(&it.path, &file.path) == Ordering::Less).is_some() {}
            if let Some(known) = earlier.next_if(|it| it.path == file.path)
                && known.stamp == file.stamp
                && before.is_reliable(&known.stamp)
            {
                file.hash = known.hash;
            }
        }
    }

    /// Checks whether `other` has the same files with the same contents, and the same directories.
    pub fn has_same_files(&self, other: &Self) -> bool {
        self.files == other.files && self.directories == other.directories
    }

    /// Checks whether another change of the file after the scan began would also change `stamp`.
    pub(super) fn is_reliable(&self, stamp: &FileStamp) -> bool {
        let tick = if stamp.changed.nanoseconds == 0 { COARSE_TICK } else { TICK };
        stamp.changed().saturating_add(tick) < self.began
    }

    /// Counts the parent directories of `path`, from the innermost, that are not in this snapshot.
    pub fn missing_directories(&self, path: &str) -> u32 {
        let above = Path::new(path).ancestors().skip(1).filter_map(Path::to_str);
        let missing = above.take_while(|directory| !self.directories.contains(*directory)).count();
        u32::try_from(missing).unwrap_or(u32::MAX)
    }

    /// Returns the files that differ in `after`, and those that may differ although their metadata are the same: first the removed
    /// files, then the others, by path.
    pub fn differences(&self, after: &Self) -> Vec<Difference> {
        let (mut gone, mut new) = (Vec::new(), Vec::new());
        let (mut before, mut now) =
            (self.files.iter().enumerate().peekable(), after.files.iter().enumerate().peekable());
        loop {
            let order = match (before.peek(), now.peek()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((_, was)), Some((_, is))) => compare_paths(&was.path, &is.path),
            };
            let was = if order == Ordering::Greater { None } else { before.next() };
            let is = if order == Ordering::Less { None } else { now.next() };
            let difference = Difference { before: was.map(|(at, _)| at), after: is.map(|(at, _)| at) };
            match (was, is) {
                (Some((_, was)), Some((_, is))) if was.stamp == is.stamp && self.is_same(was) => {}
                (Some((_, was)), None) => gone.push((&was.path, difference)),
                (_, Some((_, is))) => new.push((&is.path, difference)),
                (None, None) => break,
            }
        }
        gone.sort_by_key(|(path, _)| *path);
        new.sort_by_key(|(path, _)| *path);
        gone.into_iter().chain(new).map(|(_, difference)| difference).collect()
    }

    /// Checks whether `file`, whose metadata did not change, is known to be the same. Without its content nothing can be compared.
    fn is_same(&self, file: &FileEntry) -> bool {
        file.hash.is_none() || self.is_reliable(&file.stamp)
    }
}

impl FileStamp {
    /// Returns the time of the last change of the inode, since the Unix epoch.
    pub fn changed(&self) -> Duration {
        let Timestamp { seconds, nanoseconds } = self.changed;
        Duration::new(u64::try_from(seconds).unwrap_or(0), nanoseconds)
    }

    /// Checks whether it is that of a link.
    pub fn is_link(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::Symlink
    }

    #[expect(clippy::useless_conversion, reason = "the types differ between systems")]
    fn of(stat: &Stat) -> Self {
        let nanoseconds = |nanoseconds| u32::try_from(nanoseconds).unwrap_or(0);
        Self {
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mode: stat.st_mode.into(),
            inode: stat.st_ino,
            modified: Timestamp { seconds: stat.st_mtime, nanoseconds: nanoseconds(stat.st_mtime_nsec) },
            changed: Timestamp { seconds: stat.st_ctime, nanoseconds: nanoseconds(stat.st_ctime_nsec) },
        }
    }
}

/// Compares two paths in the order of a scan: the files of a directory, then its directories, both by name.
pub(super) fn compare_paths(a: &str, b: &str) -> Ordering {
    // Nearly all paths that are compared are equal.
    if a == b {
        return Ordering::Equal;
    }
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let shared = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (a.get(shared..).unwrap_or_default(), b.get(shared..).unwrap_or_default());
    let key = |byte: Option<&u8>| byte.map(|byte| if *byte == b'/' { 0 } else { *byte });
    let by_kind = a.contains(&b'/').cmp(&b.contains(&b'/'));
    by_kind.then_with(|| key(a.first()).cmp(&key(b.first())))
}

/// Scan in progress.
struct Scan<'a> {
    root: &'a Path,
    snapshot: Snapshot,
    /// Number of further entries that are allowed.
    remaining: usize,
    began: Instant,
    /// Whether ignore files apply.
    has_rules: bool,
    /// Directories to scan, the next one last.
    pending: Vec<PendingDirectory>,
    /// Whether a name is not UTF-8.
    is_lossy: bool,
}

struct PendingDirectory {
    /// Path from the root. Empty for the root itself.
    path: Vec<u8>,
    rules: Option<Arc<IgnoreRules>>,
}

impl Scan<'_> {
    /// Adds a directory and its entries. `None` if they are too many. One that cannot be read has none.
    fn add_directory(&mut self, directory: &PendingDirectory) -> Option<()> {
        let is_root = directory.path.is_empty();
        let absolute = self.root.join(OsStr::from_bytes(&directory.path));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(CWD, &absolute, flags, Mode::empty()).ok();
        let names = opened.as_ref().map_or(Some(Vec::new()), |opened| self.names(opened))?;
        let has = |name: &str| names.iter().any(|found| found.file_name().to_bytes() == name.as_bytes());
        let has_ignore_file = IGNORE_FILES.into_iter().any(has);
        let is_cache = !is_root && has(CACHE_TAG) && absolute.join(CACHE_TAG).exists();
        if is_cache || !is_root && has_ignore_file && !has_plain_ignore_files(&absolute) {
            self.leave_out(&directory.path);
            return Some(());
        }
        if !is_root {
            self.remaining = self.remaining.checked_sub(1)?;
        }
        self.snapshot.directories.insert(String::from_utf8_lossy(&directory.path).into_owned());
        let rules = if has_ignore_file && self.has_rules {
            IgnoreRules::read(&absolute, directory.rules.clone())
        } else {
            directory.rules.clone()
        };
        let Some(opened) = opened else {
            self.leave_out(&directory.path);
            return Some(());
        };
        let first = self.pending.len();
        for (count, entry) in names.iter().enumerate() {
            if count % CLOCK_INTERVAL == 0 && self.began.elapsed() > MAX_TIME {
                return None;
            }
            let name = entry.file_name();
            let path = joined(&directory.path, name.to_bytes());
            let kind = kind_of(&opened, name, entry.file_type());
            let is_directory = kind == FileType::Directory;
            let is_never_walked = || NEVER_WALKED.iter().any(|never| name.to_bytes() == never.as_bytes());
            let is_ignored = rules
                .as_ref()
                .is_some_and(|rules| rules.ignores(&self.root.join(OsStr::from_bytes(&path)), is_directory));
            if is_ignored || is_directory && is_never_walked() {
                self.leave_out(&path);
                continue;
            }
            if is_directory {
                self.pending.push(PendingDirectory { path, rules: rules.clone() });
                continue;
            }
            self.remaining = self.remaining.checked_sub(1)?;
            if matches!(kind, FileType::RegularFile | FileType::Symlink) {
                self.add_file(&opened, name, path);
            }
        }
        if let Some(found) = self.pending.get_mut(first..) {
            found.reverse();
        }
        Some(())
    }

    fn leave_out(&mut self, path: &[u8]) {
        self.snapshot.left_out.push(Path::new(OsStr::from_bytes(path)).to_owned());
    }

    /// Returns the names in a directory, sorted: those before the first that cannot be read. `None` if they are too many.
    fn names(&self, directory: &OwnedFd) -> Option<Vec<DirEntry>> {
        let mut names = Vec::new();
        let entries = Dir::read_from(directory).into_iter().flatten();
        for entry in entries.map_while(Result::ok) {
            if names.len() % CLOCK_INTERVAL == CLOCK_INTERVAL - 1 && self.began.elapsed() > MAX_TIME {
                return None;
            }
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                names.push(entry);
            }
        }
        names.sort_unstable_by(|a, b| a.file_name().cmp(b.file_name()));
        Some(names)
    }

    fn add_file(&mut self, directory: &OwnedFd, name: &CStr, path: Vec<u8>) {
        // A file that disappears during the scan is left out.
        let Ok(stat) = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else { return };
        let path = String::from_utf8(path).unwrap_or_else(|error| {
            self.is_lossy = true;
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        });
        self.snapshot.files.push(FileEntry { path: path.into(), stamp: FileStamp::of(&stat), hash: None });
    }

    /// Returns the snapshot. Names that are not UTF-8 are not in the order of their text, which need not be unique.
    fn finish(mut self) -> Snapshot {
        if self.is_lossy {
            self.snapshot.files.sort_by(|a, b| compare_paths(&a.path, &b.path));
            self.snapshot.files.dedup_by(|a, b| a.path == b.path);
        }
        self.snapshot
    }
}

fn joined(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if directory.is_empty() { b"" } else { b"/" };
    [directory, slash, name].concat()
}

/// Returns the kind of a file, which not every file system gives with its name.
fn kind_of(directory: &OwnedFd, name: &CStr, kind: FileType) -> FileType {
    if kind != FileType::Unknown {
        return kind;
    }
    let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.map_or(kind, |stat| FileType::from_raw_mode(stat.st_mode))
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;
