//! What a session does about a conversation that fills the window: shortens old outputs, has old exchanges summed up, leaves
//! the oldest out; each only as far as the ones before it did not make room enough.

use super::{Moment, NextAction, Session};
use crate::agent::compaction::{self, summary};
use crate::agent::context_window;
use crate::core::compaction::{CompactionEvent, CompactionStrategy};
use crate::core::event::Purpose;
use crate::core::failure::{Failure, FailureKind};
use crate::core::message::{Message, Role};
use crate::core::run_result::ContextUse;
use crate::messages;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

/// A compaction must free this part of the window, or the run ends: otherwise it would soon be at it again.
const FREED_SHARE: u64 = 3;

/// The part of the window that the request for a summary may take.
const REQUEST_SHARE: u64 = 2;

/// The part of the window that a summary may take.
const SUMMARY_SHARE: u64 = 16;

/// Tokens of the longest summary: some 150 lines.
const MAX_SUMMARY_TOKENS: u64 = 4096;

/// Tokens of the shortest summary that is worth a request.
const MIN_SUMMARY_TOKENS: u64 = 256;

/// Characters of a token in what the request for a summary shows.
const CHARS_PER_TOKEN: u64 = 4;

/// What the loop is to do to make the conversation shorter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompactionAction {
    /// Say that it begins.
    Start {
        /// Tokens of the next prompt, about.
        tokens: u64,
        /// Tokens of the window.
        window: u64,
    },
    /// Keep these outputs, each with its call, elsewhere, and shorten those that are kept.
    Outputs(Vec<(String, String)>),
    /// Say what is done.
    Record(CompactionEvent),
}

/// A compaction under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct CompactionProgress {
    /// Tokens of the prompt when it began.
    before: u64,
    window: u64,
    stage: CompactionStage,
    answer: SummaryReply,
}

/// What became of the request for a summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum SummaryReply {
    /// It was not made yet.
    Open,
    /// It has this answer.
    Came(String),
    /// It has none.
    Missing,
}

/// What is next, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum CompactionStage {
    /// Outputs of old exchanges are shortened.
    OldOutputs,
    /// Old exchanges are summed up.
    Summary,
    /// All exchanges but the last are left out.
    LeaveOut,
    /// The outputs of the last exchange are shortened.
    LastOutputs,
    /// Nothing more.
    Over,
}

impl Session {
    /// Whether the next prompt has to become shorter first, or the run ends.
    pub(super) fn compaction_step(&self, moment: Moment) -> Option<NextAction> {
        let Some(under_way) = &self.run.compacting else {
            let (tokens, window) = self.compaction_due()?;
            return Some(NextAction::Compact(CompactionAction::Start { tokens, window }));
        };
        let tokens = self.prompt_tokens();
        let enough = under_way.before.saturating_sub(tokens) >= under_way.window / FREED_SHARE;
        let range = || self.removable_messages(under_way.stage);
        let next = match under_way.stage {
            _ if enough => CompactionAction::Record(CompactionEvent::End { tokens, enough }),
            CompactionStage::OldOutputs => CompactionAction::Outputs(self.long_outputs(range())),
            CompactionStage::LastOutputs => {
                CompactionAction::Outputs(self.long_outputs(Some(0..self.messages.len())))
            }
            CompactionStage::Summary => match (range(), &under_way.answer) {
                (Some(_), SummaryReply::Open) if self.asks_for_summary(moment) => {
                    return Some(NextAction::CallModel(Purpose::Summary));
                }
                (range, answer) => CompactionAction::Record(self.summary_part(range, answer)),
            },
            CompactionStage::LeaveOut => CompactionAction::Record(CompactionEvent::LeftOut {
                upto: range().map_or(0, |range| range.end),
            }),
            CompactionStage::Over => CompactionAction::Record(CompactionEvent::End { tokens, enough }),
        };
        Some(NextAction::Compact(next))
    }

    /// Whether the last compaction did not make room enough.
    pub(super) fn is_still_full(&self) -> bool {
        self.run.cramped
    }

    /// What takes the room in the window.
    pub(super) fn context_use(&self) -> ContextUse {
        let instructions = self.messages.first().filter(|first| first.role == Role::System);
        ContextUse {
            window: self.terms().window.map(|window| window.tokens),
            prompt: self.prompt_tokens(),
            instructions: context_window::bytes_of(instructions.map(AsRef::as_ref).into_iter())
                / context_window::BYTES_PER_TOKEN,
            tools: self.limits.tools_bytes / context_window::BYTES_PER_TOKEN,
            compactions: self.tally.compactions,
        }
    }

    /// Tokens of the next prompt, about.
    fn prompt_tokens(&self) -> u64 {
        self.filling.estimate(self.limits.tools_bytes)
    }

    /// The tokens of the next prompt and of the window, when there is too little room between them and something can go.
    fn compaction_due(&self) -> Option<(u64, u64)> {
        let limits = self.limits.compaction;
        let tokens = self.prompt_tokens();
        let refused =
            self.run.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::ContextOverflow);
        let window = self.filling.effective_window(self.terms().window).map(|window| window.tokens);
        let is_full =
            |window: u64| tokens.saturating_mul(100) > window.saturating_mul(limits.at_percent.into());
        let full = window.is_some_and(is_full) || self.overflow().is_some();
        let rested =
            self.compacted_at.is_none_or(|at| self.tally.steps.saturating_sub(at) >= limits.every_steps);
        let wanted =
            limits.strategy != CompactionStrategy::Off && (full || refused) && rested && !self.run.cramped;
        // A server that refuses a prompt says that its window is smaller than we think.
        let window = if refused { tokens } else { window.unwrap_or(tokens) };
        (wanted && self.can_compact()).then_some((tokens, window))
    }

    fn can_compact(&self) -> bool {
        compaction::before_recent(&self.messages, 1)
            .is_some_and(|old| compaction::removes_anything(&self.messages, &old, self.prompts))
            || !compaction::long_outputs(&self.messages, &self.mark).is_empty()
    }

    /// The messages that go at `stage`.
    fn removable_messages(&self, stage: CompactionStage) -> Option<Range<usize>> {
        let recent = usize::try_from(self.limits.compaction.keep_recent_steps).unwrap_or(usize::MAX);
        let keep = if stage == CompactionStage::LeaveOut { 1 } else { recent };
        let range = compaction::before_recent(&self.messages, keep)?;
        let goes = stage == CompactionStage::OldOutputs
            || compaction::removes_anything(&self.messages, &range, self.prompts);
        goes.then_some(range)
    }

    fn long_outputs(&self, range: Option<Range<usize>>) -> Vec<(String, String)> {
        let messages = range.and_then(|range| self.messages.get(range)).unwrap_or_default();
        let long = compaction::long_outputs(messages, &self.mark);
        long.into_iter().map(|(id, text)| (id.to_owned(), text.to_owned())).collect()
    }

    /// Whether the model is asked for a summary: it is wanted, and there is money and time for it.
    fn asks_for_summary(&self, moment: Moment) -> bool {
        self.limits.compaction.strategy == CompactionStrategy::Layered
            && self.exceeded_limit(Purpose::Summary).is_none()
            && self.limits.step_time(moment.elapsed).is_none_or(|left| !left.is_zero())
    }

    fn summary_part(&self, range: Option<Range<usize>>, answer: &SummaryReply) -> CompactionEvent {
        let (going, upto) = match range {
            Some(range) if self.limits.compaction.strategy == CompactionStrategy::Layered => {
                (self.messages.get(range.clone()).unwrap_or_default(), range.end)
            }
            // Without a summary, nothing is left out before it has to be.
            _ => (&[][..], 0),
        };
        let said = match answer {
            SummaryReply::Came(text) => Some(text.trim()).filter(|text| !text.is_empty()),
            SummaryReply::Open | SummaryReply::Missing => None,
        };
        let text = said.map_or_else(|| summary::without_model(going), str::to_owned);
        CompactionEvent::Summary { upto, text, by_model: said.is_some() }
    }

    /// What the model is sent for `purpose`.
    pub fn request(&self, purpose: Purpose) -> Vec<Arc<Message>> {
        match purpose {
            Purpose::Step | Purpose::Closing => return self.messages.clone(),
            Purpose::Evaluation => return self.evaluation_request(),
            Purpose::Summary => {}
        }
        let going = self
            .removable_messages(CompactionStage::Summary)
            .and_then(|range| self.messages.get(range))
            .unwrap_or_default();
        let window = self.run.compacting.as_ref().map_or(0, |compacting| compacting.window);
        let most = (window / REQUEST_SHARE).saturating_mul(CHARS_PER_TOKEN);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        summary::request(self.prompts.task(&self.messages), going, &self.mark, most)
    }

    /// Tokens of the longest summary that is asked for.
    pub(super) fn summary_tokens(&self) -> u32 {
        let window = self.run.compacting.as_ref().map_or(0, |compacting| compacting.window);
        let tokens = (window / SUMMARY_SHARE).clamp(MIN_SUMMARY_TOKENS, MAX_SUMMARY_TOKENS);
        u32::try_from(tokens).unwrap_or(u32::MAX)
    }

    pub(super) fn compaction(&mut self, part: &CompactionEvent) {
        match part {
            CompactionEvent::Start { tokens, window } => {
                let (before, window, stage) = (*tokens, *window, CompactionStage::OldOutputs);
                self.run.compacting =
                    Some(CompactionProgress { before, window, stage, answer: SummaryReply::Open });
            }
            CompactionEvent::End { enough, .. } => self.compaction_ends(*enough),
            part => self.apply_compaction(part),
        }
    }

    /// The request for a summary has ended, with `answer` where one came that nobody withholds.
    pub(super) fn record_summary(&mut self, answer: Option<String>) {
        let answer = answer.filter(|_| !self.run.screening.is_withheld());
        self.run.screening.note_message();
        if let Some(compacting) = &mut self.run.compacting {
            compacting.answer = answer.map_or(SummaryReply::Missing, SummaryReply::Came);
        }
    }

    fn apply_compaction(&mut self, part: &CompactionEvent) {
        let (bytes, tools) =
            (context_window::bytes_of(self.messages.iter().map(AsRef::as_ref)), self.limits.tools_bytes);
        match part {
            CompactionEvent::Outputs { call_ids } => {
                compaction::shorten_outputs(&mut self.messages, call_ids, &self.mark);
            }
            CompactionEvent::Summary { upto: 0, .. }
            | CompactionEvent::LeftOut { upto: 0 }
            | CompactionEvent::Start { .. }
            | CompactionEvent::End { .. } => {}
            CompactionEvent::Summary { upto, text, .. } => {
                compaction::replace(
                    &mut self.messages,
                    &mut self.prompts,
                    *upto,
                    vec![summary::message(text)],
                );
            }
            CompactionEvent::LeftOut { upto } => {
                let gone = self.messages.get(..*upto).unwrap_or_default();
                let earlier = compaction::earlier_summary(gone);
                let note = earlier.unwrap_or_else(|| summary::message(messages::STEPS_OMITTED));
                compaction::replace(&mut self.messages, &mut self.prompts, *upto, vec![note]);
            }
        }
        self.filling.scale_to(self.messages.iter().map(AsRef::as_ref), bytes, tools);
        self.recount();
        if let Some(compacting) = &mut self.run.compacting {
            compacting.stage = match compacting.stage {
                CompactionStage::OldOutputs => CompactionStage::Summary,
                CompactionStage::Summary => CompactionStage::LeaveOut,
                CompactionStage::LeaveOut => CompactionStage::LastOutputs,
                CompactionStage::LastOutputs | CompactionStage::Over => CompactionStage::Over,
            };
        }
    }

    /// It is over: the step begins that it was for, or the run ends.
    fn compaction_ends(&mut self, enough: bool) {
        self.run.compacting = None;
        self.run.cramped = !enough;
        self.compacted_at = Some(self.tally.steps);
        self.tally.compactions = self.tally.compactions.saturating_add(1);
        let refused = |failure: &Failure| failure.kind == FailureKind::ContextOverflow;
        if enough && self.run.failure.as_ref().is_some_and(refused) {
            self.run.failure = None;
        }
    }
}
