//! The document of `agent approvals list --json`: the calls that need approval.

use super::json;
use agent_core::approval::{ApprovalAnswer, ApprovalRequest};
use schemars::JsonSchema;
use serde::Serialize;
use std::io;

/// Version of the document.
const SCHEMA_VERSION: u32 = 1;

/// The calls that need approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PendingApprovalList {
    /// Version of this document.
    pub schema_version: u32,
    /// The calls, newest session first.
    pub approvals: Vec<PendingApprovalDetails>,
}

/// A call that needs approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PendingApprovalDetails {
    /// The session, for `agent resume`.
    pub session_id: String,
    /// The approval request.
    #[serde(flatten)]
    pub approval: ApprovalRequest,
    /// The answer so far; null if there is none.
    pub answer: Option<ApprovalAnswer>,
}

/// Returns the calls as one line of JSON with a newline, without raw control or invisible characters.
///
/// # Errors
/// When they cannot be serialized, which cannot happen for their types.
pub fn document(approvals: Vec<PendingApprovalDetails>) -> io::Result<String> {
    json::line(&PendingApprovalList { schema_version: SCHEMA_VERSION, approvals })
}
