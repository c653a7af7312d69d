//! What a run has spent, and what it may: the sum that decides whether the next call still fits.

use crate::core::budget_share::{Amount, BudgetShare};
use crate::core::event::Purpose;
use crate::core::limits::{ModelTerms, SpendingCaps};
use crate::core::message::{Message, Part};
use crate::core::price::Usd;
use crate::core::stop_reason::ReachedLimit;
use crate::core::usage::Usage;
use crate::text::tokens;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The part of a cap that is kept for the closing summary: a tenth, as of the time.
const CLOSING_SHARE: u64 = 10;

/// Tokens of the shortest answer that a step is worth: below it a model cannot write the file it is about.
pub const MIN_STEP_TOKENS: u32 = 1024;

/// Tokens of the shortest answer that a summary is worth: a paragraph.
const MIN_CLOSING_TOKENS: u32 = 256;

/// Tokens that a chat template puts around a message, a call or a result, at most.
const FRAME_TOKENS: u64 = 16;

impl SpendingCaps {
    /// Whether a call has to fit into something.
    pub fn limit_requests(&self) -> bool {
        self.usd.is_some() || self.tokens.is_some()
    }

    /// The money that a call for `purpose` may use up: a step leaves something for the closing summary.
    fn usable_usd(&self, purpose: Purpose) -> Option<Usd> {
        self.usd.map(|cap| {
            if self.reserves_closing(purpose) {
                cap.saturating_sub(cap.div_floor(CLOSING_SHARE))
            } else {
                cap
            }
        })
    }

    /// The tokens likewise.
    fn usable_tokens(&self, purpose: Purpose) -> Option<u64> {
        let keeps = self.reserves_closing(purpose);
        self.tokens.map(|cap| if keeps { cap.saturating_sub(cap / CLOSING_SHARE) } else { cap })
    }

    /// Those of a subagent whose requests offer tools of `tools_tokens`: what is kept for the closing summary of the run that asked
    /// it is not for it.
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

/// What is used up of caps that several share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsedBudget {
    /// Money and tokens that are spent or may yet be.
    pub bound: Amount,
    /// Tool calls.
    pub tool_calls: u32,
}

/// What a subagent has used up of the caps of its run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct SubagentSpending {
    purse: BudgetShare,
    tool_calls: u32,
    /// Whether a request is under way.
    requested: bool,
}

/// What one run has spent: the fold of its events.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Spending {
    /// What it is paid from.
    pub(super) purse: BudgetShare,
    /// The most that the request under way can cost.
    reserved: Amount,
    /// Tool calls the model made.
    tool_calls: u32,
    /// What its subagents have used up, by the call that asked them.
    subagents: BTreeMap<String, SubagentSpending>,
    /// Of a subagent: what everybody else who is held to the same caps has.
    #[serde(skip)]
    elsewhere: UsedBudget,
    /// Whether the cost of the run has been warned of.
    warned: bool,
    /// Whether the model was told that little is left.
    little_told: bool,
    /// Tokens of the conversation, at most.
    conversation: u64,
    /// Tokens of the last prompt that `conversation` was reported for by the provider, tools included; 0: it is our guess.
    counted: u64,
}

impl Spending {
    /// A message has joined the conversation.
    pub fn add_message(&mut self, caps: &SpendingCaps, message: &Message) {
        if caps.limit_requests() {
            self.conversation = self.conversation.saturating_add(tokens_at_most(message));
        }
    }

    /// The conversation is another one, and nobody has counted it yet.
    pub fn recount<'a>(&mut self, caps: &SpendingCaps, messages: impl Iterator<Item = &'a Message>) {
        self.conversation = 0;
        self.counted = 0;
        messages.for_each(|message| self.add_message(caps, message));
    }

    /// The same before a request that holds `messages` in place of the conversation, and no tools.
    #[must_use]
    pub fn for_request<'a>(&self, messages: impl Iterator<Item = &'a Message>) -> Self {
        let conversation = messages.map(tokens_at_most).fold(0, u64::saturating_add);
        Self { conversation, counted: conversation.max(1), ..self.clone() }
    }

    /// A request is about to go out: its worst case, `most`, is set aside.
    pub fn reserve(&mut self, most: Amount) {
        self.release(Amount::default());
        self.reserved = most;
        self.purse.reserve(most);
    }

    /// An answer came: what it cost replaces what was set aside for it. What was not reported costs what it can cost.
    pub fn settle(&mut self, usage: Option<Usage>, cost: Option<Usd>) {
        self.release(self.actual(usage, cost));
    }

    /// An answer of no use came, and the request is repeated: it cost this, and as much as before stays set aside.
    pub fn pay(&mut self, usage: Usage, cost: Option<Usd>) {
        self.purse.spend(self.actual(Some(usage), cost));
    }

    fn actual(&self, usage: Option<Usage>, cost: Option<Usd>) -> Amount {
        let tokens = usage.map(|usage| usage.prompt_tokens().saturating_add(usage.output));
        Amount { usd: cost.unwrap_or(self.reserved.usd), tokens: tokens.unwrap_or(self.reserved.tokens) }
    }

    /// A request failed and may be repeated; when it may have been `billed`, nobody will ever say how much it was.
    pub fn write_off(&mut self, billed: bool) {
        if billed {
            self.purse.spend(self.reserved);
        }
    }

    /// The request failed and is not repeated.
    pub fn give_up(&mut self, billed: bool) {
        self.release(if billed { self.reserved } else { Amount::default() });
    }

    /// A subagent that `call_id` asked has made `tool_calls`, and its `purse` may be another one now.
    pub fn add_subagent_usage(&mut self, call_id: &str, purse: Option<BudgetShare>, tool_calls: u32) {
        let share = self.subagents.entry(call_id.to_owned()).or_default();
        share.purse = purse.unwrap_or(share.purse);
        share.tool_calls = share.tool_calls.saturating_add(tool_calls);
    }

    /// A subagent has begun a request, or it is over; whether one was under way.
    pub fn set_subagent_request(&mut self, call_id: &str, requested: bool) -> bool {
        let share = self.subagents.entry(call_id.to_owned()).or_default();
        std::mem::replace(&mut share.requested, requested)
    }

    /// What everybody but the subagent that `call_id` asked has used up.
    pub fn used_by_others(&self, call_id: &str) -> UsedBudget {
        self.with(self.subagents.iter().filter(|(id, _)| *id != call_id).map(|(_, share)| share))
    }

    /// What everybody else has used up of the caps is this now.
    pub fn set_used_elsewhere(&mut self, elsewhere: UsedBudget) {
        self.elsewhere = elsewhere;
    }

    /// What is used up of the caps.
    fn used_up(&self) -> UsedBudget {
        self.with(self.subagents.values())
    }

    /// What the run has used up, everybody above it, and these subagents.
    fn with<'a>(&self, subagents: impl Iterator<Item = &'a SubagentSpending>) -> UsedBudget {
        let own = UsedBudget {
            bound: self.purse.committed() + self.elsewhere.bound,
            tool_calls: self.tool_calls.saturating_add(self.elsewhere.tool_calls),
        };
        subagents.fold(own, |sum, share| UsedBudget {
            bound: sum.bound + share.purse.committed(),
            tool_calls: sum.tool_calls.saturating_add(share.tool_calls),
        })
    }

    fn release(&mut self, actual: Amount) {
        self.purse.settle(std::mem::take(&mut self.reserved), actual);
    }

    /// The provider said how long the conversation is, its own answer included: that is better than our guess.
    pub fn record_usage(&mut self, usage: Usage) {
        if usage.covers_conversation(self.counted) {
            let known = usage.prompt_tokens().saturating_add(usage.output);
            self.conversation = known.saturating_add(FRAME_TOKENS);
            self.counted = usage.prompt_tokens();
        }
    }

    /// The model made `number` tool calls.
    pub fn called(&mut self, number: usize) {
        self.tool_calls = self.tool_calls.saturating_add(u32::try_from(number).unwrap_or(u32::MAX));
    }

    /// How many of the last `pending` calls may run.
    pub fn runnable(&self, caps: &SpendingCaps, pending: usize) -> usize {
        let Some(cap) = caps.tool_calls else { return pending };
        let beyond = usize::try_from(self.used_up().tool_calls.saturating_sub(cap)).unwrap_or(usize::MAX);
        pending.saturating_sub(beyond)
    }

    /// Tokens of the prompt of the next request, at most. Servers that take no schema beside tools have not counted it when
    /// they get it.
    pub fn prompt(&self, caps: &SpendingCaps) -> u64 {
        let tools = if self.counted > 0 { 0 } else { caps.tools_tokens };
        self.conversation.saturating_add(tools).saturating_add(caps.schema_tokens)
    }

    /// The most that the next request can cost whose answer has at most `longest` tokens; nothing where that is not looked at.
    pub fn worst_case(&self, caps: &SpendingCaps, terms: &ModelTerms, longest: Option<u32>) -> Amount {
        if !caps.limit_requests() {
            return Amount::default();
        }
        let (prompt, longest) = (self.prompt(caps), u64::from(longest.unwrap_or(0)));
        Amount {
            usd: terms.price.map_or(Usd::ZERO, |price| price.max_cost(prompt, longest)),
            tokens: prompt.saturating_add(longest),
        }
    }

    /// Tokens of the longest answer that a request for `purpose` may ask for: what is wanted, lowered to what is left.
    pub fn longest_answer(&self, caps: &SpendingCaps, terms: &ModelTerms, purpose: Purpose) -> Option<u32> {
        let wanted = terms.output_limit?;
        let fits = self.affordable_tokens(caps, terms, purpose).min(self.remaining_tokens(caps, purpose));
        Some(u32::try_from(fits).map_or(wanted, |fits| fits.min(wanted)))
    }

    /// Tokens of an answer that the money pays for, after the prompt.
    fn affordable_tokens(&self, caps: &SpendingCaps, terms: &ModelTerms, purpose: Purpose) -> u64 {
        let Some((usable, price)) = caps.usable_usd(purpose).zip(terms.price) else { return u64::MAX };
        price
            .max_answer_tokens(self.prompt(caps), usable.saturating_sub(self.used_up().bound.usd))
            .unwrap_or(0)
    }

    /// Tokens of an answer that the cap on tokens leaves, after the prompt.
    fn remaining_tokens(&self, caps: &SpendingCaps, purpose: Purpose) -> u64 {
        let Some(usable) = caps.usable_tokens(purpose) else { return u64::MAX };
        usable.saturating_sub(self.used_up().bound.tokens).saturating_sub(self.prompt(caps))
    }

    /// The cap that stands in the way of a call for `purpose`: no answer fits that would be of use.
    pub fn exceeded_limit(
        &self,
        caps: &SpendingCaps,
        terms: &ModelTerms,
        purpose: Purpose,
    ) -> Option<ReachedLimit> {
        let least = match purpose {
            Purpose::Step => MIN_STEP_TOKENS,
            Purpose::Closing | Purpose::Summary | Purpose::Evaluation => MIN_CLOSING_TOKENS,
        };
        let least = u64::from(terms.output_limit.map_or(least, |wanted| wanted.min(least)));
        if self.affordable_tokens(caps, terms, purpose) < least {
            Some(ReachedLimit::Usd)
        } else if self.remaining_tokens(caps, purpose) < least {
            Some(ReachedLimit::Tokens)
        } else if is_within(self.used_up().tool_calls, caps.tool_calls) || purpose != Purpose::Step {
            None
        } else {
            Some(ReachedLimit::ToolCalls)
        }
    }

    /// Whether the request for `purpose` under way may be sent once more as it is.
    pub fn can_afford_retry(&self, caps: &SpendingCaps, purpose: Purpose) -> bool {
        let bound = self.used_up().bound;
        caps.usable_usd(purpose).is_none_or(|usable| bound.usd <= usable)
            && caps.usable_tokens(purpose).is_none_or(|usable| bound.tokens <= usable)
    }

    /// The model was told that little is left.
    pub fn mark_low_budget_reported(&mut self) {
        self.little_told = true;
    }

    /// Whether it was.
    pub fn is_low_budget_reported(&self) -> bool {
        self.little_told
    }

    /// What is left of the money for steps, and what that was.
    pub fn money_left(&self, caps: &SpendingCaps) -> Option<(Usd, Usd)> {
        let usable = caps.usable_usd(Purpose::Step)?;
        Some((usable.saturating_sub(self.used_up().bound.usd), usable))
    }

    /// The same for tokens.
    pub fn tokens_left(&self, caps: &SpendingCaps) -> Option<(u64, u64)> {
        let usable = caps.usable_tokens(Purpose::Step)?;
        Some((usable.saturating_sub(self.used_up().bound.tokens), usable))
    }

    /// What has been spent, when that is to be warned of now.
    pub fn warning(&self, caps: &SpendingCaps) -> Option<(Usd, Usd)> {
        let spent = self.subagents.values().fold(self.purse.spent(), |sum, share| sum + share.purse.spent());
        let spent = spent.usd;
        let at = caps.warn_at.filter(|at| !self.warned && spent > Usd::ZERO && spent >= *at)?;
        Some((spent, at))
    }

    /// It has been warned of.
    pub fn warned(&mut self) {
        self.warned = true;
    }
}

fn is_within(calls: u32, cap: Option<u32>) -> bool {
    cap.is_none_or(|cap| calls <= cap)
}

/// The tokens of a message, at most, however it is written.
fn tokens_at_most(message: &Message) -> u64 {
    let opaque = |opaque: &Option<crate::core::message::OpaqueData>| {
        opaque.as_ref().map_or(0, |opaque| tokens::upper_bound(&opaque.data.to_string()))
    };
    let part = |part: &Part| match part {
        Part::Text { text } => tokens::upper_bound(text),
        Part::Thinking { text, opaque: data } => tokens::upper_bound(text).saturating_add(opaque(data)),
        Part::ToolCall(call) => [&call.id, &call.name, &call.arguments]
            .into_iter()
            .fold(opaque(&call.opaque), |sum, text| sum.saturating_add(tokens::upper_bound(text))),
        Part::ToolResult(result) => {
            tokens::upper_bound(&result.call_id).saturating_add(tokens::upper_bound(&result.text))
        }
    };
    let framed = message.parts.iter().map(|one| part(one).saturating_add(FRAME_TOKENS));
    framed.fold(FRAME_TOKENS, u64::saturating_add)
}
