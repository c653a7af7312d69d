//! What a session does about a structured answer: tells the schema, reads the answer, asks for a repair.

use super::{Moment, NextAction, RunOutcome, Session};
use crate::agent::output_schema::OutputSchema;
use crate::core::event::MessageOrigin;
use crate::core::failure::{Failure, FailureKind};
use crate::core::message::Role;
use crate::core::run_result::Output;
use crate::core::stop_reason::StopReason;
use crate::messages;
use crate::text::tokens;
use serde::{Deserialize, Serialize};
use std::rc::Rc;

/// How often in a run the model is asked to repair its answer.
const MAX_REPAIRS: u32 = 2;

/// What is demanded of the answer of a run, and how far that has come.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct StructuredOutput {
    #[serde(skip)]
    schema: Option<Rc<OutputSchema>>,
    repairs: u32,
    /// The model was asked for a repair and nobody has said anything else since.
    repairing: bool,
}

impl StructuredOutput {
    /// A run begins.
    pub(super) fn start_run(&mut self) {
        self.repairs = 0;
        self.repairing = false;
    }

    /// Somebody said something to the model.
    pub(super) fn note_message(&mut self, origin: MessageOrigin) {
        match origin {
            MessageOrigin::Repair => {
                self.repairs = self.repairs.saturating_add(1);
                self.repairing = true;
            }
            MessageOrigin::Prompt
            | MessageOrigin::System
            | MessageOrigin::Gate
            | MessageOrigin::Evaluation
            | MessageOrigin::Plan
            | MessageOrigin::GitDiff => {
                self.repairing = false;
            }
            MessageOrigin::Background
            | MessageOrigin::Continuation
            | MessageOrigin::Guardrail
            | MessageOrigin::Breaker
            | MessageOrigin::Hook
            | MessageOrigin::Remaining => {}
        }
    }
}

impl Session {
    /// The session when the answer must fit `schema`, for which requests need room: strict modes take it beside the
    /// tools or in their place.
    #[must_use]
    pub fn with_output_schema(mut self, schema: Option<Rc<OutputSchema>>) -> Self {
        let text = schema.as_ref().map_or("", |schema| schema.text());
        self.limits.caps.schema_tokens = tokens::upper_bound(text);
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.limits.tools_bytes = self.limits.tools_bytes.saturating_add(bytes);
        self.demand.schema = schema;
        self
    }

    /// Whether the answer must fit a schema.
    pub fn has_output_schema(&self) -> bool {
        self.demand.schema.is_some()
    }

    /// `words` for the model with the schema, unless it is the last one that the model was told.
    pub fn with_schema(&self, words: Option<String>) -> Option<String> {
        let Some(schema) = &self.demand.schema else { return words };
        let text = messages::schema_message(schema.text());
        let said = self.messages.iter().rev().filter(|message| message.role == Role::User);
        let told = said.map(|message| message.joined_text()).find(|said| messages::contains_schema(said));
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

    fn done(&self, text: String, moment: Moment) -> NextAction {
        match self.stop_with_answer(StopReason::LlmDone, text, None) {
            NextAction::Stop(verdict) => self.check_gates(verdict, moment),
            other => other,
        }
    }

    /// The model has finished with `text`: the end, a repair, or what became of the last repair.
    pub(super) fn after_finished_answer(&self, text: String, moment: Moment) -> NextAction {
        let Some(schema) = &self.demand.schema else { return self.done(text, moment) };
        match schema.parse_answer(&text) {
            Ok(value) => {
                let done = self.stop_with(StopReason::LlmDone, None);
                self.check_gates(RunOutcome { output: Output::Value(value), ..done }, moment)
            }
            Err(problems) if self.demand.repairs < MAX_REPAIRS => NextAction::AddUserMessage(
                MessageOrigin::Repair,
                messages::schema_repair(&problems.lines, problems.more),
            ),
            Err(problems) => {
                let message = messages::answer_schema_mismatch(&problems.lines);
                let failure = Failure { kind: FailureKind::OutputSchema, message, retryable: false };
                self.stop_with_answer(StopReason::LlmError, text, Some(failure))
            }
        }
    }
}
