//! Command-line arguments of `agent sessions`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Subcommands of `agent sessions`.
#[derive(Debug, Subcommand)]
pub enum SessionsCommand {
    /// List the sessions of this workspace, newest first
    List(ListArgs),
    /// Show the events of a session
    Show {
        /// Session id
        id: String,
    },
    /// Search for a text in all sessions of this workspace
    Search {
        /// Text to search for, ignoring case
        text: String,
        /// Maximum number of matches
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
    /// Start a new session from the conversation of another one; neither it nor files are changed
    Fork {
        /// Session id
        id: String,
        /// Only up to the end of step N
        #[arg(long, value_name = "N")]
        to_step: Option<u32>,
    },
    /// Export a session to one file
    Export {
        /// Session id
        id: String,
        /// Output file; default: standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Replace the paths of your home directory and of the workspace, which may contain your name
        #[arg(long)]
        redact: bool,
    },
    /// Import an exported session into this workspace
    Import {
        /// File, or `-` for standard input
        file: PathBuf,
    },
    /// Remove sessions
    Rm {
        /// Session ids
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Remove the sessions without recent activity
    Cleanup {
        /// Days without activity; default: `sessions.cleanup_after_days`
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(0..=36_500))]
        older_than: Option<u32>,
        /// Only list them
        #[arg(long)]
        dry_run: bool,
    },
}

/// Arguments of `agent sessions list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Maximum number of sessions
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// List all sessions, and those of workspaces that are no longer at their path
    #[arg(long, conflicts_with = "limit")]
    pub all: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
