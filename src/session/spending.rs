//! Spending of a run: what it has used, and whether the next call still fits into the caps.

use agent_core::budget_share::{Amount, BudgetShare};
use agent_core::event::Purpose;
use agent_core::image::Image;
use agent_core::limits::{ModelTerms, SpendingCaps};
use agent_core::message::{Message, Part};
use agent_core::price::Usd;
use agent_core::stop_reason::ReachedLimit;
use agent_core::usage::Usage;
use agent_text::tokens;
use std::collections::BTreeMap;

/// Tokens of the shortest useful answer of a step; with fewer, a model cannot write a file.
pub const MIN_STEP_TOKENS: u32 = 1024;

/// Tokens of the shortest useful summary: a paragraph.
const MIN_CLOSING_TOKENS: u32 = 256;

/// Upper bound on the tokens that a chat template adds to a message, a call or a result.
const FRAME_TOKENS: u64 = 16;

/// Use of caps that several sessions share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsedBudget {
    /// Money and tokens, spent or reserved.
    pub bound: Amount,
    /// Number of tool calls.
    pub tool_calls: u32,
}

/// Use of the run's caps by one subagent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct SubagentSpending {
    budget_share: BudgetShare,
    tool_calls: u32,
    /// Whether a request is under way.
    requested: bool,
}

/// Spending of one run: the fold of its events.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spending {
    /// Spent and reserved amounts.
    pub(super) budget_share: BudgetShare,
    /// Highest possible cost of the request under way.
    reserved: Amount,
    /// Tool calls made by the model.
    tool_calls: u32,
    /// Use by its subagents, by the id of the call that started them.
    subagents: BTreeMap<String, SubagentSpending>,
    /// In a subagent: use of the shared caps by all other sessions.
    used_elsewhere: UsedBudget,
    /// Whether the cost warning was emitted.
    warned: bool,
    /// Whether the model was notified that little is left.
    low_budget_reported: bool,
    /// Upper bound on the tokens of the conversation.
    conversation: u64,
    /// Tokens of the last prompt, tools included, for which the provider confirmed `conversation`; 0 if it is an estimate.
    counted: u64,
}

impl Spending {
    /// Adds a message of the conversation.
    pub fn add_message(&mut self, caps: &SpendingCaps, message: &Message) {
        if caps.limit_requests() {
            self.conversation = self.conversation.saturating_add(tokens_at_most(message));
        }
    }

    /// Recalculates the bound for another conversation that the provider has not counted.
    pub fn recount<'a>(&mut self, caps: &SpendingCaps, messages: impl Iterator<Item = &'a Message>) {
        self.conversation = 0;
        self.counted = 0;
        messages.for_each(|message| self.add_message(caps, message));
    }

    /// Returns the spending before a request that sends `messages` instead of the conversation, without tools.
    #[must_use]
    pub fn for_request<'a>(&self, messages: impl Iterator<Item = &'a Message>) -> Self {
        let conversation = messages.map(tokens_at_most).fold(0, u64::saturating_add);
        Self { conversation, counted: conversation.max(1), ..self.clone() }
    }

    /// Reserves `worst_case`, the highest possible cost of the request to be sent.
    pub fn reserve(&mut self, worst_case: Amount) {
        self.release(Amount::default());
        self.reserved = worst_case;
        self.budget_share.reserve(worst_case);
    }

    /// Replaces the reservation with the cost of an answer. Unreported costs count as the highest possible ones.
    pub fn settle(&mut self, usage: Option<Usage>, cost: Option<Usd>) {
        self.release(self.actual(usage, cost));
    }

    /// Adds the cost of an unusable answer whose request is repeated; the reservation stays.
    pub fn pay(&mut self, usage: Usage, cost: Option<Usd>) {
        self.budget_share.spend(self.actual(Some(usage), cost));
    }

    fn actual(&self, usage: Option<Usage>, cost: Option<Usd>) -> Amount {
        let tokens = usage.map(|usage| usage.prompt_tokens().saturating_add(usage.output));
        Amount { usd: cost.unwrap_or(self.reserved.usd), tokens: tokens.unwrap_or(self.reserved.tokens) }
    }

    /// Counts a failed request that may be repeated; if it may be `billed`, as its highest possible cost.
    pub fn write_off(&mut self, billed: bool) {
        if billed {
            self.budget_share.spend(self.reserved);
        }
    }

    /// Counts a failed request that is not repeated.
    pub fn give_up(&mut self, billed: bool) {
        self.release(if billed { self.reserved } else { Amount::default() });
    }

    /// Adds `tool_calls` and, if it changed, the budget share of the subagent that `call_id` started.
    pub fn add_subagent_usage(&mut self, call_id: &str, budget_share: Option<BudgetShare>, tool_calls: u32) {
        let share = self.subagents.entry(call_id.to_owned()).or_default();
        share.budget_share = budget_share.unwrap_or(share.budget_share);
        share.tool_calls = share.tool_calls.saturating_add(tool_calls);
    }

    /// Records whether a request of the subagent is under way, and returns whether one was.
    pub fn set_subagent_request(&mut self, call_id: &str, requested: bool) -> bool {
        let share = self.subagents.entry(call_id.to_owned()).or_default();
        std::mem::replace(&mut share.requested, requested)
    }

    /// Returns the use by all sessions except the subagent that `call_id` started.
    pub fn used_by_others(&self, call_id: &str) -> UsedBudget {
        self.with(self.subagents.iter().filter(|(id, _)| *id != call_id).map(|(_, share)| share))
    }

    /// Sets the use of the caps by all other sessions.
    pub fn set_used_elsewhere(&mut self, used_elsewhere: UsedBudget) {
        self.used_elsewhere = used_elsewhere;
    }

    /// Checks whether a request of the run or of a subagent is under way.
    pub fn has_reserved(&self) -> bool {
        let shares = self.subagents.values().map(|share| share.budget_share).chain([self.budget_share]);
        shares.into_iter().any(|share| share.committed() != share.spent())
    }

    /// Returns the total use of the caps.
    pub fn used_up(&self) -> UsedBudget {
        self.with(self.subagents.values())
    }

    /// Returns the use by the run, by the sessions above it and by these subagents.
    fn with<'a>(&self, subagents: impl Iterator<Item = &'a SubagentSpending>) -> UsedBudget {
        let own = UsedBudget {
            bound: self.budget_share.committed() + self.used_elsewhere.bound,
            tool_calls: self.tool_calls.saturating_add(self.used_elsewhere.tool_calls),
        };
        subagents.fold(own, |sum, share| UsedBudget {
            bound: sum.bound + share.budget_share.committed(),
            tool_calls: sum.tool_calls.saturating_add(share.tool_calls),
        })
    }

    fn release(&mut self, actual: Amount) {
        self.budget_share.settle(std::mem::take(&mut self.reserved), actual);
    }

    /// Records the provider's count of the conversation and its answer, which is better than an estimate.
    pub fn record_usage(&mut self, usage: Usage) {
        if usage.covers_conversation(self.counted) {
            let known = usage.prompt_tokens().saturating_add(usage.output);
            self.conversation = known.saturating_add(FRAME_TOKENS);
            self.counted = usage.prompt_tokens();
        }
    }

    /// Counts tool calls of the model.
    pub fn called(&mut self, number: usize) {
        self.tool_calls = self.tool_calls.saturating_add(u32::try_from(number).unwrap_or(u32::MAX));
    }

    /// Returns how many of the last `pending` calls may run.
    pub fn runnable(&self, caps: &SpendingCaps, pending: usize) -> usize {
        let Some(cap) = caps.tool_calls else { return pending };
        let beyond = usize::try_from(self.used_up().tool_calls.saturating_sub(cap)).unwrap_or(usize::MAX);
        pending.saturating_sub(beyond)
    }

    /// Returns an upper bound on the tokens of the next prompt. Servers that accept no schema beside tools have not counted the schema yet.
    pub fn prompt(&self, caps: &SpendingCaps) -> u64 {
        let tools = if self.counted > 0 { 0 } else { caps.tools_tokens };
        self.conversation.saturating_add(tools).saturating_add(caps.schema_tokens)
    }

    /// Returns the highest possible cost of the next request with an answer of at most `longest` tokens; zero without caps.
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

    /// Returns the limit on the answer of a request for `purpose`: the configured one, or less if the budget requires it.
    pub fn longest_answer(&self, caps: &SpendingCaps, terms: &ModelTerms, purpose: Purpose) -> Option<u32> {
        let wanted = terms.output_limit?;
        let fits = self.affordable_tokens(caps, terms, purpose).min(self.remaining_tokens(caps, purpose));
        Some(u32::try_from(fits).map_or(wanted, |fits| fits.min(wanted)))
    }

    /// Returns the tokens of an answer that the remaining money pays for, after the prompt.
    fn affordable_tokens(&self, caps: &SpendingCaps, terms: &ModelTerms, purpose: Purpose) -> u64 {
        let Some((usable, price)) = caps.usable_usd(purpose).zip(terms.price) else { return u64::MAX };
        price
            .max_answer_tokens(self.prompt(caps), usable.saturating_sub(self.used_up().bound.usd))
            .unwrap_or(0)
    }

    /// Returns the tokens of an answer that the cap on tokens leaves, after the prompt.
    fn remaining_tokens(&self, caps: &SpendingCaps, purpose: Purpose) -> u64 {
        let Some(usable) = caps.usable_tokens(purpose) else { return u64::MAX };
        usable.saturating_sub(self.used_up().bound.tokens).saturating_sub(self.prompt(caps))
    }

    /// Returns the cap that prevents a call for `purpose`, because no useful answer fits.
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

    /// Whether the current request for `purpose` may be sent once more.
    pub fn can_afford_retry(&self, caps: &SpendingCaps, purpose: Purpose) -> bool {
        let bound = self.used_up().bound;
        caps.usable_usd(purpose).is_none_or(|usable| bound.usd <= usable)
            && caps.usable_tokens(purpose).is_none_or(|usable| bound.tokens <= usable)
    }

    /// Records that the model was notified that little is left.
    pub fn mark_low_budget_reported(&mut self) {
        self.low_budget_reported = true;
    }

    /// Whether the model was notified that little is left.
    pub fn is_low_budget_reported(&self) -> bool {
        self.low_budget_reported
    }

    /// Returns the money left for steps, and its initial amount.
    pub fn money_left(&self, caps: &SpendingCaps) -> Option<(Usd, Usd)> {
        let usable = caps.usable_usd(Purpose::Step)?;
        Some((usable.saturating_sub(self.used_up().bound.usd), usable))
    }

    /// Returns the tokens left for steps, and their initial number.
    pub fn tokens_left(&self, caps: &SpendingCaps) -> Option<(u64, u64)> {
        let usable = caps.usable_tokens(Purpose::Step)?;
        Some((usable.saturating_sub(self.used_up().bound.tokens), usable))
    }

    /// Returns the amount spent and the warning threshold, when a warning is due.
    pub fn warning(&self, caps: &SpendingCaps) -> Option<(Usd, Usd)> {
        let spent = self
            .subagents
            .values()
            .fold(self.budget_share.spent(), |sum, share| sum + share.budget_share.spent());
        let spent = spent.usd;
        let at = caps.warn_at.filter(|at| !self.warned && spent > Usd::ZERO && spent >= *at)?;
        Some((spent, at))
    }

    /// Records that the cost warning was emitted.
    pub fn warned(&mut self) {
        self.warned = true;
    }
}

fn is_within(calls: u32, cap: Option<u32>) -> bool {
    cap.is_none_or(|cap| calls <= cap)
}

/// Returns an upper bound on the tokens of a message in any tokenizer.
fn tokens_at_most(message: &Message) -> u64 {
    let opaque = |opaque: &Option<agent_core::message::OpaqueData>| {
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
        Part::Image(_) => 0,
    };
    let framed = message.parts.iter().map(|one| part(one).saturating_add(FRAME_TOKENS));
    framed.chain(message.images().map(Image::max_tokens)).fold(FRAME_TOKENS, u64::saturating_add)
}
