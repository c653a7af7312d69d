//! Compacts a conversation that fills the window: shortens old outputs, summarizes old exchanges, then drops the oldest.
//!
//! Each stage runs only if the stages before it did not free enough.

use super::{Moment, NextAction, Session};
use crate::compaction::{self, summary};
use crate::context_window;
use agent_core::compaction::{CompactionEvent, CompactionStrategy};
use agent_core::event::Purpose;
use agent_core::failure::{Failure, FailureKind};
use agent_core::message::{Message, Role};
use agent_core::run_result::ContextUse;
use agent_messages as messages;
use std::ops::Range;
use std::sync::Arc;

/// Share of the window (one third) that a compaction must free; otherwise the run ends, because the next compaction would soon be due.
const FREED_SHARE: u64 = 3;

/// Share of the window that the request for a summary may take (one half).
const REQUEST_SHARE: u64 = 2;

/// Share of the window that a summary may take (one sixteenth).
const SUMMARY_SHARE: u64 = 16;

/// Tokens of the longest summary: about 150 lines.
const MAX_SUMMARY_TOKENS: u64 = 4096;

/// Tokens of the shortest useful summary.
const MIN_SUMMARY_TOKENS: u64 = 256;

/// Characters per token in the request for a summary.
const CHARS_PER_TOKEN: u64 = 4;

/// An action of the loop during a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompactionAction {
    /// Emit the start.
    Start {
        /// Estimated tokens of the next prompt.
        tokens: u64,
        /// Tokens of the window.
        window: u64,
    },
    /// Store these outputs, each with its call id, and shorten the stored ones.
    Outputs(Vec<(String, String)>),
    /// Emit this part.
    Record(CompactionEvent),
}

/// State of a compaction.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CompactionProgress {
    /// Tokens of the prompt at its start.
    before: u64,
    window: u64,
    /// Whether the user requested it.
    requested: bool,
    stage: CompactionStage,
    answer: SummaryReply,
}

/// State of the request for a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SummaryReply {
    /// Not sent yet.
    NotSent,
    /// Answered with this text.
    Received(String),
    /// Failed.
    Missing,
}

/// Stages of a compaction, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CompactionStage {
    /// Shorten the outputs of old exchanges.
    OldOutputs,
    /// Summarize old exchanges.
    Summary,
    /// Drop all exchanges but the last.
    DropExchanges,
    /// Shorten the outputs of the last exchange.
    LastOutputs,
    /// No stage is left.
    Over,
}

impl Session {
    /// Returns the next action of a compaction that is under way or due.
    pub(super) fn compaction_step(&self, moment: Moment) -> Option<NextAction> {
        let Some(progress) = &self.run.compaction else {
            let (tokens, window) = self.compaction_due()?;
            return Some(NextAction::Compact(CompactionAction::Start { tokens, window }));
        };
        let tokens = self.prompt_tokens();
        let enough = match progress.stage {
            CompactionStage::OldOutputs | CompactionStage::Summary if progress.requested => false,
            _ if progress.requested => true,
            _ => progress.before.saturating_sub(tokens) >= progress.window / FREED_SHARE,
        };
        let range = || self.removable_messages(progress.stage);
        let next = match progress.stage {
            _ if enough => CompactionAction::Record(CompactionEvent::End { tokens, enough }),
            CompactionStage::OldOutputs => CompactionAction::Outputs(self.long_outputs(range(), false)),
            CompactionStage::LastOutputs => {
                CompactionAction::Outputs(self.long_outputs(Some(0..self.messages.len()), true))
            }
            CompactionStage::Summary => match (range(), &progress.answer) {
                (Some(_), SummaryReply::NotSent) if self.asks_for_summary(moment) => {
                    return Some(NextAction::CallModel(Purpose::Summary));
                }
                (range, answer) => CompactionAction::Record(self.summary_part(range, answer)),
            },
            CompactionStage::DropExchanges => CompactionAction::Record(CompactionEvent::MessagesDropped {
                message_count: range().map_or(0, |range| range.end),
            }),
            CompactionStage::Over => CompactionAction::Record(CompactionEvent::End { tokens, enough }),
        };
        Some(NextAction::Compact(next))
    }

    /// Whether the last compaction did not free enough.
    pub(super) fn is_still_full(&self) -> bool {
        self.run.still_full
    }

    /// Returns the use of the window for the result.
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

    /// Returns the estimated tokens of the next prompt.
    pub fn prompt_tokens(&self) -> u64 {
        self.prompt_estimate.estimate(self.limits.tools_bytes)
    }

    /// Returns the tokens of the next prompt and of the window, when a compaction is due and can remove something.
    fn compaction_due(&self) -> Option<(u64, u64)> {
        let limits = self.limits.compaction;
        let tokens = self.prompt_tokens();
        let refused =
            self.run.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::ContextOverflow);
        let window = self.prompt_estimate.effective_window(self.terms().window).map(|window| window.tokens);
        let is_full =
            |window: u64| tokens.saturating_mul(100) > window.saturating_mul(limits.at_percent.into());
        let full = window.is_some_and(is_full) || self.overflow().is_some();
        let is_interval_over =
            self.compacted_at.is_none_or(|at| self.tally.steps.saturating_sub(at) >= limits.every_steps);
        let wanted = limits.strategy != CompactionStrategy::Off
            && (full || refused)
            && is_interval_over
            && !self.run.still_full;
        // A server that refuses a prompt has a smaller window than assumed.
        let window = if refused { tokens } else { window.unwrap_or(tokens) };
        (wanted && self.can_compact()).then_some((tokens, window))
    }

    fn can_compact(&self) -> bool {
        compaction::before_recent(&self.messages, 1)
            .is_some_and(|old| compaction::removes_anything(&self.messages, &old, self.prompts))
            || !compaction::long_outputs(&self.messages, &self.delimiter, true).is_empty()
    }

    /// Returns the range of messages that `stage` removes.
    fn removable_messages(&self, stage: CompactionStage) -> Option<Range<usize>> {
        let recent = usize::try_from(self.limits.compaction.keep_recent_steps).unwrap_or(usize::MAX);
        let keep = if stage == CompactionStage::DropExchanges { 1 } else { recent };
        let range = compaction::before_recent(&self.messages, keep)?;
        let is_removable = stage == CompactionStage::OldOutputs
            || compaction::removes_anything(&self.messages, &range, self.prompts);
        is_removable.then_some(range)
    }

    fn long_outputs(&self, range: Option<Range<usize>>, with_images: bool) -> Vec<(String, String)> {
        let messages = range.and_then(|range| self.messages.get(range)).unwrap_or_default();
        let long = compaction::long_outputs(messages, &self.delimiter, with_images);
        long.into_iter().map(|(id, text)| (id.to_owned(), text.to_owned())).collect()
    }

    /// Whether to request a summary from the model: it is configured and fits into the budget and the time.
    fn asks_for_summary(&self, moment: Moment) -> bool {
        self.limits.compaction.strategy == CompactionStrategy::Layered
            && self.exceeded_limit(Purpose::Summary).is_none()
            && self.limits.step_time(moment.elapsed).is_none_or(|left| !left.is_zero())
    }

    fn summary_part(&self, range: Option<Range<usize>>, answer: &SummaryReply) -> CompactionEvent {
        let (removed, message_count) = match range {
            Some(range) if self.limits.compaction.strategy == CompactionStrategy::Layered => {
                (self.messages.get(range.clone()).unwrap_or_default(), range.end)
            }
            // Without a summary, nothing is dropped before the last stage.
            _ => (&[][..], 0),
        };
        let reply = match answer {
            SummaryReply::Received(text) => Some(text.trim()).filter(|text| !text.is_empty()),
            SummaryReply::NotSent | SummaryReply::Missing => None,
        };
        let text = reply.map_or_else(|| summary::without_model(removed), str::to_owned);
        CompactionEvent::Summary { message_count, text, by_model: reply.is_some() }
    }

    /// Returns the messages of the request for a summary.
    pub(super) fn summary_request(&self) -> Vec<Arc<Message>> {
        let removed = self
            .removable_messages(CompactionStage::Summary)
            .and_then(|range| self.messages.get(range))
            .unwrap_or_default();
        let window = self.run.compaction.as_ref().map_or(0, |compaction| compaction.window);
        let max_chars = (window / REQUEST_SHARE).saturating_mul(CHARS_PER_TOKEN);
        let max_chars = usize::try_from(max_chars).unwrap_or(usize::MAX);
        summary::request(self.prompts.task(&self.messages), removed, &self.delimiter, max_chars)
    }

    /// Returns the limit on the tokens of a summary.
    pub(super) fn summary_tokens(&self) -> u32 {
        let window = self.run.compaction.as_ref().map_or(0, |compaction| compaction.window);
        let tokens = (window / SUMMARY_SHARE).clamp(MIN_SUMMARY_TOKENS, MAX_SUMMARY_TOKENS);
        u32::try_from(tokens).unwrap_or(u32::MAX)
    }

    pub(super) fn apply_compaction_event(&mut self, part: &CompactionEvent) {
        match part {
            CompactionEvent::Start { tokens, window, requested } => {
                self.run.compaction = Some(CompactionProgress {
                    before: *tokens,
                    window: *window,
                    requested: *requested,
                    stage: CompactionStage::OldOutputs,
                    answer: SummaryReply::NotSent,
                });
            }
            CompactionEvent::End { enough, .. } => self.end_compaction(*enough),
            part => self.apply_compaction(part),
        }
    }

    /// Records the reply to the request for a summary; a withheld reply counts as missing.
    pub(super) fn record_summary(&mut self, answer: Option<String>) {
        let answer = answer.filter(|_| !self.run.guardrails.is_withheld());
        self.run.guardrails.note_message();
        if let Some(compaction) = &mut self.run.compaction {
            compaction.answer = answer.map_or(SummaryReply::Missing, SummaryReply::Received);
        }
    }

    fn apply_compaction(&mut self, part: &CompactionEvent) {
        self.change_messages(|session| session.compact_messages(part));
        if let Some(compaction) = &mut self.run.compaction {
            compaction.stage = match compaction.stage {
                CompactionStage::OldOutputs => CompactionStage::Summary,
                CompactionStage::Summary => CompactionStage::DropExchanges,
                CompactionStage::DropExchanges => CompactionStage::LastOutputs,
                CompactionStage::LastOutputs | CompactionStage::Over => CompactionStage::Over,
            };
        }
    }

    /// Changes the messages with `change`, and adapts the estimates of the prompt's length.
    pub(super) fn change_messages(&mut self, change: impl FnOnce(&mut Self)) {
        let bytes = context_window::bytes_of(self.messages.iter().map(AsRef::as_ref));
        change(self);
        let messages = self.messages.iter().map(AsRef::as_ref);
        self.prompt_estimate.scale_to(messages, bytes, self.limits.tools_bytes);
        self.recount();
    }

    fn compact_messages(&mut self, part: &CompactionEvent) {
        match part {
            CompactionEvent::OutputsShortened { call_ids } => {
                // Earlier stages leave the images, so that the summary contains the lines about them.
                let with_images = self.run.compaction.as_ref().map(|progress| progress.stage)
                    == Some(CompactionStage::LastOutputs);
                compaction::shorten_outputs(&mut self.messages, call_ids, &self.delimiter, with_images);
            }
            CompactionEvent::Summary { message_count: 0, .. }
            | CompactionEvent::MessagesDropped { message_count: 0 }
            | CompactionEvent::Start { .. }
            | CompactionEvent::End { .. } => {}
            CompactionEvent::Summary { message_count, text, .. } => {
                compaction::replace(
                    &mut self.messages,
                    &mut self.prompts,
                    *message_count,
                    summary::message(text, self.todo.as_deref()),
                    &self.delimiter,
                );
            }
            CompactionEvent::MessagesDropped { message_count } => {
                let gone = self.messages.get(..*message_count).unwrap_or_default();
                let earlier = gone.iter().find_map(|message| summary::text_of(message));
                let text = earlier.as_deref().unwrap_or(messages::STEPS_OMITTED);
                let note = summary::message(text, self.todo.as_deref());
                compaction::replace(
                    &mut self.messages,
                    &mut self.prompts,
                    *message_count,
                    note,
                    &self.delimiter,
                );
            }
        }
    }

    /// Records the end of a compaction: the step follows, or the run ends.
    fn end_compaction(&mut self, enough: bool) {
        let requested = self.run.compaction.take().is_some_and(|progress| progress.requested);
        self.run.still_full = !enough;
        // One that the user requested does not delay the next one that is needed.
        if !requested {
            self.compacted_at = Some(self.tally.steps);
        }
        self.tally.compactions = self.tally.compactions.saturating_add(1);
        let refused = |failure: &Failure| failure.kind == FailureKind::ContextOverflow;
        if enough && self.run.failure.as_ref().is_some_and(refused) {
            self.run.failure = None;
        }
    }
}
