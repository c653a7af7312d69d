//! What happened to a file, and which content of it the model has seen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a call did to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeAction {
    /// The file did not exist before.
    Created,
    /// Its content changed.
    Modified,
    /// It is gone.
    Deleted,
}

/// What changed a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangedBy {
    /// A file tool.
    #[default]
    Tool,
    /// A command or a hook.
    Command,
    /// The person, with `agent undo` or `agent redo`.
    Person,
}

/// What a file is at some moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileState {
    /// There is none.
    Absent,
    /// It has the content with this hash.
    Content(String),
    /// It has some content, whose hash nobody knows.
    Unknown,
}

impl FileState {
    fn of(exists: bool, hash: Option<&String>) -> Self {
        match hash {
            _ if !exists => Self::Absent,
            Some(hash) => Self::Content(hash.clone()),
            None => Self::Unknown,
        }
    }

    /// The hash of its content, where it has one that is known.
    pub fn hash(&self) -> Option<&str> {
        match self {
            Self::Content(hash) => Some(hash),
            Self::Absent | Self::Unknown => None,
        }
    }
}

/// One file that a call changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Path from the workspace root, `/`-separated.
    pub path: String,
    /// What happened to it.
    pub action: ChangeAction,
    /// What changed it; older journals do not say it.
    #[serde(default)]
    pub by: ChangedBy,
    /// Content hash before; absent when it did not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Content hash after; absent when it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

impl Change {
    /// The change of `path` from one state to the other.
    pub fn between(path: &str, by: ChangedBy, was: &FileState, became: &FileState) -> Self {
        let action = match (was, became) {
            (_, FileState::Absent) => ChangeAction::Deleted,
            (FileState::Absent, _) => ChangeAction::Created,
            (_, _) => ChangeAction::Modified,
        };
        let hash = |state: &FileState| state.hash().map(str::to_owned);
        Self { path: path.to_owned(), action, by, before: hash(was), after: hash(became) }
    }

    /// What the file was before.
    pub fn was(&self) -> FileState {
        FileState::of(self.action != ChangeAction::Created, self.before.as_ref())
    }

    /// What it was after.
    pub fn became(&self) -> FileState {
        FileState::of(self.action != ChangeAction::Deleted, self.after.as_ref())
    }
}

/// A file whose content the model has seen, with the hash it had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Seen {
    /// Path from the workspace root, `/`-separated.
    pub path: String,
    /// Content hash at that moment.
    pub hash: String,
}
