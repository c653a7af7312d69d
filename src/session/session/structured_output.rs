//! Handles structured answers in a session: adds the schema to the prompt, parses the answer, requests a repair.

use super::{Moment, NextAction, RunEnd, Session};
use crate::output_schema::OutputSchema;
use agent_core::event::MessageOrigin;
use agent_core::failure::{Failure, FailureKind};
use agent_core::message::Role;
use agent_core::run_result::Output;
use agent_core::stop_reason::StopReason;
use agent_messages as messages;
use agent_text::tokens;
use std::rc::Rc;

/// Number of repairs requested in a run.
const MAX_REPAIRS: u32 = 2;

/// The required schema and the state of its repairs.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct StructuredOutput {
    schema: Option<Rc<OutputSchema>>,
    repairs: u32,
    /// Whether a repair was requested and nothing else was asked since.
    repairing: bool,
}

impl StructuredOutput {
    /// Resets the repairs at the start of a run.
    pub(super) fn start_run(&mut self) {
        self.repairs = 0;
        self.repairing = false;
    }

    /// Records a user message.
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
            | MessageOrigin::Review
            | MessageOrigin::Plan
            | MessageOrigin::UserCommand
            | MessageOrigin::Queued
            | MessageOrigin::Skill
            | MessageOrigin::Instructions
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
    /// Returns the session with a required `schema`. Its size is reserved in each request, because strict modes send it in addition to the tools
    /// or instead of them.
    #[must_use]
    pub fn with_output_schema(mut self, schema: Option<Rc<OutputSchema>>) -> Self {
        let text = schema.as_ref().map_or("", |schema| schema.text());
        self.limits.caps.schema_tokens = tokens::upper_bound(text);
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.limits.tools_bytes = self.limits.tools_bytes.saturating_add(bytes);
        self.structured_output.schema = schema;
        self
    }

    /// Whether the answer must fit a schema.
    pub fn has_output_schema(&self) -> bool {
        self.structured_output.schema.is_some()
    }

    /// Returns `prompt`, a user message, followed by the schema, unless the schema is already the last one in the conversation.
    pub fn with_schema(&self, prompt: Option<String>) -> Option<String> {
        let Some(schema) = &self.structured_output.schema else { return prompt };
        let schema = messages::schema_message(schema.text());
        let prompts = self.messages.iter().rev().filter(|message| message.role == Role::User);
        let last = prompts.map(|message| message.joined_text()).find(|text| messages::contains_schema(text));
        match prompt {
            prompt if last.is_some_and(|last| last.ends_with(&schema)) => prompt,
            Some(prompt) => Some(format!("{prompt}\n\n{schema}")),
            None => Some(schema),
        }
    }

    /// Returns the schema that the answer must fit.
    pub fn schema(&self) -> Option<Rc<OutputSchema>> {
        self.structured_output.schema.clone()
    }

    /// Whether the model must repair its answer; no tools are offered then.
    pub fn is_repairing(&self) -> bool {
        self.structured_output.repairing
    }

    fn done(&self, text: String, moment: Moment) -> NextAction {
        match self.stop_with_answer(StopReason::LlmDone, text, None) {
            NextAction::Stop(verdict) => self.check_gates(verdict, moment),
            other => other,
        }
    }

    /// Returns the action after a finished answer: end the run, request a repair, or fail after the last repair.
    pub(super) fn after_finished_answer(&self, text: String, moment: Moment) -> NextAction {
        let Some(schema) = &self.structured_output.schema else { return self.done(text, moment) };
        match schema.parse_answer(&text) {
            Ok(value) => {
                let done = self.stop_with(StopReason::LlmDone, None);
                self.check_gates(RunEnd { output: Output::Value(value), ..done }, moment)
            }
            Err(problems) if self.structured_output.repairs < MAX_REPAIRS => NextAction::AddUserMessage(
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
