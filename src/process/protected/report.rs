//! Report of the guard to the agent on changed protected files and their restoration.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Byte before a report among the replies of a launcher process. A length (u32, little endian) and JSON follow.
const TAG: u8 = b'p';

/// Maximum number of reported changes.
pub(super) const MAX_REPORTED: usize = 50;

/// Longest report to read, in bytes. Each change has two paths of at most 4 KiB, which escapes can grow sixfold.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Kind of change of a protected path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It did not exist before.
    Created,
    /// It existed and differs.
    Changed,
    /// It existed and is gone.
    Removed,
}

/// Protected path that a command changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectedChange {
    /// The path.
    pub path: String,
    /// Kind of change.
    pub kind: ChangeKind,
    /// Reason why it could not be restored. Absent if it was restored.
    pub restore_error: Option<String>,
    /// New location of what the command had created.
    pub moved_to: Option<PathBuf>,
    /// Whether other commands ran concurrently, one of which may have made the change. The agent sets it, because the guard has
    /// no information on other commands.
    #[serde(skip)]
    pub ran_concurrently: bool,
}

impl ProtectedChange {
    /// Creates the report entry for a check that did not take place.
    pub(super) fn unknown() -> Self {
        Self {
            path: "protected files".to_owned(),
            kind: ChangeKind::Changed,
            restore_error: Some("the launcher process was killed before it could compare them".to_owned()),
            moved_to: None,
            ran_concurrently: false,
        }
    }
}

#[cfg(any(target_os = "linux", test))]
/// Encodes a report.
///
/// # Errors
/// Fails if it cannot be encoded as JSON.
pub fn encode(changes: &[ProtectedChange]) -> std::io::Result<Vec<u8>> {
    let json = serde_json::to_vec(changes)?;
    let length = u32::try_from(json.len()).map_err(std::io::Error::other)?;
    Ok([&[TAG][..], &length.to_le_bytes(), &json].concat())
}

/// Decodes the report in a launcher process's output, after replies of `answer_bytes` each. `None` if it is incomplete.
pub fn decode(reply: &[u8], answer_bytes: usize) -> Option<Vec<ProtectedChange>> {
    let mut rest = reply;
    while *rest.first()? != TAG {
        rest = rest.get(answer_bytes..)?;
    }
    let (length, json) = rest.get(1..)?.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    serde_json::from_slice(json.get(..length)?).ok()
}
