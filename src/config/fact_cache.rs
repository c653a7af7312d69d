//! Small facts about the files of one workspace, as they are kept between runs: a file of their own in the state directory.

use rustix::fs::OFlags;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Its longest content, in bytes: some thousand files with their hashes.
const MAX_BYTES: u64 = 4 << 20;
/// The form of the record; another one is not believed.
const VERSION: u32 = 1;
/// What somebody else must not be allowed to do with the file.
const OTHERS_MAY_WRITE: u32 = 0o022;

/// What is kept.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record<Fact> {
    version: u32,
    /// For people who look at the file.
    workspace: String,
    /// The hash of the canonical path: the directory's name holds only a part of it.
    place: String,
    /// What is known of each file, by its path.
    files: BTreeMap<String, Fact>,
}

/// Where facts of one kind about one workspace are kept. Whoever keeps some replaces all that was there at once.
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

    /// What was kept; nothing when nothing was.
    ///
    /// # Errors
    /// A record that may not be our own: in a state directory that is part of the workspace, which could bring it
    /// along, or owned or writable by somebody else; or one that cannot be read.
    pub fn load<Fact: DeserializeOwned>(&self) -> io::Result<Option<BTreeMap<String, Fact>>> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match rustix::fs::open(self.file(), flags, rustix::fs::Mode::empty()) {
            Ok(descriptor) => File::from(descriptor),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        self.check_outside_workspace()?;
        let metadata = file.metadata()?;
        let own = metadata.uid() == rustix::process::geteuid().as_raw();
        if !metadata.is_file() || !own || metadata.mode() & OTHERS_MAY_WRITE != 0 {
            return Err(io::Error::other("somebody else may have written it"));
        }
        let mut json = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut json)?;
        let record: Record<Fact> = serde_json::from_slice(&json)?;
        if record.version != VERSION || record.place != self.workspace_hash() {
            return Err(io::Error::other("it is of another version or workspace"));
        }
        Ok(Some(record.files))
    }

    /// Keeps `files` and nothing else: written beside, for this user alone, and renamed.
    ///
    /// # Errors
    /// When it cannot be written, or could not be believed.
    pub fn store<Fact: Serialize>(&self, files: BTreeMap<String, Fact>) -> io::Result<()> {
        crate::process::scratch_dir::create_private_dir(self.state)?;
        self.check_outside_workspace()?;
        let record = Record {
            version: VERSION,
            workspace: self.workspace.to_string_lossy().into_owned(),
            place: self.workspace_hash(),
            files,
        };
        let mut written = tempfile::NamedTempFile::new_in(self.state)?;
        written.as_file().set_permissions(Permissions::from_mode(0o600))?;
        serde_json::to_writer(&mut written, &record)?;
        written.flush()?;
        written.as_file().sync_all()?;
        written.persist(self.file())?;
        Ok(())
    }

    /// Forgets it; says whether there was anything.
    ///
    /// # Errors
    /// When the record cannot be removed.
    #[expect(clippy::disallowed_methods, reason = "the record is this module's own")]
    pub fn delete(&self) -> io::Result<bool> {
        match std::fs::remove_file(self.file()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn check_outside_workspace(&self) -> io::Result<()> {
        if self.state.canonicalize()?.starts_with(self.workspace) {
            return Err(io::Error::other(
                "the state directory is a part of the workspace, which could bring it along",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "files of a test")]
mod tests {
    use super::*;

    struct World(tempfile::TempDir);

    impl World {
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
    fn what_is_kept_is_recalled_until_it_is_forgotten() {
        let world = World::new();
        let (state, workspace) = world.paths();
        let own = fact_cache(&state, &workspace);
        assert_eq!(loaded(own).unwrap(), None);
        own.store(facts()).unwrap();
        assert_eq!(loaded(own).unwrap(), Some(facts()));
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        assert_eq!((mode(&state), mode(&state.join(NAME))), (0o700, 0o600));
        assert_eq!(std::fs::read_dir(&state).unwrap().count(), 1, "nothing is left beside it");
        assert!(own.delete().unwrap() && !own.delete().unwrap());
        assert_eq!(loaded(own).unwrap(), None);
    }

    #[test]
    fn a_record_that_others_may_have_written_is_not_believed() {
        let world = World::new();
        let (state, workspace) = world.paths();
        let own = fact_cache(&state, &workspace);
        own.store(facts()).unwrap();
        let file = state.join(NAME);
        std::fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
        assert!(loaded(own).unwrap_err().to_string().contains("somebody else"));
        std::fs::rename(&file, state.join("other")).unwrap();
        std::os::unix::fs::symlink(state.join("other"), &file).unwrap();
        assert!(loaded(own).is_err(), "a link is not followed");
        own.store(facts()).unwrap();
        assert_eq!(loaded(own).unwrap(), Some(facts()), "a new record replaces it");
        let elsewhere = fact_cache(&state, Path::new("/elsewhere"));
        assert!(loaded(elsewhere).unwrap_err().to_string().contains("workspace"));
        let around = fact_cache(&state, world.0.path());
        assert!(loaded(around).unwrap_err().to_string().contains("part of the workspace"));
        assert!(around.store(facts()).is_err());
    }
}
