//! Reads configuration files: bounded, never waiting on a pipe, and inside the project where they belong to it.

use super::error::ConfigError;
use rustix::fs::OFlags;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Reads a small text file; `None` when it does not exist. Never waits on a pipe and never reads past `limit` bytes.
///
/// # Errors
/// A directory, a special file, no permission, too large, not UTF-8; the file is for the caller to name.
pub fn read_text(path: &Path, limit: u64) -> Result<Option<String>, ConfigError> {
    open(path)?.map(|file| read_bounded(file, limit)).transpose()
}

/// As [`read_text`] for a file of the user's own: one that anybody may write, or that another user owns, says what
/// somebody else wants.
///
/// # Errors
/// As [`read_text`], and such a file.
pub fn read_own_text(path: &Path, limit: u64) -> Result<Option<String>, ConfigError> {
    /// The bit of a file's mode by which everybody may write to it.
    const ANYBODY_WRITES: u32 = 0o002;
    let Some(file) = open(path)? else { return Ok(None) };
    let metadata = file.metadata().map_err(|error| unreadable(&error))?;
    if metadata.mode() & ANYBODY_WRITES != 0 {
        return Err(ConfigError::new("anybody on this machine may change it").hint("chmod o-w"));
    }
    let user = rustix::process::geteuid();
    if !user.is_root() && ![0, user.as_raw()].contains(&metadata.uid()) {
        return Err(ConfigError::new("belongs to another user").hint("make it your own with chown"));
    }
    read_bounded(file, limit).map(Some)
}

fn unreadable(error: &std::io::Error) -> ConfigError {
    ConfigError::new(format!("cannot be read: {error}"))
}

/// Opens a regular file; `None` when it does not exist.
fn open(path: &Path) -> Result<Option<File>, ConfigError> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, rustix::fs::Mode::empty()) {
        Ok(descriptor) => File::from(descriptor),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
        Err(error) => return Err(unreadable(&error.into())),
    };
    let metadata = file.metadata().map_err(|error| unreadable(&error))?;
    if !metadata.is_file() {
        let what = if metadata.is_dir() { "a directory" } else { "a special file" };
        return Err(ConfigError::new(format!("is {what}, not a file")));
    }
    Ok(Some(file))
}

fn read_bounded(file: File, limit: u64) -> Result<String, ConfigError> {
    let mut bytes = Vec::new();
    let read = file.take(limit.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| unreadable(&error))?;
    if bytes.len() as u64 > limit {
        return Err(ConfigError::new(format!("is larger than {limit} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let line = valid.iter().fold(1, |line, byte| line + u64::from(*byte == b'\n'));
        ConfigError::new("is not valid UTF-8").line(line)
    })?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// The real path of a project's file or directory, if it exists; a link that leaves the project is refused.
///
/// # Errors
/// A link that leaves the project, a path that cannot be looked up; the file is for the caller to name.
pub fn resolve_inside(root: &Path, relative: &Path) -> Result<Option<PathBuf>, ConfigError> {
    match root.join(relative).canonicalize() {
        Ok(path) if path.starts_with(root) => Ok(Some(path)),
        Ok(_) => Err(ConfigError::new("leads out of the workspace")),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(ConfigError::new(format!("cannot be read: {error}"))),
    }
}

/// Whether an error says that there is nothing of this name.
pub fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}
