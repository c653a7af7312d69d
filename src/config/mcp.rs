//! The section `mcp` of the configuration.

use super::error::ConfigError;
use super::layers::Layers;
use crate::process::sandbox::settings::WorkspaceAccess;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// MCP servers: programs and services whose tools the model can call (`agent help mcp`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpSettings {
    /// Servers by name: lower-case letters, digits, `-` and `_`, at most 32 characters.
    #[serde(default)]
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "server-name"))]
    pub servers: BTreeMap<String, McpServer>,
    /// Whether requests list `all` tools of servers, or two tools to `search` and call them; `auto`: all up to 4 KiB.
    #[schemars(extend("x-scope" = "needs-trust"))]
    pub listing: ToolListing,
    /// Answer to questions of a server: `ask` you (without a terminal they are declined), their `defaults`, or `decline`.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = ["decline"]))]
    pub elicitation: Elicitation,
}

/// How the tools of servers are offered to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolListing {
    /// Each of them up to 4 KiB, else as `search`.
    Auto,
    /// Each of them.
    All,
    /// Through `tool_search` and `call_tool`.
    Search,
}

/// How questions of a server are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Elicitation {
    /// The user answers; without a terminal they are declined.
    Ask,
    /// With the defaults in the question; declined if a required one is missing.
    Defaults,
    /// They are declined.
    Decline,
}

/// An MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpServer {
    /// The program of a local server, which speaks over standard input and output.
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "filled"))]
    pub command: Option<String>,
    /// Arguments of the program.
    #[schemars(extend("x-scope" = "needs-trust"))]
    pub args: Vec<String>,
    /// Environment variables of the program, besides `PATH` and the like: `{from: VARIABLE}` of yours, or `{value: TEXT}`.
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "variable"))]
    pub env: BTreeMap<String, ValueSource>,
    /// Working directory of the program, relative to the workspace; absent: the workspace.
    #[schemars(extend("x-scope" = "needs-trust"))]
    pub cwd: Option<String>,
    /// What the program may do with the workspace: `none`, `read` or `write`.
    #[schemars(extend("x-scope" = "needs-trust"))]
    pub workspace: WorkspaceAccess,
    /// Whether the program reaches the network.
    #[schemars(extend("x-scope" = "needs-trust"))]
    pub network: bool,
    /// Whether the server is used.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = [false]))]
    pub enabled: bool,
    /// Tools that are known to change nothing: they run without asking, and in parallel.
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "filled"))]
    pub read_only: Vec<String>,
    /// Globs of the tools that are offered; empty: all.
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "glob"))]
    pub tools: Vec<String>,
    /// Hash of the tools as `agent mcp list` shows it; with another one, no tool of the server is offered.
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "filled"))]
    pub pin: Option<String>,
    /// Time until the server has listed its tools.
    #[schemars(range(min = 1, max = 600), extend("x-scope" = "needs-trust", "x-unit" = "seconds"))]
    pub start_timeout_seconds: u64,
    /// Time limit of a call.
    #[schemars(range(min = 1, max = 86_400), extend("x-scope" = "needs-trust", "x-unit" = "seconds"))]
    pub call_timeout_seconds: u64,
}

impl Default for McpServer {
    fn default() -> Self {
        Self {
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            workspace: WorkspaceAccess::Read,
            network: false,
            enabled: true,
            read_only: Vec::new(),
            tools: Vec::new(),
            pin: None,
            start_timeout_seconds: 10,
            call_timeout_seconds: 120,
        }
    }
}

/// Where a value comes from; exactly one of the two is set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ValueSource {
    /// Name of an environment variable of yours.
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "variable"))]
    pub from: Option<String>,
    /// The value itself.
    #[schemars(extend("x-scope" = "needs-trust"))]
    pub value: Option<String>,
}

impl McpSettings {
    /// Returns the servers that are used.
    pub fn enabled(&self) -> impl Iterator<Item = (&String, &McpServer)> {
        self.servers.iter().filter(|(_, server)| server.enabled)
    }

    /// Returns these settings, without servers if `is_disabled`.
    #[must_use]
    pub fn unless(mut self, is_disabled: bool) -> Self {
        if is_disabled {
            self.servers.clear();
        }
        self
    }

    /// Returns the names of the user's variables whose values servers get.
    pub fn mapped_variables(&self) -> impl Iterator<Item = &str> {
        self.servers
            .values()
            .flat_map(|server| server.env.values().filter_map(|source| source.from.as_deref()))
    }

    /// Checks that each server has a program, and each variable one source.
    ///
    /// # Errors
    /// Fails with the key and where it was set.
    pub fn check(&self, layers: &Layers) -> Result<(), ConfigError> {
        self.servers.iter().try_for_each(|(name, server)| {
            server.check().map_err(|(key, why)| {
                layers.locate(ConfigError::new(why), format!("mcp.servers.{name}{key}").as_str())
            })
        })
    }
}

impl McpServer {
    /// Returns the key, with its dot, and the problem of an inconsistent server.
    fn check(&self) -> Result<(), (String, String)> {
        if self.enabled && self.command.is_none() {
            return Err((".command".to_owned(), "is missing: the program of the server".to_owned()));
        }
        let is_unclear = |source: &ValueSource| source.from.is_some() == source.value.is_some();
        match self.env.iter().find(|(_, source)| is_unclear(source)) {
            None => Ok(()),
            Some((name, _)) => {
                let why = "needs either `from` (the name of your variable) or `value`".to_owned();
                Err((format!(".env.{name}"), why))
            }
        }
    }
}
