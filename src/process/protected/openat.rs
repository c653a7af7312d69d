//! Names in directories that are held open, so that nobody can exchange what is above them.

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use std::ffi::{CString, OsStr, OsString};
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The bits of a mode that can be changed.
pub(super) const MODE_BITS: u32 = 0o7777;

/// The directory at `path`, no part of which is a link.
pub(super) fn open_real(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// The directory `name` in `at`, which is not a link.
pub(super) fn open_directory(at: &impl AsFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty())
}

/// The directory that `path` is in, no part of which is a link, and its name there.
pub(super) fn parent_and_name(path: &Path) -> Option<(OwnedFd, OsString)> {
    Some((open_real(path.parent()?).ok()?, path.file_name()?.to_owned()))
}

/// What is called `name` in `at`; `None` when nothing is.
pub(super) fn stat_at(at: &impl AsFd, name: &OsStr) -> rustix::io::Result<Option<Stat>> {
    match rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What kind of file `stat` is of.
pub(super) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// The names in the directory `at`, at most `most` of them.
pub(super) fn names(at: &impl AsFd, most: usize) -> io::Result<Vec<OsString>> {
    Ok(list_dir(at, most)?.into_iter().map(|(name, _)| name).collect())
}

/// The names in the directory `at`, at most `most` of them, and what kind of file each is.
pub(super) fn list_dir(at: &impl AsFd, most: usize) -> io::Result<Vec<(OsString, FileType)>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = Dir::new(rustix::fs::openat(at, c".", flags, Mode::empty())?)?;
    let mut names = Vec::new();
    for entry in directory {
        let entry = entry?;
        let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
        if name == "." || name == ".." {
            continue;
        }
        if names.len() == most {
            break;
        }
        let kind = match entry.file_type() {
            // Some file systems do not tell.
            FileType::Unknown => stat_at(at, &name)?.map_or(FileType::Unknown, |stat| kind(&stat)),
            known => known,
        };
        names.push((name, kind));
    }
    Ok(names)
}

/// The bytes of the regular file `name` in `at`; `None` where there are more than `most`.
pub(super) fn read_file_at(at: &impl AsFd, name: &OsStr, most: u64) -> io::Result<Option<Vec<u8>>> {
    // A fifo must not hold us up.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(at, name, flags, Mode::empty())?);
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// Where the link `name` in `at` leads.
pub(super) fn read_link_at(at: &impl AsFd, name: &OsStr) -> rustix::io::Result<CString> {
    rustix::fs::readlinkat(at, name, Vec::new())
}

/// Makes the file `name` in `at`, which does not exist, with these bytes, rights and owner.
pub(super) fn make_file(at: &impl AsFd, name: &OsStr, bytes: &[u8], like: &Stat) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::openat(at, name, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(bytes)?;
    let owner = (rustix::fs::Uid::from_raw(like.st_uid), rustix::fs::Gid::from_raw(like.st_gid));
    // Only root can give a file away, and only root has had one of somebody else's to restore.
    let _ours = rustix::fs::fchown(&file, Some(owner.0), Some(owner.1));
    file.set_permissions(Permissions::from_mode(like.st_mode & MODE_BITS))
}

/// Makes the directory `name` in `at`, which does not exist.
pub(super) fn make_directory(at: &impl AsFd, name: &OsStr, like: &Stat) -> io::Result<()> {
    rustix::fs::mkdirat(at, name, Mode::RWXU)?;
    set_rights(at, name, like)
}

/// Gives the directory `name` in `at` the rights of `like`.
pub(super) fn set_rights(at: &impl AsFd, name: &OsStr, like: &Stat) -> io::Result<()> {
    set_mode(&open_directory(at, name)?, like.st_mode & MODE_BITS)
}

/// Gives the open directory these rights, whatever rights it has now.
pub(super) fn set_mode(directory: &OwnedFd, mode: u32) -> io::Result<()> {
    // A path that went on from here would have to be searched.
    let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
    std::fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Moves `name` in `at` to `to`, in a directory of ours; across file systems what can be copied is, up to `most` bytes.
#[expect(clippy::disallowed_methods, reason = "what a command made in a protected place")]
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

/// The most entries that are copied from one file system to another.
const MAX_COPIED: usize = 1000;

/// What may still be copied.
struct CopyBudget {
    bytes: u64,
    entries: usize,
}

/// Copies the regular files below `from`, as far as the allowance goes.
fn copy_directory(from: &OwnedFd, to: &Path, allowance: &mut CopyBudget) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(to)?;
    for name in names(from, allowance.entries)? {
        allowance.entries = allowance.entries.saturating_sub(1);
        match stat_at(from, &name)?.map(|stat| kind(&stat)) {
            Some(FileType::Directory) if allowance.entries > 0 => {
                copy_directory(&open_directory(from, &name)?, &to.join(&name), allowance)?;
            }
            Some(FileType::RegularFile) => {
                if let Some(bytes) = read_file_at(from, &name, allowance.bytes)? {
                    allowance.bytes = allowance.bytes.saturating_sub(bytes.len() as u64);
                    write_private_file(&to.join(&name), &bytes)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Writes a new file of ours, which nobody else may read.
fn write_private_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
}

/// The path by which `name` in the open directory `at` is reached, wherever that directory is now.
fn proc_fd_path(at: &impl AsFd, name: &OsStr) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", at.as_fd().as_raw_fd())).join(name)
}

/// Where the open directory is now; `None` when it was removed.
pub(super) fn current_path(directory: &OwnedFd) -> Option<PathBuf> {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", directory.as_raw_fd())).ok()?;
    (!path.as_os_str().as_bytes().ends_with(b" (deleted)")).then_some(path)
}
