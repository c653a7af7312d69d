//! Actual costs and tokens of simulated requests, independent of the reported usage.

use agent_core::limits::ModelTerms;
use agent_core::message::{Message, Part};
use agent_core::price::Usd;
use agent_core::usage::Usage;
use agent_llm::Request;
use std::cell::Cell;

/// Bytes per token in the simulation.
const BYTES_PER_TOKEN: u64 = 4;

/// Tokens added to a message or to one of its parts.
const FRAME_TOKENS: u64 = 4;

/// Actual spending of a run.
#[derive(Debug, Default)]
pub struct ActualSpending {
    usd: Cell<Usd>,
    tokens: Cell<u64>,
}

impl ActualSpending {
    /// Resets the spending at the start of a run.
    pub fn start_run(&self) {
        self.usd.set(Usd::ZERO);
        self.tokens.set(0);
    }

    /// Adds the cost of `usage` at the prices of `terms`.
    pub fn bill(&self, terms: &ModelTerms, usage: Usage) {
        let cost = terms.price.map_or(Usd::ZERO, |price| price.cost(usage));
        self.usd.set(self.usd.get() + cost);
        self.tokens.set(self.tokens.get() + usage.prompt_tokens() + usage.output);
    }

    /// Returns the money and tokens spent in the run so far.
    pub fn spent(&self) -> (Usd, u64) {
        (self.usd.get(), self.tokens.get())
    }
}

/// Returns the tokens of a request.
pub fn prompt(request: &Request<'_>) -> u64 {
    let tools = request
        .tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.json().len());
    let tools: usize = tools.sum();
    tools as u64 / BYTES_PER_TOKEN + request.messages.iter().map(|message| of(message)).sum::<u64>()
}

/// Returns the tokens of a message.
pub fn of(message: &Message) -> u64 {
    FRAME_TOKENS + message.parts.iter().map(part).sum::<u64>()
}

fn part(part: &Part) -> u64 {
    let bytes = match part {
        Part::Text { text } | Part::Thinking { text, .. } => text.len(),
        Part::ToolCall(call) => call.name.len() + call.arguments.len(),
        Part::ToolResult(result) => result.text.len(),
        Part::Image(_) => 0,
    };
    FRAME_TOKENS + bytes as u64 / BYTES_PER_TOKEN
}

/// Returns the length in bytes of the longest text that takes at most `tokens`, including its frame.
pub fn bytes_of(tokens: u64) -> usize {
    usize::try_from(tokens.saturating_sub(2 * FRAME_TOKENS) * BYTES_PER_TOKEN).unwrap()
}
