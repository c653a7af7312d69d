//! Reads the schema of the answer for `--output-schema FILE`.

use crate::error::{AppError, AppResult};
use agent_config::text_file::read_text;
use agent_core::failure::FailureKind;
use agent_session::output_schema::{MAX_SCHEMA_BYTES, OutputSchema, SchemaError};
use std::path::Path;
use std::rc::Rc;

/// Parses a schema of this program.
///
/// # Errors
/// Fails for an invalid one, which a test excludes.
pub fn built_in(text: &str) -> AppResult<Rc<OutputSchema>> {
    let internal = |error: SchemaError| AppError { kind: FailureKind::Internal, cause: error.into() };
    OutputSchema::parse(text).map(Rc::new).map_err(internal)
}

/// Parses the schema of a client.
///
/// # Errors
/// Fails for an unusable schema.
pub fn given(text: &str) -> AppResult<Rc<OutputSchema>> {
    let size = u64::try_from(text.len()).unwrap_or(u64::MAX);
    if size > MAX_SCHEMA_BYTES {
        return Err(unusable(&format!("has more than {MAX_SCHEMA_BYTES} bytes")));
    }
    OutputSchema::parse(text).map(Rc::new).map_err(|error| unusable(&error.to_string()))
}

fn unusable(problem: &str) -> AppError {
    AppError::new(
        FailureKind::Usage,
        format!("the schema of the answer {problem}; see `agent help structured`"),
    )
}

/// Reads the schema in `file`.
///
/// # Errors
/// Fails for an unreadable file and for an unusable schema; the message contains the position.
pub fn read_output_schema(file: &Path) -> AppResult<Rc<OutputSchema>> {
    let wrong = |problem: String| {
        AppError::new(
            FailureKind::Config,
            format!("--output-schema: {} {problem}; see `agent help structured`", file.display()),
        )
    };
    let text = read_text(file, MAX_SCHEMA_BYTES).map_err(|error| wrong(error.to_string()))?;
    let text = text.ok_or_else(|| wrong("does not exist".to_owned()))?;
    OutputSchema::parse(&text).map(Rc::new).map_err(|error| wrong(error.to_string()))
}
