//! What a command did to protected files and what became of it, as the guard tells the agent.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The byte before a report among the answers of a launcher process; a length (u32, little endian) and JSON follow.
const TAG: u8 = b'p';

/// The most disturbances that are told; there is nothing to learn from more.
pub(super) const MAX_REPORTED: usize = 50;

/// The longest report that is read, in bytes: each disturbance has two paths of at most 4 KiB, which escapes can grow
/// sixfold.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;

/// What was done to a protected path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It was not there before.
    Created,
    /// It was there and is another.
    Changed,
    /// It was there and is gone.
    Removed,
}

/// A protected path that a command did not leave as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectedChange {
    /// The path.
    pub path: String,
    /// What was done to it.
    pub kind: ChangeKind,
    /// Why it could not be put back; absent when it was.
    pub restore_error: Option<String>,
    /// Where what the command had made of it is now.
    pub moved_to: Option<PathBuf>,
    /// Whether other commands ran at the same time, one of which may have done it. The guard, which tells the rest, does not
    /// know of them.
    #[serde(skip)]
    pub ran_concurrently: bool,
}

impl ProtectedChange {
    /// What may have happened where nobody has looked.
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
/// The bytes of a report.
///
/// # Errors
/// When it has no JSON form.
pub fn encode(disturbances: &[ProtectedChange]) -> std::io::Result<Vec<u8>> {
    let json = serde_json::to_vec(disturbances)?;
    let length = u32::try_from(json.len()).map_err(std::io::Error::other)?;
    Ok([&[TAG][..], &length.to_le_bytes(), &json].concat())
}

/// The report in what a launcher process sent, behind answers of `answer_bytes` each; `None` when there is no whole one.
pub fn decode(reply: &[u8], answer_bytes: usize) -> Option<Vec<ProtectedChange>> {
    let mut rest = reply;
    while *rest.first()? != TAG {
        rest = rest.get(answer_bytes..)?;
    }
    let (length, json) = rest.get(1..)?.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    serde_json::from_slice(json.get(..length)?).ok()
}
