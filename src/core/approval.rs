//! A call that waits for a person's answer: what the person is shown, what the answer is for, and the answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A question about a call that nobody was there to answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalRequest {
    /// What `agent approve` and `agent deny` take.
    pub id: String,
    /// The call.
    pub call_id: String,
    /// Its tool.
    pub tool: String,
    /// What it is to do, one line.
    pub summary: String,
    /// Why it is asked.
    pub reason: String,
    /// What else a person must see, a line each: where links lead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The diff or the command as a prompt shows it: bounded, and harmless for a terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// When it was asked, milliseconds since the Unix epoch.
    pub asked_ms: u64,
    /// What an answer is for.
    pub subject: ApprovalSubject,
}

/// What must be as it was when the person was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalSubject {
    /// The hash of the arguments (BLAKE3, hexadecimal), as hooks left them.
    pub arguments: String,
    /// The hash of where its paths lead through links.
    pub links: String,
    /// The files that it changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileVersion>,
}

/// A file at some moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileVersion {
    /// Path as the call names it.
    pub path: String,
    /// The hash of its content; absent where there is none that can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

/// What the person says about a call that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "says")]
pub enum ApprovalAnswer {
    /// Run it.
    Approve,
    /// Do not.
    Deny {
        /// Why; the model reads it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// A question about a call, for tests.
#[cfg(test)]
pub(crate) fn sample_request(id: &str, call_id: &str) -> ApprovalRequest {
    ApprovalRequest {
        id: id.into(),
        call_id: call_id.into(),
        tool: "write_file".into(),
        summary: "a.txt".into(),
        reason: "it changes a file".into(),
        notes: Vec::new(),
        preview: None,
        asked_ms: 1,
        subject: ApprovalSubject { arguments: "0".into(), links: "0".into(), files: Vec::new() },
    }
}
