//! The ranking of models or configurations that `agent eval` compares.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The figures of a model or a configuration over its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ranked {
    /// The model, or the file of the configuration.
    pub name: String,
    /// Number of runs.
    pub runs: u32,
    /// Runs that ended as success and passed all checks.
    pub passed: u32,
    /// Interval of 95 % of the share of such runs (Wilson), from 0 to 1.
    pub pass_rate_interval: [f64; 2],
    /// Mean score of the runs, at most 100: the sum of its parts.
    pub score: f64,
    /// The parts of the score.
    pub parts: ScoreParts,
    /// Median of the steps.
    pub median_steps: f64,
    /// Median of the cost in US dollars; null if the cost of a run is unknown.
    pub median_cost_usd: Option<f64>,
    /// Median of the wall time in seconds.
    pub median_seconds: f64,
}

/// The parts of a score, each the mean over the runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScoreParts {
    /// 40 for the share of checks that passed; 20 without checks.
    pub checks: f64,
    /// 30 for success, 15 for a partial result, 5 for a timeout, 0 for a failure.
    pub status: f64,
    /// 20 for the share of the allowed steps that were not used.
    pub efficiency: f64,
    /// 10 for the share of the highest cost that was not spent, 10 for no cost; null if a cost is unknown.
    pub cost: Option<f64>,
}
