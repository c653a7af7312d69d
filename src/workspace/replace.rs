//! The one way a file of the workspace is written or removed: atomically, and never over content nobody has seen.
//!
//! The new content is written to a temporary file beside the target and then swapped with it. The swap shows exactly
//! which bytes were displaced; if they are not the expected ones they are swapped back, so that a save by another
//! program is never lost. At every instant the path holds the whole old or the whole new file.

use crate::core::file_change::FileState;
use crate::workspace::Workspace;
use crate::workspace::content_store::{ContentStore, StoreError};
use crate::workspace::error::FileError;
use crate::workspace::file::{HashedContent, hash};
use crate::workspace::path::RelPath;
use crate::workspace::replace_target::ReplaceTarget;
use crate::workspace::root_dir::LastLink;
use rustix::fs::Mode;

pub(super) use crate::workspace::replace_target::NewEntry;
pub use crate::workspace::replace_target::{Expected, TEMPORARY_PREFIX};

/// What a change displaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedChange {
    /// Where the file really is, links resolved.
    pub path: RelPath,
    /// What it was before.
    pub was: FileState,
    /// What it is now.
    pub became: FileState,
    /// How many directories were made for it.
    pub directories: u32,
    /// Why the system did not confirm that the change is on disk; the change stands.
    pub sync_error: Option<String>,
    /// Why the content before could not be kept: the change cannot be undone. Nothing is kept where nobody asked for it.
    pub store_error: Option<String>,
}

impl Workspace {
    /// Replaces the content of `path`, or makes the file and the directories it is in. A link is written through to
    /// the file it points to, inside the workspace. Permission bits and, where allowed, the owner are kept.
    ///
    /// # Errors
    /// When the file is not as `expected`, is not a regular file, is outside, is part of `.git` or configuration of a
    /// repository, or the system refuses; the file is untouched then.
    pub fn replace(
        &self,
        path: &RelPath,
        expected: &Expected<'_>,
        bytes: &[u8],
    ) -> Result<AppliedChange, FileError> {
        self.replace_with_mode(path, expected, bytes, None)
    }

    /// As [`replace`](Self::replace), with a content whose hash is known.
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    pub fn replace_with_hashed(
        &self,
        path: &RelPath,
        expected: &Expected<'_>,
        new: HashedContent<'_>,
    ) -> Result<AppliedChange, FileError> {
        self.set(path, LastLink::Follow, expected, NewEntry::File(new, None))
    }

    /// As [`replace`](Self::replace); the file gets the permission bits `mode`.
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    pub fn replace_with_mode(
        &self,
        path: &RelPath,
        expected: &Expected<'_>,
        bytes: &[u8],
        mode: Option<Mode>,
    ) -> Result<AppliedChange, FileError> {
        let new = HashedContent { bytes, hash: &hash(bytes) };
        self.set(path, LastLink::Follow, expected, NewEntry::File(new, mode))
    }

    /// As [`replace`](Self::replace), for whatever a name may hold; a link that is the last part of `path` is followed or
    /// replaced.
    pub(super) fn set(
        &self,
        path: &RelPath,
        last: LastLink,
        expected: &Expected<'_>,
        new: NewEntry<'_>,
    ) -> Result<AppliedChange, FileError> {
        let set = |target: &ReplaceTarget<'_>| self.write_target(target, last, expected, new);
        let (displaced, directories) = self.with_target(path, last, set)?;
        Ok(AppliedChange { directories, ..displaced })
    }

    /// Does `work` in the directory of `path`, which is made, and says how many directories were; where it fails they go again.
    pub(super) fn with_target<T>(
        &self,
        path: &RelPath,
        last: LastLink,
        work: impl FnOnce(&ReplaceTarget<'_>) -> Result<T, FileError>,
    ) -> Result<(T, u32), FileError> {
        let real = self.resolve_writable(path, last)?;
        let (parent, name) = real.split_last().ok_or_else(|| FileError::Directory(path.clone()))?;
        let made = self.root_dir().make_directory(&parent);
        let (directory, directories) =
            made.map_err(|error| FileError::io(path, "open the directory of", error.into()))?;
        let target = ReplaceTarget {
            root_dir: self.root_dir(),
            path: &real,
            parent: &parent,
            directory: &directory,
            name,
        };
        let done = work(&target);
        if done.is_err() {
            self.remove_directories([(real.clone(), directories)]);
        }
        done.map(|done| (done, directories))
    }

    fn write_target(
        &self,
        target: &ReplaceTarget<'_>,
        last: LastLink,
        expected: &Expected<'_>,
        new: NewEntry<'_>,
    ) -> Result<AppliedChange, FileError> {
        let real = target.path;
        let old = target.stat(last)?;
        match (&old, expected) {
            (Some(_), Expected::Absent) => return Err(FileError::Exists(real.clone())),
            (None, Expected::Hash(_) | Expected::Content(_)) => return Err(target.changed(None)),
            (Some(old), _) => target.check_writable(old)?,
            (None, _) => {}
        }
        let keep = |contents: &ContentStore| match expected {
            // Nothing else will be displaced.
            Expected::Hash(hash) if contents.contains(hash) => Ok(hash.clone()),
            Expected::Content(known) => contents.store_hashed(*known).map(|()| known.hash.to_owned()),
            _ => target.store(contents),
        };
        let keep = || self.content_store().filter(|_| old.is_some()).map(keep);
        let (mut temporary, became, kept) = target.write_temporary(new, old.as_ref(), keep)?;
        let was = if let Some(old) = old {
            let written = became.hash().unwrap_or_default();
            FileState::from_mode(target.exchange(&mut temporary, expected, written)?, old.st_mode)
        } else {
            target.place_new(&temporary, expected)?;
            FileState::Absent
        };
        drop(temporary);
        let (sync_error, store_error) = (target.sync(), unkept(kept, was.hash()));
        Ok(AppliedChange { path: real.clone(), was, became, directories: 0, sync_error, store_error })
    }

    /// Removes the regular file or symbolic link `path`; a link's target stays.
    ///
    /// # Errors
    /// When the file is not as `expected`, is a directory or special file, is outside, is part of `.git`, or the
    /// system refuses; the file is untouched then.
    pub fn remove(&self, path: &RelPath, expected: &Expected<'_>) -> Result<AppliedChange, FileError> {
        let real = self.resolve_writable(path, LastLink::NoFollow)?;
        let (parent, name) = real.split_last().ok_or_else(|| FileError::Directory(path.clone()))?;
        let directory = self
            .root_dir()
            .open_directory(&parent)
            .map_err(|error| FileError::io(path, "open the directory of", error.into()))?;
        let target = ReplaceTarget {
            root_dir: self.root_dir(),
            path: &real,
            parent: &parent,
            directory: &directory,
            name,
        };
        let kept = self.content_store().map(|contents| target.store(contents));
        let was = target.set_aside_and_remove(expected)?;
        let (sync_error, store_error) = (target.sync(), unkept(kept, was.hash()));
        let became = FileState::Absent;
        Ok(AppliedChange { path: real.clone(), was, became, directories: 0, sync_error, store_error })
    }

    fn resolve_writable(&self, path: &RelPath, last: LastLink) -> Result<RelPath, FileError> {
        let real = self.root_dir().resolve(path, last).map_err(|error| FileError::at(path, error))?;
        if path.is_git_internal() || real.is_git_internal() {
            return Err(FileError::GitInternal(path.clone()));
        }
        if self.is_protected(&real, true) {
            return Err(FileError::ProtectedFile(path.clone()));
        }
        if self.is_protected_link_target(&real) {
            return Err(FileError::ProtectedLink(path.clone()));
        }
        if self.changes_repository(&real) {
            return Err(FileError::Repository(path.clone()));
        }
        Ok(real)
    }
}

/// Why what was displaced is not what was kept.
fn unkept(kept: Option<Result<String, StoreError>>, displaced: Option<&str>) -> Option<String> {
    match kept? {
        Ok(hash) if Some(hash.as_str()) == displaced => None,
        Ok(_) => Some(StoreError::Changed.to_string()),
        Err(reason) => Some(reason.to_string()),
    }
}
