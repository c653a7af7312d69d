//! The section `fleet` of the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The queue of tasks, and its workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetSettings {
    /// The queue: `sqlite:` and the absolute path of a file; null: a file in the state directory of the user.
    #[schemars(extend("x-format" = "filled", "x-scope" = "never-from-project"))]
    pub queue: Option<String>,
    /// Time after which a task is taken from a worker that has not renewed its claim, which it does at each third.
    #[schemars(range(min = 3, max = 3_600), extend("x-scope" = "never-from-project", "x-unit" = "seconds"))]
    pub lease_seconds: u32,
}
