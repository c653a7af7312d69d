//! Directory entry to be replaced or removed in one atomic step.

use crate::content_store::{ContentStore, StoreError};
use crate::error::FileError;
use crate::file::{HashedContent, equals_reader, hash, hash_reader};
use crate::path::RelPath;
use crate::root_dir::{LastLink, RootDir};
use crate::temp_file::TempFile;
use agent_core::file_change::FileState;
use agent_runtime::clock::Clock;
use agent_runtime::private_file::{set_mode, synced};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};

/// Prefix of temporary file names, followed by the id of the process that created them.
pub const TEMPORARY_PREFIX: &str = ".agent-tmp-";

/// Number of bytes from which a sync runs in parallel with other work.
const LARGE_BYTES: usize = 128 * 1024;

/// Maximum number of attempts for a temporary name. Each has 48 random bits, so a second attempt is already rare.
const NAME_TRIES: usize = 8;

/// Mode bits that are retained. As with kernel writes, set-user-ID and set-group-ID are removed with the content that they were
/// set for.
const PERMISSIONS: Mode = Mode::RWXU.union(Mode::RWXG).union(Mode::RWXO).union(Mode::SVTX);

/// Mode of every link.
const LINK_MODE: u32 = 0o120_777;

/// Condition on the current file for a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected<'a> {
    /// It must not exist.
    Absent,
    /// It must have this content hash.
    Hash(String),
    /// It must have this content.
    Content(HashedContent<'a>),
    /// It may have any content or not exist.
    Any,
}

/// New entry for a name.
#[derive(Debug, Clone, Copy)]
pub(super) enum NewEntry<'a> {
    /// File with this content, and these permission bits or those of the replaced file.
    File(HashedContent<'a>, Option<Mode>),
    /// Link to this target.
    Link(&'a [u8]),
    /// Existing temporary file with this name in the same directory, and its state.
    Staged(&'a str, &'a FileState),
}

/// Name in an open directory.
pub(super) struct ReplaceTarget<'a> {
    pub(super) root_dir: &'a RootDir,
    pub(super) path: &'a RelPath,
    pub(super) parent: &'a RelPath,
    pub(super) directory: &'a OwnedFd,
    pub(super) name: &'a str,
}

impl ReplaceTarget<'_> {
    fn io(&self, error: Errno) -> FileError {
        FileError::io(self.path, "write", error.into())
    }

    pub(super) fn changed(&self, other_version: Option<&str>) -> FileError {
        FileError::Changed {
            path: self.path.clone(),
            other_version: other_version.map(|name| self.parent.join(name)),
        }
    }

    /// Returns the metadata of the entry. `None` if it does not exist.
    pub(super) fn stat(&self, last: LastLink) -> Result<Option<Stat>, FileError> {
        match rustix::fs::statat(self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => Ok(Some(stat)),
                FileType::Directory => Err(FileError::Directory(self.path.clone())),
                FileType::Symlink if last == LastLink::NoFollow => Ok(Some(stat)),
                // The path was resolved just before, so the link is new.
                FileType::Symlink => Err(self.changed(None)),
                _ => Err(FileError::Special(self.path.clone())),
            },
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.io(error)),
        }
    }

    /// Checks whether the file itself may be written. A user who may write the directory could replace any file in it, but
    /// files that are read-only or owned by another user must stay unchanged.
    pub(super) fn check_writable(&self, old: &Stat) -> Result<(), FileError> {
        if FileType::from_raw_mode(old.st_mode) == FileType::Symlink {
            return Ok(());
        }
        rustix::fs::accessat(self.directory, self.name, Access::WRITE_OK, AtFlags::EACCESS)
            .map_err(|error| self.io(error))
    }

    /// Writes `new` durably to a temporary file in the target's directory and runs `meanwhile` during the sync. A file gets the
    /// mode and owner of `old` unless `new` contains a mode. Returns the temporary file, its state and the result of
    /// `meanwhile`.
    pub(super) fn write_temporary<T>(
        &self,
        new: NewEntry<'_>,
        old: Option<&Stat>,
        meanwhile: impl FnOnce() -> T,
    ) -> Result<(TempFile<'_>, FileState, T), FileError> {
        let (HashedContent { bytes, hash }, mode) = match new {
            NewEntry::File(content, mode) => (content, mode),
            NewEntry::Link(to) => {
                let done = meanwhile();
                return Ok((self.create_link(to)?, FileState::from_mode(hash(to), LINK_MODE), done));
            }
            NewEntry::Staged(name, state) => {
                return Ok((self.temporary(name.to_owned()), state.clone(), meanwhile()));
            }
        };
        let old = old.filter(|old| FileType::from_raw_mode(old.st_mode) == FileType::RegularFile);
        // The file is private while it is written, unless the target is new and gets its mode from the umask.
        let private = old.is_some() || mode.is_some();
        let (temporary, fd) =
            self.create_temporary(Mode::from_raw_mode(if private { 0o600 } else { 0o666 }))?;
        let mut file = File::from(fd);
        file.write_all(bytes).map_err(|error| FileError::io(self.path, "write", error))?;
        let made = rustix::fs::fstat(&file).map_err(|error| self.io(error))?;
        if let Some(old) = old {
            copy_owner(&file, &made, old);
        }
        let old_mode = || old.map(|old| Mode::from_raw_mode(old.st_mode));
        let mode = mode.or_else(old_mode).unwrap_or(Mode::from_raw_mode(made.st_mode)) & PERMISSIONS;
        if private {
            set_mode(&file, mode).map_err(|error| self.io(error))?;
        }
        let (synced, done) = sync_while(&file, bytes.len(), meanwhile);
        synced.map_err(|error| FileError::io(self.path, "write", error))?;
        Ok((temporary, FileState::regular_file(hash.to_owned(), mode.as_raw_mode()), done))
    }

    fn create_link(&self, to: &[u8]) -> Result<TempFile<'_>, FileError> {
        let name = temporary_name();
        rustix::fs::symlinkat(to, self.directory, &name).map_err(|error| self.io(error))?;
        Ok(self.temporary(name))
    }

    fn temporary(&self, name: String) -> TempFile<'_> {
        TempFile { directory: self.directory.as_fd(), name, persist: false }
    }

    fn create_temporary(&self, mode: Mode) -> Result<(TempFile<'_>, OwnedFd), FileError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..NAME_TRIES {
            let name = temporary_name();
            match rustix::fs::openat(self.directory, &name, flags, mode) {
                Ok(fd) => return Ok((self.temporary(name), fd)),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(self.io(error)),
            }
        }
        Err(self.io(Errno::EXIST))
    }

    /// Renames the temporary file to the target, which must not exist.
    pub(super) fn place_new(
        &self,
        temporary: &TempFile<'_>,
        expected: &Expected<'_>,
    ) -> Result<(), FileError> {
        let taken = || match expected {
            Expected::Absent => FileError::Exists(self.path.clone()),
            Expected::Hash(_) | Expected::Content(_) | Expected::Any => self.changed(None),
        };
        match self.move_to_free_name(&temporary.name, self.name) {
            Err(Errno::EXIST) => Err(taken()),
            other => other.map_err(|error| self.io(error)),
        }
    }

    /// Renames an entry. Fails with `EXIST` if `to` exists.
    fn move_to_free_name(&self, from: &str, to: &str) -> Result<(), Errno> {
        match self.rename(from, to, RenameFlags::NOREPLACE) {
            Err(error) if is_unsupported(error) => {
                // A hard link is the older method to use only a free name.
                rustix::fs::linkat(self.directory, from, self.directory, to, AtFlags::empty())?;
                rustix::fs::unlinkat(self.directory, from, AtFlags::empty())
            }
            other => other,
        }
    }

    /// Exchanges the temporary file with the target and checks the replaced content. Returns its hash.
    pub(super) fn exchange(
        &self,
        temporary: &mut TempFile<'_>,
        expected: &Expected<'_>,
        written: &str,
    ) -> Result<String, FileError> {
        match self.rename(&temporary.name, self.name, RenameFlags::EXCHANGE) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(self.changed(None)),
            Err(error) if is_unsupported(error) => return self.check_and_rename(temporary, expected),
            Err(error) => return Err(self.io(error)),
        }
        let displaced = self.displaced_hash(&temporary.name, expected);
        if let Ok(found) = &displaced
            && matches(expected, found)
        {
            return Ok(found.clone());
        }
        self.swap_back(temporary, written)
    }

    /// Reverts an exchange that replaced unexpected content.
    fn swap_back(&self, temporary: &mut TempFile<'_>, written: &str) -> Result<String, FileError> {
        let undone = self.rename(&temporary.name, self.name, RenameFlags::EXCHANGE);
        if undone.is_ok() && self.hash_of(&temporary.name).is_ok_and(|found| found == written) {
            return Err(self.changed(None));
        }
        // Another program changed the new file at that moment, or the exchange failed: both versions remain.
        temporary.persist = true;
        Err(self.changed(Some(&temporary.name)))
    }

    /// Checks the content and then renames, for systems that cannot exchange names. A change between the two steps is lost.
    fn check_and_rename(
        &self,
        temporary: &TempFile<'_>,
        expected: &Expected<'_>,
    ) -> Result<String, FileError> {
        let found = self.hash_of(self.name).map_err(|error| self.io(error))?;
        if !matches(expected, &found) {
            return Err(self.changed(None));
        }
        rustix::fs::renameat(self.directory, &temporary.name, self.directory, self.name)
            .map_err(|error| self.io(error))?;
        Ok(found)
    }

    /// Moves the target to a temporary name, checks it there, and removes it or moves it back.
    pub(super) fn set_aside_and_remove(&self, expected: &Expected<'_>) -> Result<FileState, FileError> {
        let old = rustix::fs::statat(self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| FileError::io(self.path, "delete", error.into()))?;
        match FileType::from_raw_mode(old.st_mode) {
            FileType::RegularFile | FileType::Symlink => {}
            FileType::Directory => return Err(FileError::Directory(self.path.clone())),
            _ => return Err(FileError::Special(self.path.clone())),
        }
        // A random name is free. A single step is used because others could take the name between two.
        let aside = temporary_name();
        rustix::fs::renameat(self.directory, self.name, self.directory, &aside)
            .map_err(|error| FileError::io(self.path, "delete", error.into()))?;
        match self.hash_of(&aside) {
            Ok(found) if matches(expected, &found) => {
                match rustix::fs::unlinkat(self.directory, &aside, AtFlags::empty()) {
                    Ok(()) => Ok(FileState::from_mode(found, old.st_mode)),
                    Err(error) => {
                        let failure = FileError::io(self.path, "delete", error.into());
                        self.restore_name(&aside).and(Err(failure))
                    }
                }
            }
            _ => self.restore_name(&aside).and(Err(self.changed(None))),
        }
    }

    /// Moves the content back to its name. If the name is taken, fails with the path of the content.
    fn restore_name(&self, aside: &str) -> Result<(), FileError> {
        let moved = match self.move_to_free_name(aside, self.name) {
            // A directory cannot get a hard link or replace a file.
            Err(Errno::PERM) if self.is_directory(aside) => {
                rustix::fs::renameat(self.directory, aside, self.directory, self.name)
            }
            other => other,
        };
        moved.map_err(|_taken| self.changed(Some(aside)))
    }

    fn is_directory(&self, name: &str) -> bool {
        rustix::fs::statat(self.directory, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
    }

    /// Stores the content that is about to be replaced, for a link its target, and returns its hash. Opens only regular files,
    /// because opening a pipe could consume its data.
    pub(super) fn store(&self, contents: &ContentStore) -> Result<String, StoreError> {
        let stat = rustix::fs::statat(self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW);
        let stat = stat.map_err(io::Error::from)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => {
                let to = rustix::fs::readlinkat(self.directory, self.name, Vec::new());
                return contents.store_bytes(to.map_err(io::Error::from)?.as_bytes());
            }
            _ => return Err(StoreError::NotAFile),
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(self.directory, self.name, flags, Mode::empty());
        contents.store(&File::from(opened.map_err(io::Error::from)?))
    }

    /// Returns the hash of the content moved to `name`. Compares with the expected content if that is known, which is faster.
    fn displaced_hash(&self, name: &str, expected: &Expected<'_>) -> Result<String, Errno> {
        match (expected, self.open_regular(name)?) {
            (Expected::Content(known), Some(file)) if equals_reader(known.bytes, &file).unwrap_or(false) => {
                Ok(known.hash.to_owned())
            }
            _ => self.hash_of(name),
        }
    }

    /// Returns the hash of the content of `name`, for a link the hash of its target's name.
    fn hash_of(&self, name: &str) -> Result<String, Errno> {
        match self.open_regular(name)? {
            Some(file) => {
                hash_reader(file).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
            }
            None => {
                rustix::fs::readlinkat(self.directory, name, Vec::new()).map(|target| hash(target.as_bytes()))
            }
        }
    }

    /// Opens the regular file `name`. `None` if it is a link.
    fn open_regular(&self, name: &str) -> Result<Option<File>, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        match rustix::fs::openat(self.directory, name, flags, Mode::empty()) {
            Ok(fd) if FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) == FileType::RegularFile => {
                Ok(Some(File::from(fd)))
            }
            Ok(_) => Err(Errno::INVAL),
            Err(Errno::LOOP | Errno::MLINK) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn rename(&self, from: &str, to: &str, flags: RenameFlags) -> Result<(), Errno> {
        self.root_dir.rename(self.directory, from, to, flags)
    }

    /// Makes the name change durable, or returns why that is uncertain. The change has happened either way.
    pub(super) fn sync(&self) -> Option<String> {
        match rustix::fs::fsync(self.directory) {
            // Some file systems cannot sync a directory and do not need to.
            Ok(()) | Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP | Errno::ROFS) => None,
            Err(error) => Some(error.to_string()),
        }
    }
}

/// Syncs `file` after `bytes` bytes were written, and runs `work` in parallel if the sync takes longer than starting a thread.
fn sync_while<T>(file: &File, bytes: usize, work: impl FnOnce() -> T) -> (io::Result<()>, T) {
    if bytes < LARGE_BYTES {
        let done = work();
        return (synced(file.sync_all()), done);
    }
    std::thread::scope(|scope| {
        let syncing = scope.spawn(|| synced(file.sync_all()));
        let done = work();
        let panicked = |_| Err(io::Error::other("the sync thread panicked"));
        (syncing.join().unwrap_or_else(panicked), done)
    })
}

/// Gives `file` the owner of `old`.
fn copy_owner(file: &File, made: &Stat, old: &Stat) {
    if (made.st_uid, made.st_gid) != (old.st_uid, old.st_gid) {
        let (user, group) = (rustix::fs::Uid::from_raw(old.st_uid), rustix::fs::Gid::from_raw(old.st_gid));
        // Only root may change the owner. For others the file gets their own user, as with every editor.
        let _ = rustix::fs::fchown(file, Some(user), Some(group));
    }
}

fn matches(expected: &Expected<'_>, found: &str) -> bool {
    match expected {
        Expected::Absent => false,
        Expected::Hash(hash) => hash == found,
        Expected::Content(known) => known.hash == found,
        Expected::Any => true,
    }
}

/// Checks whether the kernel or file system does not support this kind of rename.
fn is_unsupported(error: Errno) -> bool {
    matches!(error, Errno::NOSYS | Errno::INVAL | Errno::NOTSUP)
}

fn temporary_name() -> String {
    format!("{TEMPORARY_PREFIX}{}-{}", std::process::id(), Clock::new().short_id())
}
