//! Limits of a run: steps, time, spending, circuit breakers, and the models that it may call.

use crate::compaction::CompactionLimits;
use crate::evaluation::EvaluationLimits;
use crate::language::Language;
use crate::price::{Price, Usd};
use crate::purpose::Purpose;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How a run ends when it reaches a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnLimit {
    /// The model writes a closing summary, without tools.
    #[default]
    Summary,
    /// The run ends with a fixed text.
    Stop,
}

/// How a run without progress is stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnRepeat {
    /// The model is warned, then must change its plan, then the run ends.
    #[default]
    WarnThenStop,
    /// The run ends at once.
    Stop,
}

/// Thresholds of the circuit breakers, which detect a run without progress. 0 turns a breaker off.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BreakerLimits {
    /// What happens when a breaker trips.
    pub on_repeat: OnRepeat,
    /// The number of identical calls in a row with identical results at which the call is not run.
    pub repeated_calls: u32,
    /// Number of calls searched for repeating sequences of calls.
    pub repeat_window: u32,
    /// Tools whose calls may repeat.
    pub exempt: Vec<String>,
    /// Errors in a row that end the run.
    pub consecutive_errors: u32,
    /// Responses in which a tool fails with the same class of error.
    pub same_errors: u32,
    /// Responses in which a tool gives the same result for different arguments.
    pub same_results: u32,
    /// How often a file is changed back to content it had before.
    pub reverted_edits: u32,
    /// Responses without calls that have the same text.
    pub repeated_texts: u32,
    /// How often in a row the model is asked to carry out an action that it only announced.
    pub announcements: u32,
}

/// Limits of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Model calls of this run; at least 1.
    pub max_steps: u32,
    /// Wall time of the whole run, including the closing summary.
    pub timeout: Option<Duration>,
    /// Wall time of one model call, including retries.
    pub step_timeout: Option<Duration>,
    /// How the run ends when one of these limits is reached.
    pub on_limit: OnLimit,
    /// How often a response cut off by the token limit is continued.
    pub max_continuations: u32,
    /// Calls in a row with arguments that are not JSON before the run closes; 0 turns the limit off.
    pub max_malformed: u32,
    /// Circuit breakers.
    pub breakers: BreakerLimits,
    /// Whether the model receives a notice when less than a fifth of the time, the money or the tokens is left.
    pub warns_when_low: bool,
    /// The language of the closing summary.
    pub language: Language,
    /// Spending limits.
    pub caps: SpendingCaps,
    /// The models that the run may call.
    pub models: FallbackChain<ModelTerms>,
    /// Bytes of the tool definitions in a request, and of the schema if there is one.
    pub tools_bytes: u64,
    /// How often failed quality gates are reported to the model before the run ends anyway; absent without gates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_rounds: Option<u32>,
    /// How the conversation is compacted when it fills the window.
    pub compaction: CompactionLimits,
    /// How answers are evaluated.
    pub evaluation: EvaluationLimits,
    /// How often the findings of a review of the changes are sent to the model before the run ends anyway; absent without
    /// reviews.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review_passes: Option<u32>,
}

/// Spending limits of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpendingCaps {
    /// US dollars.
    pub usd: Option<Usd>,
    /// Tokens, prompts and responses together.
    pub tokens: Option<u64>,
    /// Tool calls.
    pub tool_calls: Option<u32>,
    /// The cost at which one warning is emitted.
    pub warn_at: Option<Usd>,
    /// Maximum tokens of the tool definitions in a request.
    pub tools_tokens: u64,
    /// Maximum tokens of the schema in a request to a server that accepts one.
    pub schema_tokens: u64,
    /// Whether a share is reserved for a closing summary.
    pub closes: bool,
}

/// The limits of a run as its journal stores them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunLimits {
    /// When the run started, in microseconds on the monotonic clock of its records.
    pub began_us: u64,
    /// The limits, before the tokens of the schema are subtracted.
    pub limits: Limits,
    /// The JSON Schema that the answer must fit, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
}

/// The selected model and its fallbacks, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FallbackChain<T> {
    /// The selected model.
    pub first: T,
    /// The fallbacks; each is used when the one before it fails.
    pub fallbacks: Vec<T>,
}

impl<T> FallbackChain<T> {
    /// Returns entry `index`, where 0 is the selected model; the selected model if the chain is shorter.
    pub fn at(&self, index: usize) -> &T {
        index.checked_sub(1).and_then(|index| self.fallbacks.get(index)).unwrap_or(&self.first)
    }

    /// Returns the fallback of entry `index`.
    pub fn after(&self, index: usize) -> Option<&T> {
        self.fallbacks.get(index)
    }

    /// Returns the chain from entry `index` on.
    #[must_use]
    pub fn starting_at(&self, index: usize) -> Self
    where
        T: Clone,
    {
        let fallbacks = self.fallbacks.get(index..).unwrap_or_default().to_vec();
        Self { first: self.at(index).clone(), fallbacks }
    }

    /// Iterates over the selected model and its fallbacks.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.first).chain(&self.fallbacks)
    }
}

/// Properties of a model that a run needs before it calls it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelTerms {
    /// `provider/model`.
    pub model: String,
    /// The price; absent if unknown.
    pub price: Option<Price>,
    /// Maximum tokens of a response; absent to use the server's own limit.
    pub output_limit: Option<u32>,
    /// The context window; absent if unknown.
    pub window: Option<Window>,
}

/// Context window of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// Tokens of prompt and response together.
    pub tokens: u64,
    /// Where the size comes from.
    pub source: WindowSource,
}

/// Where the size of a context window comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WindowSource {
    /// `llm.context_window`.
    User,
    /// `context.max_context_tokens`.
    Context,
    /// The server reported it.
    Server,
    /// The table of models; a server or contract may differ from it.
    Table,
}

impl WindowSource {
    /// Returns the name of the source, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "llm.context_window",
            Self::Context => "context.max_context_tokens",
            Self::Server => "the server",
            Self::Table => "the table of models",
        }
    }
}

/// Share of the total time reserved for the closing summary (one tenth), at most [`MAX_CLOSING_RESERVE`].
const CLOSING_SHARE: u32 = 10;

/// Longest time of a closing summary.
pub const MAX_CLOSING_RESERVE: Duration = Duration::from_mins(1);

impl Limits {
    /// Returns the time after which no more work starts: the total minus the closing reserve.
    pub fn work_time(&self) -> Option<Duration> {
        self.timeout.map(|total| total.saturating_sub(closing_reserve(total)))
    }

    /// Returns the time limit of a model call that starts at `elapsed` as part of the work.
    pub fn step_time(&self, elapsed: Duration) -> Option<Duration> {
        shorter(self.step_timeout, self.work_time().map(|end| end.saturating_sub(elapsed)))
    }

    /// Returns the time limit of the closing call that starts at `elapsed`; zero when the time is over.
    pub fn closing_time(&self, elapsed: Duration) -> Duration {
        let left = self.timeout.map(|end| end.saturating_sub(elapsed));
        shorter(shorter(self.step_timeout, left), Some(MAX_CLOSING_RESERVE)).unwrap_or(MAX_CLOSING_RESERVE)
    }
}

fn closing_reserve(total: Duration) -> Duration {
    (total / CLOSING_SHARE).min(MAX_CLOSING_RESERVE)
}

fn shorter(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Share of a cap reserved for the closing summary (one tenth, as of the time).
const CLOSING_SPEND_SHARE: u64 = 10;

impl SpendingCaps {
    /// Whether any cap limits the requests.
    pub fn limit_requests(&self) -> bool {
        self.usd.is_some() || self.tokens.is_some()
    }

    /// Returns the money that a call for `purpose` may use; a step leaves a reserve for the closing summary.
    pub fn usable_usd(&self, purpose: Purpose) -> Option<Usd> {
        self.usd.map(|cap| {
            if self.reserves_closing(purpose) {
                cap.saturating_sub(cap.div_floor(CLOSING_SPEND_SHARE))
            } else {
                cap
            }
        })
    }

    /// Returns the tokens that a call for `purpose` may use.
    pub fn usable_tokens(&self, purpose: Purpose) -> Option<u64> {
        let keeps = self.reserves_closing(purpose);
        self.tokens.map(|cap| if keeps { cap.saturating_sub(cap / CLOSING_SPEND_SHARE) } else { cap })
    }

    /// Returns the caps of a subagent with tools of `tools_tokens`. It must not use the closing reserve of its run.
    #[must_use]
    pub fn of_subagent(&self, tools_tokens: u64) -> Self {
        Self {
            usd: self.usable_usd(Purpose::Step),
            tokens: self.usable_tokens(Purpose::Step),
            warn_at: None,
            tools_tokens,
            schema_tokens: 0,
            ..*self
        }
    }

    fn reserves_closing(&self, purpose: Purpose) -> bool {
        self.closes && purpose != Purpose::Closing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_takes_over_from_the_one_before_it() {
        let chain = FallbackChain { first: 'a', fallbacks: vec!['b', 'c'] };
        assert_eq!([0, 1, 2, 3].map(|index| *chain.at(index)), ['a', 'b', 'c', 'a']);
        assert_eq!([0, 1, 2].map(|index| chain.after(index).copied()), [Some('b'), Some('c'), None]);
        assert_eq!(chain.iter().collect::<String>(), "abc");
        assert_eq!(chain.starting_at(1), FallbackChain { first: 'b', fallbacks: vec!['c'] });
        assert_eq!(chain.starting_at(0), chain);
    }
}
