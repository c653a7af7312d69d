//! Format of an exported session: JSON lines with a header, the records of its journal, and each stored output.

use agent_core::failure::FailureKind;
use agent_core::image::Image;
use agent_run::error::AppError;
use serde::{Deserialize, Serialize};
use std::io;

/// Version of the format.
pub const EXPORT_VERSION: u32 = 1;

/// The first line.
#[derive(Serialize, Deserialize)]
pub struct ExportHeader {
    /// The version of the format.
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

/// The line of an image.
#[derive(Serialize, Deserialize)]
pub struct ExportedImage {
    /// The image, as the records contain it.
    pub image: Image,
    /// Its content.
    pub base64: String,
}

/// Creates the error for an I/O operation `what` that failed.
pub fn io_failure(what: &str, error: io::Error) -> AppError {
    AppError {
        kind: FailureKind::Session,
        cause: anyhow::Error::from(error).context(format!("cannot {what}")),
    }
}
