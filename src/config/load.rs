//! Brings all layers together, lowest first: built-in, user, project, named file, environment, flags.

use super::agents;
use super::check;
use super::environment::{Directories, Environment};
use super::error::{ConfigError, harmless};
use super::file::{inside, is_absent, read_text};
use super::flags::{Flags, flags_layer, variables_layer};
use super::layers::{Layers, Level};
use super::rule::{self, Rule};
use super::settings::Settings;
use super::yaml;
use std::path::{Path, PathBuf};

/// Bytes of a configuration file; ten times the largest sensible one.
pub const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// The lowest layer: every key with its default.
pub const DEFAULTS: &str = include_str!("../../config/default.yaml");
/// How the lowest layer is named in messages.
pub const DEFAULTS_PLACE: &str = "built-in";
/// The user's configuration file, in [`Directories::config`].
pub const USER_FILE: &str = "config.yaml";
/// The user's agents, in [`Directories::config`].
pub const USER_AGENTS: &str = "agents";
/// The configuration file of a project, from its root.
pub const PROJECT_FILE: &str = ".agent/config.yaml";
/// The agents of a project, from its root.
pub const PROJECT_AGENTS: &str = ".agent/agents";

/// What was loaded.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The settings in force.
    pub settings: Settings,
    /// Lines for people: what was ignored and why.
    pub notices: Vec<String>,
    /// Every value with its origin.
    pub layers: Layers,
}

/// Loads all layers into the settings in force.
///
/// # Errors
/// The first thing that is wrong, with key, file, line and hint.
pub fn load(flags: &Flags, environment: &Environment) -> Result<Loaded, ConfigError> {
    if let Some(name) = environment.undecodable().find(|name| name.starts_with("AGENT_")) {
        return Err(ConfigError::new("the value is not valid UTF-8").file(name));
    }
    let rules = rule::document();
    let directories = Directories::of(environment)?;
    let built_in =
        Layers::layer(&rules, Level::BuiltIn, DEFAULTS_PLACE, parse(&rules, DEFAULTS, DEFAULTS_PLACE)?)
            .under(agents::built_in(&rules)?);
    let user = user_layer(&rules, &directories.config)?;
    let file = explicit_layer(&rules, flags, environment)?;
    let above = file.under(variables_layer(&rules, environment)?).under(flags_layer(&rules, flags)?);

    let below = built_in.under(user);
    let workspace = workspace_root(&below.clone().under(above.clone()), environment)?;
    let mut notices = Vec::new();
    let project = project_layer(&rules, &workspace, &below, &mut notices)?;
    let layers = below.under(project).under(above);
    let settings = Settings::resolve(&layers, flags, environment, directories, workspace)?;
    notices.extend(agents::unknown_tools(&layers, &settings.agents));
    Ok(Loaded { settings, notices, layers })
}

/// Parses and checks one file's text.
fn parse(rules: &Rule, text: &str, place: &str) -> Result<Vec<check::Leaf>, ConfigError> {
    yaml::parse(text).and_then(|node| check::leaves(rules, &node)).map_err(|error| error.file(place))
}

fn user_layer(rules: &Rule, directory: &Path) -> Result<Layers, ConfigError> {
    let mut layer = Layers::default();
    for file in agents::files(&directory.join(USER_AGENTS))? {
        layer = layer.under(agents::file_layer(rules, Level::User, &file, &file.display().to_string())?);
    }
    let path = directory.join(USER_FILE);
    Ok(layer.under(file_layer(rules, Level::User, &path, &path.display().to_string())?.unwrap_or_default()))
}

/// The project's layers, without what an untrusted project may not set.
fn project_layer(
    rules: &Rule,
    root: &Path,
    below: &Layers,
    notices: &mut Vec<String>,
) -> Result<Layers, ConfigError> {
    let mut layer = Layers::default();
    let mut add = |mut next: Layers, place: &str| {
        notices.extend(next.confine(rules, below).notice(place));
        layer = std::mem::take(&mut layer).under(next);
    };
    let place = |place: &'static str| move |error: ConfigError| error.file(place);
    if let Some(directory) = inside(root, PROJECT_AGENTS.as_ref()).map_err(place(PROJECT_AGENTS))? {
        for file in agents::files(&directory)? {
            let name = file.file_name().unwrap_or_default();
            let place = format!("{PROJECT_AGENTS}/{}", harmless(&name.to_string_lossy()));
            let real = inside(root, &file).map_err(|error| error.file(&place))?;
            if real.is_some() {
                add(agents::file_layer(rules, Level::Project, &file, &place)?, &place);
            }
        }
    }
    if let Some(path) = inside(root, PROJECT_FILE.as_ref()).map_err(place(PROJECT_FILE))? {
        add(file_layer(rules, Level::Project, &path, PROJECT_FILE)?.unwrap_or_default(), PROJECT_FILE);
    }
    Ok(layer)
}

/// The file of `--config`, else of `AGENT_CONFIG`; naming one that does not exist is an error.
fn explicit_layer(rules: &Rule, flags: &Flags, environment: &Environment) -> Result<Layers, ConfigError> {
    let flag = flags.config.as_deref().map(|path| (path, "--config"));
    let variable = environment.get("AGENT_CONFIG").map(|path| (Path::new(path), "AGENT_CONFIG"));
    let Some((path, named_by)) = flag.or(variable) else { return Ok(Layers::default()) };
    let path = environment.directory().join(path);
    file_layer(rules, Level::File, &path, &path.display().to_string())?
        .ok_or_else(|| ConfigError::new("does not exist").path(&path).hint(format!("named by {named_by}")))
}

fn file_layer(rules: &Rule, level: Level, path: &Path, place: &str) -> Result<Option<Layers>, ConfigError> {
    let text = read_text(path, MAX_CONFIG_BYTES).map_err(|error| error.file(place))?;
    let layer = |text: String| Ok(Layers::layer(rules, level, place, parse(rules, &text, place)?));
    text.map(layer).transpose()
}

/// The canonical workspace directory.
fn workspace_root(layers: &Layers, environment: &Environment) -> Result<PathBuf, ConfigError> {
    let statement = layers.get("workspace.root");
    let named = statement.and_then(|statement| statement.value.as_str());
    let path = environment.directory().join(named.unwrap_or("."));
    let problem = |message: String| {
        let place = statement.filter(|_| named.is_some()).map(|statement| &statement.origin);
        let error =
            ConfigError::new(format!("the workspace {} {message}", path.display())).key("workspace.root");
        place.map_or(error.clone(), |place| error.file(&place.place).line(place.line))
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
