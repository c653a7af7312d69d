//! Reads the schema of the answer for `--output-schema FILE`.

use crate::agent::output_schema::{MAX_SCHEMA_BYTES, OutputSchema};
use crate::cli::error::{CliError, CliResult};
use crate::config::text_file::read_text;
use crate::core::failure::FailureKind;
use std::path::Path;
use std::rc::Rc;

/// Reads the schema in `file`; `built_in` is the text of one that takes its place.
///
/// # Errors
/// Fails for an unreadable file and for an unusable schema; the message contains the position.
pub fn read_output_schema(
    file: Option<&Path>,
    built_in: Option<&str>,
) -> CliResult<Option<Rc<OutputSchema>>> {
    if let Some(text) = built_in {
        let schema = OutputSchema::parse(text)
            .map_err(|error| CliError { kind: FailureKind::Internal, cause: error.into() })?;
        return Ok(Some(Rc::new(schema)));
    }
    let Some(file) = file else { return Ok(None) };
    let wrong = |problem: String| {
        CliError::new(
            FailureKind::Config,
            format!("--output-schema: {} {problem}; see `agent help structured`", file.display()),
        )
    };
    let text = read_text(file, MAX_SCHEMA_BYTES).map_err(|error| wrong(error.to_string()))?;
    let text = text.ok_or_else(|| wrong("does not exist".to_owned()))?;
    OutputSchema::parse(&text).map(|schema| Some(Rc::new(schema))).map_err(|error| wrong(error.to_string()))
}
