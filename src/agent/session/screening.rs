//! What a session does when a guardrail or a hook has spoken: asks for another answer, or ends the run.

use super::{Session, Step};
use crate::event::Origin;
use crate::guardrail::{Reaction, Side, Triggered};
use crate::message::{Part, Role};
use crate::messages;
use crate::stop_reason::StopReason;
use serde::{Deserialize, Serialize};

/// How often in a row the model is asked again for an answer.
const MAX_ASKED_AGAIN: u32 = 2;

/// What guardrails have done in a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Screening {
    /// Why the run ends.
    halted: Option<String>,
    /// Why the last answer was withheld.
    withheld: Option<String>,
    /// Answers that were withheld in a row.
    in_a_row: u32,
}

impl Screening {
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
    pub(super) fn said(&mut self) {
        self.withheld = None;
    }
}

/// A text that the model has not read yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread<'a> {
    /// What it is told by a person, a hook or a command that ended.
    Words(&'a str),
    /// The result of one of its calls.
    Result(&'a str),
}

impl Session {
    /// Whether a hook has ended this run.
    pub fn is_stopped(&self) -> bool {
        self.run.stopped.is_some()
    }

    /// A hook has ended the run, for this reason.
    pub(super) fn stopped(&mut self, reason: &str) {
        self.run.stopped = Some(reason.to_owned());
    }

    /// What the model reads first with the next request, our own words aside.
    pub fn unread(&self) -> impl Iterator<Item = Unread<'_>> {
        let new = self.messages.iter().rev().take_while(|message| message.role != Role::Assistant);
        let results = new.flat_map(|message| &message.parts).filter_map(|part| match part {
            Part::ToolResult(result) => Some(Unread::Result(&result.text)),
            Part::Text { .. } | Part::Thinking { .. } | Part::ToolCall(_) => None,
        });
        self.unread.iter().map(|words| Unread::Words(words)).chain(results)
    }

    /// Somebody said something to the model.
    pub(super) fn note_words(&mut self, text: &str, origin: Origin) {
        self.run.screening.said();
        match origin {
            Origin::Prompt | Origin::Hook | Origin::Background | Origin::Plan | Origin::GitDiff => {
                self.unread.push(text.to_owned());
            }
            Origin::System
            | Origin::Continuation
            | Origin::Repair
            | Origin::Guardrail
            | Origin::Breaker
            | Origin::Gate
            | Origin::Evaluation
            | Origin::Remaining => {}
        }
    }

    pub(super) fn triggered(&mut self, triggered: &Triggered) {
        self.tally.guardrail(triggered);
        let screening = &mut self.run.screening;
        match (triggered.action, triggered.on) {
            (Reaction::Halt, _) => screening.halted = Some(triggered.message.clone()),
            (Reaction::Block, Side::Output) => {
                screening.withheld = Some(triggered.message.clone());
                screening.in_a_row = screening.in_a_row.saturating_add(1);
            }
            (Reaction::Block, Side::Input) => {}
        }
    }

    /// The end of a run that a guardrail ends.
    pub(super) fn halted(&self) -> Option<Step> {
        let reason = self.run.screening.halted.clone()?;
        Some(self.verdict(StopReason::Guardrail, reason, None))
    }

    /// What follows an answer that was withheld.
    pub(super) fn withheld(&self) -> Option<Step> {
        let reason = self.run.screening.withheld.clone()?;
        Some(if self.run.screening.in_a_row <= MAX_ASKED_AGAIN {
            Step::Say(Origin::Guardrail, messages::ANSWER_WITHHELD.to_owned())
        } else {
            self.verdict(StopReason::Guardrail, reason, None)
        })
    }
}
