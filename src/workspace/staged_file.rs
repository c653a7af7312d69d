//! Stages a file's new content durably in its directory before any file changes, which detects a full disk early.

use crate::Workspace;
use crate::error::FileError;
use crate::file::{HashedContent, hash};
use crate::path::RelPath;
use crate::replace::{AppliedChange, Expected, NewEntry};
use crate::root_dir::LastLink;
use agent_core::file_change::FileState;
use rustix::fs::Mode;

/// Temporary file that will replace a file.
pub(super) struct StagedFile {
    /// The file, links resolved.
    path: RelPath,
    /// Name of the temporary file in the same directory.
    name: String,
    /// State of the new file.
    state: FileState,
    /// Number of directories created for it.
    directories: u32,
}

impl Workspace {
    /// Writes the new content of `path` to a temporary file, with the permission bits `mode` or the current ones.
    ///
    /// # Errors
    /// Fails if the path cannot be written or the system refuses. Nothing is left then.
    pub(super) fn stage(
        &self,
        path: &RelPath,
        bytes: &[u8],
        mode: Option<Mode>,
    ) -> Result<StagedFile, FileError> {
        let (staged, directories) = self.with_target(path, LastLink::Follow, |target| {
            let old = target.stat(LastLink::Follow)?;
            let new = NewEntry::File(HashedContent { bytes, hash: &hash(bytes) }, mode);
            let (mut temporary, state, ()) = target.write_temporary(new, old.as_ref(), || ())?;
            temporary.persist = true;
            let (path, name) = (target.path.clone(), temporary.name.clone());
            Ok(StagedFile { path, name, state, directories: 0 })
        })?;
        Ok(StagedFile { directories, ..staged })
    }

    /// Moves the staged file to its path.
    ///
    /// # Errors
    /// Fails if the file is not as `expected` or the system refuses. The file is unchanged then, and nothing is left.
    pub(super) fn commit_staged(
        &self,
        staged: &StagedFile,
        expected: &Expected<'_>,
    ) -> Result<AppliedChange, FileError> {
        let made = NewEntry::Staged(&staged.name, &staged.state);
        match self.replace_entry(&staged.path, LastLink::Follow, expected, made) {
            Ok(displaced) => Ok(AppliedChange { directories: staged.directories, ..displaced }),
            Err(error) => {
                self.discard_staged(staged);
                Err(error)
            }
        }
    }

    /// Removes a staged file that was not committed. A file of another program under its name remains.
    pub(super) fn discard_staged(&self, staged: &StagedFile) {
        if let (Some((parent, _)), Some(hash)) = (staged.path.split_last(), staged.state.hash()) {
            // A leftover is harmless, hidden, and recognisable by its name.
            let _ = self.remove(&parent.join(&staged.name), &Expected::Hash(hash.to_owned()));
        }
        self.remove_directories([(staged.path.clone(), staged.directories)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn names(dir: &Path) -> usize {
        std::fs::read_dir(dir).unwrap().count()
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "tests write files")]
    fn what_has_no_place_goes_with_its_directories_unless_it_is_somebody_elses() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(dir.path()).unwrap();
        let path = workspace.path("new/deep/file").unwrap();
        let staged = workspace.stage(&path, b"new", None).unwrap();
        assert_eq!(staged.directories, 2);
        workspace.discard_staged(&staged);
        assert_eq!(names(dir.path()), 0);

        let staged = workspace.stage(&path, b"new", None).unwrap();
        let deep = dir.path().join("new/deep");
        std::fs::write(deep.join(&staged.name), "a save by another program").unwrap();
        let error = workspace.commit_staged(&staged, &Expected::Hash("another".to_owned())).unwrap_err();
        assert!(matches!(error, FileError::Changed { .. }), "{error}");
        assert_eq!(names(&deep), 1);
    }
}
