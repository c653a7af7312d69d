//! Errors of the workspace and its files, with messages for the model.

use crate::path::RelPath;
use crate::root_dir::ResolveError;
use std::io;

/// Reasons why the workspace cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The path does not exist.
    #[error("workspace does not exist: {0}")]
    Absent(String),
    /// The path is a file or special file.
    #[error("workspace is not a directory: {0}")]
    NotDirectory(String),
    /// Permission denied.
    #[error("workspace cannot be read (permission denied): {0}")]
    Unreadable(String),
    /// Any other error.
    #[error("workspace cannot be opened: {path}: {source}")]
    Io {
        /// Path as given by the user.
        path: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl WorkspaceError {
    /// Converts `source` into the error for the workspace at `path`.
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

/// Reasons why a file of the workspace could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A link in the path points out of the workspace.
    #[error(
        "Security error: Path '{0}' escapes the workspace through a symbolic link. Use a path that stays inside; absolute links are not followed."
    )]
    Escape(RelPath),
    /// The path has too many links.
    #[error("Security error: Path '{0}' goes through too many symbolic links. Use a path without them.")]
    LinkLoop(RelPath),
    /// The path is in a repository's own directory, to which no tool writes.
    #[error(
        "Security error: Path '{0}' is inside a .git directory; no tool writes there. Use git through run_command, or describe the change in your answer for the user to make."
    )]
    GitInternal(RelPath),
    /// The path configures a repository that is not called `.git`, or would turn its directory into one.
    #[error(
        "Security error: Path '{0}' configures a repository, or would turn its directory into one; no tool writes there. Use git through run_command, or describe the change in your answer for the user to make."
    )]
    Repository(RelPath),
    /// The path is the target of a link with a protected name.
    #[error(
        "Security error: Path '{0}' is the target of a link with a protected name, such as .vscode; no tool writes there. Describe the change in your answer for the user to make."
    )]
    ProtectedLink(RelPath),
    /// The resolved path is a file that tools may not access.
    #[error("Security error: Path '{0}' leads to a file that tools may not access. Continue without it.")]
    ProtectedFile(RelPath),
    /// The path does not exist.
    #[error("File does not exist: {0}")]
    Missing(RelPath),
    /// The path is a directory.
    #[error("Path is not a regular file: {0} (it is a directory; list_files shows what is in it)")]
    Directory(RelPath),
    /// The path is a pipe, device or socket.
    #[error("Path is not a regular file: {0} (it is a pipe, device or socket; no file tool opens one)")]
    Special(RelPath),
    /// A part of the path is not a directory.
    #[error("Path '{0}' leads through something that is not a directory.")]
    NotDirectory(RelPath),
    /// The file is larger than the limit.
    #[error("File {path} is too large: {size} bytes, the limit is {limit}.")]
    TooLarge {
        /// The file.
        path: RelPath,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The file exists but must not.
    #[error("File {0} already exists.")]
    Exists(RelPath),
    /// The content differs from the expected one. The current content is unchanged.
    #[error("File {path} changed since it was read: read it again, then repeat the change.{}", other_version_text(.other_version.as_ref()))]
    Changed {
        /// The file.
        path: RelPath,
        /// File with the content that could not be put back.
        other_version: Option<RelPath>,
    },
    /// Any other error.
    #[error("Cannot {action} {path}: {source}")]
    Io {
        /// The file.
        path: RelPath,
        /// The attempted operation.
        action: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
}

fn other_version_text(other_version: Option<&RelPath>) -> String {
    other_version.map_or_else(String::new, |path| {
        format!(" Two programs wrote it at once; the other version is in {path}.")
    })
}

impl FileError {
    /// Converts `error`, returned while resolving `path`.
    pub fn at(path: &RelPath, error: ResolveError) -> Self {
        match error {
            ResolveError::Escape => Self::Escape(path.clone()),
            ResolveError::LinkLoop => Self::LinkLoop(path.clone()),
            ResolveError::Io(error) => Self::io(path, "open", error.into()),
        }
    }

    /// Converts `source`, returned by `action` on `path`.
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
