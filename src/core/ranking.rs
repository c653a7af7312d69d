//! The scores of runs and the ranking of models or configurations that `agent eval` compares.

use crate::price::Usd;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The figures of a model or a configuration over its runs. Intervals are of 95 %. Their independent trials are the runs of a single task;
/// with several tasks they are the tasks, each with the means over its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ranked {
    /// The model, or the file of the configuration.
    pub name: String,
    /// Number of runs.
    pub runs: u32,
    /// Runs that ended as success and passed all checks.
    pub passed: u32,
    /// Interval of the share of such runs (Wilson), from 0 to 1.
    pub pass_rate_interval: [f64; 2],
    /// Mean score of the runs, at most 100: the sum of its parts.
    pub score: f64,
    /// The parts of the score.
    pub parts: ScoreParts,
    /// Median of the scores.
    pub median_score: Median,
    /// Median of the steps.
    pub median_steps: Median,
    /// Median of the cost in US dollars; null if the cost of a run is unknown.
    pub median_cost_usd: Option<Median>,
    /// Median of the wall time in seconds.
    pub median_seconds: Median,
}

/// A median.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Median {
    /// The median.
    pub value: f64,
    /// Its interval of 95 %, between two of the values; null for fewer than six values, which are not enough.
    pub interval: Option<[f64; 2]>,
}

/// The parts of a score; in a ranking, each the mean over the runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScoreParts {
    /// 40 for the share of checks that passed, 0 if they did not run because the run failed; 20 without checks.
    pub checks: f64,
    /// 30 for success, 15 for a partial result, 5 for a timeout, 0 for a failure.
    pub status: f64,
    /// 20 for the share of the allowed steps that were not used.
    pub efficiency: f64,
    /// 10 for the share of the highest cost of the task that was not spent, 10 for no cost; null if a cost is unknown.
    pub cost: Option<f64>,
}

/// The scores of a model or a configuration on a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskScore {
    /// The task: its name, or the start of its text.
    pub task: String,
    /// The model, or the file of the configuration.
    pub name: String,
    /// Its runs, in order.
    pub runs: Vec<RunScore>,
}

/// The score of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunScore {
    /// Name of the run in `runs`.
    pub run: String,
    /// Whether it ended as success and passed all checks.
    pub passed: bool,
    /// The sum of the parts.
    pub score: f64,
    /// The parts of the score.
    pub parts: ScoreParts,
    /// Its steps.
    pub steps: u32,
    /// Its cost in US dollars; null if it is unknown.
    pub cost_usd: Option<Usd>,
    /// Its wall time in seconds.
    pub seconds: f64,
}
