//! Builds the system message of a run.

use crate::app::App;
use crate::toolbox::list_kept_results;
use agent_config::instructions::{self, FoundInstructions};
use agent_config::settings::Settings;
use agent_core::event::Event;
use agent_core::message::Role;
use agent_core::run_result::InstructionFile;
use agent_core::skill::Skill;
use agent_engine::nested_instructions::{CompareInstructions, fitting};
use agent_journal::memory::Memory;
use agent_messages as messages;
use agent_process::launch::Launcher;
use agent_runtime::clock::Clock;
use agent_runtime::emitter::EmitError;
use agent_session::Agent;
use agent_session::session::Session;
use agent_session::system_prompt::{Knowledge, ProjectInstructions, PromptLayers, system_message};
use agent_text::invisible;
use agent_workspace::index::project_index;
use std::rc::Rc;

/// Emits the system message of a session, built from the instructions of the agent and of the project, the memory, kept results,
/// `skills` and the project overview; where a person can reply (`has_person`), the model may ask. Returns notices on files that
/// could not be used, and on suspicious content.
///
/// # Errors
/// When the journal can no longer be written.
pub fn emit_system_message(
    app: &App,
    settings: &Settings,
    agent: &Agent,
    skills: &[Skill],
    has_person: bool,
) -> Result<Vec<String>, EmitError> {
    let FoundInstructions { files: found, warnings: mut problems } =
        instructions::read(&settings.workspace, &settings.directories.config);
    let mut files = compare_instructions(&app.source, settings, &found, &mut problems);
    let memory = read_memory(settings, &mut problems);
    let (kept_results, problem) = list_kept_results(&agent.engine);
    problems.extend(problem);
    let prompt = &settings.agent.prompt;
    let about_person =
        if has_person { messages::CHAT_INSTRUCTIONS } else { messages::UNATTENDED_INSTRUCTIONS };
    let prompt = format!(
        "{prompt}

{about_person}"
    );
    let knowledge = Knowledge { memory: &memory, kept_results: &kept_results, skills };
    let launcher = &agent.engine.launcher;
    let (text, problem) = system_message_text(settings, &app.source, launcher, &prompt, &found, knowledge);
    problems.extend(problem);
    agent.emitter.emit(Event::System { text })?;
    let mut used = 0_usize;
    for (file, found) in files.iter_mut().zip(&found) {
        let shown = fitting(found.text.trim(), used).len();
        used = used.saturating_add(shown);
        file.bytes = shown as u64;
        agent.engine.instructions.record(file);
        agent.emitter.emit(Event::Instructions { file: file.clone() })?;
    }
    Ok(problems)
}

/// Returns the system message of an agent with this `prompt`, and the problems with the configured overview.
pub fn system_message_text(
    settings: &Settings,
    source: &Clock,
    launcher: &Launcher,
    prompt: &str,
    instructions: &[ProjectInstructions],
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
        platform: &platform(settings, launcher),
        instructions,
        knowledge,
        index: index.as_deref(),
    });
    (system, problem)
}

/// Returns the operating system, and what the sandbox leaves commands of the network.
fn platform(settings: &Settings, launcher: &Launcher) -> String {
    let is_off =
        launcher.tier().confines() && launcher.confinement().is_some_and(|confined| !confined.has_network());
    let network = match (is_off, settings.sandbox.allowed_hosts.is_empty()) {
        (false, _) => "",
        (true, true) => "; commands have no network",
        (true, false) => "; commands reach only the hosts that the user allows",
    };
    format!("{}{network}", std::env::consts::OS)
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

/// Compares instructions with those of earlier runs. Adds to `problems`, also when the text contains invisible characters.
fn compare_instructions(
    source: &Clock,
    settings: &Settings,
    found: &[ProjectInstructions],
    problems: &mut Vec<String>,
) -> Vec<InstructionFile> {
    if found.is_empty() {
        return Vec::new();
    }
    let fact_cache = instructions::fact_cache(&settings.state, &settings.workspace);
    let now_ms = u64::try_from(source.unix_time().as_millis()).unwrap_or(u64::MAX);
    let texts = found.iter().map(|found| (found.path.as_str(), found.text.as_str()));
    let (files, stored) = instructions::compare_and_store(fact_cache, texts, now_ms);
    let names: Vec<&str> = found.iter().map(|found| found.path.as_str()).collect();
    problems.extend(
        stored.err().map(|error| messages::instructions_not_compared(&names.join(", "), &error.to_string())),
    );
    for ProjectInstructions { path, text } in found {
        let hidden = invisible::describe_positions(text);
        problems.extend(hidden.map(|positions| messages::instructions_invisible(path, &positions)));
    }
    files
}

/// Returns the comparison for the instructions of directories, which a run adds to the conversation.
pub fn comparison(source: &Rc<Clock>, settings: &Settings) -> CompareInstructions {
    let (source, settings) = (Rc::clone(source), settings.clone());
    Rc::new(move |path, text| {
        let found = [ProjectInstructions { path: path.to_owned(), text: text.to_owned() }];
        let mut warnings = Vec::new();
        let files = compare_instructions(&source, &settings, &found, &mut warnings);
        let file = files.into_iter().next().unwrap_or_else(|| InstructionFile {
            path: path.to_owned(),
            hash: String::new(),
            bytes: 0,
            before: None,
        });
        (file, warnings)
    })
}

/// Returns a warning when the agent's text or the instructions differ from those with which `session` began, and keeps.
pub fn outdated_instructions(settings: &Settings, session: &Session) -> Option<String> {
    let system = session.messages().first().filter(|message| message.role == Role::System)?.joined_text();
    let now = instructions::read(&settings.workspace, &settings.directories.config).files;
    let hash_now = |path: &str| {
        let found = now.iter().find(|found| found.path == path)?;
        Some(blake3::hash(found.text.as_bytes()).to_hex().to_string())
    };
    let before: Vec<&InstructionFile> =
        session.tally().instruction_files.iter().filter(|file| !file.is_nested()).collect();
    let changed = before.iter().filter(|file| hash_now(&file.path).as_ref() != Some(&file.hash));
    let is_new = |found: &&ProjectInstructions| before.iter().all(|file| file.path != found.path);
    let agent = &settings.agent;
    let has_other_prompt = !system.starts_with(agent.prompt.trim());
    let names: Vec<String> = has_other_prompt
        .then(|| messages::changed_agent(&agent.name))
        .into_iter()
        .chain(changed.map(|file| file.path.clone()))
        .chain(now.iter().filter(is_new).map(|found| found.path.clone()))
        .collect();
    (!names.is_empty()).then(|| messages::instructions_outdated(&names))
}
