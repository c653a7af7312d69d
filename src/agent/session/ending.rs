//! How a run ends: the closing, the verdict, what is said last.

use super::{Closing, Moment, Session, Stage, Step, Verdict};
use crate::event::{FinishReason, Origin, Purpose};
use crate::failure::{ErrorKind, Failure};
use crate::messages;
use crate::result::{Executables, Output, RESULT_SCHEMA_VERSION, RunResult};
use crate::stop_reason::{Limit, Status, StopReason};
use std::time::Duration;

impl Session {
    /// The result of a run that ended with `verdict` after `duration`.
    pub fn result(&self, verdict: Verdict, duration: Duration) -> RunResult {
        RunResult {
            schema_version: RESULT_SCHEMA_VERSION,
            status: verdict.status,
            stop_reason: Some(verdict.reason),
            output_valid: self.demands().then(|| verdict.output.is_value()),
            output: verdict.output,
            session_id: Some(self.id.clone()),
            steps: self.tally.steps,
            requests: self.tally.requests,
            tool_calls: self.tally.tool_calls,
            tools_used: self.tally.tools_used.clone(),
            files_modified: self.tally.files.clone(),
            executables: Executables::default(),
            instructions: self.tally.instructions.clone(),
            duration_seconds: (duration.as_secs_f64() * 1000.0).round() / 1000.0,
            model: Some(self.model.clone()),
            usage: self.tally.usage,
            cost: self.tally.total(self.terms().price.is_some()),
            cache: self.tally.cache(),
            context: Some(self.context_use()),
            permission_denials: self.tally.denials.clone(),
            awaiting_approval: self.awaited(),
            guardrails: self.tally.guardrails.clone(),
            quality_gates: self.run.gating.results().to_vec(),
            subagents: self.tally.subagents.clone(),
            evaluation: self.run.evaluating.reported(),
            sandbox: self.sandbox.clone(),
            limit: verdict.limit,
            error: verdict.error,
        }
    }

    /// The verdict for `reason` with what is there to say.
    pub fn stop_with(&self, reason: StopReason, error: Option<Failure>) -> Verdict {
        let limit = match &self.run.closing {
            Some(closing) if closing.reason == reason => closing.limit,
            _ => self.limit_of(reason),
        };
        let summary = self.run.closing.as_ref().and_then(|closing| closing.text.as_ref());
        let summary = summary.filter(|text| !text.trim().is_empty());
        let output = match (summary, self.best_output()) {
            (None, Some(best)) if self.keeps_best(reason) => best,
            (Some(text), _) => text.as_str().into(),
            // What went wrong is no answer: it stands in `error` and on standard error.
            (None, _) if reason.status() == Status::Failed => Output::default(),
            (None, _) => messages::fixed_closing(reason, self.tally.steps, self.limits.language).into(),
        };
        Verdict { reason, output, limit, error, status: reason.status() }
    }

    pub(super) fn stop(&self, reason: StopReason, error: Option<Failure>) -> Step {
        Step::Stop(self.stop_with(reason, error))
    }

    /// The closing: the instruction, one call without tools if it still fits, the end.
    pub(super) fn closing_step(&self, closing: &Closing, moment: Moment) -> Step {
        let in_time = !self.limits.closing_time(moment.elapsed).is_zero();
        // A run that could not afford its first answer has nothing to summarise.
        let began = closing.reason != StopReason::BudgetExceeded || self.run.answered;
        let fits = in_time
            && began
            && !self.keeps_best(closing.reason)
            && self.exceeded(Purpose::Closing).is_none()
            && self.overflow().is_none();
        let instruction = messages::closing_instruction(closing.reason, self.limits.language);
        match (instruction, closing.stage) {
            (Some(text), Stage::Begun) if fits => Step::Say(Origin::System, text),
            (Some(_), Stage::Instructed) if fits => Step::CallModel(Purpose::Closing),
            _ => self.stop(closing.reason, None),
        }
    }

    /// The limit behind a stop for `reason`.
    pub(super) fn limit_of(&self, reason: StopReason) -> Option<Limit> {
        match reason {
            StopReason::MaxSteps => Some(Limit::Steps),
            StopReason::Timeout => Some(Limit::Time),
            StopReason::BudgetExceeded => self.exceeded(Purpose::Step),
            StopReason::ContextFull => Some(Limit::Window),
            _ => None,
        }
    }

    /// The model answered without asking for tools: is that the end?
    pub(super) fn answered(&self, moment: Moment) -> Step {
        if let Some(step) = self.withheld() {
            return step;
        }
        let text = self.answer();
        if let Some(step) = self.led_nowhere(&text) {
            return step;
        }
        let failure = |kind, what: String| {
            let message = messages::broken_off(&what, self.dropped);
            Some(Failure { kind, message, retryable: false })
        };
        match self.finish.as_ref() {
            Some(FinishReason::Length | FinishReason::Paused)
                if self.continuations < self.limits.max_continuations =>
            {
                Step::Say(Origin::Continuation, messages::CONTINUE.to_owned())
            }
            Some(FinishReason::Length | FinishReason::Paused) => {
                self.verdict(StopReason::Truncated, text, None)
            }
            Some(FinishReason::ContentFilter) => {
                let error = failure(ErrorKind::Refusal, "the provider filtered the answer".to_owned());
                self.verdict(StopReason::ContentFilter, text, error)
            }
            Some(FinishReason::WindowFull) => {
                let what = "the answer was cut where the model's window ends".to_owned();
                self.verdict(StopReason::ContextFull, text, failure(ErrorKind::ContextOverflow, what))
            }
            Some(FinishReason::Filtered(why)) => {
                let error = failure(ErrorKind::Refusal, format!("the provider filtered the answer: `{why}`"));
                self.verdict(StopReason::ContentFilter, text, error)
            }
            Some(FinishReason::Refusal) => {
                let error = failure(ErrorKind::Refusal, "the model refused to answer".to_owned());
                self.verdict(StopReason::ContentFilter, text, error)
            }
            Some(FinishReason::Other(name)) => {
                let message = format!("the provider broke the answer off and gives as its reason `{name}`");
                self.verdict(StopReason::LlmError, text, failure(ErrorKind::Malformed, message))
            }
            Some(FinishReason::Stop | FinishReason::ToolCalls) | None => self.finished(text, moment),
        }
    }

    /// Whether a run that ends for `reason` has an earlier answer to give: it was evaluated, and what should have become of it is none.
    fn keeps_best(&self, reason: StopReason) -> bool {
        !matches!(reason, StopReason::LlmDone | StopReason::Guardrail) && self.run.evaluating.has_best()
    }

    pub(super) fn verdict(&self, reason: StopReason, text: String, error: Option<Failure>) -> Step {
        if text.is_empty() || self.keeps_best(reason) {
            return self.stop(reason, error);
        }
        Step::Stop(Verdict { output: text.into(), ..self.stop_with(reason, error) })
    }
}
