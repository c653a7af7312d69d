//! What a project's own files say: read once, each with the hash of the very text that was parsed, and divided into
//! what has an effect, what waits for trust, and what never has one.

use super::agents;
use super::error::{ConfigError, sanitize};
use super::key_rules::KeyRule;
use super::layers::{Entry, LayerKind, Layers, RestrictedSettings};
use super::text_file::{read_text, resolve_inside};
use super::validate;
use super::yaml;
use crate::text::lines::list_first;
use std::path::Path;

/// Bytes of a configuration file; ten times the largest sensible one.
pub const MAX_CONFIG_BYTES: u64 = 1 << 20;
/// The configuration file of a project, from its root.
pub const PROJECT_FILE: &str = ".agent/config.yaml";
/// The agents of a project, from its root.
pub const PROJECT_AGENTS: &str = ".agent/agents";

/// One file of a project's configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectFile {
    /// Its path from the root, harmless.
    pub path: String,
    /// The hash of the text that was parsed, hexadecimal.
    pub hash: String,
    /// What has an effect without trust.
    pub allowed: Layers,
    /// What has none.
    pub restricted: RestrictedSettings,
}

/// The configuration of a project, agents first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProjectConfig {
    /// Its files, in the order in which they are applied.
    pub files: Vec<ProjectFile>,
}

impl ProjectConfig {
    /// Reads the files of the project at `root`, which stand on top of `below`.
    ///
    /// # Errors
    /// A file that cannot be read or is not valid, a link that leaves the project.
    pub fn read(rules: &KeyRule, root: &Path, below: &Layers) -> Result<Self, ConfigError> {
        let mut project = Self::default();
        let mut add = |place: &str, text: &str, mut allowed: Layers| {
            let restricted = allowed.take_restricted(rules, below);
            let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
            project.files.push(ProjectFile { path: place.to_owned(), hash, allowed, restricted });
        };
        let at = |place: &'static str| move |error: ConfigError| error.file(place);
        if let Some(directory) = resolve_inside(root, PROJECT_AGENTS.as_ref()).map_err(at(PROJECT_AGENTS))? {
            for file in agents::agent_files(&directory)? {
                let name = file.file_name().unwrap_or_default();
                let place = format!("{PROJECT_AGENTS}/{}", sanitize(&name.to_string_lossy()));
                let text = read_project_file(root, &file, agents::MAX_AGENT_BYTES, &place)?;
                if let Some(text) = text {
                    add(&place, &text, agents::text_layer(rules, LayerKind::Project, &file, &place, &text)?);
                }
            }
        }
        if let Some(text) = read_project_file(root, PROJECT_FILE.as_ref(), MAX_CONFIG_BYTES, PROJECT_FILE)? {
            add(PROJECT_FILE, &text, text_layer(rules, LayerKind::Project, PROJECT_FILE, &text)?);
        }
        Ok(project)
    }

    /// Whether some of it waits for trust.
    pub fn requires_trust(&self) -> bool {
        self.files.iter().any(|file| !file.restricted.needs_trust.is_empty())
    }

    /// What of it has an effect, `trusted` or not.
    pub fn effective_layer(&self, trusted: bool) -> Layers {
        self.files.iter().fold(Layers::default(), |layer, file| {
            let waiting = if trusted { file.restricted.needs_trust.clone() } else { Layers::default() };
            layer.overridden_by(file.allowed.clone().overridden_by(waiting))
        })
    }

    /// What of it has no effect, with the reason for people.
    pub fn ineffective_settings(&self, trusted: bool) -> Vec<(Entry, &'static str)> {
        let of = |file: &ProjectFile| {
            let waiting = if trusted { Vec::new() } else { file.restricted.needs_trust.entries() };
            let never = file.restricted.never_from_project.entries();
            let waiting = waiting.into_iter().map(|entry| (entry, NEEDS_TRUST_REASON));
            waiting.chain(never.into_iter().map(|entry| (entry, NEVER_ALLOWED_REASON))).collect::<Vec<_>>()
        };
        self.files.iter().flat_map(of).collect()
    }

    /// One line for people about each file of which something is ignored.
    pub fn notices(&self, trusted: bool) -> impl Iterator<Item = String> {
        self.files.iter().filter_map(move |file| {
            let part = |layers: &Layers, why: &str| {
                let keys = layers.layer_values().map(|(key, _)| sanitize(key));
                list_first(keys, MAX_LISTED_KEYS).map(|keys| format!("{keys} ({why})"))
            };
            let waiting = part(&file.restricted.needs_trust, NEEDS_TRUST_REASON).filter(|_| !trusted);
            let parts: Vec<String> = waiting
                .into_iter()
                .chain(part(&file.restricted.never_from_project, NEVER_ALLOWED_REASON))
                .collect();
            (!parts.is_empty()).then(|| format!("{}: ignored {}", file.path, parts.join("; ")))
        })
    }
}

/// Keys that one line names; a real project has fewer.
const MAX_LISTED_KEYS: usize = 20;
/// Why a value has no effect yet.
const NEEDS_TRUST_REASON: &str = "needs a trusted workspace: agent trust";
/// Why a value never has one.
const NEVER_ALLOWED_REASON: &str = "never taken from a project";

/// The text of one file; the path that was found to be inside is the one that is read.
fn read_project_file(
    root: &Path,
    file: &Path,
    limit: u64,
    place: &str,
) -> Result<Option<String>, ConfigError> {
    let read = || match resolve_inside(root, file)? {
        Some(real) => read_text(&real, limit),
        None => Ok(None),
    };
    read().map_err(|error| error.file(place))
}

/// The layer of a configuration file with this text.
///
/// # Errors
/// What is wrong with it, with its line.
pub fn text_layer(rules: &KeyRule, level: LayerKind, place: &str, text: &str) -> Result<Layers, ConfigError> {
    let leaves = yaml::parse(text).and_then(|node| validate::leaves(rules, &node));
    Ok(Layers::from_leaves(rules, level, place, leaves.map_err(|error| error.file(place))?))
}
