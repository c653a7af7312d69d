//! What requests really cost, whatever anybody reports.

use crate::core::limits::ModelTerms;
use crate::core::message::{Message, Part};
use crate::core::price::Usd;
use crate::core::usage::Usage;
use crate::llm::Request;
use std::cell::Cell;

/// Bytes of a token in this world.
const BYTES_PER_TOKEN: u64 = 4;

/// Tokens around a message or one of its parts.
const FRAME_TOKENS: u64 = 4;

/// What the requests of a run have cost.
#[derive(Debug, Default)]
pub struct ActualSpending {
    usd: Cell<Usd>,
    tokens: Cell<u64>,
}

impl ActualSpending {
    /// A run begins.
    pub fn start_run(&self) {
        self.usd.set(Usd::ZERO);
        self.tokens.set(0);
    }

    /// A model on these terms has used so much.
    pub fn bill(&self, terms: &ModelTerms, usage: Usage) {
        let cost = terms.price.map_or(Usd::ZERO, |price| price.cost(usage));
        self.usd.set(self.usd.get() + cost);
        self.tokens.set(self.tokens.get() + usage.prompt_tokens() + usage.output);
    }

    /// Money and tokens of the run so far.
    pub fn spent(&self) -> (Usd, u64) {
        (self.usd.get(), self.tokens.get())
    }
}

/// Tokens of a request.
pub fn prompt(request: &Request<'_>) -> u64 {
    let tools = request
        .tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.json().len());
    let tools: usize = tools.sum();
    tools as u64 / BYTES_PER_TOKEN + request.messages.iter().map(|message| of(message)).sum::<u64>()
}

/// Tokens of a message.
pub fn of(message: &Message) -> u64 {
    FRAME_TOKENS + message.parts.iter().map(part).sum::<u64>()
}

fn part(part: &Part) -> u64 {
    let bytes = match part {
        Part::Text { text } | Part::Thinking { text, .. } => text.len(),
        Part::ToolCall(call) => call.name.len() + call.arguments.len(),
        Part::ToolResult(result) => result.text.len(),
    };
    FRAME_TOKENS + bytes as u64 / BYTES_PER_TOKEN
}

/// The longest text that has no more than `tokens`, framed.
pub fn bytes_of(tokens: u64) -> usize {
    usize::try_from(tokens.saturating_sub(2 * FRAME_TOKENS) * BYTES_PER_TOKEN).unwrap()
}
