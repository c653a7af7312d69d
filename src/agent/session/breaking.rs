//! What a session does when its breakers have noticed something: refuses a call, tells the model, ends the run.

use super::{Session, Step};
use crate::agent::breakers::Reply;
use crate::evaluation::EvaluationMode;
use crate::event::{Origin, Purpose};
use crate::message::ToolCall;
use crate::messages;
use crate::stop_reason::StopReason;

impl Session {
    /// Whether `calls` are all of the last answer, so that its step ends with them.
    pub fn is_answer(&self, calls: &[ToolCall]) -> bool {
        self.pending == calls
    }

    /// The next calls of the last answer that do not run because they repeat earlier ones.
    pub(super) fn repeating(&self) -> Option<Step> {
        let open = self.pending.iter().filter(|call| !self.results.contains_key(&call.id));
        let mut refused =
            open.filter_map(|call| self.run.breakers.refusal(&call.id).map(|why| (call, why))).peekable();
        let why = refused.peek()?.1.clone();
        let calls = refused.filter(|(_, other)| *other == why).map(|(call, _)| call.clone()).collect();
        Some(Step::Refuse(calls, why))
    }

    /// The model is asked for the next step, and before that told where the last ones led.
    pub(super) fn told_or_asked(&self) -> Step {
        let words = self.run.breakers.words();
        words.map_or(Step::CallModel(Purpose::Step), |text| Step::Say(Origin::Breaker, text))
    }

    /// What follows an answer without calls that says what was said before, or that only announces something. Where there are
    /// gates, or evaluations that the model is told of, those decide what an answer is worth, and how often.
    pub(super) fn led_nowhere(&self, text: &str) -> Option<Step> {
        if self.limits.gate_rounds.is_some() || self.limits.evaluation.mode == EvaluationMode::Full {
            return None;
        }
        let reply = self.run.breakers.reply(&self.limits.breakers).filter(|_| !self.demands())?;
        Some(match reply {
            Reply::Ask => Step::Say(Origin::Breaker, messages::ANNOUNCED.to_owned()),
            Reply::End => self.verdict(StopReason::NoProgress, text.to_owned(), None),
        })
    }

    /// The model was asked about its answer, which stays: what follows may be a word about it.
    pub(super) fn keep_answer(&mut self) {
        let said = self.answer();
        if !said.is_empty() {
            self.answer_so_far = format!("{said}\n\n");
        }
    }
}
