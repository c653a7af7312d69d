//! What a session does about a structured answer: tells the schema, reads the answer, asks for a repair.

use super::{Moment, Session, Step, Verdict};
use crate::agent::structured::OutputSchema;
use crate::event::Origin;
use crate::failure::{ErrorKind, Failure};
use crate::message::Role;
use crate::messages;
use crate::result::Output;
use crate::stop_reason::StopReason;
use crate::text::tokens;
use serde::{Deserialize, Serialize};
use std::rc::Rc;

/// How often in a run the model is asked to repair its answer.
const MAX_REPAIRS: u32 = 2;

/// What is demanded of the answer of a run, and how far that has come.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Demand {
    #[serde(skip)]
    schema: Option<Rc<OutputSchema>>,
    repairs: u32,
    /// The model was asked for a repair and nobody has said anything else since.
    repairing: bool,
}

impl Demand {
    /// A run begins.
    pub(super) fn begin(&mut self) {
        self.repairs = 0;
        self.repairing = false;
    }

    /// Somebody said something to the model.
    pub(super) fn said(&mut self, origin: Origin) {
        match origin {
            Origin::Repair => {
                self.repairs = self.repairs.saturating_add(1);
                self.repairing = true;
            }
            Origin::Prompt
            | Origin::System
            | Origin::Gate
            | Origin::Evaluation
            | Origin::Plan
            | Origin::GitDiff => {
                self.repairing = false;
            }
            Origin::Background
            | Origin::Continuation
            | Origin::Guardrail
            | Origin::Breaker
            | Origin::Hook
            | Origin::Remaining => {}
        }
    }
}

impl Session {
    /// The session when the answer must fit `schema`, for which requests need room: strict modes take it beside the
    /// tools or in their place.
    #[must_use]
    pub fn demanding(mut self, schema: Option<Rc<OutputSchema>>) -> Self {
        let text = schema.as_ref().map_or("", |schema| schema.text());
        self.limits.caps.schema_tokens = tokens::at_most(text);
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.limits.tools_bytes = self.limits.tools_bytes.saturating_add(bytes);
        self.demand.schema = schema;
        self
    }

    /// Whether the answer must fit a schema.
    pub fn demands(&self) -> bool {
        self.demand.schema.is_some()
    }

    /// `words` for the model with the schema, unless it is the last one that the model was told.
    pub fn with_schema(&self, words: Option<String>) -> Option<String> {
        let Some(schema) = &self.demand.schema else { return words };
        let text = messages::output_schema(schema.text());
        let said = self.messages.iter().rev().filter(|message| message.role == Role::User);
        let told = said.map(|message| message.joined_text()).find(|said| messages::tells_schema(said));
        match words {
            words if told.is_some_and(|told| told.ends_with(&text)) => words,
            Some(words) => Some(format!("{words}\n\n{text}")),
            None => Some(text),
        }
    }

    /// The schema that the answer must fit.
    pub fn schema(&self) -> Option<Rc<OutputSchema>> {
        self.demand.schema.clone()
    }

    /// Whether the model is to repair its answer, for which it is offered no tools.
    pub fn is_repairing(&self) -> bool {
        self.demand.repairing
    }

    fn done(&self, text: String, moment: Moment) -> Step {
        match self.verdict(StopReason::LlmDone, text, None) {
            Step::Stop(verdict) => self.gated(verdict, moment),
            other => other,
        }
    }

    /// The model has finished with `text`: the end, a repair, or what became of the last repair.
    pub(super) fn finished(&self, text: String, moment: Moment) -> Step {
        let Some(schema) = &self.demand.schema else { return self.done(text, moment) };
        match schema.read(&text) {
            Ok(value) => {
                let done = self.stop_with(StopReason::LlmDone, None);
                self.gated(Verdict { output: Output::Value(value), ..done }, moment)
            }
            Err(problems) if self.demand.repairs < MAX_REPAIRS => {
                Step::Say(Origin::Repair, messages::repair(&problems.lines, problems.more))
            }
            Err(problems) => {
                let message = messages::answer_does_not_fit(&problems.lines);
                let failure = Failure { kind: ErrorKind::OutputSchema, message, retryable: false };
                self.verdict(StopReason::LlmError, text, Some(failure))
            }
        }
    }
}
