//! Small facts about the files of one workspace, stored between runs in a file of the state directory.

use crate::environment::WORKTREES;
use agent_runtime::private_file;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Maximum size of the file in bytes: several thousand files with their hashes.
const MAX_BYTES: u64 = 4 << 20;
/// Version of the record's format; a record of another version is rejected.
const VERSION: u32 = 1;
/// Permission bits that let other users write to the file.
const OTHERS_MAY_WRITE: u32 = 0o022;

/// The stored record.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record<Fact> {
    version: u32,
    /// Only for readers of the file.
    workspace: String,
    /// The hash of the canonical path; the directory's name contains only a part of it.
    #[serde(rename = "place")]
    workspace_hash: String,
    /// The fact for each file, by path.
    files: BTreeMap<String, Fact>,
}

/// The storage of one kind of facts about one workspace. Storing replaces the whole record.
#[derive(Debug, Clone, Copy)]
pub struct FactCache<'a> {
    /// The state directory of the workspace.
    pub state: &'a Path,
    /// Its canonical path.
    pub workspace: &'a Path,
    /// The name of the file.
    pub name: &'static str,
}

impl FactCache<'_> {
    fn file(&self) -> PathBuf {
        self.state.join(self.name)
    }

    fn workspace_hash(&self) -> String {
        blake3::hash(self.workspace.as_os_str().as_encoded_bytes()).to_hex().to_string()
    }

    /// Checks whether a record with this hash is about the workspace or, in a worktree, about the workspace to which that belongs.
    fn is_of(&self, hash: &str) -> bool {
        match self.state.file_name().and_then(|name| name.to_str()) {
            Some(name) if self.is_worktree() => hash.starts_with(name),
            _ => hash == self.workspace_hash(),
        }
    }

    fn is_worktree(&self) -> bool {
        self.workspace.starts_with(self.state.join(WORKTREES))
    }

    /// Loads the stored facts; `None` when there is no record.
    ///
    /// # Errors
    /// Fails for a record that may come from someone else: the state directory is part of the workspace (so a repository could
    /// contain it), or another user owns the record or may write to it. Also fails for an unreadable record.
    pub fn load<Fact: DeserializeOwned>(&self) -> io::Result<Option<BTreeMap<String, Fact>>> {
        let (file, metadata) = match private_file::open(&self.file()) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            opened => opened?,
        };
        self.check_outside_workspace()?;
        if !private_file::is_own(&metadata, OTHERS_MAY_WRITE) {
            return Err(io::Error::other("another user may have written it"));
        }
        let mut json = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut json)?;
        let record: Record<Fact> = serde_json::from_slice(&json)?;
        if record.version != VERSION || !self.is_of(&record.workspace_hash) {
            return Err(io::Error::other("it belongs to another version or workspace"));
        }
        Ok(Some(record.files))
    }

    /// Stores `files` as the whole record: writes a new file, readable by this user only, and renames it. A worktree stores nothing:
    /// the record is that of its workspace.
    ///
    /// # Errors
    /// Fails when the record cannot be written, or would be rejected by `load`.
    pub fn store<Fact: Serialize>(&self, files: BTreeMap<String, Fact>) -> io::Result<()> {
        if self.is_worktree() {
            return Ok(());
        }
        private_file::create_private_dir(self.state)?;
        self.check_outside_workspace()?;
        let record = Record {
            version: VERSION,
            workspace: self.workspace.to_string_lossy().into_owned(),
            workspace_hash: self.workspace_hash(),
            files,
        };
        private_file::replace(&self.file(), &serde_json::to_vec(&record)?)
    }

    /// Deletes the record; returns whether there was one.
    ///
    /// # Errors
    /// When the record cannot be removed.
    #[expect(clippy::disallowed_methods, reason = "the record is this module's own")]
    pub fn delete(&self) -> io::Result<bool> {
        match std::fs::remove_file(self.file()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn check_outside_workspace(&self) -> io::Result<()> {
        if self.state.canonicalize()?.starts_with(self.workspace) {
            return Err(io::Error::other(
                "the state directory is part of the workspace, so a repository could contain the record",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "files of a test")]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    struct Fixture(tempfile::TempDir);

    impl Fixture {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn paths(&self) -> (PathBuf, PathBuf) {
            let root = self.0.path().canonicalize().unwrap();
            (root.join("state/ws"), root.join("project"))
        }
    }

    const NAME: &str = "facts.json";

    fn fact_cache<'a>(state: &'a Path, workspace: &'a Path) -> FactCache<'a> {
        FactCache { state, workspace, name: NAME }
    }

    fn facts() -> BTreeMap<String, u64> {
        [("a".to_owned(), 1)].into()
    }

    fn loaded(fact_cache: FactCache<'_>) -> io::Result<Option<BTreeMap<String, u64>>> {
        fact_cache.load()
    }

    #[test]
    fn stored_facts_are_loaded_until_they_are_deleted() {
        let fixture = Fixture::new();
        let (state, workspace) = fixture.paths();
        let own = fact_cache(&state, &workspace);
        assert_eq!(loaded(own).unwrap(), None);
        own.store(facts()).unwrap();
        assert_eq!(loaded(own).unwrap(), Some(facts()));
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        assert_eq!((mode(&state), mode(&state.join(NAME))), (0o700, 0o600));
        assert_eq!(std::fs::read_dir(&state).unwrap().count(), 1, "no temporary file is left");
        assert!(own.delete().unwrap() && !own.delete().unwrap());
        assert_eq!(loaded(own).unwrap(), None);
    }

    #[test]
    fn a_record_that_others_may_have_written_is_rejected() {
        let fixture = Fixture::new();
        let (state, workspace) = fixture.paths();
        let own = fact_cache(&state, &workspace);
        own.store(facts()).unwrap();
        let file = state.join(NAME);
        std::fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
        assert!(loaded(own).unwrap_err().to_string().contains("another user"));
        std::fs::rename(&file, state.join("other")).unwrap();
        std::os::unix::fs::symlink(state.join("other"), &file).unwrap();
        assert!(loaded(own).is_err(), "a link is not followed");
        own.store(facts()).unwrap();
        assert_eq!(loaded(own).unwrap(), Some(facts()), "a new record replaces it");
        let elsewhere = fact_cache(&state, Path::new("/elsewhere"));
        assert!(loaded(elsewhere).unwrap_err().to_string().contains("workspace"));
        let around = fact_cache(&state, fixture.0.path());
        assert!(loaded(around).unwrap_err().to_string().contains("part of the workspace"));
        assert!(around.store(facts()).is_err());
    }
}
