//! Answers without calls: the same text again, and actions that are announced and not taken.

use super::announcement::announces;
use super::fingerprint::Fingerprint;
use crate::core::event::FinishReason;
use crate::core::limits::BreakerLimits;
use serde::{Deserialize, Serialize};

/// Characters of a text below which it says too little to be compared: one word may be the right answer twice.
const MIN_COMPARED_CHARS: usize = 40;

/// What is known of the answers since the last call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TextAnswers {
    last: Option<Fingerprint>,
    times: u32,
    /// The last one ends with what is to be done next.
    announces: bool,
    /// How often the model was asked to do it.
    asked: u32,
}

/// What follows from the last answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerAction {
    /// The model is asked to do what it announced.
    AskToAct,
    /// The run ends.
    End,
}

impl TextAnswers {
    /// Takes note of an answer without calls, of a model that could act.
    pub fn answered(&mut self, text: &str, finish: &FinishReason) {
        let is_long = text.chars().nth(MIN_COMPARED_CHARS).is_some();
        let print = (is_long && finish.is_usable()).then(|| Fingerprint::of_text(text));
        self.times = if print.is_some() && print == self.last { self.times.saturating_add(1) } else { 1 };
        self.last = print;
        self.announces = matches!(finish, FinishReason::Stop | FinishReason::ToolCalls) && announces(text);
    }

    /// The model has called a tool.
    pub fn called(&mut self) {
        *self = Self::default();
    }

    /// The model was told that it goes nowhere.
    pub fn note_warning(&mut self) {
        self.asked = self.asked.saturating_add(u32::from(self.announces));
    }

    /// What follows.
    pub fn answer_action(&self, limits: &BreakerLimits) -> Option<AnswerAction> {
        let repeats = limits.repeated_texts > 0 && self.last.is_some() && self.times >= limits.repeated_texts;
        match limits.announcements {
            _ if repeats => Some(AnswerAction::End),
            most if most > 0 && self.announces => {
                Some(if self.asked < most { AnswerAction::AskToAct } else { AnswerAction::End })
            }
            _ => None,
        }
    }
}
