//! The section `subagents` of the configuration: agents to which the model can delegate a part of the work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Agents to which the model can delegate work with `dispatch_subagent` (`agent help subagents`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Subagents {
    /// Maximum number of subagent calls per run; 0: the tool is not offered.
    #[schemars(
        range(min = 0, max = 100),
        extend("x-scope" = "needs-trust", "x-stricter" = "lower", "x-unit" = "subagents")
    )]
    pub max_per_run: u32,
}
