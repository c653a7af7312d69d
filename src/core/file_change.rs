//! Changes to files by calls, states of files before and after them, and files whose content the model has read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kind of a change to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ChangeAction {
    /// The file was created.
    Created,
    /// The content of the file changed.
    Modified,
    /// The file was deleted.
    Deleted,
}

crate::impl_name!(ChangeAction);

/// Cause of a change to a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ChangedBy {
    /// A file tool.
    #[default]
    Tool,
    /// A command or a hook.
    Command,
    /// The user, with `agent undo` or `agent redo`.
    Person,
}

crate::impl_name!(ChangedBy);

/// Direction of a restoration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestoreDirection {
    /// Restores the state before the changes.
    Undo,
    /// Restores the state before the last undo.
    Redo,
}

/// Bits of a mode that contain the file type, and the values of them for links and for regular files.
const FILE_TYPE_MASK: u32 = 0o170_000;
const SYMLINK_TYPE: u32 = 0o120_000;
const REGULAR_FILE_TYPE: u32 = 0o100_000;

/// Bits of a mode that are recorded: all but set-user-ID and set-group-ID, which the kernel clears when a file is written.
const PRESERVED_MODE_BITS: u32 = FILE_TYPE_MASK | 0o1777;

/// State of a file at some time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileState {
    /// The file does not exist.
    Absent,
    /// The file has this content.
    Content {
        /// Hash of the content; for a link, hash of its target.
        hash: String,
        /// File type and permission bits (`st_mode`), if known.
        mode: Option<u32>,
    },
    /// The file exists; the hash of its content is unknown.
    Unknown,
}

impl FileState {
    /// Creates the state of a file with this hash and this `st_mode`.
    pub fn from_mode(hash: String, mode: u32) -> Self {
        Self::Content { hash, mode: Some(mode & PRESERVED_MODE_BITS) }
    }

    /// Creates the state of a regular file with this hash and these permission bits.
    pub fn regular_file(hash: String, permissions: u32) -> Self {
        Self::from_mode(hash, REGULAR_FILE_TYPE | permissions & !FILE_TYPE_MASK)
    }

    fn from_parts(exists: bool, hash: Option<&String>, mode: Option<u32>) -> Self {
        match hash {
            _ if !exists => Self::Absent,
            Some(hash) => Self::Content { hash: hash.clone(), mode },
            None => Self::Unknown,
        }
    }

    /// Returns the hash of the content, if known.
    pub fn hash(&self) -> Option<&str> {
        match self {
            Self::Content { hash, .. } => Some(hash),
            Self::Absent | Self::Unknown => None,
        }
    }

    /// Returns the file type and permission bits, if known.
    pub fn mode(&self) -> Option<u32> {
        match self {
            Self::Content { mode, .. } => *mode,
            Self::Absent | Self::Unknown => None,
        }
    }

    /// Checks whether the file is a link.
    pub fn is_link(&self) -> bool {
        self.mode().is_some_and(|mode| mode & FILE_TYPE_MASK == SYMLINK_TYPE)
    }

    /// Checks whether the known parts of both states are equal.
    pub fn is_consistent_with(&self, other: &Self) -> bool {
        let modes = (self.mode(), other.mode());
        let same_mode =
            matches!(modes, (Some(one), Some(two)) if one == two) || modes.0.is_none() || modes.1.is_none();
        match (self, other) {
            (Self::Content { hash: one, .. }, Self::Content { hash: two, .. }) => one == two && same_mode,
            _ => self == other,
        }
    }
}

/// A change by a call to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Path from the workspace root, `/`-separated.
    pub path: String,
    /// Kind of the change.
    pub action: ChangeAction,
    /// Cause of the change; absent in older journals.
    #[serde(default)]
    pub by: ChangedBy,
    /// Hash of the content before, for a link of its target; absent if the file did not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Hash of the content after; absent if the file was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// File type and permission bits before (`st_mode`); absent in older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_mode: Option<u32>,
    /// File type and permission bits after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_mode: Option<u32>,
    /// Number of parent directories created with the file, starting from the innermost.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub directories: u32,
}

impl Change {
    /// Creates the change of `path` from one state to another.
    pub fn between(path: &str, by: ChangedBy, was: &FileState, became: &FileState) -> Self {
        let action = match (was, became) {
            (_, FileState::Absent) => ChangeAction::Deleted,
            (FileState::Absent, _) => ChangeAction::Created,
            (_, _) => ChangeAction::Modified,
        };
        let hash = |state: &FileState| state.hash().map(str::to_owned);
        Self {
            path: path.to_owned(),
            action,
            by,
            before: hash(was),
            after: hash(became),
            before_mode: was.mode(),
            after_mode: became.mode(),
            directories: 0,
        }
    }

    /// Returns the state of the file before the change.
    pub fn before_state(&self) -> FileState {
        FileState::from_parts(self.action != ChangeAction::Created, self.before.as_ref(), self.before_mode)
    }

    /// Returns the state of the file after the change.
    pub fn after_state(&self) -> FileState {
        FileState::from_parts(self.action != ChangeAction::Deleted, self.after.as_ref(), self.after_mode)
    }
}

/// A file whose content was sent to the model, with the hash of that content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedFile {
    /// Path from the workspace root, `/`-separated.
    pub path: String,
    /// Hash of the content at that time.
    pub hash: String,
}
