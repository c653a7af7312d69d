//! The section `evaluation` of the configuration: whether the model evaluates its own answer, and the consequences.

use agent_core::evaluation::{Confidence, EvaluationLimits, EvaluationMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether the model evaluates its own answer before a run counts as done (`agent help evaluation`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvaluationSettings {
    /// Effect of an inadequate answer: `off` does not evaluate, `basic` makes the run partial, `full` first sends the model feedback.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = ["basic", "full"]))]
    pub mode: EvaluationMode,
    /// How often the model gets feedback in mode `full` before the run ends as partial.
    #[schemars(range(min = 1, max = 5), extend("x-scope" = "needs-trust", "x-stricter" = "lower", "x-unit" = "rounds"))]
    pub max_retries: u32,
    /// Minimum confidence of the verdict that the task is done.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-scope" = "needs-trust"))]
    pub confidence_threshold: f64,
}

impl EvaluationSettings {
    /// Returns the limits that apply to a run.
    pub fn limits(&self) -> EvaluationLimits {
        EvaluationLimits {
            mode: self.mode,
            max_retries: self.max_retries,
            threshold: Confidence::try_from(self.confidence_threshold).unwrap_or_default(),
        }
    }
}
