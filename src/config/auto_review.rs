//! The section `auto_review` of the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Review of a run's changes by the agent `review` before the run counts as done (`agent help review`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AutoReviewSettings {
    /// Whether runs are reviewed, as with `--review`.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = [true]))]
    pub enabled: bool,
    /// The model of the reviewer, as in `llm.model`; null: the model of the run.
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "filled"))]
    pub review_model: Option<String>,
    /// How often the findings are sent to the working agent before the run ends as partial.
    #[schemars(range(min = 0, max = 3), extend("x-scope" = "needs-trust", "x-stricter" = "lower", "x-unit" = "passes"))]
    pub max_fix_passes: u32,
}
