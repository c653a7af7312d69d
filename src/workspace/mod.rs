//! The project directory: confined paths, bounded reads, atomic writes, search.

pub mod baseline;
pub mod content_store;
pub mod copy;
pub mod error;
pub mod executables;
pub mod file;
pub mod index;
pub mod leftovers;
pub mod path;
pub mod path_variants;
pub mod replace;
mod replace_target;
mod repository;
pub mod restore;
pub mod root_dir;
pub mod search;
pub mod snapshot;
mod staged_file;
mod temp_file;
pub mod transaction;
pub mod undo_log;
pub mod walk;

use crate::process::sandbox::protected_names::protected_link_target;
use crate::process::sandbox::repositories;
use content_store::ContentStore;
use error::{FileError, WorkspaceError};
use path::{PathError, RelPath};
use root_dir::RootDir;
use rustix::fs::{AtFlags, Mode, OFlags};
use search::PathFilter;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The project directory, held open by descriptor; a clone is the same directory.
#[derive(Debug, Clone)]
pub struct Workspace(Arc<Inner>);

struct Inner {
    opened_as: PathBuf,
    root: PathBuf,
    root_dir: RootDir,
    guard: OnceLock<FileProtection>,
    repositories: OnceLock<RepositoryCheck>,
    /// Where transactions are recorded.
    records: OnceLock<PathBuf>,
    /// Where what changes displace is kept.
    content_store: OnceLock<ContentStore>,
}

/// Tells whether a directory, by its absolute path, was that of a repository before it was changed.
type RepositoryCheck = Box<dyn Fn(&Path) -> bool + Send + Sync>;

/// Which files are kept from tools, by the paths they really have: a link may lead elsewhere by the time it is followed
/// than when it was judged.
pub struct FileProtection {
    /// Neither shown nor changed.
    pub sensitive: PathFilter,
    /// Not changed.
    pub protected: PathFilter,
    /// What is not changed by its path from the root, and so wherever links lead that path.
    pub named: Vec<PathBuf>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace").field("root", &self.root).finish_non_exhaustive()
    }
}

impl Workspace {
    /// Opens `root`.
    ///
    /// # Errors
    /// When it does not exist, is not a directory or cannot be read; each says so.
    pub fn open(root: &Path) -> Result<Self, WorkspaceError> {
        let shown = root.display().to_string();
        let canonical = root.canonicalize().map_err(|error| WorkspaceError::new(&shown, error))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(&canonical, flags, Mode::empty())
            .map_err(|error| WorkspaceError::new(&shown, error.into()))?;
        let given = std::path::absolute(root).unwrap_or_else(|_| canonical.clone());
        let (root_dir, guard, repositories) = (RootDir::new(dir), OnceLock::new(), OnceLock::new());
        let (records, displaced) = (OnceLock::new(), OnceLock::new());
        let inner = Inner {
            opened_as: given,
            root: canonical,
            root_dir,
            guard,
            repositories,
            records,
            content_store: displaced,
        };
        Ok(Self(Arc::new(inner)))
    }

    /// Keeps files from whoever opens or changes files from now on; only the first guard counts.
    pub fn protect_files(&self, guard: FileProtection) {
        let _first = self.0.guard.set(guard);
    }

    /// Takes for a repository, from now on, also what `repositories` tells was one; only the first counts.
    pub fn set_repository_check(&self, repositories: impl Fn(&Path) -> bool + Send + Sync + 'static) {
        let _first = self.0.repositories.set(Box::new(repositories));
    }

    /// Records transactions in `dir` from now on, outside of the workspace; only the first directory counts.
    pub fn set_undo_log_dir(&self, dir: PathBuf) {
        let _first = self.0.records.set(dir);
    }

    /// Keeps what changes displace from now on, so that they can be undone; only the first place counts.
    pub fn set_content_store(&self, contents: ContentStore) {
        let _first = self.0.content_store.set(contents);
    }

    /// Where what changes displace is kept; nothing where nobody asked for it.
    pub fn content_store(&self) -> Option<&ContentStore> {
        self.0.content_store.get()
    }

    /// Whether the file that is really at `path` is kept from being shown, or from being changed.
    fn is_protected(&self, path: &RelPath, changes: bool) -> bool {
        self.0.guard.get().is_some_and(|guard| {
            (guard.sensitive)(path.as_str()) || changes && (guard.protected)(path.as_str())
        })
    }

    /// Whether a protected name that is a link leads to `real`, or to a directory above it.
    fn is_protected_link_target(&self, real: &RelPath) -> bool {
        let real = self.root().join(real.as_str());
        let named = self.0.guard.get().map_or(&[][..], |guard| &guard.named);
        let repository = self.root().join(repositories::GIT);
        let of_git = repositories::config_paths(&repository);
        let mut names = named.iter().map(|name| self.root().join(name)).chain(of_git);
        names.any(|name| {
            protected_link_target(&name, self.root()).is_some_and(|place| real.starts_with(place))
        })
    }

    /// The canonical absolute path of the root.
    pub fn root(&self) -> &Path {
        &self.0.root
    }

    /// The path that `raw`, as a model wrote it, means inside the workspace. Looks at the text only.
    ///
    /// # Errors
    /// When it is empty, holds a NUL byte, is too long or leads out of the workspace.
    pub fn path(&self, raw: &str) -> Result<RelPath, PathError> {
        RelPath::parse(raw, &[&self.0.opened_as, &self.0.root])
    }

    /// `path` with every symbolic link on the way replaced by what it points to; parts that do not exist stay.
    ///
    /// # Errors
    /// When a link leads out of the workspace or in a circle, or a directory cannot be searched.
    pub fn resolve(&self, path: &RelPath) -> Result<RelPath, FileError> {
        self.0.root_dir.resolve(path, root_dir::LastLink::Follow).map_err(|error| FileError::at(path, error))
    }

    /// As [`resolve`](Self::resolve), but a link that is the last part of `path` stays.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve).
    pub fn resolve_directory(&self, path: &RelPath) -> Result<RelPath, FileError> {
        self.0
            .root_dir
            .resolve(path, root_dir::LastLink::NoFollow)
            .map_err(|error| FileError::at(path, error))
    }

    /// Whether `path`, which must hold no link, is a directory that may be read.
    pub fn is_directory(&self, path: &RelPath) -> bool {
        self.0.root_dir.open_directory(path).is_ok()
    }

    /// Whether there is something at `path`, reached without leaving the workspace.
    fn is_there(&self, path: &RelPath) -> bool {
        let Ok(real) = self.resolve_directory(path) else { return false };
        let Some((parent, name)) = real.split_last() else { return true };
        let Ok(directory) = self.0.root_dir.open_directory(&parent) else { return false };
        rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// The held directory, for the modules that work below it.
    fn root_dir(&self) -> &RootDir {
        &self.0.root_dir
    }

    /// The same directory through the slow paths that need neither openat2 nor renameat2.
    #[cfg(test)]
    fn open_with_old_calls(root: &Path) -> Self {
        let workspace = Self::open(root).unwrap();
        workspace.root_dir().disable_new_syscalls();
        workspace
    }
}

#[cfg(test)]
#[path = "workspace_tests.rs"]
mod tests;
