//! Agents: Markdown files with front matter, built in or the user's own, and what the configuration changes of them.

use super::error::{ConfigError, did_you_mean, quoted};
use super::key_rules::KeyRule;
use super::layers::{DEFAULT_MAX_STEPS, DEFAULT_MODE, LayerKind, Layers};
use super::schema::AgentOverride;
use super::text_file::{self, read_own_text};
use super::validate::{self, Leaf};
use super::yaml;
use crate::engine::policy::Mode;
use crate::tools::toolbox::known_names;
use std::path::{Path, PathBuf};

/// Bytes of an agent's file: a prompt of 16,000 words; larger ones do not fit a model's attention either.
pub const MAX_AGENT_BYTES: u64 = 128 << 10;
/// Bytes of its front matter.
pub const MAX_FRONT_MATTER_BYTES: usize = 16 << 10;
/// Agent files in one directory.
pub const MAX_AGENT_FILES: usize = 200;
/// Steps of a subagent whose file does not say how many.
pub const SUBAGENT_STEPS: u32 = 15;
/// The agent of a run that names none.
pub const DEFAULT_AGENT: &str = "build";

/// The agents that are part of the program.
const BUILT_IN: [(&str, &str); 6] = [
    ("build", include_str!("../../config/agents/build.md")),
    ("explore", include_str!("../../config/agents/explore.md")),
    ("plan", include_str!("../../config/agents/plan.md")),
    ("resume", include_str!("../../config/agents/resume.md")),
    ("review", include_str!("../../config/agents/review.md")),
    ("test", include_str!("../../config/agents/test.md")),
];

/// An agent, complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// One line for lists.
    pub description: String,
    /// Its instructions.
    pub prompt: String,
    /// The tools it may use; empty: all.
    pub allowed_tools: Vec<String>,
    /// How much it may do without asking.
    pub mode: Mode,
    /// Model calls a run of it may take.
    pub max_steps: u32,
    /// How another agent may ask it, where that is so.
    pub subagent_settings: Option<SubagentSettings>,
    /// Whether it is part of the program.
    pub built_in: bool,
    /// Whether a file, variable or flag changed a built-in one.
    pub overridden: bool,
}

/// What an agent is held to that another one asks, besides what that one is: what the flags of the run say of modes and steps
/// is for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubagentSettings {
    /// How much it may do without asking.
    pub mode: Mode,
    /// Its model calls.
    pub max_steps: u32,
}

/// The keys of the head of an agent's file, and those of `agents.NAME` that they set.
const FRONT_MATTER: [(&str, &str); 5] = [
    ("description", "description"),
    ("max_steps", "max_steps"),
    ("mode", "mode"),
    ("subagent", "subagent"),
    ("tools", "allowed_tools"),
];

/// What the head of an agent's file may hold.
fn front_matter(rules: &KeyRule) -> KeyRule {
    let rule = |(name, key): (&str, &str)| {
        let rule = rules.find("agents.NAME")?.find(key)?.clone();
        Some((name.to_owned(), rule))
    };
    KeyRule::group(FRONT_MATTER.into_iter().filter_map(rule).collect())
}

/// The layer of the agents that are part of the program.
///
/// # Errors
/// Only if one of them is broken, which a test excludes.
pub fn built_in(rules: &KeyRule) -> Result<Layers, ConfigError> {
    let mut layer = Layers::default();
    let head = front_matter(rules);
    for (name, text) in BUILT_IN {
        let place = format!("built-in {name}.md");
        let leaves = leaves(&head, name, text).map_err(|error| error.file(&place))?;
        layer = layer.overridden_by(Layers::from_leaves(rules, LayerKind::BuiltIn, &place, leaves));
    }
    Ok(layer)
}

/// The agent files of a directory, sorted; none when it does not exist.
///
/// # Errors
/// When the directory cannot be read or holds too many.
pub fn agent_files(directory: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let unreadable = |error: std::io::Error| {
        ConfigError::new(format!("the agents cannot be listed: {error}")).path(directory)
    };
    let listing = match directory.read_dir() {
        Ok(listing) => listing,
        Err(error) if text_file::is_absent(&error) => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(error)),
    };
    let mut files = Vec::new();
    for entry in listing {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
        if files.len() > MAX_AGENT_FILES {
            return Err(ConfigError::new(format!("holds more than {MAX_AGENT_FILES} agents")).path(directory));
        }
    }
    files.sort();
    Ok(files)
}

/// The layer of one agent's file of the user's own; the agent is named like the file.
///
/// # Errors
/// A bad name, a file that cannot be read, front matter that is not valid.
pub fn file_layer(
    rules: &KeyRule,
    level: LayerKind,
    path: &Path,
    place: &str,
) -> Result<Layers, ConfigError> {
    let text = read_own_text(path, MAX_AGENT_BYTES).map_err(|error| error.file(place))?;
    text_layer(rules, level, path, place, &text.unwrap_or_default())
}

/// The layer of an agent's file with this text.
///
/// # Errors
/// A bad name, front matter that is not valid.
pub fn text_layer(
    rules: &KeyRule,
    level: LayerKind,
    path: &Path,
    place: &str,
    text: &str,
) -> Result<Layers, ConfigError> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let named = validate::agent_name(&name).map_err(ConfigError::new);
    let leaves = named.and_then(|()| leaves(&front_matter(rules), &name, text));
    Ok(Layers::from_leaves(rules, level, place, leaves.map_err(|error| error.file(place))?))
}

/// An agent's file, whose head may hold what `rule` says, as settings of `agents.NAME`.
fn leaves(rule: &KeyRule, name: &str, text: &str) -> Result<Vec<Leaf>, ConfigError> {
    let (head, body, body_line) = split_front_matter(text)?;
    let prompt = body.trim();
    if prompt.is_empty() {
        return Err(ConfigError::new("has no instructions").hint("write the prompt below the front matter"));
    }
    // A line of padding in place of `---` makes the lines of errors those of the file.
    let node = yaml::parse(&format!("\n{head}"))?;
    let mut leaves = validate::leaves(rule, &node)?;
    for leaf in &mut leaves {
        let key = FRONT_MATTER.iter().find(|(own, _)| *own == leaf.key).map_or(&*leaf.key, |(_, key)| key);
        leaf.key = format!("agents.{name}.{key}");
    }
    let key = format!("agents.{name}.system_prompt");
    leaves.push(Leaf { key, value: prompt.into(), line: body_line });
    Ok(leaves)
}

/// Front matter, body and the body's first line.
fn split_front_matter(text: &str) -> Result<(&str, &str, u64), ConfigError> {
    let mut lines = text.split_inclusive('\n');
    let is_fence = |line: &str| line.trim_end() == "---";
    let Some(opening) = lines.next().filter(|line| is_fence(line)) else { return Ok(("", text, 1)) };
    let mut end = opening.len();
    for (line, number) in lines.zip(3..) {
        if is_fence(line) {
            let head = text.get(opening.len()..end).unwrap_or_default();
            let body = text.get(end + line.len()..).unwrap_or_default();
            return Ok((head, body, number));
        }
        end += line.len();
        if end > MAX_FRONT_MATTER_BYTES {
            break;
        }
    }
    let limit = MAX_FRONT_MATTER_BYTES;
    Err(ConfigError::new(format!("the front matter does not end within {limit} bytes"))
        .line(1)
        .hint("close it with a line `---`"))
}

/// Every agent that the layers define, by name, complete.
///
/// # Errors
/// An agent without instructions.
pub fn resolve_agents(
    layers: &Layers,
    overrides: impl Iterator<Item = (String, AgentOverride)>,
) -> Result<Vec<Agent>, ConfigError> {
    let overrides: Vec<(String, AgentOverride)> = overrides.collect();
    let named = |name: &str| BUILT_IN.iter().any(|(known, _)| *known == name);
    let complete = |(name, own): &(String, AgentOverride)| {
        let Some(prompt) = own.system_prompt.clone().filter(|prompt| !prompt.trim().is_empty()) else {
            return Err(unknown_agent_error(layers, name, &overrides));
        };
        let mode = layers.for_agent(name, "mode").map(|layer_value| layer_value.value.clone());
        let steps = layers.for_agent(name, "max_steps").and_then(|layer_value| layer_value.value.as_u64());
        Ok(Agent {
            name: name.clone(),
            description: own.description.clone().unwrap_or_default(),
            prompt,
            allowed_tools: own.allowed_tools.clone().unwrap_or_default(),
            mode: mode.and_then(|mode| serde_json::from_value(mode).ok()).unwrap_or(DEFAULT_MODE),
            max_steps: steps.and_then(|steps| u32::try_from(steps).ok()).unwrap_or(DEFAULT_MAX_STEPS),
            subagent_settings: own.subagent.unwrap_or_default().then(|| SubagentSettings {
                mode: own.mode.unwrap_or(DEFAULT_MODE),
                max_steps: own.max_steps.unwrap_or(SUBAGENT_STEPS),
            }),
            built_in: named(name),
            overridden: named(name) && layers.is_overridden(&format!("agents.{name}.")),
        })
    };
    overrides.iter().map(complete).collect()
}

fn unknown_agent_error(layers: &Layers, name: &str, all: &[(String, AgentOverride)]) -> ConfigError {
    let known = all.iter().filter(|(_, own)| own.system_prompt.is_some()).map(|(known, _)| known.as_str());
    let hint = did_you_mean(name, known).unwrap_or_else(|| "a new agent needs `system_prompt`".to_owned());
    let key = format!("agents.{name}");
    let error = ConfigError::new("there is no agent of this name to change").hint(hint);
    let error = match layers.origin(&key) {
        Some(origin) => error.file(&origin.source).line(origin.line),
        None => error,
    };
    error.key(key)
}

/// A line for people about each agent whose list names a tool that there is not.
pub fn unknown_tools(layers: &Layers, agents: &[Agent]) -> Vec<String> {
    /// Lines; a project with more agents like this is not read to the end anyway.
    const MAX_LINES: usize = 20;
    let known = known_names();
    let line = |agent: &Agent| {
        let tool = agent.allowed_tools.iter().find(|tool| !known.contains(tool))?;
        let key = format!("agents.{}.allowed_tools", agent.name);
        let hint = did_you_mean(tool, known.iter().map(String::as_str));
        let hint = hint.unwrap_or_else(|| format!("the tools are {}", known.join(", ")));
        let error = ConfigError::new(format!("there is no tool {}", quoted(tool))).hint(hint);
        let error = match layers.origin(&key) {
            Some(origin) => error.file(&origin.source).line(origin.line),
            None => error,
        };
        Some(error.key(key).to_string())
    };
    agents.iter().filter_map(line).take(MAX_LINES).collect()
}

/// The agent of this name.
///
/// # Errors
/// An unknown name: lists all of them.
pub fn select<'a>(agents: &'a [Agent], name: &str) -> Result<&'a Agent, ConfigError> {
    agents.iter().find(|agent| agent.name == name).ok_or_else(|| {
        let names = agents.iter().map(|agent| agent.name.as_str());
        let listed = names.clone().collect::<Vec<_>>().join(", ");
        let error = ConfigError::new(format!("there is no agent {}; the agents are: {listed}", quoted(name)));
        match did_you_mean(name, names) {
            Some(hint) => error.hint(hint),
            None => error,
        }
    })
}
