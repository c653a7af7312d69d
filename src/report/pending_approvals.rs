//! The document of `agent approvals list --json`: the calls that wait for an answer.

use super::json;
use crate::core::approval::{ApprovalAnswer, ApprovalRequest};
use schemars::JsonSchema;
use serde::Serialize;
use std::io;

/// The version of the document.
const SCHEMA_VERSION: u32 = 1;

/// The calls that wait for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PendingApprovalList {
    /// The version of this document.
    pub schema_version: u32,
    /// The calls, those of the newest session first.
    pub approvals: Vec<PendingApprovalDetails>,
}

/// A call that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PendingApprovalDetails {
    /// The session, for `agent resume`.
    pub session_id: String,
    /// The question.
    #[serde(flatten)]
    pub approval: ApprovalRequest,
    /// What was said so far; null when nobody has answered.
    pub answer: Option<ApprovalAnswer>,
}

/// The calls as one line of JSON, ended by a newline, without a raw control or invisible character.
///
/// # Errors
/// When they cannot be written as JSON, which their types rule out.
pub fn document(approvals: Vec<PendingApprovalDetails>) -> io::Result<String> {
    json::line(&PendingApprovalList { schema_version: SCHEMA_VERSION, approvals })
}
