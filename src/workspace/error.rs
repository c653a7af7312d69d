//! What can go wrong with the workspace and its files, worded for the model.

use crate::workspace::path::RelPath;
use crate::workspace::root_dir::ResolveError;
use std::io;

/// The workspace itself cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// There is nothing at that path.
    #[error("workspace does not exist: {0}")]
    Absent(String),
    /// It is a file or something else.
    #[error("workspace is not a directory: {0}")]
    NotDirectory(String),
    /// It may not be read.
    #[error("workspace cannot be read (permission denied): {0}")]
    Unreadable(String),
    /// Anything else.
    #[error("workspace cannot be opened: {path}: {source}")]
    Io {
        /// As it was given.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

impl WorkspaceError {
    /// The error that `source` means for the workspace at `path`.
    pub fn new(path: &str, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Self::Absent(path),
            io::ErrorKind::NotADirectory => Self::NotDirectory(path),
            io::ErrorKind::PermissionDenied => Self::Unreadable(path),
            _ => Self::Io { path, source },
        }
    }
}

/// A file of the workspace could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A link on the way leads out of the workspace.
    #[error(
        "Security error: Path '{0}' escapes the workspace through a symbolic link. Use a path that stays inside; absolute links are not followed."
    )]
    Escape(RelPath),
    /// The links on the way never end.
    #[error("Security error: Path '{0}' goes through too many symbolic links. Use a path without them.")]
    LinkLoop(RelPath),
    /// No tool writes into a repository's own data.
    #[error(
        "Security error: Path '{0}' is inside a .git directory; no tool writes there. Use git in run_command, or say in your answer what a person should change."
    )]
    GitInternal(RelPath),
    /// It decides what git does in a repository that is not called `.git`, or would make a directory one.
    #[error(
        "Security error: Path '{0}' is configuration of a repository, or makes its directory one; no tool writes there. Use git in run_command, or say in your answer what a person should change."
    )]
    Repository(RelPath),
    /// A protected name that is a link leads there.
    #[error(
        "Security error: Path '{0}' is what a protected name, such as .vscode, leads to through a link; no tool writes there. Say in your answer what a person should change."
    )]
    ProtectedLink(RelPath),
    /// It really is a file that is kept from tools.
    #[error("Security error: Path '{0}' leads to a file that is kept from tools. Go on without it.")]
    ProtectedFile(RelPath),
    /// There is nothing there.
    #[error("File does not exist: {0}")]
    Missing(RelPath),
    /// It is a directory.
    #[error("Path is not a regular file: {0} (it is a directory; list_files shows what is in it)")]
    Directory(RelPath),
    /// It is a pipe, device or socket.
    #[error("Path is not a regular file: {0} (it is a pipe, device or socket; no file tool opens one)")]
    Special(RelPath),
    /// A part of the path is not a directory.
    #[error("Path '{0}' leads through something that is not a directory.")]
    NotDirectory(RelPath),
    /// It is larger than what may be loaded.
    #[error("File {path} is too large: {size} bytes, the limit is {limit}.")]
    TooLarge {
        /// The file.
        path: RelPath,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// It is there although it should not be.
    #[error("File {0} already exists.")]
    Exists(RelPath),
    /// Its content is not what was expected; what is there now stays.
    #[error("File {path} changed since it was read: read it again, then repeat the change.{}", other_version_text(.other_version.as_ref()))]
    Changed {
        /// The file.
        path: RelPath,
        /// Where the content that could not be put back lies.
        other_version: Option<RelPath>,
    },
    /// Anything else.
    #[error("Cannot {action} {path}: {source}")]
    Io {
        /// The file.
        path: RelPath,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

fn other_version_text(kept: Option<&RelPath>) -> String {
    kept.map_or_else(String::new, |path| {
        format!(" Two programs wrote it at once; the other version is in {path}.")
    })
}

impl FileError {
    /// What `error`, met while walking to `path`, means.
    pub fn at(path: &RelPath, error: ResolveError) -> Self {
        match error {
            ResolveError::Escape => Self::Escape(path.clone()),
            ResolveError::LinkLoop => Self::LinkLoop(path.clone()),
            ResolveError::Io(error) => Self::io(path, "open", error.into()),
        }
    }

    /// What `source`, met while doing `action` to `path`, means.
    pub fn io(path: &RelPath, action: &'static str, source: io::Error) -> Self {
        let path = path.clone();
        match source.kind() {
            io::ErrorKind::NotFound => Self::Missing(path),
            io::ErrorKind::IsADirectory => Self::Directory(path),
            io::ErrorKind::NotADirectory => Self::NotDirectory(path),
            io::ErrorKind::AlreadyExists => Self::Exists(path),
            _ => Self::Io { path, action, source },
        }
    }
}
