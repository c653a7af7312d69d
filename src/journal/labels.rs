//! The labels of sessions in lists: a title that the user gave, and the branch. They are in a file beside the journal, because lists read
//! only the ends of journals.

use crate::session_store::{SessionError, SessionStore};
use agent_runtime::private_file::{read_bounded, replace};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// Name of the file in the directory of a session.
const FILE: &str = "labels.json";

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
        self.session_dir(id).ok().and_then(|dir| read(&dir).ok()).unwrap_or_default()
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
        let dir = self.session_dir(id)?;
        let failed = |what, source| SessionError::Io { what, path: dir.clone(), source };
        let before = read(&dir).map_err(|error| failed("cannot read the labels of the session", error))?;
        let mut labels = before.clone();
        change(&mut labels);
        if labels == before {
            return Ok(());
        }
        write_labels(&dir, &labels).map_err(|error| failed("cannot store the labels of the session", error))
    }
}

/// Reads the labels in the directory of a session; a damaged file has none.
fn read(dir: &Path) -> io::Result<SessionLabels> {
    let json = read_bounded(&dir.join(FILE), MAX_BYTES)?;
    Ok(json.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default())
}

/// Writes the labels into the directory of a session.
///
/// # Errors
/// When the file cannot be written.
pub fn write_labels(dir: &Path, labels: &SessionLabels) -> io::Result<()> {
    replace(&dir.join(FILE), &serde_json::to_vec(labels)?)
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
