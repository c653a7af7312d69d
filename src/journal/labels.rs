//! The labels of sessions in lists: a title that the user gave, and the branch. They are in a file beside the journal, because lists read
//! only the ends of journals.

use crate::session_store::{SessionError, SessionStore};
use agent_runtime::private_file::{create_new, open};
use serde::{Deserialize, Serialize};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

/// Name of the file in the directory of a session, and of its next version.
const FILE: &str = "labels.json";
const NEXT: &str = "labels.json.new";

/// Maximum bytes of the file.
const MAX_BYTES: u64 = 16 << 10;

/// The labels of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionLabels {
    /// The title that the user gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The branch of the repository around the workspace when the last run began, or the beginning of its commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

impl SessionStore {
    /// Returns the labels of session `id`; none if they cannot be read, because nothing but lists depends on them.
    pub fn labels(&self, id: &str) -> SessionLabels {
        let read = || -> Option<SessionLabels> {
            let (file, _) = open(&self.session_dir(id).ok()?.join(FILE)).ok()?;
            let mut json = Vec::new();
            file.take(MAX_BYTES).read_to_end(&mut json).ok()?;
            serde_json::from_slice(&json).ok()
        };
        read().unwrap_or_default()
    }

    /// Changes the labels of session `id`.
    ///
    /// # Errors
    /// When `id` is malformed, or the file cannot be written.
    pub fn change_labels(
        &self,
        id: &str,
        change: impl FnOnce(&mut SessionLabels),
    ) -> Result<(), SessionError> {
        let (dir, before) = (self.session_dir(id)?, self.labels(id));
        let mut labels = before.clone();
        change(&mut labels);
        if labels == before {
            return Ok(());
        }
        write_labels(&dir, &labels).map_err(|source| SessionError::Io {
            what: "cannot store the labels of the session",
            path: dir,
            source,
        })
    }
}

/// Writes the labels into the directory of a session.
///
/// # Errors
/// When the file cannot be written.
#[expect(clippy::disallowed_methods, reason = "this crate owns the session files")]
pub fn write_labels(dir: &Path, labels: &SessionLabels) -> io::Result<()> {
    let next = dir.join(NEXT);
    match std::fs::remove_file(&next) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = create_new(&next, true)?;
    file.write_all(&serde_json::to_vec(labels)?)?;
    std::fs::rename(&next, dir.join(FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u15_labels_stay_until_they_are_changed_and_a_damaged_file_has_none() {
        let dir = tempfile::tempdir().unwrap();
        let store = SessionStore::new(dir.path().to_owned());
        std::fs::create_dir(dir.path().join("one")).unwrap();
        assert_eq!(store.labels("one"), SessionLabels::default());
        store.change_labels("one", |labels| labels.branch = Some("main".to_owned())).unwrap();
        store.change_labels("one", |labels| labels.title = Some("dates".to_owned())).unwrap();
        let labels = store.labels("one");
        assert_eq!((labels.title.as_deref(), labels.branch.as_deref()), (Some("dates"), Some("main")));
        std::fs::File::create(dir.path().join("one").join(FILE)).unwrap();
        assert_eq!(store.labels("one"), SessionLabels::default());
        assert!(store.change_labels("../one", |labels| labels.title = Some("x".to_owned())).is_err());
    }
}
