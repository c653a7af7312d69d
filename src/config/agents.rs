//! Agents: Markdown files with front matter, built in or written by the user, and their overrides in the configuration.

use super::error::{ConfigError, did_you_mean, quoted};
use super::front_matter;
use super::key_rules::KeyRule;
use super::layers::{DEFAULT_MAX_STEPS, DEFAULT_MODE, LayerKind, Layers};
use super::schema::AgentOverride;
use super::text_file::{self, read_own_text};
use super::validate::{self, Leaf};
use agent_core::message::MCP_PREFIX;
use agent_engine::policy::Mode;
use agent_tools::toolbox::known_names;
use std::path::{Path, PathBuf};

/// The agent that reviews code.
pub const REVIEWER: &str = "review";

/// Maximum size of an agent's file in bytes, about 16,000 words; models follow longer prompts badly.
pub const MAX_AGENT_BYTES: u64 = 128 << 10;
/// Maximum number of agent files in one directory.
pub const MAX_AGENT_FILES: usize = 200;
/// Step limit of a subagent whose file sets none.
pub const SUBAGENT_STEPS: u32 = 15;
/// The agent of a run without `--agent`.
pub const DEFAULT_AGENT: &str = "build";

/// The agents embedded in the program, with the text of their files.
const BUILT_IN: [(&str, &str); 6] = [
    ("build", include_str!("../../config/agents/build.md")),
    ("explore", include_str!("../../config/agents/explore.md")),
    ("plan", include_str!("../../config/agents/plan.md")),
    ("resume", include_str!("../../config/agents/resume.md")),
    ("review", include_str!("../../config/agents/review.md")),
    ("test", include_str!("../../config/agents/test.md")),
];

/// An agent with all its settings resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// One line for lists.
    pub description: String,
    /// Its system prompt.
    pub prompt: String,
    /// The tools it may use; empty: all.
    pub allowed_tools: Vec<String>,
    /// How much it may do without asking.
    pub mode: Mode,
    /// Maximum number of model calls per run.
    pub max_steps: u32,
    /// Its limits as a subagent; `None` when other agents cannot use it.
    pub subagent_settings: Option<SubagentSettings>,
    /// Whether it is embedded in the program.
    pub built_in: bool,
    /// Whether it is built in and a file, variable or flag changed it.
    pub overridden: bool,
}

/// Limits of an agent that runs as a subagent, in addition to those of its parent. The flags for mode and steps apply to the
/// parent run only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubagentSettings {
    /// How much it may do without asking.
    pub mode: Mode,
    /// Maximum number of model calls.
    pub max_steps: u32,
}

/// The keys of the front matter, and the keys of `agents.NAME` that they set.
const FRONT_MATTER: [(&str, &str); 5] = [
    ("description", "description"),
    ("max_steps", "max_steps"),
    ("mode", "mode"),
    ("subagent", "subagent"),
    ("tools", "allowed_tools"),
];

/// Returns the rules for the front matter of an agent's file.
fn front_matter_rule(rules: &KeyRule) -> KeyRule {
    let rule = |(name, key): (&str, &str)| {
        let rule = rules.find("agents.NAME")?.find(key)?.clone();
        Some((name.to_owned(), rule))
    };
    KeyRule::group(FRONT_MATTER.into_iter().filter_map(rule).collect())
}

/// Returns the layer of the built-in agents.
///
/// # Errors
/// Fails only if one of them is invalid, which a test excludes.
pub fn built_in(rules: &KeyRule) -> Result<Layers, ConfigError> {
    let mut layer = Layers::default();
    let head = front_matter_rule(rules);
    for (name, text) in BUILT_IN {
        let source = format!("built-in {name}.md");
        let leaves = leaves(&head, name, text).map_err(|error| error.file(&source))?;
        layer = layer.overridden_by(Layers::from_leaves(rules, LayerKind::BuiltIn, &source, leaves));
    }
    Ok(layer)
}

/// Returns the Markdown files of a directory of agents or commands, sorted; none when it does not exist.
///
/// # Errors
/// Fails when the directory is unreadable or contains too many of them.
pub fn markdown_files(directory: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let unreadable = |error: std::io::Error| {
        ConfigError::new(format!("cannot list the directory: {error}")).path(directory)
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
            return Err(
                ConfigError::new(format!("contains more than {MAX_AGENT_FILES} files")).path(directory)
            );
        }
    }
    files.sort();
    Ok(files)
}

/// Reads one agent's file of the user into a layer; the file's name is the agent's name.
///
/// # Errors
/// Fails for an invalid name, an unreadable file or invalid front matter.
pub fn file_layer(
    rules: &KeyRule,
    level: LayerKind,
    path: &Path,
    source: &str,
) -> Result<Layers, ConfigError> {
    let text = read_own_text(path, MAX_AGENT_BYTES).map_err(|error| error.file(source))?;
    text_layer(rules, level, path, source, &text.unwrap_or_default())
}

/// Parses the text of an agent's file into a layer.
///
/// # Errors
/// Fails for an invalid name or invalid front matter.
pub fn text_layer(
    rules: &KeyRule,
    level: LayerKind,
    path: &Path,
    source: &str,
    text: &str,
) -> Result<Layers, ConfigError> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let named = validate::agent_name(&name).map_err(ConfigError::new);
    let leaves = named.and_then(|()| leaves(&front_matter_rule(rules), &name, text));
    Ok(Layers::from_leaves(rules, level, source, leaves.map_err(|error| error.file(source))?))
}

/// Parses an agent's file into settings of `agents.NAME`; `rule` applies to its front matter.
fn leaves(rule: &KeyRule, name: &str, text: &str) -> Result<Vec<Leaf>, ConfigError> {
    let (head, body, body_line) = front_matter::split(text)?;
    let prompt = body.trim();
    if prompt.is_empty() {
        return Err(ConfigError::new("has no instructions").hint("write the prompt below the front matter"));
    }
    let node = front_matter::parse(head)?;
    let mut leaves = validate::leaves(rule, &node)?;
    for leaf in &mut leaves {
        let key = FRONT_MATTER.iter().find(|(own, _)| *own == leaf.key).map_or(&*leaf.key, |(_, key)| key);
        leaf.key = format!("agents.{name}.{key}");
    }
    let key = format!("agents.{name}.system_prompt");
    leaves.push(Leaf { key, value: prompt.into(), line: body_line });
    Ok(leaves)
}

/// Returns every agent that the layers define, with all settings resolved.
///
/// # Errors
/// Fails for an agent without instructions.
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
    let error = ConfigError::new("there is no agent of this name to override").hint(hint);
    layers.locate(error, &key)
}

/// Returns a notice for each agent whose tool list contains an unknown tool.
pub fn unknown_tools(layers: &Layers, agents: &[Agent]) -> Vec<String> {
    /// Maximum number of notices; enough to notice the mistake.
    const MAX_LINES: usize = 20;
    let known = known_names();
    let line = |agent: &Agent| {
        let is_known = |tool: &String| known.contains(tool) || tool.starts_with(MCP_PREFIX);
        let tool = agent.allowed_tools.iter().find(|tool| !is_known(tool))?;
        let key = format!("agents.{}.allowed_tools", agent.name);
        let hint = did_you_mean(tool, known.iter().map(String::as_str));
        let hint = hint.unwrap_or_else(|| format!("the tools are {}", known.join(", ")));
        let error = ConfigError::new(format!("there is no tool {}", quoted(tool))).hint(hint);
        Some(layers.locate(error, &key).to_string())
    };
    agents.iter().filter_map(line).take(MAX_LINES).collect()
}

/// Returns the agent with this name.
///
/// # Errors
/// Fails for an unknown name and lists all names.
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
