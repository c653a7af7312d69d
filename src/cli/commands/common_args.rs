//! Where configuration and workspace are, for every command that needs them.

use clap::Args;
use std::path::PathBuf;

/// Where configuration and workspace are.
#[derive(Debug, Clone, Default, Args)]
pub struct CommonArgs {
    /// A configuration file on top of the user's and the project's
    #[arg(short, long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// The directory to work in
    #[arg(short, long, value_name = "DIR", global = true)]
    pub workspace: Option<PathBuf>,
}
