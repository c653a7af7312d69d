//! Opens and creates files and directories of this program, which other users must neither read nor replace.

use rustix::fs::OFlags;
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
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

/// Creates `directory` and missing parents, private to the user.
///
/// # Errors
/// Fails if it cannot be created.
pub fn create_private_dir(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}
