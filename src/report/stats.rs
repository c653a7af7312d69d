//! What models were asked and what it cost: the figures of `agent stats`, and its document.

use super::json;
use crate::core::event::{BilledUsage, Event};
use crate::core::price::Usd;
use crate::core::usage::Usage;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::ops::AddAssign;

/// The version of the document.
const SCHEMA_VERSION: u32 = 1;

/// The kinds of records that [`UsageStats`] are counted from.
pub const COUNTED_EVENTS: [&str; 10] = [
    "run_start",
    "model_switched",
    "request_sent",
    "kept_answer",
    "model_response",
    "retry",
    "model_failed",
    "model_abandoned",
    "tool_call_end",
    // What it was called in earlier journals.
    "tool_end",
];

/// What was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UsageStats {
    /// Answers of models.
    pub answers: u64,
    /// Those of them that were kept from earlier requests (`llm.cache`), and cost nothing.
    pub kept_answers: u64,
    /// Tokens; `cached_read` is what the provider had kept of the prompts.
    pub usage: Usage,
    /// What is known of the cost, in US dollars.
    pub cost_usd: Usd,
    /// Requests whose cost is not known and not in it: no price, or nothing reported.
    pub unknown_costs: u64,
    /// Tool calls that have a result.
    pub tool_calls: u64,
    /// Those of them that failed or were refused.
    pub tool_errors: u64,
}

/// What `agent stats --json` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Stats {
    /// The version of this document.
    pub schema_version: u32,
    /// What the figures are for: `session`, `model` or `day`.
    pub by: &'static str,
    /// The figures of each: a session's id, a model, a day (UTC).
    pub groups: BTreeMap<String, UsageStats>,
    /// All of them together.
    pub total: UsageStats,
    /// Lines of journals that are damaged; what they held is in none of the figures.
    pub damaged_lines: u64,
}

impl AddAssign for UsageStats {
    fn add_assign(&mut self, other: Self) {
        self.answers = self.answers.saturating_add(other.answers);
        self.kept_answers = self.kept_answers.saturating_add(other.kept_answers);
        self.usage += other.usage;
        self.cost_usd = self.cost_usd + other.cost_usd;
        self.unknown_costs = self.unknown_costs.saturating_add(other.unknown_costs);
        self.tool_calls = self.tool_calls.saturating_add(other.tool_calls);
        self.tool_errors = self.tool_errors.saturating_add(other.tool_errors);
    }
}

impl UsageStats {
    /// What one event adds; `requested` says whether a request is under way, so that giving it up may be billed.
    pub fn from_event(event: &Event, requested: bool) -> Self {
        match event {
            Event::Subagent { event, .. } => Self::from_event(event, requested),
            Event::KeptAnswer => Self { kept_answers: 1, ..Self::default() },
            Event::ModelResponse { usage, cost_usd, .. } => {
                Self { answers: 1, ..Self::spent(usage.unwrap_or_default(), *cost_usd) }
            }
            Event::Retry { billed: Some(BilledUsage { usage, cost_usd }), .. }
            | Event::ModelFailed { billed: Some(BilledUsage { usage, cost_usd }), .. } => {
                Self::spent(*usage, *cost_usd)
            }
            Event::Retry { kind, .. } => Self::unreported(kind.may_be_billed()),
            Event::ModelFailed { failure, .. } => Self::unreported(failure.kind.may_be_billed()),
            Event::ModelAbandoned { .. } => Self::unreported(requested),
            Event::ToolCallEnd { result, .. } => {
                Self { tool_calls: 1, tool_errors: u64::from(result.is_error), ..Self::default() }
            }
            _ => Self::default(),
        }
    }

    fn spent(usage: Usage, cost: Option<Usd>) -> Self {
        let unknown_costs = u64::from(cost.is_none());
        Self { usage, cost_usd: cost.unwrap_or_default(), unknown_costs, ..Self::default() }
    }

    fn unreported(may_be_billed: bool) -> Self {
        Self { unknown_costs: u64::from(may_be_billed), ..Self::default() }
    }
}

impl Stats {
    /// None yet, of what `by` says.
    pub fn new(by: &'static str) -> Self {
        let (groups, total) = (BTreeMap::new(), UsageStats::default());
        Self { schema_version: SCHEMA_VERSION, by, groups, total, damaged_lines: 0 }
    }

    /// Counts `figures` for the group called `name`.
    pub fn add(&mut self, name: &str, figures: UsageStats) {
        if let Some(group) = self.groups.get_mut(name) {
            *group += figures;
        } else {
            self.groups.insert(name.to_owned(), figures);
        }
        self.total += figures;
    }

    /// As one line of JSON, ended by a newline, without a raw control or invisible character.
    ///
    /// # Errors
    /// When it cannot be written as JSON, which its types rule out.
    pub fn document(&self) -> io::Result<String> {
        json::line(self)
    }
}
