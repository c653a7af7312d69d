//! Reads the environment, the configuration files and the flags, in their order, into settings. The one reader of
//! environment variables and configuration files.

use super::agents;
use super::check;
use super::error::{ConfigError, harmless};
use super::layers::{Layers, Level};
use super::rule::{self, Rule};
use super::settings::Settings;
use super::yaml;
use crate::engine::policy::Mode;
use crate::secret::Secret;
use rustix::fs::OFlags;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
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

/// Everything the program was told by its surroundings, read once.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    undecodable: Vec<String>,
    home: Option<PathBuf>,
    directory: PathBuf,
}

impl Environment {
    /// Reads the variables, the home directory and the current directory of this process.
    #[expect(clippy::disallowed_methods, reason = "this is the address of the environment")]
    pub fn read() -> Self {
        let mut environment = Self {
            home: std::env::home_dir().filter(|home| home.is_absolute()),
            directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            ..Self::default()
        };
        for (name, value) in std::env::vars_os() {
            match (name.into_string(), value.into_string()) {
                (Ok(name), Ok(value)) => {
                    environment.variables.insert(name, value);
                }
                (Ok(name), Err(_)) => environment.undecodable.push(name),
                (Err(_), _) => {}
            }
        }
        environment
    }

    /// An environment of these variables only; the home directory is `HOME`.
    pub fn of(variables: BTreeMap<String, String>, directory: &Path) -> Self {
        let home = variables.get("HOME").map(PathBuf::from);
        Self { variables, undecodable: Vec::new(), home, directory: directory.to_owned() }
    }

    /// The value of a variable; an empty one counts as absent.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// All variables whose name and value are text.
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// The directory the program was started in.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// Where things of the user live. Nothing is created here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directories {
    /// `config.yaml` and `agents/`.
    pub config: PathBuf,
    /// Sessions and logs.
    pub state: PathBuf,
    /// What can be made again.
    pub cache: PathBuf,
}

impl Directories {
    /// `AGENT_HOME` for everything, else the XDG directories (absolute ones, as their specification demands).
    ///
    /// # Errors
    /// When neither says where home is.
    pub fn of(environment: &Environment) -> Result<Self, ConfigError> {
        if let Some(home) = environment.get("AGENT_HOME") {
            let home = environment.directory.join(home);
            return Ok(Self { state: home.join("state"), cache: home.join("cache"), config: home });
        }
        let find = |variable: &str, below_home: &str| {
            let absolute = environment.get(variable).map(PathBuf::from).filter(|path| path.is_absolute());
            let base = absolute.or_else(|| environment.home.as_ref().map(|home| home.join(below_home)));
            base.map(|base| base.join("agent"))
                .ok_or_else(|| ConfigError::new("there is no home directory").hint("set HOME or AGENT_HOME"))
        };
        Ok(Self {
            config: find("XDG_CONFIG_HOME", ".config")?,
            state: find("XDG_STATE_HOME", ".local/state")?,
            cache: find("XDG_CACHE_HOME", ".cache")?,
        })
    }

    /// Where sessions and logs of one workspace live: a directory named by the hash of its canonical path.
    pub fn state_of(&self, workspace: &Path) -> PathBuf {
        let hash = blake3::hash(workspace.as_os_str().as_encoded_bytes()).to_hex();
        self.state.join("workspaces").join(hash.get(..16).unwrap_or_default())
    }
}

/// What the command line says about the settings.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--config`: a file above user and project.
    pub config: Option<PathBuf>,
    /// `--workspace`: the project directory.
    pub workspace: Option<PathBuf>,
    /// `--agent`: its name.
    pub agent: Option<String>,
    /// `--mode`: how much is asked.
    pub mode: Option<Mode>,
    /// `--model`: the language model.
    pub model: Option<String>,
    /// `--api-base`: the server's base URL.
    pub api_base: Option<String>,
    /// `--api-key`: the key itself.
    pub api_key: Option<Secret>,
    /// `--no-stream`: answers arrive whole; set it for `--json` and `--quiet` too.
    pub no_stream: bool,
    /// `--max-steps`: model calls.
    pub max_steps: Option<u32>,
    /// `--timeout`: seconds of the whole run.
    pub timeout: Option<u64>,
    /// `--step-timeout`: seconds of one step.
    pub step_timeout: Option<u64>,
    /// `--allow-commands`: the tool `run_command` exists.
    pub allow_commands: bool,
    /// `--no-commands`: it does not; wins.
    pub no_commands: bool,
    /// `--log-level`: how much is shown.
    pub log_level: Option<String>,
    /// `--log-file`: where the JSON log goes.
    pub log_file: Option<PathBuf>,
}

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

/// Loads all layers: built-in, user, project, the file of `--config` or `AGENT_CONFIG`, environment, flags.
///
/// # Errors
/// The first thing that is wrong, with key, file, line and hint.
pub fn load(flags: &Flags, environment: &Environment) -> Result<Loaded, ConfigError> {
    if let Some(name) = environment.undecodable.iter().find(|name| name.starts_with("AGENT_")) {
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

/// The real path of a project's file or directory, if it exists; a link that leaves the project is refused.
fn inside(root: &Path, relative: &Path) -> Result<Option<PathBuf>, ConfigError> {
    match root.join(relative).canonicalize() {
        Ok(path) if path.starts_with(root) => Ok(Some(path)),
        Ok(_) => Err(ConfigError::new("leads out of the workspace")),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(ConfigError::new(format!("cannot be read: {error}"))),
    }
}

/// The file of `--config`, else of `AGENT_CONFIG`; naming one that does not exist is an error.
fn explicit_layer(rules: &Rule, flags: &Flags, environment: &Environment) -> Result<Layers, ConfigError> {
    let flag = flags.config.as_deref().map(|path| (path, "--config"));
    let variable = environment.get("AGENT_CONFIG").map(|path| (Path::new(path), "AGENT_CONFIG"));
    let Some((path, named_by)) = flag.or(variable) else { return Ok(Layers::default()) };
    let path = environment.directory.join(path);
    file_layer(rules, Level::File, &path, &path.display().to_string())?
        .ok_or_else(|| ConfigError::new("does not exist").path(&path).hint(format!("named by {named_by}")))
}

fn file_layer(rules: &Rule, level: Level, path: &Path, place: &str) -> Result<Option<Layers>, ConfigError> {
    let text = read_text(path, MAX_CONFIG_BYTES).map_err(|error| error.file(place))?;
    let layer = |text: String| Ok(Layers::layer(rules, level, place, parse(rules, &text, place)?));
    text.map(layer).transpose()
}

fn variables_layer(rules: &Rule, environment: &Environment) -> Result<Layers, ConfigError> {
    let variables = [
        ("AGENT_MODEL", "llm.model", false),
        ("AGENT_API_BASE", "llm.api_base", false),
        ("AGENT_LOG_LEVEL", "logging.level", true),
        ("AGENT_WORKSPACE", "workspace.root", false),
    ];
    let mut layer = Layers::default();
    for (variable, key, is_word) in variables {
        let Some(value) = environment.get(variable) else { continue };
        let value = if is_word { value.to_lowercase() } else { value.to_owned() };
        layer = layer.under(single_layer(rules, Level::Environment, variable, key, value.into())?);
    }
    Ok(layer)
}

fn flags_layer(rules: &Rule, flags: &Flags) -> Result<Layers, ConfigError> {
    let path = |path: &PathBuf| Value::from(path.to_string_lossy());
    let commands = match (flags.no_commands, flags.allow_commands) {
        (true, _) => Some(("--no-commands", false)),
        (false, true) => Some(("--allow-commands", true)),
        (false, false) => None,
    };
    let values = [
        ("--workspace", "workspace.root", flags.workspace.as_ref().map(path)),
        ("--mode", "mode", flags.mode.map(|mode| mode.name().into())),
        ("--model", "llm.model", flags.model.clone().map(Value::from)),
        ("--api-base", "llm.api_base", flags.api_base.clone().map(Value::from)),
        ("--no-stream", "llm.stream", flags.no_stream.then(|| false.into())),
        ("--max-steps", "max_steps", flags.max_steps.map(Value::from)),
        ("--timeout", "timeout_seconds", flags.timeout.map(Value::from)),
        ("--step-timeout", "step_timeout_seconds", flags.step_timeout.map(Value::from)),
        (commands.map_or("", |(flag, _)| flag), "commands.enabled", commands.map(|(_, on)| on.into())),
        ("--log-level", "logging.level", flags.log_level.as_ref().map(|level| level.to_lowercase().into())),
        ("--log-file", "logging.file", flags.log_file.as_ref().map(path)),
    ];
    let mut layer = Layers::default();
    for (flag, key, value) in values {
        if let Some(value) = value {
            layer = layer.under(single_layer(rules, Level::Flag, flag, key, value)?);
        }
    }
    Ok(layer)
}

fn single_layer(
    rules: &Rule,
    level: Level,
    place: &str,
    key: &str,
    value: Value,
) -> Result<Layers, ConfigError> {
    let leaf = check::single(rules, key, value).map_err(|error| error.file(place))?;
    Ok(Layers::layer(rules, level, place, vec![leaf]))
}

/// The canonical workspace directory.
fn workspace_root(layers: &Layers, environment: &Environment) -> Result<PathBuf, ConfigError> {
    let statement = layers.get("workspace.root");
    let named = statement.and_then(|statement| statement.value.as_str());
    let path = environment.directory.join(named.unwrap_or("."));
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

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

/// Reads a small text file; `None` when it does not exist. Never waits on a pipe and never reads past `limit` bytes.
///
/// # Errors
/// A directory, a special file, no permission, too large, not UTF-8; the file is for the caller to name.
pub fn read_text(path: &Path, limit: u64) -> Result<Option<String>, ConfigError> {
    let unreadable = |error: std::io::Error| ConfigError::new(format!("cannot be read: {error}"));
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = match rustix::fs::open(path, flags, rustix::fs::Mode::empty()) {
        Ok(descriptor) => File::from(descriptor),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
        Err(error) => return Err(unreadable(error.into())),
    };
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        let what = if metadata.is_dir() { "a directory" } else { "a special file" };
        return Err(ConfigError::new(format!("is {what}, not a file")));
    }
    let mut bytes = Vec::new();
    file.by_ref().take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > limit {
        return Err(ConfigError::new(format!("is larger than {limit} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let line = valid.iter().fold(1, |line, byte| line + u64::from(*byte == b'\n'));
        ConfigError::new("is not valid UTF-8").line(line)
    })?;
    Ok(Some(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    }))
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
