//! Walks the tree as ripgrep does and lists directories; bounded, never out of the workspace, honest about what it left out.

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

/// Directories that are never walked: a repository's own data, and caches that only programs read.
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

/// Entries visited in one walk; a tree with more is cut, and the answer says so.
pub const MAX_ENTRIES: usize = 500_000;

/// Largest ignore file that is read.
const MAX_IGNORE_FILE_BYTES: u64 = 1024 * 1024;

/// Threads of one walk; more do not help on one disk.
const MAX_THREADS: usize = 8;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file, or a symbolic link.
    File,
}

/// One entry of a listing; sorted by path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// From the workspace root.
    pub path: RelPath,
    /// What it is.
    pub kind: EntryKind,
}

/// The entries found, sorted by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// At most as many as asked for.
    pub entries: Vec<Entry>,
    /// How many there are, those left out included.
    pub total: usize,
    /// Directories left out because they, or their ignore files, could not be read.
    pub unreadable: usize,
    /// The walk ended early: too many entries, or it was told to stop.
    pub is_incomplete: bool,
}

impl Listing {
    /// Keeps the first `most` entries by path, however many are added.
    fn add(found: &mut BTreeSet<Entry>, entry: Entry, most: usize) {
        found.insert(entry);
        if found.len() > most {
            found.pop_last();
        }
    }
}

impl Workspace {
    /// The entries of the directory `path` itself, hidden and ignored ones included.
    ///
    /// # Errors
    /// When it is absent, not a directory, outside or unreadable.
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

    /// The entries below `path`, or `path` itself if it is a file, whose name (or path, if the glob has a `/`) matches.
    ///
    /// # Errors
    /// When `path` is absent, outside or unreadable.
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
        // The walk goes by names, which may have led out for a moment; what is told is looked at again from within.
        let counted = found.len();
        listing.entries = found.into_iter().filter(|entry| self.is_there(&entry.path)).collect();
        listing.total -= counted - listing.entries.len();
        listing.unreadable += walk.skipped();
        Ok(listing)
    }

    /// A walk of everything below `base` that a search may look at.
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
            // It would follow a `.git` file anywhere; the repository's own is added below.
            .git_exclude(false)
            .git_global(false)
            .require_git(false)
            .follow_links(false)
            .current_dir(self.root())
            .threads(std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS))
            .filter_entry(move |entry| is_walked(entry, &counter));
        let exclude = self.root().join(".git/info/exclude");
        if exclude.symlink_metadata().is_ok() && is_plain_or_absent(&exclude) {
            // Patterns it cannot read are left out, as git does.
            let _ = builder.add_ignore(exclude);
        }
        // Other directories that are not walked by themselves are when they are named; a repository's data never.
        if real.is_git_internal() {
            builder.max_depth(Some(0));
        }
        Ok(Walk { builder, root: self.root().to_owned(), base: base.clone(), real, refused })
    }
}

/// What a search for names wants.
#[derive(Debug)]
pub struct FindQuery<'a> {
    /// Where it begins.
    pub base: &'a RelPath,
    /// Which names; all when absent.
    pub glob: Option<&'a GlobMatcher>,
    /// Whether directories count.
    pub directories: bool,
    /// How many entries are kept.
    pub most: usize,
}

impl FindQuery<'_> {
    fn matches(&self, path: &RelPath) -> bool {
        self.glob.is_none_or(|glob| glob_matches(glob, self.base, path))
    }
}

/// Whether `glob` matches the name of `path`, or its path below `base` when the glob has a `/`.
pub fn glob_matches(glob: &GlobMatcher, base: &RelPath, path: &RelPath) -> bool {
    if glob.glob().glob().contains('/') {
        let below = Path::new(path.as_str()).strip_prefix(base.as_str()).unwrap_or(Path::new(path.as_str()));
        glob.is_match(below) || glob.is_match(path.as_str())
    } else {
        path.split_last().is_some_and(|(_, name)| glob.is_match(name))
    }
}

/// A walk, and how its entries are named.
pub(super) struct Walk {
    pub(super) builder: WalkBuilder,
    root: std::path::PathBuf,
    base: RelPath,
    real: RelPath,
    refused: Arc<AtomicUsize>,
}

impl Walk {
    /// How many directories were not entered because of their ignore files.
    pub(super) fn skipped(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    /// The path of `entry` from the workspace root, by the name its base was asked for.
    pub(super) fn path_of(&self, entry: &DirEntry) -> Option<RelPath> {
        let from_root = entry.path().strip_prefix(&self.root).ok()?;
        let below = from_root.strip_prefix(self.real.as_str()).ok()?.to_str()?;
        Some(if below.is_empty() { self.base.clone() } else { self.base.join(below) })
    }
}

/// Whether a walk goes on with `entry`: not into hidden directories below its start, caches, or our temporary files.
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

/// Whether the ignore files of `dir` can be read without harm: one that is a link to a device, a pipe or huge would
/// keep the walk for ever.
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
