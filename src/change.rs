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

/// A file whose content the model has seen, with the hash it had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Seen {
    /// Path from the workspace root, `/`-separated.
    pub path: String,
    /// Content hash at that moment.
    pub hash: String,
}
