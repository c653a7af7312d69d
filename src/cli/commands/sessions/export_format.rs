//! Format of an exported session: JSON lines with a header, the records of its journal, and each stored output.

use crate::cli::error::CliError;
use crate::core::failure::FailureKind;
use serde::{Deserialize, Serialize};
use std::io;

/// Version of the format.
pub const EXPORT_VERSION: u32 = 1;

/// The first line.
#[derive(Serialize, Deserialize)]
pub struct ExportHeader {
    /// The [`EXPORT_VERSION`] of the writer.
    pub agent_session: u32,
    /// The original id of the session.
    pub session_id: String,
}

/// The line of a stored output.
#[derive(Serialize, Deserialize)]
pub struct ExportedOutput {
    /// The name of its file.
    pub output: String,
    /// Its content.
    pub base64: String,
}

/// Creates the error for an I/O operation `what` that failed.
pub fn io_failure(what: &str, error: io::Error) -> CliError {
    CliError {
        kind: FailureKind::Session,
        cause: anyhow::Error::from(error).context(format!("cannot {what}")),
    }
}
