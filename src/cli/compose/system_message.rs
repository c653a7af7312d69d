//! Builds the system message of a run.

use crate::agent::Agent;
use crate::agent::system_prompt::{Knowledge, ProjectInstructions, PromptLayers, system_message};
use crate::cli::compose::app::App;
use crate::cli::compose::toolbox::list_kept_results;
use crate::config::instructions;
use crate::config::settings::Settings;
use crate::core::event::Event;
use crate::core::run_result::InstructionFile;
use crate::core::skill::Skill;
use crate::journal::memory::Memory;
use crate::messages;
use crate::runtime::clock::Clock;
use crate::runtime::emitter::EmitError;
use crate::text::invisible;
use crate::workspace::index::project_index;

/// Emits the system message of a session, built from the instructions of the agent and of the project, the memory, kept results,
/// `skills` and the project overview; in a conversation (`is_chat`) the model may ask the user. Returns notices on files that
/// could not be used, and on suspicious content.
///
/// # Errors
/// When the journal can no longer be written.
pub fn emit_system_message(
    app: &App,
    settings: &Settings,
    agent: &Agent,
    skills: &[Skill],
    is_chat: bool,
) -> Result<Vec<String>, EmitError> {
    let (found, problem) = instructions::read(&settings.workspace);
    let mut problems: Vec<String> = problem.into_iter().collect();
    let file = found.as_ref().map(|found| compare_instructions(app, settings, found, &mut problems));
    let memory = read_memory(settings, &mut problems);
    let (kept_results, problem) = list_kept_results(&agent.engine);
    problems.extend(problem);
    let prompt = &settings.agent.prompt;
    let prompt =
        if is_chat { format!("{prompt}\n\n{}", messages::CHAT_INSTRUCTIONS) } else { prompt.clone() };
    let knowledge = Knowledge { memory: &memory, kept_results: &kept_results, skills };
    let (text, problem) = system_message_text(settings, &app.source, &prompt, found.as_ref(), knowledge);
    problems.extend(problem);
    agent.emitter.emit(Event::System { text })?;
    if let Some(file) = file {
        agent.emitter.emit(Event::Instructions { file })?;
    }
    Ok(problems)
}

/// Returns the system message of an agent with this `prompt`, and the problems with the configured overview.
pub fn system_message_text(
    settings: &Settings,
    source: &Clock,
    prompt: &str,
    instructions: Option<&ProjectInstructions>,
    knowledge: Knowledge<'_>,
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
        knowledge,
        index: index.as_deref(),
    });
    (system, problem)
}

/// Returns the lines of the memory, if it is enabled.
fn read_memory(settings: &Settings, problems: &mut Vec<String>) -> Vec<String> {
    if !settings.memory.enabled {
        return Vec::new();
    }
    match Memory::new(&settings.state).entries() {
        Ok(entries) => entries.iter().map(ToString::to_string).collect(),
        Err(error) => {
            problems.push(messages::memory_problem(&error.to_string()));
            Vec::new()
        }
    }
}

/// Compares the project's instructions with those of earlier runs.
fn compare_instructions(
    app: &App,
    settings: &Settings,
    instructions: &ProjectInstructions,
    problems: &mut Vec<String>,
) -> InstructionFile {
    let fact_cache = instructions::fact_cache(&settings.state, &settings.workspace);
    let now_ms = u64::try_from(app.source.unix_time().as_millis()).unwrap_or(u64::MAX);
    let (file, stored) = instructions::compare_and_store(fact_cache, instructions, now_ms);
    let problem =
        stored.err().map(|error| messages::instructions_not_compared(&file.path, &error.to_string()));
    let hidden = invisible::describe_positions(&instructions.text);
    let hidden = hidden.map(|positions| messages::instructions_invisible(&file.path, &positions));
    problems.extend(problem.into_iter().chain(hidden));
    file
}
