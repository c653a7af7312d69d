//! The section `loop` of the configuration: behaviour at the limits of a run, and detection of runs without progress.

use agent_core::limits::{BreakerLimits, OnLimit, OnRepeat};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Behaviour at the limits of a run, and detection of runs without progress (`agent help limits`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunLoop {
    /// How a run ends after it reached a limit: with a last answer of the model without tools, or with a fixed text.
    #[schemars(extend("x-scope" = "needs-trust", "x-stricter" = "higher"))]
    pub on_limit: OnLimit,
    /// Whether the model is notified, once, when less than a fifth of the time, the money or the tokens is left.
    pub warn_when_low: bool,
    /// How often a truncated answer is continued.
    #[schemars(range(min = 0, max = 20), extend("x-scope" = "needs-trust", "x-stricter" = "lower", "x-unit" = "times"))]
    pub max_continuations: u32,
    /// Consecutive calls with unusable arguments that end a run; 0: no limit.
    #[schemars(range(min = 0, max = 100), extend("x-scope" = "needs-trust", "x-stricter" = "lower-not-zero", "x-unit" = "calls"))]
    pub max_malformed: u32,
    /// Reaction to a run without progress: the model is warned twice before the run ends, or the run ends at once.
    #[schemars(extend("x-scope" = "needs-trust", "x-stricter" = "higher"))]
    pub on_repeat: OnRepeat,
    /// The equal call in a row with equal results that is no longer run: 3 blocks the third; 0: no limit, 1 counts as 2.
    #[schemars(range(min = 0, max = 1000), extend("x-scope" = "needs-trust", "x-stricter" = "lower-not-zero", "x-unit" = "calls"))]
    pub max_repeated_calls: u32,
    /// Number of recent calls that are searched for three equal rounds of several calls; 0: no search.
    #[schemars(range(min = 0, max = 100), extend("x-scope" = "needs-trust", "x-stricter" = "higher", "x-unit" = "calls"))]
    pub repeat_window: u32,
    /// Tools whose calls may repeat. Tools that wait may repeat ten times as often as others, and need not be listed.
    #[schemars(extend("x-scope" = "needs-trust", "x-merge" = "add"))]
    pub repeat_exempt: Vec<String>,
    /// Consecutive failed calls that end a run; 0: no limit. Network errors are not counted.
    #[schemars(range(min = 0, max = 1000), extend("x-scope" = "needs-trust", "x-stricter" = "lower-not-zero", "x-unit" = "calls"))]
    pub max_consecutive_errors: u32,
    /// Answers in which a tool fails with the same kind of error before it succeeds; 0: no limit.
    #[schemars(range(min = 0, max = 1000), extend("x-scope" = "needs-trust", "x-stricter" = "lower-not-zero", "x-unit" = "answers"))]
    pub max_same_errors: u32,
    /// Answers in which a tool returns the same long result for different arguments; 0: no limit.
    #[schemars(range(min = 0, max = 1000), extend("x-scope" = "needs-trust", "x-stricter" = "lower-not-zero", "x-unit" = "answers"))]
    pub max_same_results: u32,
    /// Number of times a file returns to a content that it had earlier in the run; 0: no limit.
    #[schemars(range(min = 0, max = 1000), extend("x-scope" = "needs-trust", "x-stricter" = "lower-not-zero", "x-unit" = "times"))]
    pub max_reverted_edits: u32,
    /// Consecutive answers without calls that have the same text; 0: no limit.
    #[schemars(range(min = 0, max = 1000), extend("x-scope" = "needs-trust", "x-stricter" = "lower-not-zero", "x-unit" = "answers"))]
    pub max_repeated_texts: u32,
    /// How often in a row the model is prompted to do what its answer only announces; 0: such an answer ends the run.
    #[schemars(range(min = 0, max = 20), extend("x-scope" = "needs-trust", "x-stricter" = "lower", "x-unit" = "times"))]
    pub max_announcements: u32,
}

impl RunLoop {
    /// Returns the limits of the circuit breakers.
    pub fn breakers(&self) -> BreakerLimits {
        BreakerLimits {
            on_repeat: self.on_repeat,
            repeated_calls: self.max_repeated_calls,
            repeat_window: self.repeat_window,
            exempt: self.repeat_exempt.clone(),
            consecutive_errors: self.max_consecutive_errors,
            same_errors: self.max_same_errors,
            same_results: self.max_same_results,
            reverted_edits: self.max_reverted_edits,
            repeated_texts: self.max_repeated_texts,
            announcements: self.max_announcements,
        }
    }
}
