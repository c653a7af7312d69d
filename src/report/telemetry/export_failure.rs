//! Failure of an export.

use agent_messages as messages;

/// Spans that could not be exported.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ExportFailure {
    /// Number of the spans.
    pub lost: usize,
    /// The reason, for the user.
    pub reason: String,
}

impl ExportFailure {
    /// Creates the failure of an export to `destination`.
    pub(super) fn new(lost: usize, destination: &str, reason: &str) -> Self {
        Self { lost, reason: messages::telemetry_not_exported(destination, reason) }
    }
}
