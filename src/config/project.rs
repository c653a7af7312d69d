//! Reads a project's configuration files and separates the settings that need trust or are never accepted from a project.

use super::agents;
use super::error::{ConfigError, sanitize};
use super::key_rules::KeyRule;
use super::layers::{Entry, LayerKind, Layers, RestrictedSettings};
use super::text_file::{read_text, resolve_inside};
use super::validate;
use super::yaml;
use agent_text::lines::list_first;
use std::collections::BTreeMap;
use std::path::Path;

/// Maximum size of a configuration file in bytes; ten times the largest sensible one.
pub const MAX_CONFIG_BYTES: u64 = 1 << 20;
/// The configuration file of a project, relative to its root.
pub const PROJECT_FILE: &str = ".agent/config.yaml";
/// The directory of the project's agents, relative to its root.
pub const PROJECT_AGENTS: &str = ".agent/agents";
/// The directory of the project's slash commands, relative to its root.
pub const PROJECT_COMMANDS: &str = ".agent/commands";
/// Maximum size of a slash command's file in bytes.
pub const MAX_COMMAND_BYTES: u64 = 64 << 10;

/// One file of a project's configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectFile {
    /// Its path relative to the root, sanitized.
    pub path: String,
    /// The hash of the parsed text, hexadecimal.
    pub hash: String,
    /// Settings that apply without trust.
    pub allowed: Layers,
    /// Settings that need trust, or are never accepted from a project.
    pub restricted: RestrictedSettings,
}

/// The configuration of a project, agents first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProjectConfig {
    /// Its files, in the order in which they are applied.
    pub files: Vec<ProjectFile>,
    /// Its slash commands for `agent chat`, by name; they need a trusted workspace.
    pub commands: BTreeMap<String, ProjectCommand>,
}

/// A slash command of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectCommand {
    /// Path from the root of the workspace.
    pub path: String,
    /// The text that the command sends.
    pub text: String,
}

impl ProjectConfig {
    /// Reads the configuration files of the project at `root`; `below` are the layers below the project's.
    ///
    /// # Errors
    /// Fails for a file that is unreadable or invalid, and for a link that leaves the project.
    pub fn read(rules: &KeyRule, root: &Path, below: &Layers) -> Result<Self, ConfigError> {
        Self::read_with(rules, root, below, None)
    }

    /// Like [`read`](Self::read), but as if [`PROJECT_FILE`] had the text `own`, unless that is `None`.
    ///
    /// # Errors
    /// Fails like [`read`](Self::read).
    pub fn read_with(
        rules: &KeyRule,
        root: &Path,
        below: &Layers,
        own: Option<&str>,
    ) -> Result<Self, ConfigError> {
        let mut project = Self::default();
        let mut add = |source: &str, text: &str, mut allowed: Layers| {
            let restricted = allowed.take_restricted(rules, below);
            let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
            project.files.push(ProjectFile { path: source.to_owned(), hash, allowed, restricted });
        };
        let at = |source: &'static str| move |error: ConfigError| error.file(source);
        if let Some(directory) = resolve_inside(root, PROJECT_AGENTS.as_ref()).map_err(at(PROJECT_AGENTS))? {
            for file in agents::markdown_files(&directory)? {
                let name = file.file_name().unwrap_or_default();
                let source = format!("{PROJECT_AGENTS}/{}", sanitize(&name.to_string_lossy()));
                let text = read_project_file(root, &file, agents::MAX_AGENT_BYTES, &source)?;
                if let Some(text) = text {
                    add(
                        &source,
                        &text,
                        agents::text_layer(rules, LayerKind::Project, &file, &source, &text)?,
                    );
                }
            }
        }
        let own = match own {
            Some(text) => Some(text.to_owned()),
            None => read_project_file(root, PROJECT_FILE.as_ref(), MAX_CONFIG_BYTES, PROJECT_FILE)?,
        };
        if let Some(text) = own {
            add(PROJECT_FILE, &text, text_layer(rules, LayerKind::Project, PROJECT_FILE, &text)?);
        }
        if let Some(directory) =
            resolve_inside(root, PROJECT_COMMANDS.as_ref()).map_err(at(PROJECT_COMMANDS))?
        {
            project.commands = read_commands(root, &directory)?;
        }
        Ok(project)
    }

    /// Checks whether some settings or commands need a trusted workspace.
    pub fn requires_trust(&self) -> bool {
        !self.commands.is_empty() || self.files.iter().any(|file| !file.restricted.needs_trust.is_empty())
    }

    /// Returns the settings that have an effect, as one layer.
    pub fn effective_layer(&self, trusted: bool) -> Layers {
        self.files.iter().fold(Layers::default(), |layer, file| {
            let trusted_settings =
                if trusted { file.restricted.needs_trust.clone() } else { Layers::default() };
            layer.overridden_by(file.allowed.clone().overridden_by(trusted_settings))
        })
    }

    /// Returns the settings without effect, each with the reason.
    pub fn ineffective_settings(&self, trusted: bool) -> Vec<(Entry, &'static str)> {
        let ineffective = |file: &ProjectFile| {
            let needs_trust = if trusted { Vec::new() } else { file.restricted.needs_trust.entries() };
            let never = file.restricted.never_from_project.entries();
            let needs_trust = needs_trust.into_iter().map(|entry| (entry, NEEDS_TRUST_REASON));
            needs_trust
                .chain(never.into_iter().map(|entry| (entry, NEVER_ALLOWED_REASON)))
                .collect::<Vec<_>>()
        };
        self.files.iter().flat_map(ineffective).collect()
    }

    /// Returns one notice for each file with ignored settings, and one for ignored commands.
    pub fn notices(&self, trusted: bool) -> impl Iterator<Item = String> {
        let names = self.commands.keys().filter(|_| !trusted).map(|name| sanitize(name));
        let commands = list_first(names, MAX_LISTED_KEYS, ", ")
            .map(|names| format!("{PROJECT_COMMANDS}: ignored {names} ({NEEDS_TRUST_REASON})"));
        let files = self.files.iter().filter_map(move |file| {
            let part = |layers: &Layers, reason: &str| {
                let keys = layers.layer_values().map(|(key, _)| sanitize(key));
                list_first(keys, MAX_LISTED_KEYS, ", ").map(|keys| format!("{keys} ({reason})"))
            };
            let needs_trust = part(&file.restricted.needs_trust, NEEDS_TRUST_REASON).filter(|_| !trusted);
            let parts: Vec<String> = needs_trust
                .into_iter()
                .chain(part(&file.restricted.never_from_project, NEVER_ALLOWED_REASON))
                .collect();
            (!parts.is_empty()).then(|| format!("{}: ignored {}", file.path, parts.join("; ")))
        });
        files.chain(commands)
    }
}

/// Maximum number of keys named in one line; a real project has fewer.
const MAX_LISTED_KEYS: usize = 20;
/// Reason why a value has no effect yet.
const NEEDS_TRUST_REASON: &str = "needs a trusted workspace: agent trust";
/// Reason why a value never has an effect.
const NEVER_ALLOWED_REASON: &str = "never taken from a project";

/// Reads the slash commands of the project in `directory`.
fn read_commands(root: &Path, directory: &Path) -> Result<BTreeMap<String, ProjectCommand>, ConfigError> {
    let mut commands = BTreeMap::new();
    for file in agents::markdown_files(directory)? {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let path = format!("{PROJECT_COMMANDS}/{name}.md");
        if let Some(text) = read_project_file(root, &file, MAX_COMMAND_BYTES, &sanitize(&path))? {
            commands.insert(name, ProjectCommand { path, text });
        }
    }
    Ok(commands)
}

/// Reads one file of the project; links are resolved first, and the resolved path is read.
fn read_project_file(
    root: &Path,
    file: &Path,
    limit: u64,
    source: &str,
) -> Result<Option<String>, ConfigError> {
    let read = || match resolve_inside(root, file)? {
        Some(real) => read_text(&real, limit),
        None => Ok(None),
    };
    read().map_err(|error| error.file(source))
}

/// Parses the text of a configuration file into a layer.
///
/// # Errors
/// Fails at the first problem in the text, with its line.
pub fn text_layer(
    rules: &KeyRule,
    level: LayerKind,
    source: &str,
    text: &str,
) -> Result<Layers, ConfigError> {
    let leaves = yaml::parse(text).and_then(|node| validate::leaves(rules, &node));
    Ok(Layers::from_leaves(rules, level, source, leaves.map_err(|error| error.file(source))?))
}
