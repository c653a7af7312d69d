//! Command-line arguments for the configuration file and the workspace, common to most commands.

use agent_config::overrides::Overrides;
use clap::Args;
use std::path::PathBuf;

/// The configuration file and the workspace.
#[derive(Debug, Clone, Default, Args)]
pub struct CommonArgs {
    /// Configuration file with precedence over the user's and the project's
    #[arg(short, long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// Directory to work in
    #[arg(short, long, value_name = "DIR", global = true)]
    pub workspace: Option<PathBuf>,
}

impl CommonArgs {
    /// Returns these settings, and no others.
    pub fn overrides(&self) -> Overrides {
        Overrides { config: self.config.clone(), workspace: self.workspace.clone(), ..Overrides::default() }
    }
}
