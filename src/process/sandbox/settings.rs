//! What confinement is made from: the places that a run's configuration and surroundings name.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// What a run's commands work on, and what is said about what they may reach.
#[derive(Debug, Default)]
pub struct SandboxSettings {
    /// The directory that they may change, canonical.
    pub workspace: PathBuf,
    /// The home directory, whose keys they do not see.
    pub home: Option<PathBuf>,
    /// The variables that say where their programs are, and the person's keys.
    pub variables: BTreeMap<String, String>,
    /// More directories that they may change.
    pub writable: Vec<PathBuf>,
    /// More that they do not see.
    pub hidden: Vec<PathBuf>,
    /// Files that stay as they are where they lie in the workspace.
    pub trusted: Vec<PathBuf>,
    /// Files and directories that stay as they are wherever they lie: what this program itself obeys.
    pub own_configuration: Vec<PathBuf>,
    /// Patterns of files that stay as they are; those with wildcards are for the tools alone.
    pub protected: Vec<String>,
    /// Whether they share our network.
    pub network: bool,
    /// Where the caches of their programs are.
    pub caches: PathBuf,
    /// Below which the temporary directory of the run is made.
    pub temporary: PathBuf,
    /// Below which what commands make of protected files is moved to.
    pub quarantine: PathBuf,
}
