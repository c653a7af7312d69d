//! Review of a run's changes by another agent before the run counts as done (`auto_review`).

use crate::line_number::optional_line_number;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A problem that the reviewer found in the changes. All texts come from a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeFinding {
    /// File, relative to the workspace; may name anything.
    pub file: String,
    /// Line, from 1; null if the problem has no line.
    #[serde(default, deserialize_with = "optional_line_number")]
    pub line: Option<u32>,
    /// The problem.
    pub problem: String,
    /// How to fix it; null if the reviewer suggested nothing.
    #[serde(default)]
    pub fix: Option<String>,
}

/// Result of a review of the changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeReview {
    /// Whether the reviewer approved all parts of the changes; false if the review was skipped.
    pub approved: bool,
    /// Whether there was nothing to review, because the run has changed no files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
    /// The problems found.
    pub findings: Vec<ChangeFinding>,
    /// How often findings were sent to the working agent before this review.
    pub passes: u32,
    /// Parts in which the changes were shown to the reviewer.
    pub parts: u32,
    /// Why there is no verdict on all parts; absent if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl ChangeReview {
    /// Creates the result of a review that failed because of `problem`.
    pub fn failed(problem: String) -> Self {
        Self { problem: Some(problem), ..Self::default() }
    }

    /// Checks whether the run may count as done.
    pub fn has_passed(&self) -> bool {
        self.approved || self.skipped
    }
}
