//! Session store of one workspace: directories, locks, ids and removal of sessions.

use crate::blobs::BlobStore;
use crate::checkpoint_refs;
use crate::images::IMAGES_DIR;
use crate::read;
use crate::write::Journal;
use agent_core::failure::{Classified, FailureKind};
use agent_runtime::private_file::create_private_dir;
use agent_workspace::baseline_file::remove_shared;
use agent_workspace::content_store::CONTENTS_DIR;
use std::cmp::Reverse;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Name of the journal file in a session's directory.
pub(super) const JOURNAL_FILE: &str = "journal.jsonl";

/// Prefix of directories of removed sessions; no id starts with it.
const REMOVED_DIR_PREFIX: &str = ".gone-";

/// Failure of an operation on a session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The id is malformed.
    #[error(
        "`{0}` is not a session id: ids look like 20261121-093000-1a2b3c; `agent sessions list` shows them"
    )]
    BadId(String),
    /// No session has this id.
    #[error("no session `{0}`; `agent sessions list --all` lists the existing ones")]
    NotFound(String),
    /// The workspace has no sessions.
    #[error(
        "no session in this workspace yet; `agent run \"…\"` starts one, and `agent sessions list --all` shows those of a renamed project"
    )]
    NoSessions,
    /// All sessions of the workspace were imported.
    #[error("the sessions of this workspace were imported: name the one that you mean, such as {0}")]
    OnlyImported(String),
    /// The newest session is older than the directory.
    #[error(
        "{} was created after the last session in a directory of this name, {id}: start a new session, or name it to \
         continue it all the same (`agent resume {id}`)", workspace.display()
    )]
    OfEarlierDirectory {
        /// Its id.
        id: String,
        /// The directory.
        workspace: PathBuf,
    },
    /// Another process works on the session.
    #[error("session {0} is busy: another process is working on it")]
    Busy(String),
    /// The journal has no readable start.
    #[error("session {0} cannot be read: {1}")]
    Unreadable(String, String),
    /// A session with this id exists.
    #[error("session {0} already exists")]
    AlreadyExists(String),
    /// A file operation failed.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// The operation that failed.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// Its cause.
        source: io::Error,
    },
}

/// The sessions of one workspace.
#[derive(Debug, Clone)]
pub struct SessionStore {
    pub(super) dir: PathBuf,
    /// The workspace; absent where no session is looked for that began in a workspace.
    workspace: Option<PathBuf>,
}

impl SessionStore {
    /// Creates a store of sessions in directories below `dir`; creates no files yet.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir, workspace: None }
    }

    /// Returns the store with the `workspace` to which its sessions belong.
    #[must_use]
    pub fn of_workspace(self, workspace: PathBuf) -> Self {
        Self { workspace: Some(workspace), ..self }
    }

    /// Returns the directory of session `id`.
    ///
    /// # Errors
    /// When `id` is malformed; it may come from any source and must not become an arbitrary path.
    pub fn session_dir(&self, id: &str) -> Result<PathBuf, SessionError> {
        let plain = !id.is_empty()
            && id.len() <= 64
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !id.starts_with('-');
        if plain { Ok(self.dir.join(id)) } else { Err(SessionError::BadId(id.to_owned())) }
    }

    /// Returns the directory of the long outputs of session `id`.
    ///
    /// # Errors
    /// When `id` is malformed.
    pub fn outputs_dir(&self, id: &str) -> Result<PathBuf, SessionError> {
        Ok(self.session_dir(id)?.join("outputs"))
    }

    /// Returns the directory of the images of session `id`.
    ///
    /// # Errors
    /// When `id` is malformed.
    pub fn images_dir(&self, id: &str) -> Result<PathBuf, SessionError> {
        Ok(self.session_dir(id)?.join(IMAGES_DIR))
    }

    /// Returns the file with the state of the workspace before the last command of session `id`.
    ///
    /// # Errors
    /// When `id` is malformed.
    pub fn baseline_path(&self, id: &str) -> Result<PathBuf, SessionError> {
        Ok(self.session_dir(id)?.join("baseline"))
    }

    /// Returns the journal file of an existing session.
    ///
    /// # Errors
    /// When `id` is malformed or there is no such session.
    pub fn journal_path(&self, id: &str) -> Result<PathBuf, SessionError> {
        let path = self.session_dir(id)?.join(JOURNAL_FILE);
        if path.is_file() { Ok(path) } else { Err(SessionError::NotFound(id.to_owned())) }
    }

    /// Creates the directory of a new session and opens its journal, locked.
    ///
    /// # Errors
    /// When the directories or the journal cannot be created.
    pub fn create(&self, id: &str) -> Result<Journal, SessionError> {
        let dir = self.session_dir(id)?;
        create_private_dir(&dir).map_err(|source| SessionError::Io {
            what: "cannot create the session directory",
            path: dir.clone(),
            source,
        })?;
        Self::open_locked(&dir, id, true)
    }

    /// Opens the journal of an existing session for appending, locked.
    ///
    /// # Errors
    /// When there is no such session, or another process works on it.
    pub fn open(&self, id: &str) -> Result<Journal, SessionError> {
        self.journal_path(id)?;
        Self::open_locked(&self.session_dir(id)?, id, false)
    }

    /// Iterates over the ids of all sessions, the last used one first; sessions with an empty journal are skipped. Each journal is
    /// checked only when the iterator reaches it.
    ///
    /// # Errors
    /// When the directory exists but cannot be listed.
    pub fn list(&self) -> Result<impl Iterator<Item = String>, SessionError> {
        let mut ids = self.names()?;
        ids.sort_by_cached_key(|id| Reverse(self.last_use(id)));
        let journal = |id: &String| self.session_dir(id).ok()?.join(JOURNAL_FILE).metadata().ok();
        let has_begun = move |id: &String| journal(id).is_some_and(|file| file.is_file() && file.len() > 0);
        Ok(ids.into_iter().filter(has_begun))
    }

    /// Returns the ids of the sessions without activity since `time`, oldest first, including those with an empty journal.
    ///
    /// # Errors
    /// When the directory exists but cannot be listed.
    pub fn inactive_since(&self, time: SystemTime) -> Result<Vec<String>, SessionError> {
        let mut ids = self.names()?;
        ids.sort_by_cached_key(|id| self.last_use(id));
        let is_old = |id: &String| {
            let Ok(dir) = self.session_dir(id) else { return false };
            let touched = dir.join(JOURNAL_FILE).metadata().or_else(|_| dir.metadata());
            touched.and_then(|file| file.modified()).is_ok_and(|modified| modified < time)
        };
        ids.retain(is_old);
        Ok(ids)
    }

    /// Removes session `id` with all its files, and with the last session what runs have noted about the files of the workspace.
    /// Returns the refs of its checkpoints, which are stored in the repository.
    ///
    /// # Errors
    /// When there is no such session, another process works on it, or it cannot be removed.
    #[expect(clippy::disallowed_methods, reason = "this module owns the session files")]
    pub fn remove(&self, id: &str) -> Result<Vec<String>, SessionError> {
        let dir = self.session_dir(id)?;
        if !dir.is_dir() {
            return Err(SessionError::NotFound(id.to_owned()));
        }
        let _held = lock(&dir, id)?;
        // An unreadable journal does not prevent the removal.
        let checkpoints = checkpoint_refs::list_refs(&dir.join(JOURNAL_FILE), id).unwrap_or_default();
        // The rename removes the session at once, even if deleting its files takes long.
        let gone = self.dir.join(format!("{REMOVED_DIR_PREFIX}{id}"));
        let removed = std::fs::rename(&dir, &gone).and_then(|()| std::fs::remove_dir_all(&gone));
        removed.map_err(|source| SessionError::Io { what: "cannot remove", path: dir, source })?;
        if self.list().is_ok_and(|mut left| left.next().is_none()) {
            remove_shared(&self.dir.with_file_name(CONTENTS_DIR), 0);
        }
        Ok(checkpoints)
    }

    /// Removes the files of sessions whose removal was interrupted.
    #[expect(clippy::disallowed_methods, reason = "this module owns the session files")]
    pub fn remove_leftovers(&self) {
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().filter_map(Result::ok);
        for entry in
            entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(REMOVED_DIR_PREFIX))
        {
            // Files that stay are found by the next call.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }

    /// Returns when session `id` was last written, and the id, which orders sessions of one time.
    fn last_use(&self, id: &str) -> (Option<SystemTime>, String) {
        let journal = self.session_dir(id).ok().map(|dir| dir.join(JOURNAL_FILE));
        (journal.and_then(|journal| journal.metadata().ok()?.modified().ok()), id.to_owned())
    }

    /// Returns the names of the directory entries.
    fn names(&self) -> Result<Vec<String>, SessionError> {
        match std::fs::read_dir(&self.dir) {
            Ok(entries) => {
                let names = entries.filter_map(Result::ok).map(|entry| entry.file_name().into_string());
                Ok(names.filter_map(Result::ok).collect())
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(Vec::new())
            }
            Err(source) => {
                Err(SessionError::Io { what: "cannot list sessions in", path: self.dir.clone(), source })
            }
        }
    }

    /// Returns the id of the session that was used last.
    ///
    /// # Errors
    /// When there is no session, or they cannot be listed.
    pub fn newest(&self) -> Result<String, SessionError> {
        self.list()?.next().ok_or(SessionError::NoSessions)
    }

    /// Checks that session `id`, which a command selected without a name, is not older than the workspace directory.
    ///
    /// # Errors
    /// When it is older than that.
    pub fn check_directory(&self, id: &str) -> Result<(), SessionError> {
        match self.workspace.clone().filter(|workspace| self.is_older(id, workspace)) {
            Some(workspace) => Err(SessionError::OfEarlierDirectory { id: id.to_owned(), workspace }),
            None => Ok(()),
        }
    }

    /// Checks whether session `id` ended before `workspace` was created, so that it belongs to another directory, which was
    /// renamed or removed. False where the file system stores no creation time.
    fn is_older(&self, id: &str, workspace: &Path) -> bool {
        let last = self.journal_path(id).ok().and_then(|path| path.metadata().ok()?.modified().ok());
        let created = workspace.metadata().ok().and_then(|directory| directory.created().ok());
        // The clock of file times is coarse, and no session ends in the tick in which its directory was created.
        last.zip(created).is_some_and(|(last, created)| last <= created)
    }

    /// Returns `id`, or without one the id of the newest session that was not imported: a file must not become what the user means
    /// without naming it.
    ///
    /// # Errors
    /// When there is no such session, it is older than the workspace directory, or they cannot be listed.
    pub fn id_or_newest_own(&self, id: Option<&str>) -> Result<String, SessionError> {
        if let Some(id) = id {
            return Ok(id.to_owned());
        }
        let mut imported = None;
        for id in self.list()? {
            if !self.is_imported(&id) {
                return self.check_directory(&id).map(|()| id);
            }
            imported.get_or_insert(id);
        }
        Err(imported.map_or(SessionError::NoSessions, SessionError::OnlyImported))
    }

    /// Checks whether session `id` was imported, or is a fork of one that was.
    pub fn is_imported(&self, id: &str) -> bool {
        let mut is_imported = false;
        let Ok(journal) = self.journal_path(id) else { return false };
        // An unreadable journal is reported when it is opened.
        let _unreadable = read::for_each_record(&journal, |_line, record| {
            is_imported = record.as_ref().is_some_and(|first| first.event.starts_imported_session());
            record.is_none()
        });
        is_imported
    }

    /// Returns `id`, or without one the id of the session that ended last.
    ///
    /// # Errors
    /// When there is no session, it is older than the workspace directory, or they cannot be listed.
    pub fn id_or_last_ended(&self, id: Option<&str>) -> Result<String, SessionError> {
        if let Some(id) = id {
            return Ok(id.to_owned());
        }
        let id = self.newest()?;
        self.check_directory(&id).map(|()| id)
    }

    fn open_locked(dir: &Path, id: &str, new: bool) -> Result<Journal, SessionError> {
        let lock = lock(dir, id)?;
        let path = dir.join(JOURNAL_FILE);
        let file = match open_for_append(&path, new) {
            Err(SessionError::Io { source, .. }) if new && source.kind() == io::ErrorKind::AlreadyExists => {
                return Err(SessionError::AlreadyExists(id.to_owned()));
            }
            file => file?,
        };
        Journal::new(file, BlobStore::for_journal(&path), lock).map_err(|source| SessionError::Io {
            what: "cannot append to",
            path,
            source,
        })
    }
}

/// Locks the session in `dir`.
fn lock(dir: &Path, id: &str) -> Result<File, SessionError> {
    let lock = open_for_append(&dir.join("lock"), false)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(SessionError::Busy(id.to_owned())),
        Err(TryLockError::Error(source)) => {
            Err(SessionError::Io { what: "cannot lock", path: dir.join("lock"), source })
        }
    }
}

/// Opens `path` for appending with mode 0600; with `new`, the file must not exist.
pub(super) fn open_for_append(path: &Path, new: bool) -> Result<File, SessionError> {
    let mut options = OpenOptions::new();
    options.append(true).read(true).mode(0o600).create(true).create_new(new);
    options.open(path).map_err(|source| SessionError::Io {
        what: "cannot open",
        path: path.to_owned(),
        source,
    })
}

impl Classified for SessionError {
    fn kind(&self) -> FailureKind {
        FailureKind::Session
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, SessionStore) {
        let dir = tempfile::tempdir().unwrap();
        let store = SessionStore::new(dir.path().join("sessions"));
        (dir, store)
    }

    #[test]
    fn an_id_with_path_parts_is_refused() {
        let (_dir, store) = store();
        for id in ["../x", "a/b", "", ".", "-x", "a\0b", "é"] {
            assert!(matches!(store.session_dir(id), Err(SessionError::BadId(_))), "{id:?}");
        }
    }

    #[test]
    fn the_session_that_was_used_last_is_listed_first() {
        let (_dir, store) = store();
        assert_eq!(store.list().unwrap().count(), 0);
        for id in ["20260101-000000-aaaaaa", "20260102-000000-aaaaaa"] {
            store.create(id).unwrap();
            let mut journal = open_for_append(&store.journal_path(id).unwrap(), false).unwrap();
            io::Write::write_all(&mut journal, b"a record").unwrap();
        }
        store.create("20260103-000000-aaaaaa").unwrap();
        assert_eq!(store.list().unwrap().count(), 2);
        let first = open_for_append(&store.journal_path("20260101-000000-aaaaaa").unwrap(), false).unwrap();
        first.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(4_000_000_001)).unwrap();
        assert_eq!(store.id_or_last_ended(None).unwrap(), "20260101-000000-aaaaaa");
        assert_eq!(store.newest().unwrap(), "20260101-000000-aaaaaa");
    }

    #[test]
    fn a_session_of_a_client_is_sorted_by_its_last_record() {
        let (_dir, store) = store();
        let uuid = "ffffffff-ffff-4fff-8fff-ffffffffffff";
        for id in ["20010101-000000-aaaaaa", uuid, "29990101-000000-aaaaaa"] {
            store.create(id).unwrap();
            let mut journal = open_for_append(&store.journal_path(id).unwrap(), false).unwrap();
            io::Write::write_all(&mut journal, b"a record").unwrap();
        }
        let listed: Vec<String> = store.list().unwrap().collect();
        assert_eq!(listed, ["29990101-000000-aaaaaa", uuid, "20010101-000000-aaaaaa"]);
    }

    #[test]
    fn a_session_in_use_is_busy_until_it_is_let_go() {
        let (_dir, store) = store();
        let held = store.create("20260101-000000-aaaaaa").unwrap();
        assert!(matches!(store.open("20260101-000000-aaaaaa"), Err(SessionError::Busy(_))));
        drop(held);
        assert!(store.open("20260101-000000-aaaaaa").is_ok());
    }

    #[test]
    fn files_and_directories_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let (_dir, store) = store();
        let _journal = store.create("20260101-000000-aaaaaa").unwrap();
        let dir = store.session_dir("20260101-000000-aaaaaa").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&dir), 0o700);
        assert_eq!(mode(&dir.join(JOURNAL_FILE)), 0o600);
    }
}
