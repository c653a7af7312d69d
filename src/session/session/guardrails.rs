//! Handles guardrails and hooks that stop a run in a session: requests another answer, or ends the run.

use super::{NextAction, Session};
use agent_core::event::MessageOrigin;
use agent_core::guardrail::{ConversationSide, GuardrailAction, TriggeredGuardrail};
use agent_core::message::{Part, Role};
use agent_core::stop_reason::StopReason;
use agent_messages as messages;

/// How often in a row the model is asked for another answer.
const MAX_ASKED_AGAIN: u32 = 2;

/// State of the guardrails in a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct GuardrailState {
    /// Why the run must end.
    halted: Option<String>,
    /// Why the last answer was withheld.
    withheld: Option<String>,
    /// Number of answers withheld in a row.
    in_a_row: u32,
}

impl GuardrailState {
    /// Records an answer of the model.
    pub(super) fn answered(&mut self) {
        if self.withheld.is_none() {
            self.in_a_row = 0;
        }
    }

    /// Whether the last answer was withheld.
    pub(super) fn is_withheld(&self) -> bool {
        self.withheld.is_some()
    }

    /// Records a user message.
    pub(super) fn note_message(&mut self) {
        self.withheld = None;
    }
}

/// A text that the model has not read yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnreadText<'a> {
    /// A message of the user, a hook or a background command.
    Message(&'a str),
    /// The result of a call.
    Result(&'a str),
}

impl Session {
    /// Whether a hook has stopped this run.
    pub fn is_stopped_by_hook(&self) -> bool {
        self.run.stopped.is_some()
    }

    /// Records that a hook stopped the run, with its reason.
    pub(super) fn set_stopped_by_hook(&mut self, reason: &str) {
        self.run.stopped = Some(reason.to_owned());
    }

    /// Returns the unread texts of the next request, except the agent's own messages.
    pub fn unread(&self) -> impl Iterator<Item = UnreadText<'_>> {
        let new = self.messages.iter().rev().take_while(|message| message.role != Role::Assistant);
        let results = new.flat_map(|message| &message.parts).filter_map(|part| match part {
            Part::ToolResult(result) => Some(UnreadText::Result(&result.text)),
            Part::Image(_) | Part::Text { .. } | Part::Thinking { .. } | Part::ToolCall(_) => None,
        });
        self.unread.iter().map(|text| UnreadText::Message(text)).chain(results)
    }

    /// Records a user message.
    pub(super) fn note_user_message(&mut self, text: &str, origin: MessageOrigin) {
        self.run.guardrails.note_message();
        match origin {
            MessageOrigin::Prompt
            | MessageOrigin::Hook
            | MessageOrigin::Background
            | MessageOrigin::Plan
            | MessageOrigin::UserCommand
            | MessageOrigin::Queued
            | MessageOrigin::Skill
            | MessageOrigin::Instructions
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
            | MessageOrigin::Review
            | MessageOrigin::Remaining => {}
        }
    }

    pub(super) fn record_guardrail(&mut self, triggered: &TriggeredGuardrail) {
        self.tally.add_guardrail(triggered);
        let guardrails = &mut self.run.guardrails;
        match (triggered.action, triggered.on) {
            (GuardrailAction::Halt, _) => guardrails.halted = Some(triggered.message.clone()),
            (GuardrailAction::Block, ConversationSide::Output) => {
                guardrails.withheld = Some(triggered.message.clone());
                guardrails.in_a_row = guardrails.in_a_row.saturating_add(1);
            }
            (GuardrailAction::Block, ConversationSide::Input) => {}
        }
    }

    /// Returns the action that ends the run when a guardrail has halted it.
    pub(super) fn guardrail_halt(&self) -> Option<NextAction> {
        let reason = self.run.guardrails.halted.clone()?;
        Some(self.stop_with_answer(StopReason::Guardrail, reason, None))
    }

    /// Returns the action after a withheld answer.
    pub(super) fn after_withheld_answer(&self) -> Option<NextAction> {
        let reason = self.run.guardrails.withheld.clone()?;
        Some(if self.run.guardrails.in_a_row <= MAX_ASKED_AGAIN {
            NextAction::AddUserMessage(MessageOrigin::Guardrail, messages::ANSWER_WITHHELD.to_owned())
        } else {
            self.stop_with_answer(StopReason::Guardrail, reason, None)
        })
    }
}
