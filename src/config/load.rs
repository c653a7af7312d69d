//! Loads and merges all layers, lowest first: built-in, user, project, named file, environment, flags.

use super::agents;
use super::environment::{Directories, Environment};
use super::error::ConfigError;
use super::key_rules::{self, EmbeddedSchema, KeyRule};
use super::layers::{LayerKind, Layers, RestrictedSettings};
use super::mcp_file;
use super::overrides::{Overrides, flags_layer, variables_layer};
use super::project::{MAX_CONFIG_BYTES, PROJECT_FILE, ProjectConfig, text_layer};
use super::settings::Settings;
use super::text_file::{check_own_directory, is_absent, read_own_text, read_text};
use super::trust::{self, TrustDecision};
use super::validate::{self, Leaf};
use super::yaml::Node;
use agent_engine::policy::Mode;
use std::path::{Path, PathBuf};

/// Name of the lowest layer in messages.
pub const DEFAULTS_SOURCE: &str = "built-in";
/// The user's configuration file, in [`Directories::config`].
pub const USER_FILE: &str = "config.yaml";
/// The user's agents, in [`Directories::config`].
pub const USER_AGENTS: &str = "agents";

/// The loaded configuration.
#[derive(Debug, Clone)]
pub struct LoadedConfig {
    /// The settings in force.
    pub settings: Settings,
    /// Notices for the user: ignored settings, with the reason.
    pub notices: Vec<String>,
    /// Every value with its origin.
    pub layers: Layers,
    /// The project's own files, including settings without effect.
    pub project: ProjectConfig,
    /// Whether the project is trusted.
    pub trust: TrustDecision,
}

/// Loads all layers and resolves them into settings.
///
/// # Errors
/// Fails at the first problem, with key, file, line and hint.
pub fn load(flags: &Overrides, environment: &Environment) -> Result<LoadedConfig, ConfigError> {
    let schema = key_rules::embedded_schema()?;
    let OuterLayers { directories, below, above, workspace } = OuterLayers::load(schema, flags, environment)?;
    let project = ProjectConfig::read(&schema.rules, &workspace, &below)?;
    let state = directories.workspace_state(&workspace);
    check_own_directory(&state)?;
    let trust = trust::decide(&flags.trust, &project, trust::fact_cache(&state, &workspace))?;
    let trusted = trust.status.is_trusted();
    let layers = below.overridden_by(project.effective_layer(trusted)).overridden_by(above);
    let mut settings = Settings::resolve(&layers, flags, environment, directories, workspace)?;
    settings.protect_trusted_files(trust::other_files(&trust.manifest, &project));
    let mut notices = trust.notices.clone();
    notices.extend(project.notices(trusted));
    notices.extend(agents::unknown_tools(&layers, &settings.agents));
    Ok(LoadedConfig { settings, notices, layers, project, trust })
}

/// Returns the state directory of a workspace and its canonical path, without reading the project's own files.
///
/// # Errors
/// Fails for a problem in one of the other layers.
pub fn state_and_workspace(
    flags: &Overrides,
    environment: &Environment,
) -> Result<(PathBuf, PathBuf), ConfigError> {
    let outer = OuterLayers::load(key_rules::embedded_schema()?, flags, environment)?;
    Ok((outer.directories.workspace_state(&outer.workspace), outer.workspace))
}

/// Checks the configuration as it would be with `text` in the user's file, without project, environment and flags.
///
/// # Errors
/// Fails at the first problem, with key, file, line and hint.
pub fn check_user_text(text: &str, environment: &Environment) -> Result<(), ConfigError> {
    let directories = Directories::from_environment(environment)?;
    let layers =
        layers_with_user(key_rules::embedded_schema()?, &directories.config, Some(text), Layers::default())?;
    let workspace = workspace_root(&layers, environment)?;
    Settings::resolve(&layers, &Overrides::default(), environment, directories, workspace).map(drop)
}

/// Checks the configuration as it would be with `text` in the project's file and with trust in it. Returns the settings of the file that need
/// trust, or that are never taken from a project.
///
/// # Errors
/// Fails at the first problem, with key, file, line and hint.
pub fn check_project_text(
    text: &str,
    flags: &Overrides,
    environment: &Environment,
) -> Result<RestrictedSettings, ConfigError> {
    let schema = key_rules::embedded_schema()?;
    let OuterLayers { directories, below, above, workspace } = OuterLayers::load(schema, flags, environment)?;
    let project = ProjectConfig::read_with(&schema.rules, &workspace, &below, Some(text))?;
    let layers = below.overridden_by(project.effective_layer(true)).overridden_by(above);
    Settings::resolve(&layers, flags, environment, directories, workspace)?;
    let file = project.files.into_iter().find(|file| file.path == PROJECT_FILE);
    Ok(file.map(|file| file.restricted).unwrap_or_default())
}

/// All layers except the project's: `below` and `above` it. They determine the workspace, and so which project is read.
struct OuterLayers {
    directories: Directories,
    below: Layers,
    above: Layers,
    workspace: PathBuf,
}

impl OuterLayers {
    fn load(
        schema: &EmbeddedSchema,
        flags: &Overrides,
        environment: &Environment,
    ) -> Result<Self, ConfigError> {
        let rules = &schema.rules;
        if let Some(name) = environment.undecodable().find(|name| name.starts_with("AGENT_")) {
            return Err(ConfigError::new("the value is not valid UTF-8").file(name));
        }
        let directories = Directories::from_environment(environment)?;
        for directory in [&directories.config, &directories.state, &directories.cache] {
            check_own_directory(directory)?;
        }
        let own = user_text(&directories.config)?;
        let built_in = default_mode_layer(rules, flags);
        let below = layers_with_user(schema, &directories.config, own.as_deref(), built_in)?;
        let file = explicit_layer(rules, flags, environment)?;
        let above = file
            .overridden_by(mcp_layer(rules, flags, environment)?)
            .overridden_by(variables_layer(rules, environment)?)
            .overridden_by(flags_layer(rules, flags)?);
        let workspace = workspace_root(&below.clone().overridden_by(above.clone()), environment)?;
        Ok(Self { directories, below, above, workspace })
    }
}

/// Returns the lowest layer: every key with its default.
fn defaults_layer(schema: &EmbeddedSchema) -> Result<Layers, ConfigError> {
    let leaves = validate::leaves(&schema.rules, &Node::of(&schema.defaults));
    let leaves = leaves.map_err(|error| error.file(DEFAULTS_SOURCE))?;
    Ok(Layers::from_leaves(&schema.rules, LayerKind::BuiltIn, DEFAULTS_SOURCE, leaves))
}

/// The key of the mode that a conversation has by default.
const DEFAULT_MODE_KEY: &str = "agents.build.mode";

/// Returns the default mode of a conversation, which is as weak as what is built in.
fn default_mode_layer(rules: &KeyRule, flags: &Overrides) -> Layers {
    let leaf = |mode: Mode| Leaf { key: DEFAULT_MODE_KEY.to_owned(), value: mode.name().into(), line: 0 };
    let leaves = flags.default_mode.map(leaf).into_iter().collect();
    Layers::from_leaves(rules, LayerKind::BuiltIn, "agent chat", leaves)
}

/// Returns the built-in layers with `more`, and the user's, whose file in `directory` has the text `own`.
fn layers_with_user(
    schema: &EmbeddedSchema,
    directory: &Path,
    own: Option<&str>,
    more: Layers,
) -> Result<Layers, ConfigError> {
    let user = user_layer(&schema.rules, directory, own)?;
    let built_in = defaults_layer(schema)?.overridden_by(agents::built_in(&schema.rules)?);
    Ok(built_in.overridden_by(more).overridden_by(user))
}

/// Returns the text of the user's file in `directory`.
fn user_text(directory: &Path) -> Result<Option<String>, ConfigError> {
    let path = directory.join(USER_FILE);
    read_own_text(&path, MAX_CONFIG_BYTES).map_err(|error| error.path(&path))
}

fn user_layer(rules: &KeyRule, directory: &Path, own: Option<&str>) -> Result<Layers, ConfigError> {
    let mut layer = Layers::default();
    for file in agents::markdown_files(&directory.join(USER_AGENTS))? {
        layer = layer.overridden_by(agents::file_layer(
            rules,
            LayerKind::User,
            &file,
            &file.display().to_string(),
        )?);
    }
    let source = directory.join(USER_FILE).display().to_string();
    let own = own.map(|text| text_layer(rules, LayerKind::User, &source, text)).transpose()?;
    Ok(layer.overridden_by(own.unwrap_or_default()))
}

/// Reads the file of `--config`, else of `AGENT_CONFIG`; fails if the named file does not exist.
fn explicit_layer(
    rules: &KeyRule,
    flags: &Overrides,
    environment: &Environment,
) -> Result<Layers, ConfigError> {
    let flag = flags.config.as_deref().map(|path| (path, "--config"));
    let variable = environment.get("AGENT_CONFIG").map(|path| (Path::new(path), "AGENT_CONFIG"));
    let Some((path, named_by)) = flag.or(variable) else { return Ok(Layers::default()) };
    let (source, text) = read_named(path, named_by, environment)?;
    text_layer(rules, LayerKind::File, &source, &text)
}

/// Reads the file of `--mcp-config`, and the servers of the client.
fn mcp_layer(rules: &KeyRule, flags: &Overrides, environment: &Environment) -> Result<Layers, ConfigError> {
    let mut layer = Layers::default();
    if let Some(path) = flags.mcp_config.as_deref() {
        let (source, text) = read_named(path, "--mcp-config", environment)?;
        layer = mcp_file::layer(rules, &source, &text)?;
    }
    match &flags.mcp_servers {
        Some(text) => Ok(layer.overridden_by(mcp_file::layer(rules, "mcpServers of the client", text)?)),
        None => Ok(layer),
    }
}

/// Returns the path and the text of a file that `named_by` names; fails if it does not exist.
fn read_named(
    path: &Path,
    named_by: &str,
    environment: &Environment,
) -> Result<(String, String), ConfigError> {
    let path = environment.current_dir().join(path);
    let source = path.display().to_string();
    let text = read_text(&path, MAX_CONFIG_BYTES).map_err(|error| error.file(&source))?;
    let absent = || ConfigError::new("does not exist").file(&source).hint(format!("named by {named_by}"));
    Ok((source.clone(), text.ok_or_else(absent)?))
}

/// Returns the canonical path of the workspace directory.
fn workspace_root(layers: &Layers, environment: &Environment) -> Result<PathBuf, ConfigError> {
    let layer_value = layers.get("workspace.root");
    let named = layer_value.and_then(|layer_value| layer_value.value.as_str());
    let path = environment.current_dir().join(named.unwrap_or("."));
    let problem = |message: String| {
        let origin = layer_value.filter(|_| named.is_some()).map(|layer_value| &layer_value.origin);
        let error =
            ConfigError::new(format!("the workspace {} {message}", path.display())).key("workspace.root");
        origin.map_or(error.clone(), |origin| error.file(&origin.source).line(origin.line))
    };
    let root = path.canonicalize().map_err(|error| {
        problem(if is_absent(&error) {
            "does not exist".to_owned()
        } else {
            format!("cannot be opened: {error}")
        })
    })?;
    if root.is_dir() { Ok(root) } else { Err(problem("is a file, not a directory".to_owned())) }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
