//! Approval requests for tool calls, the state that an answer applies to, and the answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A request for the user's approval of a call, to be answered between runs.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalRequest {
    /// The id for `agent approve` and `agent deny`.
    pub id: String,
    /// Id of the call.
    pub call_id: String,
    /// Name of the tool.
    pub tool: String,
    /// One-line summary of the call.
    pub summary: String,
    /// Why approval is needed.
    pub reason: String,
    /// Further information for the decision, one note per line, such as the targets of links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The diff or the command, complete, sanitized for a terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// Time of the request, in milliseconds since the Unix epoch.
    pub asked_ms: u64,
    /// The state that an answer applies to.
    pub subject: ApprovalSubject,
}

/// State that must be unchanged since the request when the call runs.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalSubject {
    /// Hash of the arguments (BLAKE3, hexadecimal) after hooks changed them.
    pub arguments: String,
    /// Hash of the targets of its paths through links.
    pub links: String,
    /// The files that the call changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileVersion>,
}

/// Version of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileVersion {
    /// Path as the call names it.
    pub path: String,
    /// Hash of the content; absent if there is no readable content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

/// Answer of the user to an approval request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "decision")]
pub enum ApprovalAnswer {
    /// Run the call.
    Approve,
    /// Do not run the call.
    Deny {
        /// The reason, which is sent to the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}
