//! Environment variables, read once and only here, and the directories derived from them.

use super::error::ConfigError;
use agent_messages as messages;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The environment of the process, read once.
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

    /// Creates an environment with only these variables; the home directory is `HOME`.
    pub fn from_variables(variables: BTreeMap<String, String>, directory: &Path) -> Self {
        let home = variables.get("HOME").map(PathBuf::from);
        Self { variables, home, directory: directory.to_owned(), ..Self::default() }
    }

    /// Returns the value of a variable; an empty one counts as absent.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns all variables whose name and value are valid UTF-8.
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// Returns the names of the variables whose value is not valid UTF-8.
    pub fn undecodable(&self) -> impl Iterator<Item = &str> {
        self.undecodable.iter().map(String::as_str)
    }

    /// Returns the directory in which the program was started.
    pub fn current_dir(&self) -> &Path {
        &self.directory
    }

    /// Returns the user's home directory.
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Returns `path` for the user, with `~` for the home directory above it.
    pub fn shown_path(&self, path: &Path) -> PathBuf {
        let below_home = self.home.as_ref().and_then(|home| path.strip_prefix(home).ok());
        let below_home = below_home.filter(|rest| *rest != Path::new(""));
        below_home.map_or_else(|| path.to_owned(), |rest| Path::new("~").join(rest))
    }

    /// Resolves `path` against the start directory, and `~/…` against the home directory.
    pub fn absolute(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), &self.home) {
            (Some(below), Some(home)) => home.join(below),
            _ => self.directory.join(path),
        }
    }
}

/// Directory of the worktrees in the state directory of a workspace.
pub const WORKTREES: &str = "worktrees";

/// Parent of the directories of workspaces, in the directories for state and cache.
pub const WORKSPACES: &str = "workspaces";

/// The user's directories for configuration, state and cache. They are not created here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directories {
    /// Contains `config.yaml` and `agents/`.
    pub config: PathBuf,
    /// Contains sessions and logs.
    pub state: PathBuf,
    /// Contains data that can be regenerated.
    pub cache: PathBuf,
}

impl Directories {
    /// Returns `AGENT_HOME` for everything, else the XDG directories (which must be absolute, as their specification requires).
    ///
    /// # Errors
    /// Fails when neither is set and there is no home directory.
    pub fn from_environment(environment: &Environment) -> Result<Self, ConfigError> {
        if let Some(home) = environment.get("AGENT_HOME") {
            let home = environment.directory.join(home);
            return Ok(Self { state: home.join("state"), cache: home.join("cache"), config: home });
        }
        let find = |variable: &str, below_home: &str| {
            let absolute = environment.get(variable).map(PathBuf::from).filter(|path| path.is_absolute());
            let base = absolute.or_else(|| environment.home.as_ref().map(|home| home.join(below_home)));
            base.map(|base| base.join("agent"))
                .ok_or_else(|| ConfigError::new("there is no home directory").hint(messages::AGENT_HOME_HINT))
        };
        Ok(Self {
            config: find("XDG_CONFIG_HOME", ".config")?,
            state: find("XDG_STATE_HOME", ".local/state")?,
            cache: find("XDG_CACHE_HOME", ".cache")?,
        })
    }

    /// Returns the state directory of one workspace, for sessions and logs; its name is the hash of the canonical path. A worktree in
    /// a state directory belongs to the workspace of that directory.
    pub fn workspace_state(&self, workspace: &Path) -> PathBuf {
        self.state_around(workspace).unwrap_or_else(|| workspace_subdirectory(&self.state, workspace))
    }

    /// Returns the state directories of all workspaces, sorted. None if they cannot be listed.
    pub fn workspace_states(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.state.join(WORKSPACES)).into_iter().flatten().flatten();
        let mut states: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        states.sort();
        states
    }

    /// Returns the state directory that contains the worktree `workspace`.
    fn state_around(&self, workspace: &Path) -> Option<PathBuf> {
        let state = workspace.ancestors().find(|above| above.ends_with(WORKTREES))?.parent()?;
        let states = self.state.join(WORKSPACES).canonicalize().ok()?;
        (state.parent() == Some(&*states)).then(|| state.to_owned())
    }

    /// Returns the state directory of an agent of a Hub, in whose worktrees it works. `agent` must be a name of a directory.
    pub fn agent_state(&self, agent: &str) -> PathBuf {
        self.state.join(WORKSPACES).join(format!("hub-{agent}"))
    }

    /// Returns the cache directory for the commands of one workspace, named likewise.
    pub fn workspace_cache(&self, workspace: &Path) -> PathBuf {
        workspace_subdirectory(&self.cache, workspace)
    }
}

fn workspace_subdirectory(base: &Path, workspace: &Path) -> PathBuf {
    let hash = blake3::hash(workspace.as_os_str().as_encoded_bytes()).to_hex();
    base.join(WORKSPACES).join(hash.get(..16).unwrap_or_default())
}
