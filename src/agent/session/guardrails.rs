//! What a session does when a guardrail or a hook has spoken: asks for another answer, or ends the run.

use super::{NextAction, Session};
use crate::core::event::MessageOrigin;
use crate::core::guardrail::{ConversationSide, GuardrailAction, TriggeredGuardrail};
use crate::core::message::{Part, Role};
use crate::core::stop_reason::StopReason;
use crate::messages;
use serde::{Deserialize, Serialize};

/// How often in a row the model is asked again for an answer.
const MAX_ASKED_AGAIN: u32 = 2;

/// What guardrails have done in a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct GuardrailState {
    /// Why the run ends.
    halted: Option<String>,
    /// Why the last answer was withheld.
    withheld: Option<String>,
    /// Answers that were withheld in a row.
    in_a_row: u32,
}

impl GuardrailState {
    /// The model has answered.
    pub(super) fn answered(&mut self) {
        if self.withheld.is_none() {
            self.in_a_row = 0;
        }
    }

    /// Whether the last answer was withheld.
    pub(super) fn is_withheld(&self) -> bool {
        self.withheld.is_some()
    }

    /// Somebody said something to the model.
    pub(super) fn note_message(&mut self) {
        self.withheld = None;
    }
}

/// A text that the model has not read yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnreadText<'a> {
    /// What it is told by a person, a hook or a command that ended.
    Message(&'a str),
    /// The result of one of its calls.
    Result(&'a str),
}

impl Session {
    /// Whether a hook has ended this run.
    pub fn is_stopped_by_hook(&self) -> bool {
        self.run.stopped.is_some()
    }

    /// A hook has ended the run, for this reason.
    pub(super) fn set_stopped_by_hook(&mut self, reason: &str) {
        self.run.stopped = Some(reason.to_owned());
    }

    /// What the model reads first with the next request, our own words aside.
    pub fn unread(&self) -> impl Iterator<Item = UnreadText<'_>> {
        let new = self.messages.iter().rev().take_while(|message| message.role != Role::Assistant);
        let results = new.flat_map(|message| &message.parts).filter_map(|part| match part {
            Part::ToolResult(result) => Some(UnreadText::Result(&result.text)),
            Part::Text { .. } | Part::Thinking { .. } | Part::ToolCall(_) => None,
        });
        self.unread.iter().map(|words| UnreadText::Message(words)).chain(results)
    }

    /// Somebody said something to the model.
    pub(super) fn note_user_message(&mut self, text: &str, origin: MessageOrigin) {
        self.run.screening.note_message();
        match origin {
            MessageOrigin::Prompt
            | MessageOrigin::Hook
            | MessageOrigin::Background
            | MessageOrigin::Plan
            | MessageOrigin::GitDiff => {
                self.unread.push(text.to_owned());
            }
            MessageOrigin::System
            | MessageOrigin::Continuation
            | MessageOrigin::Repair
            | MessageOrigin::Guardrail
            | MessageOrigin::Breaker
            | MessageOrigin::Gate
            | MessageOrigin::Evaluation
            | MessageOrigin::Remaining => {}
        }
    }

    pub(super) fn triggered(&mut self, triggered: &TriggeredGuardrail) {
        self.tally.add_guardrail(triggered);
        let screening = &mut self.run.screening;
        match (triggered.action, triggered.on) {
            (GuardrailAction::Halt, _) => screening.halted = Some(triggered.message.clone()),
            (GuardrailAction::Block, ConversationSide::Output) => {
                screening.withheld = Some(triggered.message.clone());
                screening.in_a_row = screening.in_a_row.saturating_add(1);
            }
            (GuardrailAction::Block, ConversationSide::Input) => {}
        }
    }

    /// The end of a run that a guardrail ends.
    pub(super) fn guardrail_halt(&self) -> Option<NextAction> {
        let reason = self.run.screening.halted.clone()?;
        Some(self.stop_with_answer(StopReason::Guardrail, reason, None))
    }

    /// What follows an answer that was withheld.
    pub(super) fn after_withheld_answer(&self) -> Option<NextAction> {
        let reason = self.run.screening.withheld.clone()?;
        Some(if self.run.screening.in_a_row <= MAX_ASKED_AGAIN {
            NextAction::AddUserMessage(MessageOrigin::Guardrail, messages::ANSWER_WITHHELD.to_owned())
        } else {
            self.stop_with_answer(StopReason::Guardrail, reason, None)
        })
    }
}
