//! Writes and removes workspace files atomically, and never overwrites content that the caller does not expect.
//!
//! The new content is written to a temporary file in the target's directory and then exchanged with the target. The exchange
//! shows exactly which bytes were replaced. If they are not the expected ones, they are exchanged back, so that a save by
//! another program is never lost. At every moment the path contains the complete old or the complete new file. All writes and
//! removals use this module.

use crate::Workspace;
use crate::content_store::{ContentStore, StoreError};
use crate::error::FileError;
use crate::file::{HashedContent, hash};
use crate::path::RelPath;
use crate::replace_target::ReplaceTarget;
use crate::root_dir::LastLink;
use agent_core::file_change::FileState;
use rustix::fs::Mode;

pub(super) use crate::replace_target::NewEntry;
pub use crate::replace_target::{Expected, TEMPORARY_PREFIX};

/// Result of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedChange {
    /// Real path of the file, links resolved.
    pub path: RelPath,
    /// State before.
    pub was: FileState,
    /// State now.
    pub became: FileState,
    /// Number of directories created for it.
    pub directories: u32,
    /// Reason why the system did not confirm that the change is on disk. The change has happened.
    pub sync_error: Option<String>,
    /// Reason why the earlier content could not be stored, so that the change cannot be undone. `None` also without a content
    /// store.
    pub store_error: Option<String>,
}

impl Workspace {
    /// Replaces the content of `path`, or creates the file with its missing directories. Writes through a link to its target
    /// inside the workspace. Retains permission bits and, if allowed, the owner.
    ///
    /// # Errors
    /// Fails if the file is not as `expected`, is not a regular file, is outside the workspace, is part of `.git` or
    /// configuration of a repository, or the system refuses. The file is unchanged then.
    pub fn replace(
        &self,
        path: &RelPath,
        expected: &Expected<'_>,
        new: HashedContent<'_>,
    ) -> Result<AppliedChange, FileError> {
        self.replace_entry(path, LastLink::Follow, expected, NewEntry::File(new, None))
    }

    /// Like [`replace`](Self::replace), with a content that is hashed here, and the permission bits `mode` for the file.
    ///
    /// # Errors
    /// Fails like [`replace`](Self::replace).
    pub fn replace_with_mode(
        &self,
        path: &RelPath,
        expected: &Expected<'_>,
        bytes: &[u8],
        mode: Option<Mode>,
    ) -> Result<AppliedChange, FileError> {
        let new = HashedContent { bytes, hash: &hash(bytes) };
        self.replace_entry(path, LastLink::Follow, expected, NewEntry::File(new, mode))
    }

    /// Like [`replace`](Self::replace), for a file or a link. A link that is the last part of `path` is followed or replaced.
    pub(super) fn replace_entry(
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

    /// Runs `work` in the directory of `path`, which is created if missing. Returns the number of created directories. If
    /// `work` fails, they are removed.
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
        let store = |contents: &ContentStore| match expected {
            // Only the expected content can be replaced, and it is already stored.
            Expected::Hash(hash) if contents.contains(hash) => Ok(hash.clone()),
            Expected::Content(known) => contents.store_hashed(*known).map(|()| known.hash.to_owned()),
            _ => target.store(contents),
        };
        let store_old = || self.content_store().filter(|_| old.is_some()).map(store);
        let (mut temporary, became, stored) = target.write_temporary(new, old.as_ref(), store_old)?;
        let was = if let Some(old) = old {
            let written = became.hash().unwrap_or_default();
            FileState::from_mode(target.exchange(&mut temporary, expected, written)?, old.st_mode)
        } else {
            target.place_new(&temporary, expected)?;
            FileState::Absent
        };
        drop(temporary);
        let (sync_error, store_error) = (target.sync(), store_failure(stored, was.hash()));
        Ok(AppliedChange { path: real.clone(), was, became, directories: 0, sync_error, store_error })
    }

    /// Removes the regular file or symbolic link `path`. A link's target remains.
    ///
    /// # Errors
    /// Fails if the file is not as `expected`, is a directory or special file, is outside the workspace, is part of `.git`, or
    /// the system refuses. The file is unchanged then.
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
        let stored = self.content_store().map(|contents| target.store(contents));
        let was = target.set_aside_and_remove(expected)?;
        let (sync_error, store_error) = (target.sync(), store_failure(stored, was.hash()));
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

/// Returns why the replaced content was not stored, if so.
fn store_failure(stored: Option<Result<String, StoreError>>, displaced: Option<&str>) -> Option<String> {
    match stored? {
        Ok(hash) if Some(hash.as_str()) == displaced => None,
        Ok(_) => Some(StoreError::Changed.to_string()),
        Err(reason) => Some(reason.to_string()),
    }
}
