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

impl ChangeAction {
    /// The name used in JSON and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
        }
    }
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

impl ChangedBy {
    /// The name used in JSON and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Command => "command",
            Self::Person => "person",
        }
    }
}

/// Which way files were put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestoreDirection {
    /// To what they were before.
    Undo,
    /// To what they were before the last undo.
    Redo,
}

/// The bits of a mode that say what kind of file it is, and the values of them for links and for files.
const FILE_TYPE_MASK: u32 = 0o170_000;
const SYMLINK_TYPE: u32 = 0o120_000;
const REGULAR_FILE_TYPE: u32 = 0o100_000;

/// The bits of a mode that content keeps: all but set-user-ID and set-group-ID, which end with the content they were given
/// for, as the kernel has it for writes.
const PRESERVED_MODE_BITS: u32 = FILE_TYPE_MASK | 0o1777;

/// What a file is at some moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileState {
    /// There is none.
    Absent,
    /// It has some content.
    Content {
        /// The hash of the content; of a link that of what it points to.
        hash: String,
        /// Its kind and its permission bits (`st_mode`), where they are known.
        mode: Option<u32>,
    },
    /// It has some content, whose hash nobody knows.
    Unknown,
}

impl FileState {
    /// A file with this hash and this `st_mode`.
    pub fn from_mode(hash: String, mode: u32) -> Self {
        Self::Content { hash, mode: Some(mode & PRESERVED_MODE_BITS) }
    }

    /// A regular file with this hash and these permission bits.
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

    /// The hash of its content, where it has one that is known.
    pub fn hash(&self) -> Option<&str> {
        match self {
            Self::Content { hash, .. } => Some(hash),
            Self::Absent | Self::Unknown => None,
        }
    }

    /// Its kind and permission bits, where they are known.
    pub fn mode(&self) -> Option<u32> {
        match self {
            Self::Content { mode, .. } => *mode,
            Self::Absent | Self::Unknown => None,
        }
    }

    /// Whether it is a link.
    pub fn is_link(&self) -> bool {
        self.mode().is_some_and(|mode| mode & FILE_TYPE_MASK == SYMLINK_TYPE)
    }

    /// Whether it is the same as `other`, as far as both are known.
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
    /// Content hash before, of a link that of what it points to; absent when it did not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Content hash after; absent when it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Kind and permission bits before (`st_mode`); older journals do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_mode: Option<u32>,
    /// Kind and permission bits after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_mode: Option<u32>,
    /// How many of the directories it is in were made with it, from the innermost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub directories: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
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

    /// What the file was before.
    pub fn before_state(&self) -> FileState {
        FileState::from_parts(self.action != ChangeAction::Created, self.before.as_ref(), self.before_mode)
    }

    /// What it was after.
    pub fn after_state(&self) -> FileState {
        FileState::from_parts(self.action != ChangeAction::Deleted, self.after.as_ref(), self.after_mode)
    }
}

/// A file whose content the model has seen, with the hash it had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedFile {
    /// Path from the workspace root, `/`-separated.
    pub path: String,
    /// Content hash at that moment.
    pub hash: String,
}
