//! Input of the confinement, from the run's configuration and environment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Access of a child process to the workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkspaceAccess {
    /// It cannot see the workspace.
    None,
    /// It may read the workspace.
    Read,
    /// It may change the workspace.
    #[default]
    Write,
}

/// Settings for the sandbox of a run's commands.
#[derive(Debug, Clone, Default)]
pub struct SandboxSettings {
    /// Directory that commands may change, canonical.
    pub workspace: PathBuf,
    /// Access to it.
    pub access: WorkspaceAccess,
    /// Home directory, whose credentials are hidden.
    pub home: Option<PathBuf>,
    /// Variables with the locations of programs and of the user's credentials.
    pub variables: BTreeMap<String, String>,
    /// Further writable directories.
    pub writable: Vec<PathBuf>,
    /// Further hidden paths.
    pub hidden: Vec<PathBuf>,
    /// Files that are read-only if they are in the workspace.
    pub trusted: Vec<PathBuf>,
    /// Files and directories that are always read-only: the agent's own configuration.
    pub own_configuration: Vec<PathBuf>,
    /// Patterns of read-only files. Those with wildcards apply only to tools.
    pub protected: Vec<String>,
    /// Patterns of files that the model may not read. Those without wildcards are hidden from its commands.
    pub sensitive: Vec<String>,
    /// Whether commands share the host's network.
    pub network: bool,
    /// Whether commands reach hosts through the proxy, and so can download.
    pub has_proxy: bool,
    /// Directory for caches of their programs.
    pub caches: PathBuf,
    /// Parent directory of the run's temporary directory.
    pub temporary: PathBuf,
    /// Parent directory for what commands create in place of protected files.
    pub quarantine: PathBuf,
}
