//! The words of `agent sessions`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `agent sessions …`.
#[derive(Debug, Subcommand)]
pub enum SessionsCommand {
    /// The sessions of this workspace, newest first
    List(ListArgs),
    /// What happened in a session
    Show {
        /// The session's id
        id: String,
    },
    /// Where a text occurs in what was said and done
    Search {
        /// The text, in capitals or not
        text: String,
        /// How many places
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
    /// Begin a new session with the conversation of another, which stays as it is; files are not touched
    Fork {
        /// The session's id
        id: String,
        /// Only up to the end of step N
        #[arg(long, value_name = "N")]
        to_step: Option<u32>,
    },
    /// Write a session into one file
    Export {
        /// The session's id
        id: String,
        /// The file; without it standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Without the paths of your home directory and of the workspace, which may name you
        #[arg(long)]
        redact: bool,
    },
    /// Take over a session that was exported, for this workspace
    Import {
        /// The file, or `-`
        file: PathBuf,
    },
    /// Remove sessions
    Rm {
        /// Their ids
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Remove the sessions in which nothing happened lately
    Cleanup {
        /// For so many days; without it what `sessions.cleanup_after_days` says
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(0..=36_500))]
        older_than: Option<u32>,
        /// Only say which they are
        #[arg(long)]
        dry_run: bool,
    },
}

/// `agent sessions list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// How many
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// All of them
    #[arg(long, conflicts_with = "limit")]
    pub all: bool,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}
