//! Adds user messages and answers to the conversation.

use super::{ClosingStage, Session};
use crate::conversation_images::user_parts;
use agent_core::event::{FinishReason, MessageOrigin, Purpose};
use agent_core::image::Image;
use agent_core::message::{HistoryMessage, Message, Role};
use agent_engine::call_arguments;
use std::sync::Arc;

impl Session {
    /// Returns the messages of the request for `purpose`.
    pub fn messages_for(&self, purpose: Purpose) -> Vec<Arc<Message>> {
        match purpose {
            Purpose::Step | Purpose::Closing => self.messages.clone(),
            Purpose::Evaluation => self.evaluation_request(),
            Purpose::Summary => self.summary_request(),
        }
    }

    pub(super) fn add_user_message(&mut self, text: &str, origin: MessageOrigin, images: &[Image]) {
        if self.hold_message(text, origin, images) {
            return;
        }
        self.push_results();
        match origin {
            MessageOrigin::Continuation => {
                self.answer_so_far = self.answer();
                self.continuations = self.continuations.saturating_add(1);
            }
            MessageOrigin::Breaker => self.retain_answer(),
            // These messages can arrive at any time, also between the pieces of an answer.
            MessageOrigin::Hook | MessageOrigin::Background | MessageOrigin::Remaining => {}
            MessageOrigin::Prompt
            | MessageOrigin::System
            | MessageOrigin::Repair
            | MessageOrigin::Guardrail
            | MessageOrigin::Gate
            | MessageOrigin::Evaluation
            | MessageOrigin::Review
            | MessageOrigin::Plan
            | MessageOrigin::UserCommand
            | MessageOrigin::Queued
            | MessageOrigin::Skill
            | MessageOrigin::Instructions
            | MessageOrigin::GitDiff => {
                self.reset_answer();
            }
        }
        self.note_user_message(text, origin);
        if origin == MessageOrigin::System {
            self.instructed_to_close = true;
            self.set_closing_stage(ClosingStage::Instructed);
        } else if origin == MessageOrigin::Prompt {
            self.instructed_to_close = false;
            self.has_task = true;
            self.prompts.record(self.messages.len());
        }
        self.structured_output.note_message(origin);
        match origin {
            MessageOrigin::Gate => self.run.gates.note_retry(),
            MessageOrigin::Review => self.run.review.note_pass(),
            MessageOrigin::Remaining => self.run.spending.mark_low_budget_reported(),
            _ => {}
        }
        self.run.evaluation.note_message(origin);
        self.finish = None;
        self.push(Message { role: Role::User, parts: user_parts(text, images) });
    }

    /// Adds the messages of `history`. All of them are unread for this model, whichever model wrote the answers.
    pub(super) fn add_history(&mut self, history: &[HistoryMessage]) {
        for message in history {
            self.unread.push(message.content.clone());
            self.push(Message::from(message));
        }
    }

    fn reset_answer(&mut self) {
        self.answer_so_far.clear();
        self.continuations = 0;
    }

    pub(super) fn add_response(&mut self, purpose: Purpose, message: &Message, finish: &FinishReason) {
        let usable_text = || finish.is_usable().then(|| message.joined_text());
        match purpose {
            Purpose::Summary => return self.record_summary(usable_text()),
            Purpose::Evaluation => return self.record_evaluation_reply(usable_text()),
            Purpose::Step | Purpose::Closing => {}
        }
        self.push_results();
        self.uses_before = self.tally.tools_used.len();
        self.dropped_calls = 0;
        let mut message = message.clone();
        if purpose == Purpose::Closing {
            self.set_closing_stage(ClosingStage::Over);
            if let Some(closing) = &mut self.run.closing {
                closing.text = Some(message.joined_text());
            }
        } else if !finish.is_usable() && message.tool_calls().next().is_some() {
            self.dropped_calls = message.tool_calls().count();
            message = message.without_calls();
        } else {
            for call in message.tool_calls() {
                self.malformed = if call_arguments::parse(&call.arguments).is_ok() {
                    0
                } else {
                    self.malformed.saturating_add(1)
                };
                self.tally.tool_calls = self.tally.tool_calls.saturating_add(1);
                self.call_ids.insert(call.id.clone());
                self.pending.push(call.clone());
            }
            if !self.pending.is_empty() {
                self.reset_answer();
            }
        }
        self.finish = Some(finish.clone());
        self.run.answered = true;
        self.run.guardrails.answered();
        self.run.gates.answered();
        self.run.evaluation.answered();
        self.run.review.answered();
        self.unread.clear();
        self.run.spending.called(self.pending.len());
        self.push(message);
    }
}
