//! Reads configuration files with a size limit, without blocking on pipes, and without following links out of the project.

use super::error::ConfigError;
use agent_messages as messages;
use rustix::fs::OFlags;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The permission bit that lets every user write.
const WORLD_WRITABLE: u32 = 0o002;
/// The permission bit of a directory in which only the owner of a file may replace it.
const STICKY: u32 = 0o1000;

/// Reads a small text file; `None` when it does not exist. Never blocks on a pipe and never reads past `limit` bytes.
///
/// # Errors
/// Fails for a directory, a special file, missing permission, a file that is too large or not UTF-8. The caller adds the file's name.
pub fn read_text(path: &Path, limit: u64) -> Result<Option<String>, ConfigError> {
    open(path)?.map(|file| read_bounded(file, limit)).transpose()
}

/// Reads the first `limit` bytes of a file and returns them with its length; `None` when it does not exist. Never blocks on a pipe.
///
/// # Errors
/// Fails for a directory, a special file and missing permission. The caller adds the file's name.
pub fn read_bytes(path: &Path, limit: u64) -> Result<Option<(Vec<u8>, u64)>, ConfigError> {
    let Some(file) = open(path)? else { return Ok(None) };
    let length = file.metadata().map_err(|error| unreadable(&error))?.len();
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    Ok(Some((bytes, length)))
}

/// Reads a file that belongs to the user, as [`read_text`] does, but refuses one that every user may write or that another
/// user owns, because its content may not be the user's.
///
/// # Errors
/// Fails as [`read_text`] does, and for such a file.
pub fn read_own_text(path: &Path, limit: u64) -> Result<Option<String>, ConfigError> {
    let Some(file) = open(path)? else { return Ok(None) };
    let metadata = file.metadata().map_err(|error| unreadable(&error))?;
    if metadata.mode() & WORLD_WRITABLE != 0 {
        return Err(ConfigError::new("is writable by every user").hint("chmod o-w"));
    }
    if !belongs_to_user(metadata.uid(), rustix::process::geteuid().as_raw()) {
        return Err(ConfigError::new("belongs to another user").hint("take ownership with chown"));
    }
    read_bounded(file, limit).map(Some)
}

/// Checks that no other user can place files in a directory of this program. One that does not exist is created later. In a sticky
/// directory such as `/tmp`, others cannot replace files, and each file there is checked.
///
/// # Errors
/// Fails for a directory that belongs to another user or that every user may write to.
pub fn check_own_directory(path: &Path) -> Result<(), ConfigError> {
    let Ok(metadata) = path.metadata() else { return Ok(()) };
    let shown = path.display();
    let home = messages::AGENT_HOME_HINT;
    if metadata.mode() & WORLD_WRITABLE != 0 && metadata.mode() & STICKY == 0 {
        let hint = format!("chmod o-w {shown}, or {home}");
        return Err(ConfigError::new("is a directory that every user may write to").path(path).hint(hint));
    }
    if !belongs_to_user(metadata.uid(), rustix::process::geteuid().as_raw()) {
        let hint = format!("take ownership of {shown} with chown, or {home}");
        return Err(ConfigError::new("belongs to another user").path(path).hint(hint));
    }
    Ok(())
}

/// Checks whether `user` may rely on what `owner` has. Root works in containers on directories of other users, and root's own files are
/// trusted by everybody.
fn belongs_to_user(owner: u32, user: u32) -> bool {
    user == 0 || owner == 0 || owner == user
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

/// Returns the real path of a file or directory of the project, if it exists.
///
/// # Errors
/// Fails for a link that leaves the project and a path that cannot be resolved. The caller adds the file's name.
pub fn resolve_inside(root: &Path, relative: &Path) -> Result<Option<PathBuf>, ConfigError> {
    match root.join(relative).canonicalize() {
        Ok(path) if path.starts_with(root) => Ok(Some(path)),
        Ok(_) => Err(ConfigError::new("is a link that leaves the workspace")),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(ConfigError::new(format!("cannot be read: {error}"))),
    }
}

/// Checks whether an error means that the file does not exist.
pub fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}
