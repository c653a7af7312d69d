//! New content of a file, durably beside it before any file changes: what the disk has no room for is known by then.

use crate::core::file_change::FileState;
use crate::workspace::Workspace;
use crate::workspace::error::FileError;
use crate::workspace::file::{HashedContent, hash};
use crate::workspace::path::RelPath;
use crate::workspace::replace::{AppliedChange, Expected, NewEntry};
use crate::workspace::root_dir::LastLink;
use rustix::fs::Mode;

/// A temporary file that is to take the place of a file.
pub(super) struct StagedFile {
    /// The file, links resolved.
    path: RelPath,
    /// The name of the temporary file beside it.
    name: String,
    /// What the file is to be.
    state: FileState,
    /// How many directories were made for it.
    directories: u32,
}

impl Workspace {
    /// Writes what `path` is to hold beside it; the file gets the permission bits `mode`, or those it has.
    ///
    /// # Errors
    /// When the path cannot be written, or the system refuses; nothing is left then.
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

    /// Gives what was staged its place.
    ///
    /// # Errors
    /// When the file is not as `expected`, or the system refuses; the file is untouched then, and nothing is left.
    pub(super) fn commit_staged(
        &self,
        staged: &StagedFile,
        expected: &Expected<'_>,
    ) -> Result<AppliedChange, FileError> {
        let made = NewEntry::Staged(&staged.name, &staged.state);
        match self.set(&staged.path, LastLink::Follow, expected, made) {
            Ok(displaced) => Ok(AppliedChange { directories: staged.directories, ..displaced }),
            Err(error) => {
                self.discard_staged(staged);
                Err(error)
            }
        }
    }

    /// Removes what was staged and has no place; what somebody else has left under its name stays.
    pub(super) fn discard_staged(&self, staged: &StagedFile) {
        if let (Some((parent, _)), Some(hash)) = (staged.path.split_last(), staged.state.hash()) {
            // What cannot be removed is harmless, hidden, and recognisable by its name.
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
    #[expect(clippy::disallowed_methods, reason = "tests arrange files")]
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
