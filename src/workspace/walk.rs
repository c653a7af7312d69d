//! Walks the workspace tree as ripgrep does and lists directories, within limits, with counts of what was left out.

use crate::Workspace;
use crate::error::FileError;
use crate::path::RelPath;
use crate::replace::TEMPORARY_PREFIX;
use agent_process::sandbox::repositories::{GIT, resolve_git_link};
use globset::GlobMatcher;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::{DirEntry, WalkBuilder};
use rustix::fs::{AtFlags, Dir, FileType};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

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

/// Directories of built files, which a search leaves out; names that end with [`EGG_INFO`] too.
const BUILT: [&str; 2] = ["build", "dist"];
const EGG_INFO: &[u8] = b".egg-info";

/// Names of ignore files. Patterns in a file of the first name override those in a file of the second, also of a nested directory.
pub(super) const IGNORE_FILES: [&str; 2] = [".ignore", ".gitignore"];

/// Ignore file of a repository's directory.
const EXCLUDE: &str = "info/exclude";

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
    /// Number of entries left out because of ignore files or their names; everything below a directory counts as one.
    pub ignored: usize,
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
        let walk = self.walk(wanted.base, wanted.glob)?;
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
        listing.ignored = walk.ignored();
        Ok(listing)
    }

    /// Creates a walk of everything below `base` that a search for files matching `glob` may visit.
    pub(super) fn walk(&self, base: &RelPath, glob: Option<&GlobMatcher>) -> Result<Walk, FileError> {
        let base = self.literal_start(base, glob);
        let real = self.resolve(&base)?;
        let top = self.root().join(real.as_str());
        match self.open_file(&base) {
            Ok(_) | Err(FileError::Directory(_)) => {}
            Err(error) => return Err(error),
        }
        let filter = Arc::new(WalkFilter::new(&top, self.root()));
        let mut builder = WalkBuilder::new(top);
        let of_walk = Arc::clone(&filter);
        builder
            .standard_filters(false)
            .follow_links(false)
            .threads(std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS))
            .filter_entry(move |entry| of_walk.accepts(entry));
        // Other skipped directories can be walked if they are the base. A repository's data never.
        if real.is_git_internal() {
            builder.max_depth(Some(0));
        }
        Ok(Walk { builder, root: self.root().to_owned(), base, real, filter })
    }

    /// Returns the directory that the part of `glob` before its first wildcard names, from `base` or from the root. It is
    /// searched like a `base`, even if it is ignored. Without one directory of that name, returns `base`.
    fn literal_start(&self, base: &RelPath, glob: Option<&GlobMatcher>) -> RelPath {
        let pattern = glob.map_or("", |glob| glob.glob().glob());
        let directory = pattern.rsplit_once('/').map_or("", |(directory, _)| directory);
        let has_wildcard = |part: &&str| part.contains(['*', '?', '[', '{', '\\']);
        let named: Vec<&str> = directory.split('/').take_while(|part| !has_wildcard(part)).collect();
        if named.iter().any(|part| matches!(*part, "" | "." | "..")) {
            return base.clone();
        }
        let from_root = RelPath::from_parts(&named);
        let from_base = base.join(from_root.as_str());
        let mut starts: Vec<RelPath> = vec![from_base, from_root];
        starts.dedup();
        starts.retain(|start| {
            Path::new(start.as_str()).starts_with(base.as_str())
                && matches!(self.open_file(start), Err(FileError::Directory(_)))
        });
        if let [start] = &starts[..] { start.clone() } else { base.clone() }
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
    root: PathBuf,
    base: RelPath,
    real: RelPath,
    filter: Arc<WalkFilter>,
}

impl Walk {
    /// Returns the number of directories that were skipped because of their ignore files.
    pub(super) fn skipped(&self) -> usize {
        self.filter.unreadable.load(Ordering::Relaxed)
    }

    /// Returns the number of entries that ignore files or their names excluded.
    pub(super) fn ignored(&self) -> usize {
        self.filter.ignored.load(Ordering::Relaxed)
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

/// Decides which entries a walk visits. Counts the entries that it excludes.
struct WalkFilter {
    /// Rules for the entries of each visited directory.
    rules: RwLock<HashMap<PathBuf, Option<Arc<IgnoreRules>>>>,
    unreadable: AtomicUsize,
    ignored: AtomicUsize,
}

impl WalkFilter {
    /// Creates the filter of a walk from `top`, below the workspace root `root`. Ignore files apply from the root of the
    /// repository of `top`, or from `root` outside a repository. Those above a directory that they exclude do not apply in
    /// it: whoever names such a directory wants what is in it.
    fn new(top: &Path, root: &Path) -> Self {
        let first = top.ancestors().find(|directory| is_repository(directory)).unwrap_or(root);
        let directories: Vec<&Path> = top.ancestors().take_while(|dir| dir.starts_with(first)).collect();
        let mut rules: Option<Arc<IgnoreRules>> = None;
        for directory in directories.into_iter().rev() {
            let above = rules.filter(|rules| !rules.ignores(directory, true));
            rules = IgnoreRules::read_as_git(directory, above);
        }
        Self {
            rules: RwLock::new(HashMap::from([(top.to_owned(), rules)])),
            unreadable: AtomicUsize::new(0),
            ignored: AtomicUsize::new(0),
        }
    }

    /// Checks whether the walk visits `entry`. Excludes ignored entries, hidden directories below its start, caches, built
    /// files, and our temporary files.
    fn accepts(&self, entry: &DirEntry) -> bool {
        let name = entry.file_name();
        if entry.depth() == 0 {
            return true;
        }
        if name.as_encoded_bytes().starts_with(TEMPORARY_PREFIX.as_bytes()) || name == GIT {
            return false;
        }
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        let above = entry.path().parent().and_then(|directory| {
            self.rules.read().unwrap_or_else(PoisonError::into_inner).get(directory).cloned().flatten()
        });
        let is_skipped = is_directory && is_skipped_directory(name);
        if is_skipped || above.as_ref().is_some_and(|rules| rules.ignores(entry.path(), is_directory)) {
            self.ignored.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        if !is_directory {
            return true;
        }
        if !has_plain_ignore_files(entry.path()) {
            self.unreadable.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        let rules = IgnoreRules::read_as_git(entry.path(), above);
        let mut known = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(entry.path().to_owned(), rules);
        true
    }
}

/// Checks whether a search leaves out a directory with this name, unless it starts there.
fn is_skipped_directory(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    let is_one_of = |names: &[&str]| names.iter().any(|one| bytes == one.as_bytes());
    bytes.starts_with(b".") || is_one_of(&NEVER_WALKED) || is_one_of(&BUILT) || bytes.ends_with(EGG_INFO)
}

fn is_repository(directory: &Path) -> bool {
    directory.join(GIT).symlink_metadata().is_ok()
}

/// Ignore files of one directory, and of those above it.
pub(super) struct IgnoreRules {
    above: Option<Arc<IgnoreRules>>,
    /// Rules of `.ignore`, `.gitignore` and, in the root of a repository, `info/exclude`: in order of precedence.
    files: Vec<Gitignore>,
}

impl IgnoreRules {
    /// Reads the ignore files of `directory`, to which the rules `above` apply too. `None` if no rule applies.
    pub(super) fn read(directory: &Path, above: Option<Arc<Self>>) -> Option<Arc<Self>> {
        Self::read_files(directory, IGNORE_FILES.map(|name| directory.join(name)).to_vec(), above)
    }

    /// Reads the ignore files of `directory` as git does: the rules `above` do not apply in another repository.
    fn read_as_git(directory: &Path, above: Option<Arc<Self>>) -> Option<Arc<Self>> {
        let mut names = IGNORE_FILES.map(|name| directory.join(name)).to_vec();
        let git = directory.join(GIT);
        let above = above.filter(|_| !is_repository(directory));
        if git.is_dir() && !git.is_symlink() {
            names.push(git.join(EXCLUDE));
        } else if let Some(link) = resolve_git_link(&git) {
            names.push(link.common.unwrap_or(link.directory).join(EXCLUDE));
        }
        Self::read_files(directory, names, above)
    }

    fn read_files(directory: &Path, names: Vec<PathBuf>, above: Option<Arc<Self>>) -> Option<Arc<Self>> {
        let files: Vec<Gitignore> = names.into_iter().map(|file| rules_of(directory, &file)).collect();
        if files.iter().all(Gitignore::is_empty) {
            return above;
        }
        Some(Arc::new(Self { above, files }))
    }

    /// Checks whether the absolute path `path` is excluded. Of the files with the same name, the innermost one with a matching
    /// pattern decides.
    pub(super) fn ignores(&self, path: &Path, is_directory: bool) -> bool {
        let of_kind = |kind| {
            let files = iter::successors(Some(self), |rules| rules.above.as_deref())
                .filter_map(move |rules| rules.files.get(kind));
            files.map(|file: &Gitignore| file.matched(path, is_directory)).find(|matched| !matched.is_none())
        };
        let decisive = (0..3).find_map(of_kind);
        decisive.is_some_and(|matched| matched.is_ignore())
    }
}

/// Reads the patterns for `directory` in the ignore file `file`. A file that is missing or not plain has none.
fn rules_of(directory: &Path, file: &Path) -> Gitignore {
    let mut builder = GitignoreBuilder::new(directory);
    if file.symlink_metadata().is_ok() && is_plain_or_absent(file) {
        // Patterns that it cannot parse are skipped, as in git.
        let _ = builder.add(file);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// Checks whether the ignore files of `dir` can be read safely. A link to a device, a pipe or a huge file would block the walk.
pub(super) fn has_plain_ignore_files(dir: &Path) -> bool {
    IGNORE_FILES.iter().all(|name| is_plain_or_absent(&dir.join(name)))
}

fn is_plain_or_absent(path: &Path) -> bool {
    path.symlink_metadata().map_or(true, |file| file.is_file() && file.len() <= MAX_IGNORE_FILE_BYTES)
}

fn kind_of(directory: &rustix::fd::OwnedFd, name: &std::ffi::CStr) -> EntryKind {
    match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => EntryKind::Directory,
        _ => EntryKind::File,
    }
}
