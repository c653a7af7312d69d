//! The files of a session: their changes as the client shows them, and whether the client's text differs from the disk.

use agent_client_protocol_schema::v1::Diff;
use agent_config::settings::Settings;
use agent_core::file_change::Change;
use agent_redactor::Redactor;
use agent_run::app::App;
use agent_run::undo_store::content_store;
use agent_workspace::content_store::ContentStore;
use agent_workspace::error::WorkspaceError;
use agent_workspace::{Workspace, file};
use std::path::PathBuf;
use std::sync::Arc;

/// Maximum bytes of a text in a diff; larger files are named without their texts.
const MAX_DIFF_BYTES: u64 = 512 << 10;

/// Maximum bytes of a file that is compared with the client's text.
const MAX_COMPARED_BYTES: u64 = 16 << 20;

/// The files of a session.
pub struct SessionFiles {
    workspace: Workspace,
    contents: ContentStore,
    redactor: Arc<Redactor>,
}

impl SessionFiles {
    /// Opens the workspace of `settings`.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(app: &App, settings: &Settings) -> Result<Self, WorkspaceError> {
        let workspace = Workspace::open(&settings.workspace)?;
        Ok(Self { workspace, contents: content_store(app, settings), redactor: app.redactor(settings) })
    }

    /// Returns the absolute form of a path in the workspace.
    pub fn absolute(&self, path: &str) -> PathBuf {
        self.workspace.root().join(path)
    }

    /// Returns `text` without secrets.
    pub fn redact(&self, text: &str) -> String {
        self.redactor.text(text).into_owned()
    }

    /// Returns the texts before and after a change; `None` if one is not text, too long or no longer available.
    pub fn diff(&self, change: &Change) -> Option<Diff> {
        let before = match &change.before {
            Some(hash) => Some(self.text(self.contents.get(hash)?)?),
            None => None,
        };
        let after = match &change.after {
            Some(hash) => self.text(self.content(&change.path, hash)?)?,
            None => String::new(),
        };
        Some(Diff::new(self.absolute(&change.path), after).old_text(before))
    }

    /// Returns the content with this hash: of the file, or of what displaced it since.
    fn content(&self, path: &str, hash: &str) -> Option<Vec<u8>> {
        let path = self.workspace.path(path).ok()?;
        let now = self.workspace.content_of(&path, MAX_DIFF_BYTES).ok();
        now.filter(|bytes| file::hash(bytes) == hash).or_else(|| self.contents.get(hash))
    }

    fn text(&self, bytes: Vec<u8>) -> Option<String> {
        let is_short = u64::try_from(bytes.len()).is_ok_and(|bytes| bytes <= MAX_DIFF_BYTES);
        is_short.then(|| String::from_utf8(bytes).ok()).flatten().map(|text| self.redact(&text))
    }

    /// Checks whether the client's `text` of a file differs from the file, apart from line ends. A file that cannot be read as
    /// text differs from none.
    pub fn differs(&self, path: &str, text: &str) -> bool {
        let Ok(path) = self.workspace.path(path) else { return false };
        let Ok(bytes) = self.workspace.content_of(&path, MAX_COMPARED_BYTES) else { return false };
        let normal = |text: &str| text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
        std::str::from_utf8(&bytes).is_ok_and(|disk| normal(disk) != normal(text))
    }
}
