//! What a model is told before anybody says something.

use crate::agent::system_prompt::{ProjectInstructions, PromptLayers, system_message};
use crate::cli::compose::app::App;
use crate::config::instructions;
use crate::config::settings::Settings;
use crate::core::run_result::InstructionFile;
use crate::messages;
use crate::runtime::clock::Clock;
use crate::text::invisible;
use crate::workspace::index::project_index;

/// What the model is told first.
pub struct SystemMessage {
    /// The system message: instructions of the agent and the project, and an overview of the project.
    pub system: String,
    /// The project's instructions in it.
    pub instructions: Option<InstructionFile>,
    /// What could not be used, and what people should know of the rest.
    pub problems: Vec<String>,
}

/// Reads what the model is told first.
pub fn build_system_message(app: &App, settings: &Settings) -> SystemMessage {
    let (found, problem) = instructions::read(&settings.workspace);
    let mut problems: Vec<String> = problem.into_iter().collect();
    let instructions = found.as_ref().map(|given| compare_instructions(app, settings, given, &mut problems));
    let (system, problem) =
        system_message_text(settings, &app.source, &settings.agent.prompt, found.as_ref());
    problems.extend(problem);
    SystemMessage { system, instructions, problems }
}

/// The system message of an agent that has this `prompt`, and what could not be used of the configuration.
pub fn system_message_text(
    settings: &Settings,
    source: &Clock,
    prompt: &str,
    instructions: Option<&ProjectInstructions>,
) -> (String, Option<String>) {
    let options = settings.indexer.options();
    let index = options.map(|options| project_index(&settings.workspace, &options, source));
    let (index, problem) = match index.unwrap_or(Ok(None)) {
        Ok(index) => (index, None),
        Err(error) => (None, Some(format!("indexer.exclude_patterns: {error}"))),
    };
    let name = settings.workspace.file_name().unwrap_or_default().to_string_lossy();
    let system = system_message(PromptLayers {
        agent: prompt,
        workspace: &name,
        platform: std::env::consts::OS,
        instructions,
        index: index.as_deref(),
    });
    (system, problem)
}

/// The project's instructions beside those of earlier runs.
fn compare_instructions(
    app: &App,
    settings: &Settings,
    given: &ProjectInstructions,
    problems: &mut Vec<String>,
) -> InstructionFile {
    let fact_cache = instructions::fact_cache(&settings.state, &settings.workspace);
    let now_ms = u64::try_from(app.source.unix_time().as_millis()).unwrap_or(u64::MAX);
    let (file, kept) = instructions::compare_and_store(fact_cache, given, now_ms);
    let doubt = kept.err().map(|error| messages::instructions_not_compared(&file.path, &error.to_string()));
    let hidden = invisible::describe_positions(&given.text);
    let hidden = hidden.map(|places| messages::instructions_invisible(&file.path, &places));
    problems.extend(doubt.into_iter().chain(hidden));
    file
}
