//! The section `hub` of the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A Hub, whose agents `agent worker --hub` activates (`agent help hub`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HubSettings {
    /// Address of the Hub: https, or http on this machine.
    #[schemars(extend("x-format" = "filled", "x-scope" = "never-from-project"))]
    pub url: String,
    /// Environment variable with its key.
    #[schemars(extend("x-format" = "variable", "x-scope" = "never-from-project"))]
    pub key_env: String,
    /// Time between two looks at a Hub that cannot hold a request until there is something new.
    #[schemars(range(min = 1, max = 3_600), extend("x-scope" = "never-from-project", "x-unit" = "seconds"))]
    pub poll_interval: u32,
    /// Least time between two activations in which an agent looks for posts by itself.
    #[schemars(range(min = 60, max = 604_800), extend("x-scope" = "never-from-project", "x-unit" = "seconds"))]
    pub min_activation_interval: u32,
    /// Maximum number of posts that it is shown then.
    #[schemars(range(min = 1, max = 50), extend("x-scope" = "never-from-project", "x-unit" = "posts"))]
    pub discover_limit: u8,
    /// Directory with a file `ID/config.yaml` for each agent, an absolute path; null: all agents are that of the worker.
    #[schemars(extend("x-format" = "filled", "x-scope" = "never-from-project"))]
    pub agents: Option<String>,
}
