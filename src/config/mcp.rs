//! The section `mcp` of the configuration.

use super::error::ConfigError;
use super::layers::Layers;
use agent_http::own_origin;
use agent_process::sandbox::settings::WorkspaceAccess;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// MCP servers: programs and services whose tools the model can call (`agent help mcp`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpSettings {
    /// Servers by name: lower-case letters, digits, `-` and `_`, at most 32 characters, without `__` and not `_` last.
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
    /// The address of a remote server, instead of `command`: https, or http on this machine.
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "filled"))]
    pub url: Option<String>,
    /// Environment variable of yours with a token for the remote server, sent as `Authorization: Bearer`.
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "variable"))]
    pub token_env: Option<String>,
    /// Headers for the remote server: `{from: VARIABLE}` of yours, or `{value: TEXT}`.
    #[schemars(extend("x-scope" = "needs-trust"))]
    pub headers: BTreeMap<String, ValueSource>,
    /// How `agent mcp login` logs in at the remote server.
    pub oauth: McpLogin,
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
    /// Grants that agents of a Hub need for a tool, by its name there or that for the model (one with a dot); others need `NAME:read` if they are `read_only`, else `NAME:write`.
    #[serde(default)]
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "filled"))]
    pub grants: BTreeMap<String, String>,
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
            url: None,
            token_env: None,
            headers: BTreeMap::new(),
            oauth: McpLogin::default(),
            workspace: WorkspaceAccess::Read,
            network: false,
            enabled: true,
            read_only: Vec::new(),
            grants: BTreeMap::new(),
            tools: Vec::new(),
            pin: None,
            start_timeout_seconds: 10,
            call_timeout_seconds: 120,
        }
    }
}

/// How `agent mcp login` logs in (OAuth). Without settings, the agent registers itself where the server allows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpLogin {
    /// Identifier of a client that you have registered.
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "filled"))]
    pub client_id: Option<String>,
    /// Environment variable of yours with the secret of that client.
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "variable"))]
    pub client_secret_env: Option<String>,
    /// Address of a document that describes the client (https), for servers that accept it as identifier.
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "url"))]
    pub client_metadata_url: Option<String>,
    /// The address to which the browser is redirected. Nothing listens there: you copy it from the browser.
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "url"))]
    pub redirect_url: String,
    /// The permissions to ask for; empty: those that the server names.
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "filled"))]
    pub scopes: Vec<String>,
    /// Whether the login server may have a private address, as in a company network.
    #[schemars(extend("x-scope" = "needs-trust"))]
    pub private_network: bool,
}

impl Default for McpLogin {
    fn default() -> Self {
        Self {
            client_id: None,
            client_secret_env: None,
            client_metadata_url: None,
            redirect_url: "http://127.0.0.1:33418/callback".to_owned(),
            scopes: Vec::new(),
            private_network: false,
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
        self.servers.values().flat_map(|server| {
            let sources = server.env.values().chain(server.headers.values());
            let keys = [&server.token_env, &server.oauth.client_secret_env];
            sources
                .filter_map(|source| source.from.as_deref())
                .chain(keys.into_iter().filter_map(Option::as_deref))
        })
    }

    /// Checks that each server has either a program or an address, and each value one source.
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
    pub(super) fn check(&self) -> Result<(), (String, String)> {
        let problem = |key: &str, why: &str| Err((key.to_owned(), why.to_owned()));
        match (&self.command, &self.url) {
            (Some(_), Some(_)) => {
                return problem(".url", "a server has either `command` or `url`, not both");
            }
            (None, None) if self.enabled => {
                return problem(
                    "",
                    "needs `command` or `url`; a file that sets `args`, `env` and the like of a server defines all of it",
                );
            }
            (None, Some(url)) => {
                own_origin::address(url).map_err(|error| (".url".to_owned(), error.to_string()))?;
                if let Some(key) = self.keys_of_programs().next() {
                    return problem(key, "is for servers with `command`, not for those with `url`");
                }
            }
            (Some(_), None) if self.has_keys_of_services() => {
                return problem("", "`token_env`, `headers` and `oauth` are for servers with `url`");
            }
            (_, None) => {}
        }
        let is_unclear = |source: &ValueSource| source.from.is_some() == source.value.is_some();
        let values = [(".env.", &self.env), (".headers.", &self.headers)];
        let mut values = values.iter().flat_map(|(key, map)| map.iter().map(move |entry| (key, entry)));
        match values.find(|(_, (_, source))| is_unclear(source)) {
            None => Ok(()),
            Some((key, (name, _))) => {
                let why = "needs either `from` (the name of your variable) or `value`".to_owned();
                Err((format!("{key}{name}"), why))
            }
        }
    }

    /// Checks whether requests to the remote server have a token of the configuration, so that no login is used.
    pub fn has_token(&self) -> bool {
        self.token_env.is_some() || self.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"))
    }

    fn keys_of_programs(&self) -> impl Iterator<Item = &'static str> {
        let keys = [
            (".args", !self.args.is_empty()),
            (".env", !self.env.is_empty()),
            (".cwd", self.cwd.is_some()),
            (".workspace", self.workspace != WorkspaceAccess::Read),
            (".network", self.network),
        ];
        keys.into_iter().filter_map(|(key, is_set)| is_set.then_some(key))
    }

    fn has_keys_of_services(&self) -> bool {
        self.token_env.is_some() || !self.headers.is_empty() || self.oauth != McpLogin::default()
    }
}
