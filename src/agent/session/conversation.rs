//! How what is said joins the conversation: by the person or the loop, and by the model.

use super::{Session, Stage};
use crate::engine::arguments;
use crate::event::{FinishReason, Origin, Purpose};
use crate::message::{Message, Role};

impl Session {
    pub(super) fn user_message(&mut self, text: &str, origin: Origin) {
        if self.held_back(text, origin) {
            return;
        }
        self.close_pending();
        match origin {
            Origin::Continuation => {
                self.answer_so_far = self.answer();
                self.continuations = self.continuations.saturating_add(1);
            }
            Origin::Breaker => self.keep_answer(),
            // A hook may speak before any call, also between the pieces of an answer; so may the end of a command.
            Origin::Hook | Origin::Background | Origin::Remaining => {}
            Origin::Prompt
            | Origin::System
            | Origin::Repair
            | Origin::Guardrail
            | Origin::Gate
            | Origin::Evaluation
            | Origin::Plan
            | Origin::GitDiff => {
                self.reset_answer();
            }
        }
        self.note_words(text, origin);
        if origin == Origin::System {
            self.told_to_close = true;
            self.closing_is(Stage::Instructed);
        } else if origin == Origin::Prompt {
            self.told_to_close = false;
            self.has_task = true;
            self.prompts.said(self.messages.len());
        }
        self.demand.said(origin);
        match origin {
            Origin::Gate => self.run.gating.told(),
            Origin::Remaining => self.run.spending.told_of_little(),
            _ => {}
        }
        self.run.evaluating.said(origin);
        self.finish = None;
        self.push(Message::text(Role::User, text));
    }

    fn reset_answer(&mut self) {
        self.answer_so_far.clear();
        self.continuations = 0;
    }

    pub(super) fn response(&mut self, purpose: Purpose, message: &Message, finish: &FinishReason) {
        let said = || finish.counts().then(|| message.joined_text());
        match purpose {
            Purpose::Summary => return self.summary_came(said()),
            Purpose::Evaluation => return self.verdict_came(said()),
            Purpose::Step | Purpose::Closing => {}
        }
        self.close_pending();
        self.uses_before = self.tally.tools_used.len();
        self.dropped = 0;
        let mut message = message.clone();
        if purpose == Purpose::Closing {
            self.closing_is(Stage::Over);
            if let Some(closing) = &mut self.run.closing {
                closing.text = Some(message.joined_text());
            }
        } else if !finish.counts() && message.tool_calls().next().is_some() {
            self.dropped = message.tool_calls().count();
            message = message.without_calls();
        } else {
            for call in message.tool_calls() {
                self.malformed = if arguments::read(&call.arguments).is_ok() {
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
        self.run.screening.answered();
        self.run.gating.answered();
        self.run.evaluating.answered();
        self.unread.clear();
        self.run.spending.called(self.pending.len());
        self.push(message);
    }
}
