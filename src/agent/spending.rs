//! What a run may spend and has spent: the caps, and the sum that decides whether the next call still fits.

use crate::event::Purpose;
use crate::message::{Message, Part};
use crate::price::{Price, Usd};
use crate::stop_reason::Limit;
use crate::text::tokens;
use crate::usage::Usage;

/// The part of a cap that is kept for the closing summary: a tenth, as of the time.
const CLOSING_SHARE: u64 = 10;

/// Tokens that a chat template puts around a message, a call or a result, at most.
const FRAME_TOKENS: u64 = 16;

/// What a run may spend.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caps {
    /// US dollars.
    pub usd: Option<Usd>,
    /// Tokens, prompts and answers together.
    pub tokens: Option<u64>,
    /// Tool calls.
    pub tool_calls: Option<u32>,
    /// The cost at which it is said once.
    pub warn_at: Option<Usd>,
    /// What the model costs; nothing when that is not known.
    pub price: Option<Price>,
    /// Tokens of the longest answer that a request allows.
    pub output_limit: u64,
    /// Tokens of the tools that a request offers, at most.
    pub tools_tokens: u64,
    /// Whether a share is kept for a closing summary.
    pub closes: bool,
}

impl Caps {
    /// Whether a call has to fit into something.
    pub fn hold_calls(&self) -> bool {
        self.usd.is_some() || self.tokens.is_some()
    }
}

/// Money and tokens together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Amount {
    usd: Usd,
    tokens: u64,
}

/// What one run has spent: the fold of its events.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spending {
    /// Reported by the provider, or assumed where it was not.
    spent: Amount,
    /// The most that the request under way can cost.
    reserved: Amount,
    /// Tool calls the model made.
    tool_calls: u32,
    /// Whether the cost of the run has been warned of.
    warned: bool,
    /// Tokens of the conversation, at most.
    conversation: u64,
    /// Whether `conversation` was reported by the provider, tools included.
    counted_by_provider: bool,
}

impl Spending {
    /// A message has joined the conversation.
    pub fn grow(&mut self, caps: &Caps, message: &Message) {
        if caps.hold_calls() {
            self.conversation = self.conversation.saturating_add(tokens_at_most(message));
        }
    }

    /// The conversation is another one, and nobody has counted it yet.
    pub fn recount<'a>(&mut self, caps: &Caps, messages: impl Iterator<Item = &'a Message>) {
        self.conversation = 0;
        self.counted_by_provider = false;
        messages.for_each(|message| self.grow(caps, message));
    }

    /// A request is about to go out: its worst case is set aside.
    pub fn reserve(&mut self, caps: &Caps) {
        self.reserved = if caps.hold_calls() { self.worst(caps) } else { Amount::default() };
    }

    /// An answer came: what it cost replaces what was set aside for it. What was not reported costs what it can cost.
    pub fn settle(&mut self, usage: Option<Usage>, cost: Option<Usd>) {
        let tokens = usage.map(|usage| usage.prompt().saturating_add(usage.output));
        self.spend(Amount {
            usd: cost.unwrap_or(self.reserved.usd),
            tokens: tokens.unwrap_or(self.reserved.tokens),
        });
    }

    /// A request failed after it may have been billed, and nobody will ever say how much it was.
    pub fn write_off(&mut self) {
        self.spend(self.reserved);
    }

    fn spend(&mut self, amount: Amount) {
        self.spent.usd += amount.usd;
        self.spent.tokens = self.spent.tokens.saturating_add(amount.tokens);
    }

    /// The provider said how long the conversation is, its own answer included: that is better than our guess.
    pub fn counted(&mut self, usage: Usage) {
        if usage.prompt() > 0 {
            let known = usage.prompt().saturating_add(usage.output);
            self.conversation = known.saturating_add(FRAME_TOKENS);
            self.counted_by_provider = true;
        }
    }

    /// The model made `number` tool calls.
    pub fn called(&mut self, number: usize) {
        self.tool_calls = self.tool_calls.saturating_add(u32::try_from(number).unwrap_or(u32::MAX));
    }

    /// How many of the last `pending` calls may run.
    pub fn runnable(&self, caps: &Caps, pending: usize) -> usize {
        let Some(cap) = caps.tool_calls else { return pending };
        let beyond = usize::try_from(self.tool_calls.saturating_sub(cap)).unwrap_or(usize::MAX);
        pending.saturating_sub(beyond)
    }

    /// Tokens of the prompt of the next request, at most.
    pub fn prompt(&self, caps: &Caps) -> u64 {
        let tools = if self.counted_by_provider { 0 } else { caps.tools_tokens };
        self.conversation.saturating_add(tools)
    }

    /// The most that the next request can cost.
    fn worst(&self, caps: &Caps) -> Amount {
        let prompt = self.prompt(caps);
        Amount {
            usd: caps.price.map_or(Usd::ZERO, |price| price.worst(prompt, caps.output_limit)),
            tokens: prompt.saturating_add(caps.output_limit),
        }
    }

    /// The cap that stands in the way of a call for `purpose`.
    pub fn exceeded(&self, caps: &Caps, purpose: Purpose) -> Option<Limit> {
        if !caps.hold_calls() && caps.tool_calls.is_none() {
            return None;
        }
        let worst = self.worst(caps);
        let keeps = caps.closes && purpose == Purpose::Step;
        let usd = |cap: Usd| if keeps { cap.less(cap.part(CLOSING_SHARE)) } else { cap };
        let tokens = |cap: u64| if keeps { cap.saturating_sub(cap / CLOSING_SHARE) } else { cap };
        if caps.usd.is_some_and(|cap| self.spent.usd + worst.usd > usd(cap)) {
            Some(Limit::Usd)
        } else if caps.tokens.is_some_and(|cap| self.spent.tokens.saturating_add(worst.tokens) > tokens(cap))
        {
            Some(Limit::Tokens)
        } else if keeps_within(self.tool_calls, caps.tool_calls) || purpose == Purpose::Closing {
            None
        } else {
            Some(Limit::ToolCalls)
        }
    }

    /// What has been spent, when that is to be warned of now.
    pub fn warning(&self, caps: &Caps) -> Option<(Usd, Usd)> {
        let at = caps.warn_at.filter(|at| !self.warned && caps.price.is_some() && self.spent.usd >= *at)?;
        Some((self.spent.usd, at))
    }

    /// It has been warned of.
    pub fn warned(&mut self) {
        self.warned = true;
    }
}

fn keeps_within(calls: u32, cap: Option<u32>) -> bool {
    cap.is_none_or(|cap| calls <= cap)
}

/// The tokens of a message, at most, however it is written.
fn tokens_at_most(message: &Message) -> u64 {
    let opaque = |opaque: &Option<crate::message::Opaque>| {
        opaque.as_ref().map_or(0, |opaque| tokens::at_most(&opaque.data.to_string()))
    };
    let part = |part: &Part| match part {
        Part::Text { text } => tokens::at_most(text),
        Part::Thinking { text, opaque: data } => tokens::at_most(text).saturating_add(opaque(data)),
        Part::ToolCall(call) => [&call.id, &call.name, &call.arguments]
            .into_iter()
            .fold(opaque(&call.opaque), |sum, text| sum.saturating_add(tokens::at_most(text))),
        Part::ToolResult(result) => {
            tokens::at_most(&result.call_id).saturating_add(tokens::at_most(&result.text))
        }
    };
    let framed = message.parts.iter().map(|one| part(one).saturating_add(FRAME_TOKENS));
    framed.fold(FRAME_TOKENS, u64::saturating_add)
}
