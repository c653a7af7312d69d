//! The section `fleet` of the configuration.

use super::executors::Executor;
use super::grants::GrantPolicy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The queue of tasks, and its workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetSettings {
    /// The queue: `sqlite:` and the absolute path of a file, `nats://HOST:PORT` or `nats:`; null: a file in the state directory of the user.
    #[schemars(extend("x-format" = "filled", "x-scope" = "never-from-project"))]
    pub queue: Option<String>,
    /// Time after which a task is taken from a worker that has not renewed its claim, which it does at each third.
    #[schemars(range(min = 3, max = 3_600), extend("x-scope" = "never-from-project", "x-unit" = "seconds"))]
    pub lease_seconds: u32,
    /// Address and port on which a worker and `agent hub serve` serve their figures, such as 127.0.0.1:9091; null: none.
    #[schemars(extend("x-format" = "filled", "x-scope" = "never-from-project"))]
    pub listen: Option<String>,
    /// Environment variable with a token that requests for figures need; required for an address that other machines reach.
    #[schemars(extend("x-format" = "variable", "x-scope" = "never-from-project"))]
    pub listen_token_env: Option<String>,
    /// Start of the names of the figures.
    #[schemars(extend("x-format" = "filled", "x-scope" = "never-from-project"))]
    pub metrics_prefix: String,
    /// Maximum cost of all tasks of a day (UTC), over all workers: a worker reserves its `--budget` before it claims a task; null: no limit.
    #[schemars(range(min = 0.01, max = 1_000_000.0), extend("x-scope" = "never-from-project", "x-unit" = "US dollars"))]
    pub budget_usd: Option<f64>,
    /// Programs that may do tasks with `agent submit --executor NAME`, by name; `enabled: true` allows a built-in one (`agent help fleet`).
    #[serde(default)]
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "provider-name"))]
    pub executors: BTreeMap<String, Executor>,
    /// Grants of the agents of a Hub, by id; `default` is for those that are not named (`agent help hub`).
    #[serde(default)]
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "provider-name"))]
    pub grants: BTreeMap<String, GrantPolicy>,
    /// The NATS server of a queue for several machines.
    pub nats: NatsSettings,
}

impl FleetSettings {
    /// Returns the names of the user's variables whose values executors get.
    pub fn mapped_variables(&self) -> impl Iterator<Item = &str> {
        // Those of the built-in ones are variables of providers.
        let sources =
            self.executors.values().flat_map(|executor| executor.env.iter().flat_map(BTreeMap::values));
        sources.filter_map(|source| source.from.as_deref())
    }
}

/// A NATS server with `JetStream` (`agent help fleet`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NatsSettings {
    /// The server of `fleet.queue: nats:`, as `nats://HOST:PORT`, or `tls://HOST:PORT` with TLS.
    #[schemars(extend("x-format" = "filled", "x-scope" = "never-from-project"))]
    pub url: String,
    /// Environment variable with `USER:PASSWORD`.
    #[schemars(extend("x-format" = "variable", "x-scope" = "never-from-project"))]
    pub user_env: Option<String>,
    /// Environment variable with a token.
    #[schemars(extend("x-format" = "variable", "x-scope" = "never-from-project"))]
    pub token_env: Option<String>,
    /// File with further certificates of authorities, in PEM; an absolute path.
    #[schemars(extend("x-format" = "filled", "x-scope" = "never-from-project"))]
    pub ca_file: Option<String>,
    /// Number of servers of a cluster that store each record; for a queue that is created.
    #[schemars(range(min = 1, max = 5), extend("x-scope" = "never-from-project", "x-unit" = "servers"))]
    pub replicas: u8,
    /// Start of the names of the stream and the buckets on the server.
    #[schemars(extend("x-format" = "filled", "x-scope" = "never-from-project"))]
    pub prefix: String,
    /// Whether a server of another machine is used without TLS: everybody on the way can read and change the tasks.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub insecure: bool,
}

impl NatsSettings {
    /// Returns the names of the environment variables with credentials.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.user_env.iter().chain(&self.token_env).map(String::as_str)
    }
}
