//! The section `evaluation` of the configuration: whether the model judges its own answer, and what follows.

use crate::core::evaluation::{Confidence, EvaluationLimits, EvaluationMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether the model judges its own answer before a run counts as done (`agent help evaluation`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvaluationSettings {
    /// What follows from an answer that is found wanting: it is not looked at; the run is partial; the model is told first.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = ["basic", "full"]))]
    pub mode: EvaluationMode,
    /// How often the model is told in mode `full` before the run ends as partial.
    #[schemars(range(min = 1, max = 5), extend("x-unit" = "rounds"))]
    pub max_retries: u32,
    /// How sure the verdict must be that the task is done.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-scope" = "needs-trust"))]
    pub confidence_threshold: f64,
}

impl EvaluationSettings {
    /// What a run is held to.
    pub fn limits(&self) -> EvaluationLimits {
        EvaluationLimits {
            mode: self.mode,
            max_retries: self.max_retries,
            threshold: Confidence::try_from(self.confidence_threshold).unwrap_or_default(),
        }
    }
}
