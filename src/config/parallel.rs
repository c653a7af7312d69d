//! The section `parallel` of the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `agent parallel`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParallelSettings {
    /// Number of tasks at the same time.
    #[schemars(range(min = 1, max = 10), extend("x-scope" = "needs-trust", "x-unit" = "tasks"))]
    pub workers: u8,
    /// The agent of the tasks; null: the agent of `agent run`.
    #[schemars(extend("x-scope" = "needs-trust"))]
    pub agent: Option<String>,
    /// Maximum number of model calls of each task.
    #[schemars(range(min = 1, max = 10_000), extend("x-scope" = "needs-trust", "x-unit" = "calls"))]
    pub max_steps: u32,
    /// Maximum cost of each task; null: none.
    #[schemars(range(min = 0.0, max = 1_000_000.0), extend("x-scope" = "needs-trust", "x-unit" = "US dollars"))]
    pub budget_per_worker: Option<f64>,
    /// Time limit of each task; null: none.
    #[schemars(range(min = 1, max = 31_536_000), extend("x-scope" = "needs-trust", "x-unit" = "seconds"))]
    pub timeout_per_worker: Option<u64>,
}
