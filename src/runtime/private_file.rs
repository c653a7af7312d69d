//! Opens and creates files and directories of this program, which other users must neither read nor replace.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::{DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Opens `path` for reading, with its metadata. Does not follow a link, and does not wait for the writer of a pipe.
///
/// # Errors
/// Fails if it is a link or cannot be opened.
pub fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    Ok((file, metadata))
}

/// Checks whether `metadata` is of a regular file of this user, with none of the permissions `forbidden`.
pub fn is_own(metadata: &Metadata, forbidden: u32) -> bool {
    let is_users = metadata.uid() == rustix::process::geteuid().as_raw();
    metadata.is_file() && is_users && metadata.mode() & forbidden == 0
}

/// Creates the file `path` and missing parents: private to the user if `is_private`, else with the permissions that the umask leaves.
///
/// # Errors
/// Fails if it exists or cannot be created.
pub fn create_new(path: &Path, is_private: bool) -> io::Result<File> {
    let (file, directory) = if is_private { (0o600, 0o700) } else { (0o666, 0o777) };
    if let Some(parent) = path.parent() {
        DirBuilder::new().recursive(true).mode(directory).create(parent)?;
    }
    OpenOptions::new().write(true).create_new(true).mode(file).open(path)
}

/// Replaces the content of the private file `path` as a whole.
///
/// # Errors
/// When the file beside it cannot be written, or cannot take its place.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(content)?;
    synced(file.as_file().sync_all())?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// Reads the file `path` up to `most` bytes; `None` if there is none.
///
/// # Errors
/// When it cannot be read, or is longer.
pub fn read_bounded(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?.0,
    };
    let mut content = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut content)?;
    if u64::try_from(content.len()).is_ok_and(|length| length <= most) {
        Ok(Some(content))
    } else {
        Err(io::ErrorKind::FileTooLarge.into())
    }
}

/// Permission bits of a mode.
const PERMISSIONS: u32 = 0o7777;

/// Returns the result of a sync to disk. It is a success on a file system without such a call, as some in user space.
///
/// # Errors
/// The other errors of the sync.
pub fn synced(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| match Errno::from_io_error(&error) {
        Some(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(()),
        _ => Err(error),
    })
}

/// Sets the permissions of `file`. Some network file systems refuse this also where the file has them already.
///
/// # Errors
/// Fails if they are different and cannot be set.
pub fn set_mode(file: &File, mode: Mode) -> Result<(), Errno> {
    rustix::fs::fchmod(file, mode).or_else(|error| accept_mode(file, mode, error))
}

/// Decides on the `error` of a change of mode: some file systems refuse every change, which does no harm if `file` has the mode already.
///
/// # Errors
/// Returns `error` if `file` has another mode.
pub fn accept_mode<E>(file: impl AsFd, mode: Mode, error: E) -> Result<(), E> {
    let has_mode = |now: rustix::fs::Stat| now.st_mode & PERMISSIONS == mode.as_raw_mode() & PERMISSIONS;
    if rustix::fs::fstat(file).is_ok_and(has_mode) { Ok(()) } else { Err(error) }
}

/// Locks `file` for this process. Returns whether no other process has locked it.
///
/// # Errors
/// Fails if the file system cannot lock files.
pub fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => {
            Err(io::Error::new(error.kind(), format!("cannot lock a file: {error}")))
        }
    }
}

/// Checks that this process can create, write and lock files in `directory`, which is created if it is missing.
///
/// # Errors
/// Why it cannot.
pub fn check_directory(directory: &Path) -> io::Result<()> {
    create_private_dir(directory)?;
    let mut file = tempfile::tempfile_in(directory)?;
    file.write_all(&[0; 4096])?;
    try_lock(&file).map(drop)
}

/// Creates `directory` and missing parents, private to the user.
///
/// # Errors
/// Fails if it cannot be created.
pub fn create_private_dir(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Fault A13: a file system in user space without `fsync` ended the run.
    #[test]
    fn a_sync_that_the_file_system_does_not_have_is_a_success() {
        let synced_with = |error: Errno| synced(Err(error.into()));
        for error in [Errno::INVAL, Errno::NOSYS, Errno::NOTSUP] {
            synced_with(error).unwrap();
        }
        assert_eq!(synced_with(Errno::IO).unwrap_err().raw_os_error(), Some(Errno::IO.raw_os_error()));
        assert!(synced(Err(io::Error::other("x"))).is_err());
    }

    // Fault A13: a share that refuses `fchmod` refused every edit, and one without locks was said to be busy.
    #[test]
    fn a_mode_that_cannot_be_set_is_an_error_only_if_it_is_another_one() {
        // No file system sets the mode of this file, not even for root.
        let file = File::open("/proc/self/stat").unwrap();
        set_mode(&file, Mode::from_raw_mode(0o444)).unwrap();
        set_mode(&file, Mode::from_raw_mode(0o600)).unwrap_err();
    }

    #[test]
    fn a_directory_is_checked_by_a_file_in_it() {
        let dir = tempfile::tempdir().unwrap();
        check_directory(&dir.path().join("new/state")).unwrap();
        let file = dir.path().join("file");
        File::create(&file).unwrap();
        check_directory(&file).unwrap_err();
        let lock = File::open(&file).unwrap();
        assert!(try_lock(&lock).unwrap() && !try_lock(&File::open(&file).unwrap()).unwrap());
    }
}
