//! The arguments of `agent mcp`.

use crate::commands::client_run::ClientArgs;
use crate::commands::common_args::CommonArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of `agent mcp`.
#[derive(Debug, Args)]
pub struct McpArgs {
    /// Also the MCP servers in this file, as `run` takes it
    #[arg(long, value_name = "FILE", global = true)]
    pub mcp_config: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do; without it, `list`.
    #[command(subcommand)]
    pub command: Option<McpCommand>,
    /// Configuration and workspace.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Subcommands of `agent mcp`.
#[derive(Debug, Subcommand)]
pub enum McpCommand {
    /// Start each server and list their states and the hashes of their tools
    List,
    /// Start a server and show its tools as the model sees them
    Show {
        /// Name of the server.
        server: String,
    },
    /// Add a server to your configuration: `agent mcp add NAME -- PROGRAM ARGUMENTS`, or with `--url` one with an address
    Add(AddServer),
    /// Remove a server from your configuration
    Remove {
        /// Name of the server.
        server: String,
        /// From the project's configuration, `.agent/config.yaml`
        #[arg(long)]
        project: bool,
    },
    /// Log in at a remote server: open the printed address, then enter the address to which the browser was redirected
    Login {
        /// Name of the server.
        server: String,
        /// A permission to ask for besides those granted before; repeatable
        #[arg(long, value_name = "SCOPE")]
        scope: Vec<String>,
    },
    /// Delete the stored login at a remote server
    Logout {
        /// Name of the server.
        server: String,
    },
    /// Offer this agent to other programs as an MCP server on standard input and output; the options of `run` bound what they can do
    Serve(Box<ClientArgs>),
    /// Accept the tools of a server as they are now, and show what has changed
    Pin {
        /// Name of the server.
        server: String,
    },
}

/// Arguments of `agent mcp add`.
#[derive(Debug, Args)]
pub struct AddServer {
    /// Name for the server: lower-case letters, digits, `-` and `_`
    pub name: String,
    /// Address of a remote server
    #[arg(long, value_name = "URL", required_unless_present = "command", conflicts_with = "command")]
    pub url: Option<String>,
    /// Add it to the project's configuration, `.agent/config.yaml`
    #[arg(long)]
    pub project: bool,
    /// Replace a server of this name
    #[arg(long)]
    pub replace: bool,
    /// The program of a local server and its arguments, after `--`
    #[arg(last = true, value_name = "PROGRAM ARGUMENTS")]
    pub command: Vec<String>,
}
