//! The section `mcp` of the configuration.

use super::error::ConfigError;
use super::layers::Layers;
use crate::process::sandbox::settings::WorkspaceAccess;
use reqwest::Url;
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
    /// Address of a remote server (streamable HTTP): https, or http on this machine.
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "url"))]
    pub url: Option<String>,
    /// Environment variable with the bearer token for `url`.
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "variable"))]
    pub token_env: Option<String>,
    /// Headers of each request to `url`: `{from: VARIABLE}` of yours, or `{value: TEXT}`.
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "filled"))]
    pub headers: BTreeMap<String, ValueSource>,
    /// Login with OAuth for `url`.
    pub oauth: McpOauth,
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
            url: None,
            token_env: None,
            headers: BTreeMap::new(),
            oauth: McpOauth::default(),
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

/// Login with OAuth.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpOauth {
    /// Id of a client that you have registered; absent: the agent registers one.
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "filled"))]
    pub client_id: Option<String>,
    /// Environment variable with the secret of that client.
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "variable"))]
    pub client_secret_env: Option<String>,
    /// Scopes to request; empty: those that the server asks for.
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "filled"))]
    pub scopes: Vec<String>,
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
    pub fn secret_variables(&self) -> impl Iterator<Item = &str> {
        self.servers.values().flat_map(|server| {
            let mapped = server.env.values().chain(server.headers.values());
            let mapped = mapped.filter_map(|source| source.from.as_deref());
            mapped.chain(server.token_env.as_deref()).chain(server.oauth.client_secret_env.as_deref())
        })
    }

    /// Checks that each server has either a command or an address, and only keys for that.
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
        let fail = |key: &str, why: &str| Err((key.to_owned(), why.to_owned()));
        match (&self.command, &self.url) {
            (Some(_), Some(_)) => return fail("", "a server has either `command` or `url`, not both"),
            (None, None) if self.enabled => {
                return fail("", "a server needs `command` (a local program) or `url` (a remote server)");
            }
            (Some(_), None) if self.token_env.is_some() || !self.headers.is_empty() => {
                return fail("", "`token_env` and `headers` are for `url`; a program gets its key by `env`");
            }
            (None, Some(url)) => {
                if !self.env.is_empty() || !self.args.is_empty() {
                    return fail("", "`args` and `env` are for `command`");
                }
                if !is_secure(url) {
                    return fail(".url", "must be https, or http on this machine (localhost)");
                }
            }
            _ => {}
        }
        for (key, sources) in [("env", &self.env), ("headers", &self.headers)] {
            for (name, source) in sources {
                if source.from.is_some() == source.value.is_some() {
                    let why = "needs either `from` (the name of your variable) or `value`".to_owned();
                    return Err((format!(".{key}.{name}"), why));
                }
            }
        }
        Ok(())
    }
}

/// Checks whether an address is encrypted or on this machine.
fn is_secure(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let host = url.host_str().unwrap_or_default();
    let is_local = host == "localhost"
        || host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    url.scheme() == "https" || is_local
}
