//! The one way a file of the workspace is written or removed: atomically, and never over content nobody has seen.
//!
//! The new content is written to a temporary file beside the target and then swapped with it. The swap shows exactly
//! which bytes were displaced; if they are not the expected ones they are swapped back, so that a save by another
//! program is never lost. At every instant the path holds the whole old or the whole new file.

use crate::change::FileState;
use crate::source::Source;
use crate::workspace::Workspace;
use crate::workspace::beneath::{Beneath, LastLink};
use crate::workspace::contents::{Contents, Unkept};
use crate::workspace::error::FileError;
use crate::workspace::file::{hash, hash_reader};
use crate::workspace::path::RelPath;
use crate::workspace::temporary::Temporary;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;

/// How the name of each temporary file begins; the id of the process that made it follows.
pub const TEMPORARY_PREFIX: &str = ".agent-tmp-";

/// Names tried for a temporary file; each has 48 random bits, so the second try is already unheard of.
const NAME_TRIES: usize = 8;

/// The bits of a mode that content keeps: set-user-ID and set-group-ID end with the content they were given for, as the
/// kernel has it for writes.
const PERMISSIONS: Mode = Mode::RWXU.union(Mode::RWXG).union(Mode::RWXO).union(Mode::SVTX);

/// What every link has for its mode.
const LINK_MODE: u32 = 0o120_777;

/// What a file must be for a change to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// It must not exist.
    Absent,
    /// It must have this content hash.
    Hash(String),
    /// It may be anything, or nothing.
    Any,
}

/// What a change displaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Displaced {
    /// Where the file really is, links resolved.
    pub path: RelPath,
    /// What it was before.
    pub was: FileState,
    /// What it is now.
    pub became: FileState,
    /// How many directories were made for it.
    pub directories: u32,
    /// Why the system did not confirm that the change is on disk; the change stands.
    pub unsynced: Option<String>,
    /// Why the content before could not be kept: the change cannot be undone. Nothing is kept where nobody asked for it.
    pub unkept: Option<String>,
}

/// What a name is to hold.
#[derive(Debug, Clone, Copy)]
pub(super) enum New<'a> {
    /// A file with this content, and these permission bits or those of what it replaces.
    File(&'a [u8], Option<Mode>),
    /// A link to this.
    Link(&'a [u8]),
    /// The temporary file with this name, which lies beside it and is this.
    Made(&'a str, &'a FileState),
}

impl Workspace {
    /// Replaces the content of `path`, or makes the file and the directories it is in. A link is written through to
    /// the file it points to, inside the workspace. Permission bits and, where allowed, the owner are kept.
    ///
    /// # Errors
    /// When the file is not as `expected`, is not a regular file, is outside, is part of `.git` or configuration of a
    /// repository, or the system refuses; the file is untouched then.
    pub fn replace(&self, path: &RelPath, expected: &Expected, bytes: &[u8]) -> Result<Displaced, FileError> {
        self.replace_with_mode(path, expected, bytes, None)
    }

    /// As [`replace`](Self::replace); the file gets the permission bits `mode`.
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    pub fn replace_with_mode(
        &self,
        path: &RelPath,
        expected: &Expected,
        bytes: &[u8],
        mode: Option<Mode>,
    ) -> Result<Displaced, FileError> {
        self.set(path, LastLink::Follow, expected, New::File(bytes, mode))
    }

    /// As [`replace`](Self::replace), for whatever a name may hold; a link that is the last part of `path` is followed or
    /// replaced.
    pub(super) fn set(
        &self,
        path: &RelPath,
        last: LastLink,
        expected: &Expected,
        new: New<'_>,
    ) -> Result<Displaced, FileError> {
        let set = |target: &Target<'_>| self.fill(target, last, expected, new);
        let (displaced, directories) = self.beside(path, last, set)?;
        Ok(Displaced { directories, ..displaced })
    }

    /// Does `work` in the directory of `path`, which is made, and says how many directories were; where it fails they go again.
    pub(super) fn beside<T>(
        &self,
        path: &RelPath,
        last: LastLink,
        work: impl FnOnce(&Target<'_>) -> Result<T, FileError>,
    ) -> Result<(T, u32), FileError> {
        let real = self.writable(path, last)?;
        let (parent, name) = real.split_last().ok_or_else(|| FileError::Directory(path.clone()))?;
        let made = self.beneath().make_directory(&parent);
        let (directory, directories) =
            made.map_err(|error| FileError::io(path, "open the directory of", error.into()))?;
        let target =
            Target { beneath: self.beneath(), path: &real, parent: &parent, directory: &directory, name };
        let done = work(&target);
        if done.is_err() {
            self.remove_directories([(real.clone(), directories)]);
        }
        done.map(|done| (done, directories))
    }

    fn fill(
        &self,
        target: &Target<'_>,
        last: LastLink,
        expected: &Expected,
        new: New<'_>,
    ) -> Result<Displaced, FileError> {
        let real = target.path;
        let old = target.stat(last)?;
        match (&old, expected) {
            (Some(_), Expected::Absent) => return Err(FileError::Exists(real.clone())),
            (None, Expected::Hash(_)) => return Err(target.changed(None)),
            (Some(old), _) => target.may_be_written(old)?,
            (None, _) => {}
        }
        let kept = self.displaced().filter(|_| old.is_some()).map(|contents| match expected {
            // Nothing else will be displaced.
            Expected::Hash(hash) if contents.holds(hash) => Ok(hash.clone()),
            _ => target.keep(contents),
        });
        let (mut temporary, became) = target.write_temporary(new, old.as_ref())?;
        let was = if let Some(old) = old {
            let written = became.hash().unwrap_or_default();
            FileState::with(target.exchange(&mut temporary, expected, written)?, old.st_mode)
        } else {
            target.place_new(&temporary, expected)?;
            FileState::Absent
        };
        drop(temporary);
        let (unsynced, unkept) = (target.sync(), unkept(kept, was.hash()));
        Ok(Displaced { path: real.clone(), was, became, directories: 0, unsynced, unkept })
    }

    /// Removes the regular file or symbolic link `path`; a link's target stays.
    ///
    /// # Errors
    /// When the file is not as `expected`, is a directory or special file, is outside, is part of `.git`, or the
    /// system refuses; the file is untouched then.
    pub fn remove(&self, path: &RelPath, expected: &Expected) -> Result<Displaced, FileError> {
        let real = self.writable(path, LastLink::Keep)?;
        let (parent, name) = real.split_last().ok_or_else(|| FileError::Directory(path.clone()))?;
        let directory = self
            .beneath()
            .open_directory(&parent)
            .map_err(|error| FileError::io(path, "open the directory of", error.into()))?;
        let target =
            Target { beneath: self.beneath(), path: &real, parent: &parent, directory: &directory, name };
        let kept = self.displaced().map(|contents| target.keep(contents));
        let was = target.set_aside_and_remove(expected)?;
        let (unsynced, unkept) = (target.sync(), unkept(kept, was.hash()));
        let became = FileState::Absent;
        Ok(Displaced { path: real.clone(), was, became, directories: 0, unsynced, unkept })
    }

    fn writable(&self, path: &RelPath, last: LastLink) -> Result<RelPath, FileError> {
        let real = self.beneath().resolve(path, last).map_err(|error| FileError::at(path, error))?;
        if path.is_git_internal() || real.is_git_internal() {
            return Err(FileError::Protected(path.clone()));
        }
        if self.is_kept(&real, true) {
            return Err(FileError::Kept(path.clone()));
        }
        if self.is_led_to(&real) {
            return Err(FileError::LedTo(path.clone()));
        }
        if self.changes_repository(&real) {
            return Err(FileError::Repository(path.clone()));
        }
        Ok(real)
    }
}

/// A name in a held directory.
pub(super) struct Target<'a> {
    beneath: &'a Beneath,
    pub(super) path: &'a RelPath,
    parent: &'a RelPath,
    directory: &'a OwnedFd,
    name: &'a str,
}

impl Target<'_> {
    fn io(&self, error: Errno) -> FileError {
        FileError::io(self.path, "write", error.into())
    }

    fn changed(&self, kept: Option<&str>) -> FileError {
        FileError::Changed { path: self.path.clone(), kept: kept.map(|name| self.parent.join(name)) }
    }

    /// What the name holds now; `None` when nothing.
    pub(super) fn stat(&self, last: LastLink) -> Result<Option<Stat>, FileError> {
        match rustix::fs::statat(self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => Ok(Some(stat)),
                FileType::Directory => Err(FileError::Directory(self.path.clone())),
                FileType::Symlink if last == LastLink::Keep => Ok(Some(stat)),
                // It was resolved a moment ago, so it was put there since.
                FileType::Symlink => Err(self.changed(None)),
                _ => Err(FileError::Special(self.path.clone())),
            },
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.io(error)),
        }
    }

    /// A name can be given to other content by whoever may write the directory; a file that is kept from being written,
    /// or belongs to somebody else, is to stay as it is all the same.
    fn may_be_written(&self, old: &Stat) -> Result<(), FileError> {
        if FileType::from_raw_mode(old.st_mode) == FileType::Symlink {
            return Ok(());
        }
        rustix::fs::accessat(self.directory, self.name, Access::WRITE_OK, AtFlags::EACCESS)
            .map_err(|error| self.io(error))
    }

    /// Makes `new` durably beside the target; a file gets the mode and owner of `old` where it is not said otherwise. Also
    /// says what it is.
    pub(super) fn write_temporary(
        &self,
        new: New<'_>,
        old: Option<&Stat>,
    ) -> Result<(Temporary<'_>, FileState), FileError> {
        let (bytes, mode) = match new {
            New::File(bytes, mode) => (bytes, mode),
            New::Link(to) => return Ok((self.create_link(to)?, FileState::with(hash(to), LINK_MODE))),
            New::Made(name, state) => return Ok((self.temporary(name.to_owned()), state.clone())),
        };
        let old = old.filter(|old| FileType::from_raw_mode(old.st_mode) == FileType::RegularFile);
        // Nobody else may read it while it is written, unless the file itself is to be new: then umask decides.
        let private = old.is_some() || mode.is_some();
        let (temporary, fd) =
            self.create_temporary(Mode::from_raw_mode(if private { 0o600 } else { 0o666 }))?;
        let mut file = File::from(fd);
        file.write_all(bytes).map_err(|error| FileError::io(self.path, "write", error))?;
        let made = rustix::fs::fstat(&file).map_err(|error| self.io(error))?;
        if let Some(old) = old {
            give_away(&file, &made, old);
        }
        let kept = || old.map(|old| Mode::from_raw_mode(old.st_mode));
        let mode = mode.or_else(kept).unwrap_or(Mode::from_raw_mode(made.st_mode)) & PERMISSIONS;
        if private {
            rustix::fs::fchmod(&file, mode).map_err(|error| self.io(error))?;
        }
        file.sync_all().map_err(|error| FileError::io(self.path, "write", error))?;
        Ok((temporary, FileState::file(hash(bytes), mode.as_raw_mode())))
    }

    fn create_link(&self, to: &[u8]) -> Result<Temporary<'_>, FileError> {
        let name = temporary_name();
        rustix::fs::symlinkat(to, self.directory, &name).map_err(|error| self.io(error))?;
        Ok(self.temporary(name))
    }

    fn temporary(&self, name: String) -> Temporary<'_> {
        Temporary { directory: self.directory.as_fd(), name, keep: false }
    }

    fn create_temporary(&self, mode: Mode) -> Result<(Temporary<'_>, OwnedFd), FileError> {
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

    /// Gives the temporary file the name, which must be free.
    fn place_new(&self, temporary: &Temporary<'_>, expected: &Expected) -> Result<(), FileError> {
        let taken = || match expected {
            Expected::Absent => FileError::Exists(self.path.clone()),
            Expected::Hash(_) | Expected::Any => self.changed(None),
        };
        match self.move_to_free_name(&temporary.name, self.name) {
            Err(Errno::EXIST) => Err(taken()),
            other => other.map_err(|error| self.io(error)),
        }
    }

    /// Renames; fails with `EXIST` when `to` is taken.
    fn move_to_free_name(&self, from: &str, to: &str) -> Result<(), Errno> {
        match self.rename(from, to, RenameFlags::NOREPLACE) {
            Err(error) if is_unsupported(error) => {
                // A hard link is the older way to a name that must be free.
                rustix::fs::linkat(self.directory, from, self.directory, to, AtFlags::empty())?;
                rustix::fs::unlinkat(self.directory, from, AtFlags::empty())
            }
            other => other,
        }
    }

    /// Swaps the temporary file with the target and checks what was displaced; returns its hash.
    fn exchange(
        &self,
        temporary: &mut Temporary<'_>,
        expected: &Expected,
        written: &str,
    ) -> Result<String, FileError> {
        match self.rename(&temporary.name, self.name, RenameFlags::EXCHANGE) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(self.changed(None)),
            Err(error) if is_unsupported(error) => return self.check_and_rename(temporary, expected),
            Err(error) => return Err(self.io(error)),
        }
        let displaced = self.hash_of(&temporary.name);
        if let Ok(found) = &displaced
            && matches(expected, found)
        {
            return Ok(found.clone());
        }
        self.swap_back(temporary, written)
    }

    /// Undoes an exchange that displaced something unexpected.
    fn swap_back(&self, temporary: &mut Temporary<'_>, written: &str) -> Result<String, FileError> {
        let undone = self.rename(&temporary.name, self.name, RenameFlags::EXCHANGE);
        if undone.is_ok() && self.hash_of(&temporary.name).is_ok_and(|found| found == written) {
            return Err(self.changed(None));
        }
        // Somebody wrote our version in the instant it was there, or it cannot be put back: both stay.
        temporary.keep = true;
        Err(self.changed(Some(&temporary.name)))
    }

    /// Where the system cannot exchange names: looks, then renames. The gap between the two is all that is lost.
    fn check_and_rename(&self, temporary: &Temporary<'_>, expected: &Expected) -> Result<String, FileError> {
        let found = self.hash_of(self.name).map_err(|error| self.io(error))?;
        if !matches(expected, &found) {
            return Err(self.changed(None));
        }
        rustix::fs::renameat(self.directory, &temporary.name, self.directory, self.name)
            .map_err(|error| self.io(error))?;
        Ok(found)
    }

    /// Moves the target to a temporary name, looks at it there, and removes it or puts it back.
    fn set_aside_and_remove(&self, expected: &Expected) -> Result<FileState, FileError> {
        let old = rustix::fs::statat(self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| FileError::io(self.path, "delete", error.into()))?;
        match FileType::from_raw_mode(old.st_mode) {
            FileType::RegularFile | FileType::Symlink => {}
            FileType::Directory => return Err(FileError::Directory(self.path.clone())),
            _ => return Err(FileError::Special(self.path.clone())),
        }
        // The name is random, so that it is free; one step, because others may take the name between two.
        let aside = temporary_name();
        rustix::fs::renameat(self.directory, self.name, self.directory, &aside)
            .map_err(|error| FileError::io(self.path, "delete", error.into()))?;
        match self.hash_of(&aside) {
            Ok(found) if matches(expected, &found) => {
                match rustix::fs::unlinkat(self.directory, &aside, AtFlags::empty()) {
                    Ok(()) => Ok(FileState::with(found, old.st_mode)),
                    Err(error) => {
                        let kept = FileError::io(self.path, "delete", error.into());
                        self.put_back(&aside).and(Err(kept))
                    }
                }
            }
            _ => self.put_back(&aside).and(Err(self.changed(None))),
        }
    }

    /// Gives what was set aside its name again; fails when that is taken, and says where the content lies.
    fn put_back(&self, aside: &str) -> Result<(), FileError> {
        let moved = match self.move_to_free_name(aside, self.name) {
            // A directory that took the name meanwhile can have no second one; nor can it take the place of a file.
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

    /// Keeps the content that is about to be displaced, of a link what it points to; returns its hash. Only a regular file is
    /// opened: whoever opens a pipe takes what is in it.
    fn keep(&self, contents: &Contents) -> Result<String, Unkept> {
        let stat = rustix::fs::statat(self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW);
        let stat = stat.map_err(std::io::Error::from)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => {
                let to = rustix::fs::readlinkat(self.directory, self.name, Vec::new());
                return contents.keep_bytes(to.map_err(std::io::Error::from)?.as_bytes());
            }
            _ => return Err(Unkept::NoFile),
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(self.directory, self.name, flags, Mode::empty());
        contents.keep(&File::from(opened.map_err(std::io::Error::from)?))
    }

    /// The content hash of `name`, of a link the hash of its target's name.
    fn hash_of(&self, name: &str) -> Result<String, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        match rustix::fs::openat(self.directory, name, flags, Mode::empty()) {
            Ok(fd) => {
                let stat = rustix::fs::fstat(&fd)?;
                if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
                    return Err(Errno::INVAL);
                }
                hash_reader(File::from(fd)).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
            }
            Err(Errno::LOOP | Errno::MLINK) => {
                rustix::fs::readlinkat(self.directory, name, Vec::new()).map(|target| hash(target.as_bytes()))
            }
            Err(error) => Err(error),
        }
    }

    fn rename(&self, from: &str, to: &str, flags: RenameFlags) -> Result<(), Errno> {
        self.beneath.rename(self.directory, from, to, flags)
    }

    /// Makes the change of names durable, or says why that is not certain. The change has happened either way.
    fn sync(&self) -> Option<String> {
        match rustix::fs::fsync(self.directory) {
            // Some file systems cannot sync a directory; they need no sync either.
            Ok(()) | Err(Errno::INVAL | Errno::NOTSUP | Errno::ROFS) => None,
            Err(error) => Some(error.to_string()),
        }
    }
}

/// Gives `file` to whom `old` belongs.
fn give_away(file: &File, made: &Stat, old: &Stat) {
    if (made.st_uid, made.st_gid) != (old.st_uid, old.st_gid) {
        let (user, group) = (rustix::fs::Uid::from_raw(old.st_uid), rustix::fs::Gid::from_raw(old.st_gid));
        // Only root may give a file away; anyone else keeps what he wrote, as every editor does.
        let _ = rustix::fs::fchown(file, Some(user), Some(group));
    }
}

/// Why what was displaced is not what was kept.
fn unkept(kept: Option<Result<String, Unkept>>, displaced: Option<&str>) -> Option<String> {
    match kept? {
        Ok(hash) if Some(hash.as_str()) == displaced => None,
        Ok(_) => Some(Unkept::Changed.to_string()),
        Err(reason) => Some(reason.to_string()),
    }
}

fn matches(expected: &Expected, found: &str) -> bool {
    match expected {
        Expected::Absent => false,
        Expected::Hash(hash) => hash == found,
        Expected::Any => true,
    }
}

/// Whether the kernel or the file system does not know this kind of rename.
fn is_unsupported(error: Errno) -> bool {
    matches!(error, Errno::NOSYS | Errno::INVAL | Errno::NOTSUP)
}

fn temporary_name() -> String {
    format!("{TEMPORARY_PREFIX}{}-{}", std::process::id(), Source::new().short_id())
}
