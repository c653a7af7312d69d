//! Severity of a notice.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Severity of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoticeLevel {
    /// Of interest only when searching for a fault.
    Debug,
    /// Information.
    Info,
    /// A problem that does not stop the work.
    Warn,
    /// A failure.
    Error,
}
