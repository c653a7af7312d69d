//! The project directory: confined paths, bounded reads, atomic writes, search.

use std::path::{Component, Path, PathBuf};

/// The project directory, held open by descriptor.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
}

/// A path that was refused.
#[derive(Debug, thiserror::Error)]
#[error("Security error: Path '{0}' is not inside the workspace.")]
pub struct PathError(String);

/// A path below the workspace root; empty for the root.
#[derive(Debug)]
pub struct RelPath(String);

impl RelPath {
    /// The path; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Workspace {
    /// Opens `root`.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn open(root: &Path) -> std::io::Result<Self> {
        Ok(Self { root: root.canonicalize()? })
    }

    /// The canonical absolute path of the root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The path that `raw` means inside the workspace.
    ///
    /// # Errors
    /// When it leads out.
    pub fn path(&self, raw: &str) -> Result<RelPath, PathError> {
        let inside =
            Path::new(raw).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if inside { Ok(RelPath(raw.to_owned())) } else { Err(PathError(raw.to_owned())) }
    }

    /// `path` with its links followed.
    ///
    /// # Errors
    /// When a link leads out.
    pub fn resolve(&self, path: &RelPath) -> Result<RelPath, PathError> {
        let full = self.root.join(&path.0).canonicalize().unwrap_or_default();
        let below = full.strip_prefix(&self.root).ok().and_then(Path::to_str);
        below.map(|path| RelPath(path.to_owned())).ok_or_else(|| PathError(path.0.clone()))
    }
}
