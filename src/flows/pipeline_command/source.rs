//! Reads pipeline files.

use agent_config::pipeline::{MAX_PIPELINE_BYTES, Pipeline, Schema, parse};
use agent_config::settings::Settings;
use agent_config::text_file::read_text;
use agent_core::failure::FailureKind;
use agent_messages as messages;
use agent_run::error::{AppError, AppResult};
use agent_run::output_schema::{given, read_output_schema};
use agent_terminal::one_line;
use std::path::Path;

/// Characters of a file name in a message.
const NAME_CHARS: usize = 200;

/// Returns the text of a pipeline file and the pipeline.
///
/// # Errors
/// Fails for a file that cannot be read or is no pipeline, with all problems and their positions.
pub fn read_pipeline(settings: &Settings, file: &Path) -> AppResult<(String, Pipeline)> {
    let name = one_line(&file.to_string_lossy(), NAME_CHARS);
    let unusable = |why: &str| AppError::new(FailureKind::Config, format!("{name} {why}"));
    let text = read_text(file, MAX_PIPELINE_BYTES).map_err(|error| unusable(&error.to_string()))?;
    let text = text.ok_or_else(|| unusable("does not exist"))?;
    let pipeline = parse_pipeline(settings, &name, &text)?;
    for step in pipeline.all_steps() {
        match &step.output_schema {
            Some(Schema::File(file)) => drop(read_output_schema(file.as_ref())?),
            Some(Schema::Inline(schema)) => drop(given(&schema.to_string())?),
            None => {}
        }
    }
    Ok((text, pipeline))
}

/// Returns the pipeline with this text; `name` is that of its file.
///
/// # Errors
/// Fails for a text that is no pipeline, with all problems and their positions.
pub fn parse_pipeline(settings: &Settings, name: &str, text: &str) -> AppResult<Pipeline> {
    let is_agent = |name: &str| settings.agents.iter().any(|agent| agent.name == name);
    parse(text, &is_agent).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        AppError::new(FailureKind::Config, messages::pipeline_errors(name, &errors))
    })
}
