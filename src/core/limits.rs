//! What a run is held to: how far it may go, what it may spend, and which models it may call.

use crate::core::compaction::CompactionLimits;
use crate::core::evaluation::EvaluationLimits;
use crate::core::language::Language;
use crate::core::price::{Price, Usd};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What ends a run that reached a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnLimit {
    /// The model is asked, without tools, for a closing summary.
    #[default]
    Summary,
    /// The run ends with a fixed text.
    Stop,
}

/// What happens when a run goes nowhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnRepeat {
    /// The model is told, then it must change its plan, then the run ends.
    #[default]
    WarnThenStop,
    /// The run ends at once.
    Stop,
}

/// When a run goes nowhere. 0 turns a breaker off.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BreakerLimits {
    /// What happens then.
    pub on_repeat: OnRepeat,
    /// The number of a call, among equal ones in a row with equal results, that does not run.
    pub repeated_calls: u32,
    /// Calls in which equal rounds of calls are looked for.
    pub repeat_window: u32,
    /// Tools whose calls may repeat.
    pub exempt: Vec<String>,
    /// Errors in a row that end the run.
    pub consecutive_errors: u32,
    /// Answers in which a tool fails with the same class of error.
    pub same_errors: u32,
    /// Answers in which a tool gives the same result to other arguments.
    pub same_results: u32,
    /// Times that a file goes back to a content it had before.
    pub reverted_edits: u32,
    /// Answers without calls that say the same.
    pub repeated_texts: u32,
    /// How often in a row the model is asked to do what it only announced.
    pub announcements: u32,
}

/// How far a run may go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Model calls of this run; at least 1.
    pub max_steps: u32,
    /// Wall time of the whole run, the closing summary included.
    pub timeout: Option<Duration>,
    /// Wall time of one model call, retries included.
    pub step_timeout: Option<Duration>,
    /// What happens when one of them is reached.
    pub on_limit: OnLimit,
    /// How often an answer cut by the token limit is continued.
    pub max_continuations: u32,
    /// Calls in a row whose arguments are not JSON before the run closes; 0 turns it off.
    pub max_malformed: u32,
    /// When it goes nowhere; earlier versions did not look.
    #[serde(default)]
    pub breakers: BreakerLimits,
    /// Whether the model is told when little is left; earlier versions did not tell it.
    #[serde(default)]
    pub tells_what_is_left: bool,
    /// The language of its closing; earlier versions knew English only.
    #[serde(default)]
    pub language: Language,
    /// What it may spend.
    pub caps: SpendingCaps,
    /// The models that it may call.
    pub models: FallbackChain<ModelTerms>,
    /// Bytes of the tools that a request offers, and of the schema that it may hold.
    pub tools_bytes: u64,
    /// How often the model is told that quality gates have not passed before the run ends all the same; nothing without gates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_rounds: Option<u32>,
    /// What is done when the conversation fills the window; nothing in journals of earlier versions.
    #[serde(default)]
    pub compaction: CompactionLimits,
    /// How answers are evaluated; earlier versions did not.
    #[serde(default)]
    pub evaluation: EvaluationLimits,
}

/// What a run may spend.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpendingCaps {
    /// US dollars.
    pub usd: Option<Usd>,
    /// Tokens, prompts and answers together.
    pub tokens: Option<u64>,
    /// Tool calls.
    pub tool_calls: Option<u32>,
    /// The cost at which it is said once.
    pub warn_at: Option<Usd>,
    /// Tokens of the tools that a request offers, at most.
    pub tools_tokens: u64,
    /// Tokens of the schema that a request holds where the server takes it, at most.
    pub schema_tokens: u64,
    /// Whether a share is kept for a closing summary.
    pub closes: bool,
}

/// Everything that a run is held to, as its journal keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunLimits {
    /// When it began, in microseconds on the monotonic clock of its records.
    pub began_us: u64,
    /// Its limits, before the room that the schema takes.
    pub limits: Limits,
    /// The JSON Schema that its answer must fit, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
}

/// The chosen model and those that take over from it, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FallbackChain<T> {
    /// The chosen one.
    pub first: T,
    /// What takes over when the one before it cannot be used.
    pub fallbacks: Vec<T>,
}

impl<T> FallbackChain<T> {
    /// Number `place`, the chosen one being 0; the chosen one as well where there are not so many.
    pub fn at(&self, place: usize) -> &T {
        place.checked_sub(1).and_then(|place| self.fallbacks.get(place)).unwrap_or(&self.first)
    }

    /// What takes over from number `place`.
    pub fn after(&self, place: usize) -> Option<&T> {
        self.fallbacks.get(place)
    }

    /// Those from number `place` on.
    #[must_use]
    pub fn starting_at(&self, place: usize) -> Self
    where
        T: Clone,
    {
        let fallbacks = self.fallbacks.get(place..).unwrap_or_default().to_vec();
        Self { first: self.at(place).clone(), fallbacks }
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.first).chain(&self.fallbacks)
    }
}

/// What a run must know of a model that it may call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelTerms {
    /// `provider/model`.
    pub model: String,
    /// What it costs; nothing when that is not known.
    pub price: Option<Price>,
    /// Tokens of the longest answer that is asked for; the server's own limit when absent.
    pub output_limit: Option<u32>,
    /// What it may hold, where that is known.
    pub window: Option<Window>,
}

/// What a model may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// Tokens of prompt and answer together.
    pub tokens: u64,
    /// Who says so.
    pub source: WindowSource,
}

/// Who says what a model may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WindowSource {
    /// `llm.context_window`.
    User,
    /// `context.max_context_tokens`.
    Context,
    /// The server, when it was asked.
    Server,
    /// The table of models: true in general, not of every server and every contract.
    Table,
}

impl WindowSource {
    /// Who it is, in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "llm.context_window",
            Self::Context => "context.max_context_tokens",
            Self::Server => "the server",
            Self::Table => "the table of models",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_takes_over_from_the_one_before_it() {
        let chain = FallbackChain { first: 'a', fallbacks: vec!['b', 'c'] };
        assert_eq!([0, 1, 2, 3].map(|place| *chain.at(place)), ['a', 'b', 'c', 'a']);
        assert_eq!([0, 1, 2].map(|place| chain.after(place).copied()), [Some('b'), Some('c'), None]);
        assert_eq!(chain.iter().collect::<String>(), "abc");
        assert_eq!(chain.starting_at(1), FallbackChain { first: 'b', fallbacks: vec!['c'] });
        assert_eq!(chain.starting_at(0), chain);
    }
}
