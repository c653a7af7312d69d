//! What a session does when its breakers have noticed something: refuses a call, tells the model, ends the run.

use super::{NextAction, Session};
use crate::agent::breakers::AnswerAction;
use crate::core::evaluation::EvaluationMode;
use crate::core::event::{MessageOrigin, Purpose};
use crate::core::message::ToolCall;
use crate::core::stop_reason::StopReason;
use crate::messages;

impl Session {
    /// Whether `calls` are all of the last answer, so that its step ends with them.
    pub fn is_whole_turn(&self, calls: &[ToolCall]) -> bool {
        self.pending == calls
    }

    /// The next calls of the last answer that do not run because they repeat earlier ones.
    pub(super) fn refuse_repeated_calls(&self) -> Option<NextAction> {
        let open = self.pending.iter().filter(|call| !self.results.contains_key(&call.id));
        let mut refused =
            open.filter_map(|call| self.run.breakers.refusal(&call.id).map(|why| (call, why))).peekable();
        let why = refused.peek()?.1.clone();
        let calls = refused.filter(|(_, other)| *other == why).map(|(call, _)| call.clone()).collect();
        Some(NextAction::RefuseCalls(calls, why))
    }

    /// The model is asked for the next step, and before that told where the last ones led.
    pub(super) fn warn_or_call_model(&self) -> NextAction {
        let words = self.run.breakers.warning();
        words.map_or(NextAction::CallModel(Purpose::Step), |text| {
            NextAction::AddUserMessage(MessageOrigin::Breaker, text)
        })
    }

    /// What follows an answer without calls that says what was said before, or that only announces something. Where there are
    /// gates, or evaluations that the model is told of, those decide what an answer is worth, and how often.
    pub(super) fn after_stalled_answer(&self, text: &str) -> Option<NextAction> {
        if self.limits.gate_rounds.is_some() || self.limits.evaluation.mode == EvaluationMode::Full {
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

    /// The model was asked about its answer, which stays: what follows may be a word about it.
    pub(super) fn retain_answer(&mut self) {
        let said = self.answer();
        if !said.is_empty() {
            self.answer_so_far = format!("{said}\n\n");
        }
    }
}
