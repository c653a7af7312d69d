//! Reads the state of workspace entries, including links, and restores earlier states.

use crate::Workspace;
use crate::content_store::{ContentStore, StoreError};
use crate::error::FileError;
use crate::file::{HashedContent, hash, hash_reader};
use crate::path::RelPath;
use crate::replace::{AppliedChange, Expected, NewEntry};
use crate::root_dir::LastLink;
use agent_core::file_change::FileState;
use rustix::fs::{AtFlags, FileType, Mode};
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;

impl Workspace {
    /// Returns the state of `path`. A link that is its last part is not followed.
    ///
    /// # Errors
    /// Fails if it is neither a file nor a link, or cannot be read.
    pub fn state_of(&self, path: &RelPath) -> Result<FileState, FileError> {
        if let Some((to, mode)) = self.link_at(path)? {
            return Ok(FileState::from_mode(hash(&to), mode));
        }
        let opened = match self.open_file(path) {
            Err(FileError::Missing(_) | FileError::NotDirectory(_)) => return Ok(FileState::Absent),
            opened => opened?,
        };
        let io = |error| FileError::io(path, "read", error);
        let mode = opened.file.metadata().map_err(io)?.mode();
        Ok(FileState::from_mode(hash_reader(opened.file).map_err(io)?, mode))
    }

    /// Returns the content of `path`, for a link its target. At most `limit` bytes.
    ///
    /// # Errors
    /// Fails like [`state_of`](Self::state_of), and if it does not exist or is larger.
    pub fn content_of(&self, path: &RelPath, limit: u64) -> Result<Vec<u8>, FileError> {
        match self.link_at(path)? {
            Some((to, _)) => Ok(to),
            None => Ok(self.read(path, limit)?.bytes),
        }
    }

    /// Stores the content of `path`, for a link its target, and returns its hash.
    ///
    /// # Errors
    /// Fails if it is not a file that tools may read, or [`ContentStore`] does not store it.
    pub fn store(&self, path: &RelPath, contents: &ContentStore) -> Result<String, StoreError> {
        let unread = |error: FileError| StoreError::Io(std::io::Error::other(error));
        match self.link_at(path).map_err(unread)? {
            Some((to, _)) => contents.store_bytes(&to),
            None => contents.store(&self.open_file(path).map_err(unread)?.file),
        }
    }

    /// Restores this content and `st_mode`, of a file or a link, to `path`, whose state must be `now`.
    ///
    /// # Errors
    /// Fails like [`replace`](Self::replace).
    pub fn restore(
        &self,
        path: &RelPath,
        now: &FileState,
        bytes: &[u8],
        wanted: &FileState,
    ) -> Result<AppliedChange, FileError> {
        let new = if wanted.is_link() {
            NewEntry::Link(bytes)
        } else {
            NewEntry::File(
                HashedContent { bytes, hash: &hash(bytes) },
                wanted.mode().map(Mode::from_raw_mode),
            )
        };
        self.replace_entry(path, LastLink::NoFollow, &expected(now), new)
    }

    /// Restores `path`, whose state must be `now`, to the state `wanted`, with the content from `contents`; returns `None` if
    /// that is not stored.
    ///
    /// # Errors
    /// Fails like [`replace`](Self::replace).
    pub fn restore_stored(
        &self,
        path: &RelPath,
        now: &FileState,
        wanted: &FileState,
        contents: &ContentStore,
    ) -> Result<Option<AppliedChange>, FileError> {
        match wanted {
            FileState::Absent => self.remove(path, &expected(now)).map(Some),
            FileState::Unknown => Ok(None),
            FileState::Content { hash, .. } => match contents.get(hash) {
                Some(bytes) => self.restore(path, now, &bytes, wanted).map(Some),
                None => Ok(None),
            },
        }
    }

    /// Removes `path`, whose state must be `now`.
    ///
    /// # Errors
    /// Fails like [`remove`](Self::remove).
    pub fn remove_current(&self, path: &RelPath, now: &FileState) -> Result<AppliedChange, FileError> {
        self.remove(path, &expected(now))
    }

    /// Counts the parent directories of `path`, from the innermost, that do not exist.
    pub fn missing_directories(&self, path: &RelPath) -> u32 {
        let parent = |path: &RelPath| path.split_last().map(|(parent, _)| parent);
        let parents = std::iter::successors(parent(path), parent);
        parents.take_while(|parent| !self.is_directory(parent)).fold(0, |count, _| count + 1)
    }

    /// Removes the innermost `count` parent directories of each of `files` if they are empty.
    pub fn remove_directories(&self, files: impl IntoIterator<Item = (RelPath, u32)>) {
        let mut directories = BTreeSet::new();
        for (file, count) in files {
            let mut inner = file;
            for _ in 0..count {
                let Some((parent, _)) = inner.split_last() else { break };
                directories.insert(parent.clone());
                inner = parent;
            }
        }
        // By name, a nested directory comes after its parent.
        for directory in directories.into_iter().rev() {
            let Some((parent, name)) = directory.split_last() else { continue };
            let Ok(parent) = self.root_dir().open_directory(&parent) else { continue };
            // A directory that is not empty remains.
            let _ = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
        }
    }

    /// Returns target and mode of the link `path`. `None` if it is not a link.
    fn link_at(&self, path: &RelPath) -> Result<Option<(Vec<u8>, u32)>, FileError> {
        let real = self.resolve_directory(path)?;
        let Some((parent, name)) = real.split_last() else { return Ok(None) };
        let Ok(directory) = self.root_dir().open_directory(&parent) else { return Ok(None) };
        let Ok(stat) = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
            return Ok(None);
        };
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            return Ok(None);
        }
        let to = rustix::fs::readlinkat(&directory, name, Vec::new());
        let to = to.map_err(|error| FileError::io(path, "read", error.into()))?;
        Ok(Some((to.into_bytes(), stat.st_mode)))
    }
}

fn expected(now: &FileState) -> Expected<'static> {
    match now {
        FileState::Absent => Expected::Absent,
        FileState::Content { hash, .. } => Expected::Hash(hash.clone()),
        FileState::Unknown => Expected::Any,
    }
}
