//! Project directory: confined paths, bounded reads, atomic writes, search.

pub mod baseline;
pub mod baseline_file;
pub mod content_store;
pub mod copy;
pub mod error;
pub mod executables;
pub mod file;
pub mod git;
mod git_index;
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

use agent_process::sandbox::protected_names::protected_link_target;
use agent_process::sandbox::repositories;
use content_store::ContentStore;
use error::{FileError, WorkspaceError};
use path::{PathError, RelPath};
use root_dir::RootDir;
use rustix::fs::{AtFlags, Mode, OFlags};
use search::PathFilter;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Project directory, held open by descriptor. Clones share the directory.
#[derive(Debug, Clone)]
pub struct Workspace(Arc<Inner>);

struct Inner {
    opened_as: PathBuf,
    root: PathBuf,
    root_dir: RootDir,
    guard: OnceLock<FileProtection>,
    repositories: OnceLock<RepositoryCheck>,
    /// Directory of transaction records.
    records: OnceLock<PathBuf>,
    /// Store of replaced contents.
    content_store: OnceLock<ContentStore>,
}

/// Checks whether a directory, by its absolute path, was part of a repository before it was changed.
type RepositoryCheck = Box<dyn Fn(&Path) -> bool + Send + Sync>;

/// File access rules for tools, applied to real paths, because the target of a link may change between check and use.
pub struct FileProtection {
    /// Files that are neither shown nor changed.
    pub sensitive: PathFilter,
    /// Files that are not changed.
    pub protected: PathFilter,
    /// Paths from the root that are not changed, including the targets of their links.
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
    /// Fails if it does not exist, is not a directory or cannot be read. Each has its own message.
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

    /// Sets the file access rules. Only the first call has an effect.
    pub fn protect_files(&self, guard: FileProtection) {
        let _first = self.0.guard.set(guard);
    }

    /// Sets an additional check for directories that were repositories. Only the first call has an effect.
    pub fn set_repository_check(&self, repositories: impl Fn(&Path) -> bool + Send + Sync + 'static) {
        let _first = self.0.repositories.set(Box::new(repositories));
    }

    /// Records transactions in `dir`, which is outside the workspace. Only the first call has an effect.
    pub fn set_undo_log_dir(&self, dir: PathBuf) {
        let _first = self.0.records.set(dir);
    }

    /// Stores replaced contents in `contents`, so that changes can be undone. Only the first call has an effect.
    pub fn set_content_store(&self, contents: ContentStore) {
        let _first = self.0.content_store.set(contents);
    }

    /// Returns the store of replaced contents, if set.
    pub fn content_store(&self) -> Option<&ContentStore> {
        self.0.content_store.get()
    }

    /// Checks whether the file at the real path `path` must not be shown, or with `changes` must not be changed.
    fn is_protected(&self, path: &RelPath, changes: bool) -> bool {
        self.is_sensitive(path.as_str())
            || changes && self.0.guard.get().is_some_and(|guard| (guard.protected)(path.as_str()))
    }

    /// Checks whether the file at the real path `path` must not be shown.
    fn is_sensitive(&self, path: &str) -> bool {
        self.0.guard.get().is_some_and(|guard| (guard.sensitive)(path))
    }

    /// Checks whether a protected name is a link to `real` or to a directory above it.
    fn is_protected_link_target(&self, real: &RelPath) -> bool {
        let real = self.root().join(real.as_str());
        let named = self.0.guard.get().map_or(&[][..], |guard| &guard.named);
        let repository = self.root().join(repositories::GIT);
        let of_git = repositories::config_paths(&repository);
        let mut names = named.iter().map(|name| self.root().join(name)).chain(of_git);
        names.any(|name| {
            protected_link_target(&name, self.root()).is_some_and(|target| real.starts_with(target))
        })
    }

    /// Returns the canonical absolute path of the root.
    pub fn root(&self) -> &Path {
        &self.0.root
    }

    /// Parses `raw`, a path written by the model, as a path in the workspace. Checks only the text.
    ///
    /// # Errors
    /// Fails if it is empty, contains a NUL byte, is too long or leads out of the workspace.
    pub fn path(&self, raw: &str) -> Result<RelPath, PathError> {
        RelPath::parse(raw, &[&self.0.opened_as, &self.0.root])
    }

    /// Returns `path` with every symbolic link replaced by its target. Missing parts remain.
    ///
    /// # Errors
    /// Fails if a link leads out of the workspace or in a circle, or a directory cannot be searched.
    pub fn resolve(&self, path: &RelPath) -> Result<RelPath, FileError> {
        self.0.root_dir.resolve(path, root_dir::LastLink::Follow).map_err(|error| FileError::at(path, error))
    }

    /// Like [`resolve`](Self::resolve), but keeps a link that is the last part of `path`.
    ///
    /// # Errors
    /// Fails like [`resolve`](Self::resolve).
    pub fn resolve_directory(&self, path: &RelPath) -> Result<RelPath, FileError> {
        self.0
            .root_dir
            .resolve(path, root_dir::LastLink::NoFollow)
            .map_err(|error| FileError::at(path, error))
    }

    /// Checks whether `path`, which must contain no link, is a readable directory.
    pub fn is_directory(&self, path: &RelPath) -> bool {
        self.0.root_dir.open_directory(path).is_ok()
    }

    /// Checks whether `path` exists, without leaving the workspace.
    fn is_there(&self, path: &RelPath) -> bool {
        let Ok(real) = self.resolve_directory(path) else { return false };
        let Some((parent, name)) = real.split_last() else { return true };
        let Ok(directory) = self.0.root_dir.open_directory(&parent) else { return false };
        rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Returns the open directory, for modules that open files below it.
    fn root_dir(&self) -> &RootDir {
        &self.0.root_dir
    }

    /// Opens the directory with the slow paths that need neither openat2 nor renameat2.
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
