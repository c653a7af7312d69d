//! Brings all layers together, lowest first: built-in, user, project, named file, environment, flags.

use super::agents;
use super::check;
use super::environment::{Directories, Environment};
use super::error::ConfigError;
use super::file::{is_absent, read_own_text, read_text};
use super::flags::{Flags, flags_layer, variables_layer};
use super::layers::{Layers, Level};
use super::project::{MAX_CONFIG_BYTES, Project, text_layer};
use super::rule::{self, Document, Rule};
use super::settings::Settings;
use super::trust::{self, Judgement};
use super::yaml::Node;
use std::path::{Path, PathBuf};

/// How the lowest layer is named in messages.
pub const DEFAULTS_PLACE: &str = "built-in";
/// The user's configuration file, in [`Directories::config`].
pub const USER_FILE: &str = "config.yaml";
/// The user's agents, in [`Directories::config`].
pub const USER_AGENTS: &str = "agents";

/// What was loaded.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The settings in force.
    pub settings: Settings,
    /// Lines for people: what was ignored and why.
    pub notices: Vec<String>,
    /// Every value with its origin.
    pub layers: Layers,
    /// What the project's own files say, whether it has an effect or not.
    pub project: Project,
    /// Whether the project is trusted.
    pub trust: Judgement,
}

/// Loads all layers into the settings in force.
///
/// # Errors
/// The first thing that is wrong, with key, file, line and hint.
pub fn load(flags: &Flags, environment: &Environment) -> Result<Loaded, ConfigError> {
    let document = rule::document()?;
    let Ground { directories, below, above, workspace } = Ground::of(document, flags, environment)?;
    let project = Project::read(&document.rules, &workspace, &below)?;
    let state = directories.state_of(&workspace);
    let trust = trust::judge(&flags.trust, &project, trust::shelf(&state, &workspace))?;
    let trusted = trust.standing.is_trusted();
    let layers = below.under(project.layer(trusted)).under(above);
    let mut settings = Settings::resolve(&layers, flags, environment, directories, workspace)?;
    settings.keep_as_trusted(trust::named(&trust.claim, &project));
    let mut notices = trust.notices.clone();
    notices.extend(project.notices(trusted));
    notices.extend(agents::unknown_tools(&layers, &settings.agents));
    Ok(Loaded { settings, notices, layers, project, trust })
}

/// Where the state of a workspace is, and its canonical path, whatever the project's own files say.
///
/// # Errors
/// What is wrong with the other layers.
pub fn place(flags: &Flags, environment: &Environment) -> Result<(PathBuf, PathBuf), ConfigError> {
    let ground = Ground::of(rule::document()?, flags, environment)?;
    Ok((ground.directories.state_of(&ground.workspace), ground.workspace))
}

/// Everything but the project: it is found by these layers, and stands between them.
struct Ground {
    directories: Directories,
    below: Layers,
    above: Layers,
    workspace: PathBuf,
}

impl Ground {
    fn of(document: &Document, flags: &Flags, environment: &Environment) -> Result<Self, ConfigError> {
        let rules = &document.rules;
        if let Some(name) = environment.undecodable().find(|name| name.starts_with("AGENT_")) {
            return Err(ConfigError::new("the value is not valid UTF-8").file(name));
        }
        let directories = Directories::of(environment)?;
        let below = defaults_layer(document)?
            .under(agents::built_in(rules)?)
            .under(user_layer(rules, &directories.config)?);
        let file = explicit_layer(rules, flags, environment)?;
        let above = file.under(variables_layer(rules, environment)?).under(flags_layer(rules, flags)?);
        let workspace = workspace_root(&below.clone().under(above.clone()), environment)?;
        Ok(Self { directories, below, above, workspace })
    }
}

/// The lowest layer: every key with its default.
fn defaults_layer(document: &Document) -> Result<Layers, ConfigError> {
    let leaves = check::leaves(&document.rules, &Node::of(&document.defaults));
    let leaves = leaves.map_err(|error| error.file(DEFAULTS_PLACE))?;
    Ok(Layers::layer(&document.rules, Level::BuiltIn, DEFAULTS_PLACE, leaves))
}

fn user_layer(rules: &Rule, directory: &Path) -> Result<Layers, ConfigError> {
    let mut layer = Layers::default();
    for file in agents::files(&directory.join(USER_AGENTS))? {
        layer = layer.under(agents::file_layer(rules, Level::User, &file, &file.display().to_string())?);
    }
    let path = directory.join(USER_FILE);
    let place = path.display().to_string();
    let text = read_own_text(&path, MAX_CONFIG_BYTES).map_err(|error| error.file(&place))?;
    let own = text.map(|text| text_layer(rules, Level::User, &place, &text)).transpose()?;
    Ok(layer.under(own.unwrap_or_default()))
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
    text.map(|text| text_layer(rules, level, place, &text)).transpose()
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
