//! The message `result`, which ends each turn.

use super::ClaudeEvents;
use agent_core::failure::FailureKind;
use agent_core::language::Language;
use agent_core::price::Usd;
use agent_core::run_result::{Output, RunResult};
use agent_core::stop_reason::{ReachedLimit, Status, StopReason};
use agent_core::usage::Usage;
use agent_messages as messages;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What the conversation has used. The document of a run counts the whole session, also what other processes have used for it.
#[derive(Debug, Default)]
pub struct Totals {
    models: BTreeMap<String, ModelTotal>,
    /// Usage of the turn, without subagents.
    turn: Usage,
    /// Answers of the turn.
    answers: u64,
    /// Time of the answers in milliseconds.
    api_ms: u64,
}

/// What one model was used for.
#[derive(Debug, Default)]
struct ModelTotal {
    usage: Usage,
    /// The known part of the cost, in US dollars.
    cost: f64,
    /// Whether the cost of a call is not known.
    has_unknown_cost: bool,
    window: Option<u64>,
}

impl ClaudeEvents {
    /// Returns the message for a run with this result. Everything but a success has an error as its subtype.
    pub fn result(&mut self, result: &RunResult, language: Language) -> Value {
        let subtype = subtype(result);
        let is_error = subtype != "success";
        let mut message = json!({"type": "result", "subtype": subtype, "is_error": is_error,
            "duration_ms": milliseconds(result.duration_seconds), "duration_api_ms": self.totals.api_ms,
            "num_turns": self.totals.answers, "stop_reason": self.finish, "total_cost_usd": self.totals.cost(),
            "usage": usage(self.totals.turn), "modelUsage": self.totals.by_model(),
            "permission_denials": std::mem::take(&mut self.denials)});
        if is_error {
            message["errors"] = json!([messages::run_not_successful(result, language)]);
        } else {
            message["result"] = result.output.text().into();
            if let (Some(true), Output::Value(value)) = (result.output_valid, &result.output) {
                message["structured_output"] = value.clone();
            }
        }
        message
    }
}

impl Totals {
    /// Starts a turn.
    pub fn begin(&mut self) {
        (self.turn, self.answers, self.api_ms) = (Usage::default(), 0, 0);
    }

    /// Adds an answer of the agent itself.
    pub fn answer(&mut self, latency_ms: u64) {
        self.answers = self.answers.saturating_add(1);
        self.api_ms = self.api_ms.saturating_add(latency_ms);
    }

    /// Adds a call of the agent itself to those of the turn.
    pub fn add_to_turn(&mut self, usage: Option<Usage>) {
        self.turn += usage.unwrap_or_default();
    }

    /// Adds a call of `model`, whose context window is `window`.
    pub fn add(&mut self, model: &str, usage: Option<Usage>, cost: Option<Usd>, window: Option<u64>) {
        let total = self.models.entry(model.to_owned()).or_default();
        total.usage += usage.unwrap_or_default();
        total.cost += cost.map_or(0.0, f64::from);
        total.has_unknown_cost |= cost.is_none();
        total.window = window.or(total.window);
    }

    /// Returns the known part of the cost: what calls with an unknown price have cost is not part of it.
    fn cost(&self) -> f64 {
        self.models.values().fold(0.0, |sum, total| sum + total.cost)
    }

    fn by_model(&self) -> Map<String, Value> {
        let shown = |(name, total): (&String, &ModelTotal)| {
            let ModelTotal { usage, cost, has_unknown_cost, window } = total;
            let about = json!({"inputTokens": usage.input, "outputTokens": usage.output, "thinkingTokens": usage.reasoning,
                "cacheReadInputTokens": usage.cached_read, "cacheCreationInputTokens": usage.cached_write,
                "webSearchRequests": 0, "costUSD": cost, "costBasis": if *has_unknown_cost { "unknown" } else { "list" },
                "contextWindow": window.unwrap_or(0), "maxOutputTokens": 0});
            (name.clone(), about)
        };
        self.models.iter().map(shown).collect()
    }
}

/// Returns the subtype of the result.
fn subtype(result: &RunResult) -> &'static str {
    let is_schema = result.error.as_ref().is_some_and(|error| error.kind == FailureKind::OutputSchema)
        || result.output_valid == Some(false) && result.stop_reason == Some(StopReason::LlmDone);
    match (result.status, result.stop_reason) {
        (Status::Success, _) => "success",
        (_, Some(StopReason::MaxSteps)) => "error_max_turns",
        (_, Some(StopReason::BudgetExceeded)) if matches!(result.limit, None | Some(ReachedLimit::Usd)) => {
            "error_max_budget_usd"
        }
        _ if is_schema => "error_max_structured_output_retries",
        _ => "error_during_execution",
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and a duration is not negative"
)]
fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1000.0) as u64
}

/// Returns tokens as Anthropic's `usage`. Written cache entries count as those of five minutes, which are requested.
pub fn usage(usage: Usage) -> Value {
    json!({"input_tokens": usage.input, "output_tokens": usage.output, "cache_read_input_tokens": usage.cached_read,
        "cache_creation_input_tokens": usage.cached_write,
        "cache_creation": {"ephemeral_5m_input_tokens": usage.cached_write, "ephemeral_1h_input_tokens": 0},
        "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0}, "service_tier": "standard"})
}
