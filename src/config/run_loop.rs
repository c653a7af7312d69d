//! The section `loop` of the configuration: what the loop does at its limits, and when it notices that it goes nowhere.

use crate::core::limits::{BreakerLimits, OnLimit, OnRepeat};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the loop does at its limits, and when a run goes nowhere (`agent help limits`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunLoop {
    /// What ends a run that reached a limit: a last answer of the model without tools, or a fixed text.
    pub on_limit: OnLimit,
    /// Whether the model is told, once, when less than a fifth of the time, the money or the tokens is left.
    pub tell_what_is_left: bool,
    /// How often a cut answer is continued.
    #[schemars(range(min = 0, max = 20), extend("x-unit" = "times"))]
    pub max_continuations: u32,
    /// Calls with unusable arguments in a row that end a run; 0: none do.
    #[schemars(range(min = 0, max = 100), extend("x-unit" = "calls"))]
    pub max_malformed: u32,
    /// What happens when a run goes nowhere: the model is told twice before the run ends, or it ends at once.
    pub on_repeat: OnRepeat,
    /// The first equal call in a row, with equal results, that does not run; 0: all do, 1 is as 2.
    #[schemars(range(min = 0, max = 1000), extend("x-unit" = "calls"))]
    pub max_repeated_calls: u32,
    /// The last calls, among which three equal rounds of several calls are looked for; 0: none are.
    #[schemars(range(min = 0, max = 100), extend("x-unit" = "calls"))]
    pub repeat_window: u32,
    /// Tools whose calls may repeat. Those that wait may do so ten times as often as others, and need not be here.
    #[schemars(extend("x-merge" = "add"))]
    pub repeat_exempt: Vec<String>,
    /// Calls in a row that fail and end a run; 0: none do. Errors of networks are not counted.
    #[schemars(range(min = 0, max = 1000), extend("x-unit" = "calls"))]
    pub max_consecutive_errors: u32,
    /// Answers in which a tool fails with the same kind of error before it succeeds; 0: any number.
    #[schemars(range(min = 0, max = 1000), extend("x-unit" = "answers"))]
    pub max_same_errors: u32,
    /// Answers in which a tool gives the same long result to other arguments; 0: any number.
    #[schemars(range(min = 0, max = 1000), extend("x-unit" = "answers"))]
    pub max_same_results: u32,
    /// Times that a file goes back to a content that it had before in the run; 0: any number.
    #[schemars(range(min = 0, max = 1000), extend("x-unit" = "times"))]
    pub max_reverted_edits: u32,
    /// Answers without calls that say the same, one after the other; 0: any number.
    #[schemars(range(min = 0, max = 1000), extend("x-unit" = "answers"))]
    pub max_repeated_texts: u32,
    /// How often in a row the model is asked to do what its answer only announces; 0: the answer is the last word.
    #[schemars(range(min = 0, max = 20), extend("x-unit" = "times"))]
    pub max_announcements: u32,
}

impl RunLoop {
    /// When a run goes nowhere.
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
