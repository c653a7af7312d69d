//! `--output-schema FILE`: the schema that the answer must fit, read before anything begins.

use crate::agent::output_schema::{MAX_SCHEMA_BYTES, OutputSchema};
use crate::cli::error::{CliError, CliResult};
use crate::config::text_file::read_text;
use crate::core::failure::FailureKind;
use std::path::Path;
use std::rc::Rc;

/// The schema in `file`.
///
/// # Errors
/// When the file cannot be read, or holds no schema that can be used; the message says where.
pub fn read_output_schema(file: Option<&Path>) -> CliResult<Option<Rc<OutputSchema>>> {
    let Some(file) = file else { return Ok(None) };
    let wrong = |why: String| {
        CliError::new(
            FailureKind::Config,
            format!("--output-schema: {} {why}; see `agent help structured`", file.display()),
        )
    };
    let text = read_text(file, MAX_SCHEMA_BYTES).map_err(|error| wrong(error.to_string()))?;
    let text = text.ok_or_else(|| wrong("does not exist".to_owned()))?;
    OutputSchema::parse(&text).map(|schema| Some(Rc::new(schema))).map_err(|error| wrong(error.to_string()))
}
