//! Applies the findings of the breakers in a session: refuses a call, warns the model, ends the run.

use super::{NextAction, Session};
use crate::breakers::AnswerAction;
use agent_core::evaluation::EvaluationMode;
use agent_core::event::{MessageOrigin, Purpose};
use agent_core::message::ToolCall;
use agent_core::stop_reason::StopReason;
use agent_messages as messages;

impl Session {
    /// Whether `calls` are all calls of the last answer, so that its step ends with them.
    pub fn is_whole_turn(&self, calls: &[ToolCall]) -> bool {
        self.pending == calls
    }

    /// Returns the action that refuses the next repeated calls of the last answer.
    pub(super) fn refuse_repeated_calls(&self) -> Option<NextAction> {
        let open = self.pending.iter().filter(|call| !self.results.contains_key(&call.id));
        let mut refused = open
            .filter_map(|call| self.run.breakers.refusal(&call.id).map(|message| (call, message)))
            .peekable();
        let message = refused.peek()?.1.clone();
        let calls = refused.filter(|(_, other)| *other == message).map(|(call, _)| call.clone()).collect();
        Some(NextAction::RefuseCalls(calls, message))
    }

    /// Returns the action before the next step: the breakers' warning to the model, or the model call.
    pub(super) fn warn_or_call_model(&self) -> NextAction {
        let warning = self.run.breakers.warning();
        warning.map_or(NextAction::CallModel(Purpose::Step), |text| {
            NextAction::AddUserMessage(MessageOrigin::Breaker, text)
        })
    }

    /// Returns the action after an answer without calls that repeats an earlier one or only announces an action. Quality gates, full
    /// evaluation and reviews replace this check.
    pub(super) fn after_stalled_answer(&self, text: &str) -> Option<NextAction> {
        let limits = &self.limits;
        let is_full = limits.evaluation.mode == EvaluationMode::Full;
        if limits.gate_rounds.is_some() || is_full || limits.review_passes.is_some() {
            return None;
        }
        let reply =
            self.run.breakers.answer_action(&self.limits.breakers).filter(|_| !self.has_output_schema())?;
        Some(match reply {
            AnswerAction::AskToAct => {
                NextAction::AddUserMessage(MessageOrigin::Breaker, messages::ANNOUNCED_ACTION.to_owned())
            }
            AnswerAction::End => self.stop_with_answer(StopReason::NoProgress, text.to_owned(), None),
        })
    }

    /// Retains the answer as a prefix of the next one, which may only comment on it.
    pub(super) fn retain_answer(&mut self) {
        let answer = self.answer();
        if !answer.is_empty() {
            self.answer_so_far = format!("{answer}\n\n");
        }
    }
}
