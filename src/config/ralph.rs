//! The section `ralph` of the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `agent loop`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RalphSettings {
    /// Maximum number of iterations.
    #[schemars(range(min = 1, max = 100), extend("x-scope" = "needs-trust", "x-unit" = "iterations"))]
    pub max_iterations: u32,
    /// Maximum cost of all iterations; null: none.
    #[schemars(range(min = 0.0, max = 1_000_000.0), extend("x-scope" = "needs-trust", "x-unit" = "US dollars"))]
    pub max_cost: Option<f64>,
    /// Time limit of all iterations; null: none.
    #[schemars(range(min = 1, max = 31_536_000), extend("x-scope" = "needs-trust", "x-unit" = "seconds"))]
    pub max_time: Option<u64>,
    /// The word that the last answer must contain.
    #[schemars(extend("x-format" = "filled", "x-scope" = "needs-trust"))]
    pub completion_tag: String,
    /// The agent of the iterations; null: the agent of `agent run`.
    #[schemars(extend("x-scope" = "needs-trust"))]
    pub agent: Option<String>,
}
