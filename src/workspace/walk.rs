//! Walks the workspace tree as ripgrep does and lists directories, within limits, with counts of what was left out.

use crate::workspace::Workspace;
use crate::workspace::error::FileError;
use crate::workspace::path::RelPath;
use crate::workspace::replace::TEMPORARY_PREFIX;
use globset::GlobMatcher;
use ignore::{DirEntry, WalkBuilder};
use rustix::fs::{AtFlags, Dir, FileType};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Directories that are never walked: a repository's own data, and caches for programs only.
pub const NEVER_WALKED: [&str; 10] = [
    ".git",
    ".hypothesis",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".tox",
    ".venv",
    "__pycache__",
    "node_modules",
    "venv",
];

/// Maximum number of entries visited in one walk. A larger tree is truncated, and the result reports it.
pub const MAX_ENTRIES: usize = 500_000;

/// Largest ignore file to read, in bytes.
const MAX_IGNORE_FILE_BYTES: u64 = 1024 * 1024;

/// Maximum number of threads per walk. More do not help on one disk.
const MAX_THREADS: usize = 8;

/// Kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// Directory.
    Directory,
    /// Regular file or symbolic link.
    File,
}

/// Entry of a listing, ordered by path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Path from the workspace root.
    pub path: RelPath,
    /// Kind of the entry.
    pub kind: EntryKind,
}

/// Entries found, sorted by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Entries, at most as many as requested.
    pub entries: Vec<Entry>,
    /// Number of all entries, including those left out.
    pub total: usize,
    /// Number of directories left out because they, or their ignore files, could not be read.
    pub unreadable: usize,
    /// Whether the walk ended early: too many entries, or it was stopped.
    pub is_incomplete: bool,
}

impl Listing {
    /// Adds an entry and retains only the first `most` by path.
    fn add(found: &mut BTreeSet<Entry>, entry: Entry, most: usize) {
        found.insert(entry);
        if found.len() > most {
            found.pop_last();
        }
    }
}

impl Workspace {
    /// Lists the entries of the directory `path`, including hidden and ignored ones.
    ///
    /// # Errors
    /// Fails if it is missing, not a directory, outside the workspace or unreadable.
    pub fn list(
        &self,
        path: &RelPath,
        glob: Option<&GlobMatcher>,
        most: usize,
    ) -> Result<Listing, FileError> {
        let real = self.resolve(path)?;
        let io = |error: rustix::io::Errno| FileError::io(path, "list", error.into());
        let directory = self.root_dir().open_directory(&real).map_err(io)?;
        let (mut found, mut listing) = (BTreeSet::new(), Listing::default());
        for (visited, entry) in Dir::read_from(&directory).map_err(io)?.enumerate() {
            if visited >= MAX_ENTRIES {
                listing.is_incomplete = true;
                break;
            }
            let entry = entry.map_err(io)?;
            let name = entry.file_name().to_string_lossy();
            let matched = glob.is_none_or(|glob| glob.is_match(Path::new(name.as_ref())));
            if matches!(name.as_ref(), "." | "..") || name.starts_with(TEMPORARY_PREFIX) || !matched {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Directory => EntryKind::Directory,
                FileType::Unknown => kind_of(&directory, entry.file_name()),
                _ => EntryKind::File,
            };
            listing.total += 1;
            Listing::add(&mut found, Entry { path: path.join(&name), kind }, most);
        }
        listing.entries = found.into_iter().collect();
        Ok(listing)
    }

    /// Finds the entries below `path`, or `path` itself if it is a file, whose name (or path, if the glob has a `/`) matches.
    ///
    /// # Errors
    /// Fails if `path` is missing, outside the workspace or unreadable.
    pub fn find(&self, wanted: &FindQuery<'_>, stop: &AtomicBool) -> Result<Listing, FileError> {
        let walk = self.walk(wanted.base)?;
        let (mut found, mut listing) = (BTreeSet::new(), Listing::default());
        for (visited, entry) in walk.builder.build().enumerate() {
            if visited >= MAX_ENTRIES || stop.load(Ordering::Relaxed) {
                listing.is_incomplete = true;
                break;
            }
            let Ok(entry) = entry else {
                listing.unreadable += 1;
                continue;
            };
            let directory = entry.file_type().is_some_and(|kind| kind.is_dir());
            let skipped = directory && (entry.depth() == 0 || !wanted.directories);
            let Some(path) = walk.path_of(&entry).filter(|_| !skipped) else { continue };
            if wanted.matches(&path) {
                listing.total += 1;
                let kind = if directory { EntryKind::Directory } else { EntryKind::File };
                Listing::add(&mut found, Entry { path, kind }, wanted.most);
            }
        }
        // The walk uses names, which may have led out temporarily, so each result is checked again through the open directory.
        let counted = found.len();
        listing.entries = found.into_iter().filter(|entry| self.is_there(&entry.path)).collect();
        listing.total -= counted - listing.entries.len();
        listing.unreadable += walk.skipped();
        Ok(listing)
    }

    /// Creates a walk of everything below `base` that a search may visit.
    pub(super) fn walk(&self, base: &RelPath) -> Result<Walk, FileError> {
        let real = self.resolve(base)?;
        let top = self.root().join(real.as_str());
        match self.open_file(base) {
            Ok(_) | Err(FileError::Directory(_)) => {}
            Err(error) => return Err(error),
        }
        let plain = real
            .parts()
            .scan(self.root().to_owned(), |dir, part| {
                dir.push(part);
                Some(dir.clone())
            })
            .chain([self.root().to_owned()])
            .all(|dir| has_plain_ignore_files(&dir));
        let refused = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&refused);
        let mut builder = WalkBuilder::new(top);
        builder
            .hidden(false)
            .ignore(plain)
            .git_ignore(plain)
            .parents(plain)
            // It would follow a `.git` file anywhere. The repository's own is added below.
            .git_exclude(false)
            .git_global(false)
            .require_git(false)
            .follow_links(false)
            .current_dir(self.root())
            .threads(std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS))
            .filter_entry(move |entry| is_walked(entry, &counter));
        let exclude = self.root().join(".git/info/exclude");
        if exclude.symlink_metadata().is_ok() && is_plain_or_absent(&exclude) {
            // Patterns that it cannot parse are skipped, as in git.
            let _ = builder.add_ignore(exclude);
        }
        // Other skipped directories can be walked if they are the base. A repository's data never.
        if real.is_git_internal() {
            builder.max_depth(Some(0));
        }
        Ok(Walk { builder, root: self.root().to_owned(), base: base.clone(), real, refused })
    }
}

/// Query for a search by name.
#[derive(Debug)]
pub struct FindQuery<'a> {
    /// Start of the search.
    pub base: &'a RelPath,
    /// Glob for the names. All if absent.
    pub glob: Option<&'a GlobMatcher>,
    /// Whether to include directories.
    pub directories: bool,
    /// Maximum number of entries to return.
    pub most: usize,
}

impl FindQuery<'_> {
    fn matches(&self, path: &RelPath) -> bool {
        self.glob.is_none_or(|glob| glob_matches(glob, self.base, path))
    }
}

/// Checks whether `glob` matches the name of `path`, or its path below `base` if the glob has a `/`.
pub fn glob_matches(glob: &GlobMatcher, base: &RelPath, path: &RelPath) -> bool {
    if glob.glob().glob().contains('/') {
        let below = Path::new(path.as_str()).strip_prefix(base.as_str()).unwrap_or(Path::new(path.as_str()));
        glob.is_match(below) || glob.is_match(path.as_str())
    } else {
        path.split_last().is_some_and(|(_, name)| glob.is_match(name))
    }
}

/// Walk, with the mapping of its entries to workspace paths.
pub(super) struct Walk {
    pub(super) builder: WalkBuilder,
    root: std::path::PathBuf,
    base: RelPath,
    real: RelPath,
    refused: Arc<AtomicUsize>,
}

impl Walk {
    /// Returns the number of directories that were skipped because of their ignore files.
    pub(super) fn skipped(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns the path of `entry` from the workspace root, based on the name with which its base was requested.
    pub(super) fn path_of(&self, entry: &DirEntry) -> Option<RelPath> {
        let from_root = entry.path().strip_prefix(&self.root).ok()?;
        let below = from_root.strip_prefix(self.real.as_str()).ok()?.to_str()?;
        Some(if below.is_empty() { self.base.clone() } else { self.base.join(below) })
    }
}

/// Creates a walk of everything below `root` that ignore files in it do not exclude.
pub(super) fn project_walk(root: &Path) -> WalkBuilder {
    let plain = has_plain_ignore_files(root);
    let mut builder = WalkBuilder::new(root);
    builder.hidden(false).ignore(plain).git_ignore(plain).parents(false);
    builder.require_git(false).git_global(false).git_exclude(false);
    builder
}

/// Checks whether a walk visits `entry`. Skips hidden directories below its start, caches, and our temporary files.
fn is_walked(entry: &DirEntry, refused: &AtomicUsize) -> bool {
    if entry.depth() == 0 {
        return true;
    }
    let name = entry.file_name();
    if entry.file_type().is_some_and(|kind| kind.is_dir()) {
        if is_hidden(name) || NEVER_WALKED.iter().any(|never| name == OsStr::new(never)) {
            return false;
        }
        let plain = has_plain_ignore_files(entry.path());
        refused.fetch_add(usize::from(!plain), Ordering::Relaxed);
        return plain;
    }
    !name.to_string_lossy().starts_with(TEMPORARY_PREFIX)
}

/// Checks whether the ignore files of `dir` can be read safely. A link to a device, a pipe or a huge file would block the walk.
pub(super) fn has_plain_ignore_files(dir: &Path) -> bool {
    [".gitignore", ".ignore"].iter().all(|name| is_plain_or_absent(&dir.join(name)))
}

fn is_plain_or_absent(path: &Path) -> bool {
    path.symlink_metadata().map_or(true, |file| file.is_file() && file.len() <= MAX_IGNORE_FILE_BYTES)
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().first() == Some(&b'.')
}

fn kind_of(directory: &rustix::fd::OwnedFd, name: &std::ffi::CStr) -> EntryKind {
    match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => EntryKind::Directory,
        _ => EntryKind::File,
    }
}
