//! Usage and cost of models over sessions: the figures of `agent stats`, and its JSON document.

use agent_core::event::{BilledUsage, Event};
use agent_core::price::Usd;
use agent_core::usage::Usage;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Version of the document.
const SCHEMA_VERSION: u32 = 1;

/// The event types that [`UsageStats`] are computed from.
pub const COUNTED_EVENTS: [&str; 11] = [
    "run_start",
    "model_switched",
    "request_sent",
    "cached_answer",
    "model_response",
    "retry",
    "model_failed",
    "model_abandoned",
    "tool_call_end",
    // Names in earlier journals.
    "tool_end",
    "kept_answer",
];

/// Usage figures of a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UsageStats {
    /// Number of responses.
    pub answers: u64,
    /// Number of responses from the local cache (`llm.cache`), which cost nothing; included in `answers`.
    pub cached_answers: u64,
    /// Tokens; `cached_read` counts prompt tokens read from the provider's cache.
    pub usage: Usage,
    /// The known cost, in US dollars.
    pub cost_usd: Usd,
    /// Requests whose cost is unknown and not included: the price is unknown, or no usage was reported.
    pub unknown_costs: u64,
    /// Tool calls with a result.
    pub tool_calls: u64,
    /// Tool calls that failed or were refused; included in `tool_calls`.
    pub tool_errors: u64,
}

/// The document of `agent stats --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Stats {
    /// Version of this document.
    pub schema_version: u32,
    /// Grouping of the figures: `session`, `model` or `day`.
    pub by: &'static str,
    /// Figures of each group; the key is a session's id, a model, or a day (UTC).
    pub groups: BTreeMap<String, UsageStats>,
    /// Figures of all groups together.
    pub total: UsageStats,
    /// Damaged lines of journals; they are not included in the figures.
    pub damaged_lines: u64,
}

impl AddAssign for UsageStats {
    fn add_assign(&mut self, other: Self) {
        self.answers = self.answers.saturating_add(other.answers);
        self.cached_answers = self.cached_answers.saturating_add(other.cached_answers);
        self.usage += other.usage;
        self.cost_usd = self.cost_usd + other.cost_usd;
        self.unknown_costs = self.unknown_costs.saturating_add(other.unknown_costs);
        self.tool_calls = self.tool_calls.saturating_add(other.tool_calls);
        self.tool_errors = self.tool_errors.saturating_add(other.tool_errors);
    }
}

impl UsageStats {
    /// Returns the figures of one event. With `requested`, a request was sent, so an abandoned call may be billed.
    pub fn from_event(event: &Event, requested: bool) -> Self {
        match event {
            Event::Subagent { event, .. } => Self::from_event(event, requested),
            Event::CachedAnswer => Self { cached_answers: 1, ..Self::default() },
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
    /// Creates empty statistics grouped by `by`.
    pub fn new(by: &'static str) -> Self {
        let (groups, total) = (BTreeMap::new(), UsageStats::default());
        Self { schema_version: SCHEMA_VERSION, by, groups, total, damaged_lines: 0 }
    }

    /// Adds `figures` to the group `name`.
    pub fn add(&mut self, name: &str, figures: UsageStats) {
        if let Some(group) = self.groups.get_mut(name) {
            *group += figures;
        } else {
            self.groups.insert(name.to_owned(), figures);
        }
        self.total += figures;
    }
}
