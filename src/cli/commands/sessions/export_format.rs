//! The form of an exported session: JSON lines that say what it is, the lines of its journal, and each kept output.

use crate::cli::error::CliError;
use crate::core::failure::FailureKind;
use serde::{Deserialize, Serialize};
use std::io;

/// The version of the form.
pub const EXPORT_VERSION: u32 = 1;

/// The first line.
#[derive(Serialize, Deserialize)]
pub struct ExportHeader {
    /// [`EXPORT_VERSION`] of the writer.
    pub agent_session: u32,
    /// Its id where it was exported.
    pub session_id: String,
}

/// The line of a kept output.
#[derive(Serialize, Deserialize)]
pub struct ExportedOutput {
    /// The name of its file.
    pub output: String,
    /// Its content.
    pub base64: String,
}

/// The error of somebody who could not do `what`.
pub fn io_failure(what: &str, error: io::Error) -> CliError {
    CliError {
        kind: FailureKind::Session,
        cause: anyhow::Error::from(error).context(format!("cannot {what}")),
    }
}
