//! Checks answers without calls: repeated texts, and actions that are announced but not taken.

use super::announcement::announces;
use super::fingerprint::Fingerprint;
use agent_core::event::FinishReason;
use agent_core::limits::BreakerLimits;

/// Length of a text in characters below which it is not compared: a short answer may be correct twice.
const MIN_COMPARED_CHARS: usize = 40;

/// State of the check: the answers since the last call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TextAnswers {
    last: Option<Fingerprint>,
    times: u32,
    /// Whether the last answer ends by announcing an action.
    announces: bool,
    /// How often the model was asked to take the action.
    reminders: u32,
}

/// Reaction to the last answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerAction {
    /// Ask the model to take the announced action.
    AskToAct,
    /// End the run.
    End,
}

impl TextAnswers {
    /// Records an answer without calls.
    pub fn answered(&mut self, text: &str, finish: &FinishReason) {
        let is_long = text.chars().nth(MIN_COMPARED_CHARS).is_some();
        let print = (is_long && finish.is_usable()).then(|| Fingerprint::of_text(text));
        self.times = if print.is_some() && print == self.last { self.times.saturating_add(1) } else { 1 };
        self.last = print;
        self.announces = matches!(finish, FinishReason::Stop | FinishReason::ToolCalls) && announces(text);
    }

    /// Resets the check after a tool call.
    pub fn called(&mut self) {
        *self = Self::default();
    }

    /// Records that the model was warned.
    pub fn note_warning(&mut self) {
        self.reminders = self.reminders.saturating_add(u32::from(self.announces));
    }

    /// Returns the reaction to the last answer.
    pub fn answer_action(&self, limits: &BreakerLimits) -> Option<AnswerAction> {
        let repeats = limits.repeated_texts > 0 && self.last.is_some() && self.times >= limits.repeated_texts;
        match limits.announcements {
            _ if repeats => Some(AnswerAction::End),
            limit if limit > 0 && self.announces => {
                Some(if self.reminders < limit { AnswerAction::AskToAct } else { AnswerAction::End })
            }
            _ => None,
        }
    }
}
