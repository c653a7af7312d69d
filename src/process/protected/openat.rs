//! File operations relative to open directories, so that a concurrent command cannot exchange a parent directory.

use agent_runtime::private_file::accept_mode;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, Stat};
use rustix::io::Errno;
use std::ffi::{CString, OsStr, OsString};
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Bits of a mode that can be changed.
pub(super) const MODE_BITS: u32 = 0o7777;

/// Size in bytes of the buffer for the entries of a directory: some hundred at once.
const LISTING_BYTES: usize = 16 << 10;

/// Opens the directory at `path`. Fails if any part of it is a link.
pub(super) fn open_real(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// Opens the directory `name` in `at`. Fails if it is a link.
pub(super) fn open_directory(at: &impl AsFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty())
}

/// Opens the parent directory of `path`, following no link, and returns it with the name in it.
pub(super) fn parent_and_name(path: &Path) -> Option<(OwnedFd, OsString)> {
    Some((open_real(path.parent()?).ok()?, path.file_name()?.to_owned()))
}

/// Returns the metadata of `name` in `at`, or `None` if it does not exist.
pub(super) fn stat_at(at: &impl AsFd, name: &OsStr) -> rustix::io::Result<Option<Stat>> {
    match rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the file type in `stat`.
pub(super) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Lists at most `most` names in the directory `at`.
pub(super) fn names(at: &impl AsFd, most: usize) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    visit_entries(at, most, |name, _| names.push(name.to_owned()))?;
    Ok(names)
}

/// Calls `visit` with the name and the file type of at most `most` entries of the directory `at`.
pub(super) fn visit_entries(
    at: &impl AsFd,
    most: usize,
    mut visit: impl FnMut(&OsStr, FileType),
) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(at, c".", flags, Mode::empty())?;
    let mut buffer = Vec::with_capacity(LISTING_BYTES);
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    let mut visited = 0;
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        if visited == most {
            break;
        }
        visited += 1;
        let kind = match entry.file_type() {
            // Some file systems do not report the type.
            FileType::Unknown => stat_at(at, name)?.map_or(FileType::Unknown, |stat| kind(&stat)),
            known => known,
        };
        visit(name, kind);
    }
    Ok(())
}

/// Reads the regular file `name` in `at`. `None` if it has more than `most` bytes.
pub(super) fn read_file_at(at: &impl AsFd, name: &OsStr, most: u64) -> io::Result<Option<Vec<u8>>> {
    // Opening a fifo must not block.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(at, name, flags, Mode::empty())?);
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// Reads the target of the link `name` in `at`.
pub(super) fn read_link_at(at: &impl AsFd, name: &OsStr) -> rustix::io::Result<CString> {
    rustix::fs::readlinkat(at, name, Vec::new())
}

/// Creates the file `name` in `at` with `bytes` and the mode and owner of `like`. Fails if it exists.
pub(super) fn make_file(at: &impl AsFd, name: &OsStr, bytes: &[u8], like: &Stat) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::openat(at, name, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(bytes)?;
    let owner = (rustix::fs::Uid::from_raw(like.st_uid), rustix::fs::Gid::from_raw(like.st_gid));
    // Only root can change the owner, and only root can have had a file of another user to restore.
    let _may_lack_rights = rustix::fs::fchown(&file, Some(owner.0), Some(owner.1));
    set_mode(&file, like.st_mode & MODE_BITS)
}

/// Creates the directory `name` in `at` with the mode of `like`. Fails if it exists.
pub(super) fn make_directory(at: &impl AsFd, name: &OsStr, like: &Stat) -> io::Result<()> {
    rustix::fs::mkdirat(at, name, Mode::RWXU)?;
    set_rights(at, name, like)
}

/// Gives the directory `name` in `at` the mode of `like`.
pub(super) fn set_rights(at: &impl AsFd, name: &OsStr, like: &Stat) -> io::Result<()> {
    set_mode(&open_directory(at, name)?, like.st_mode & MODE_BITS)
}

/// Sets the mode of an open file or directory, also of a directory that cannot be searched.
///
/// # Errors
/// Fails if the mode is another one and cannot be set.
pub(super) fn set_mode(opened: &impl AsFd, mode: u32) -> io::Result<()> {
    // A path below a directory would need search permission on it.
    let path = format!("/proc/self/fd/{}", opened.as_fd().as_raw_fd());
    std::fs::set_permissions(path, Permissions::from_mode(mode))
        .or_else(|error| accept_mode(opened, Mode::from_raw_mode(mode), error))
}

/// Moves `name` in `at` to `to`, in a directory of ours. Across file systems it copies at most `most` bytes.
#[expect(clippy::disallowed_methods, reason = "moves what a command created in a protected directory")]
pub(super) fn move_away(at: &impl AsFd, name: &OsStr, to: &Path, most: u64) -> io::Result<()> {
    match rustix::fs::renameat(at, name, CWD, to) {
        Err(Errno::XDEV) => {}
        moved => return Ok(moved?),
    }
    let is_directory = stat_at(at, name)?.is_some_and(|stat| kind(&stat) == FileType::Directory);
    if is_directory {
        copy_directory(&open_directory(at, name)?, to, &mut CopyBudget { bytes: most, entries: MAX_COPIED })?;
        return std::fs::remove_dir_all(proc_fd_path(at, name));
    }
    if let Ok(Some(bytes)) = read_file_at(at, name, most) {
        write_private_file(to, &bytes)?;
    }
    Ok(rustix::fs::unlinkat(at, name, AtFlags::empty())?)
}

/// Maximum number of entries to copy between file systems.
const MAX_COPIED: usize = 1000;

/// Remaining bytes and entries to copy.
struct CopyBudget {
    bytes: u64,
    entries: usize,
}

/// Copies the regular files below `from` within the budget.
fn copy_directory(from: &OwnedFd, to: &Path, budget: &mut CopyBudget) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(to)?;
    for name in names(from, budget.entries)? {
        budget.entries = budget.entries.saturating_sub(1);
        match stat_at(from, &name)?.map(|stat| kind(&stat)) {
            Some(FileType::Directory) if budget.entries > 0 => {
                copy_directory(&open_directory(from, &name)?, &to.join(&name), budget)?;
            }
            Some(FileType::RegularFile) => {
                if let Some(bytes) = read_file_at(from, &name, budget.bytes)? {
                    budget.bytes = budget.bytes.saturating_sub(bytes.len() as u64);
                    write_private_file(&to.join(&name), &bytes)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Creates a file readable only by the user.
fn write_private_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
}

/// Returns the path of `name` in the open directory `at`, valid even if that directory was moved.
fn proc_fd_path(at: &impl AsFd, name: &OsStr) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", at.as_fd().as_raw_fd())).join(name)
}

/// Returns the current path of the open directory. `None` if it was removed.
pub(super) fn current_path(directory: &OwnedFd) -> Option<PathBuf> {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", directory.as_raw_fd())).ok()?;
    (!path.as_os_str().as_bytes().ends_with(b" (deleted)")).then_some(path)
}
