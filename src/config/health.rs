//! The section `health` of the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figures on the code: length and complexity of functions, repeated blocks (`agent help health`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HealthSettings {
    /// Whether runs measure the code before and after their work, as with `--health`.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = [false]))]
    pub enabled: bool,
    /// Globs of the files to measure, on their paths from the workspace root.
    #[schemars(extend("x-format" = "glob"))]
    pub include_patterns: Vec<String>,
    /// Globs on names of directories to leave out, in addition to ignored, hidden and cache directories.
    #[schemars(extend("x-merge" = "add", "x-format" = "glob"))]
    pub exclude_dirs: Vec<String>,
}
