//! Builds the outcome of a run: the closing, the final answer, the result.

use super::{Closing, ClosingStage, Moment, NextAction, RunEnd, Session};
use agent_core::event::{FinishReason, MessageOrigin, Purpose};
use agent_core::failure::{Failure, FailureKind};
use agent_core::limits::{Limits, OnLimit};
use agent_core::run_result::{Executables, Output, RESULT_SCHEMA_VERSION, RunResult};
use agent_core::stop_reason::{LimitReached, ReachedLimit, Status, StopReason};
use agent_messages as messages;
use std::time::Duration;

impl Session {
    /// Returns the result of a run that ended with `outcome` after `duration`.
    pub fn result(&self, outcome: RunEnd, duration: Duration) -> RunResult {
        RunResult {
            schema_version: RESULT_SCHEMA_VERSION,
            status: outcome.status,
            stop_reason: Some(outcome.reason),
            output_valid: self.has_output_schema().then(|| outcome.output.is_value()),
            output: outcome.output,
            session_id: Some(self.id.clone()),
            steps: self.tally.steps,
            requests: self.tally.requests,
            tool_calls: self.tally.tool_calls,
            tools_used: self.tally.tools_used.clone(),
            files_modified: self.tally.files.clone(),
            executables: Executables::default(),
            health: None,
            executor: None,
            instructions: self.tally.project_instructions().cloned(),
            instruction_files: self.tally.instruction_files.clone(),
            images: self.tally.images.clone(),
            duration_seconds: (duration.as_secs_f64() * 1000.0).round() / 1000.0,
            model: Some(self.model.clone()),
            usage: self.tally.usage,
            cost: self.cost(),
            cache: self.tally.cache(),
            context: Some(self.context_use()),
            permission_denials: self.tally.denials.clone(),
            awaiting_approval: self.awaiting_approval(),
            guardrails: self.tally.guardrails.clone(),
            quality_gates: self.run.gates.results().to_vec(),
            subagents: self.tally.subagents.clone(),
            evaluation: self.run.evaluation.reported(),
            review: self.run.review.last(),
            sandbox: self.sandbox.clone(),
            limit: outcome.limit.map(|reached| reached.limit),
            limit_value: outcome.limit.and_then(|reached| reached.value),
            error: outcome.error,
        }
    }

    /// Builds the outcome for `reason`, with the best output available.
    pub fn stop_with(&self, reason: StopReason, error: Option<Failure>) -> RunEnd {
        let limit = match &self.run.closing {
            Some(closing) if closing.reason == reason => closing.limit,
            _ => self.limit_of(reason).map(|limit| self.with_value(limit)),
        };
        self.outcome(reason, error, limit)
    }

    /// Returns the action when `reason` is a limit that is reached: the closing, or the end of the run.
    pub(super) fn end_at_limit(&self, reason: StopReason, moment: Moment) -> NextAction {
        let in_time = self.limits.work_time().is_none_or(|end| moment.elapsed < end);
        let limit = match reason {
            StopReason::Timeout if in_time => Some(ReachedLimit::StepTime),
            _ => self.limit_of(reason),
        };
        let limit = limit.map(|limit| self.with_value(limit));
        match self.limits.on_limit {
            OnLimit::Stop => NextAction::Stop(self.outcome(reason, None, limit)),
            OnLimit::Summary => NextAction::StartClosing(reason, limit),
        }
    }

    fn outcome(&self, reason: StopReason, error: Option<Failure>, limit: Option<LimitReached>) -> RunEnd {
        let summary = self.run.closing.as_ref().and_then(Closing::summary);
        let output = match (summary, self.best_output()) {
            (None, Some(best)) if self.keeps_best(reason) => best,
            (Some(text), _) => text.into(),
            // An error message is not an answer: it is in `error` and on standard error.
            (None, _) if reason.status() == Status::Failed => Output::default(),
            (None, _) => {
                messages::fixed_closing(reason, limit, self.tally.steps, self.limits.language).into()
            }
        };
        RunEnd { reason, output, limit, error, status: reason.status() }
    }

    /// Whether a limit has ended the run, and the model has written a closing summary.
    pub fn has_summary_at_limit(&self) -> bool {
        let closing = self.run.closing.as_ref().filter(|closing| closing.limit.is_some());
        closing.and_then(Closing::summary).is_some()
    }

    pub(super) fn stop(&self, reason: StopReason, error: Option<Failure>) -> NextAction {
        NextAction::Stop(self.stop_with(reason, error))
    }

    /// Returns the next action of the closing: the instruction, one call without tools if it fits, the end.
    pub(super) fn closing_step(&self, closing: &Closing, moment: Moment) -> NextAction {
        let in_time = !self.limits.closing_time(moment.elapsed).is_zero();
        // A run that could not afford its first answer has nothing to summarise.
        let can_summarise = closing.reason != StopReason::BudgetExceeded || self.run.answered;
        let fits = in_time
            && can_summarise
            && !self.keeps_best(closing.reason)
            && self.exceeded_limit(Purpose::Closing).is_none()
            && self.closing_fits();
        let instruction = messages::closing_instruction(closing.reason, self.limits.language);
        match (instruction, closing.stage) {
            (Some(text), ClosingStage::Started) if fits => {
                NextAction::AddUserMessage(MessageOrigin::System, text)
            }
            (Some(_), ClosingStage::Instructed) if fits => NextAction::CallModel(Purpose::Closing),
            _ => self.stop(closing.reason, None),
        }
    }

    /// Returns `limit` with its value in this run.
    #[expect(clippy::cast_precision_loss, reason = "limits are far below 2^52")]
    pub(super) fn with_value(&self, limit: ReachedLimit) -> LimitReached {
        let Limits { caps, .. } = &self.limits;
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        let value = match limit {
            ReachedLimit::Usd => caps.usd.map(f64::from),
            ReachedLimit::Tokens => caps.tokens.map(|tokens| tokens as f64),
            ReachedLimit::ToolCalls => caps.tool_calls.map(f64::from),
            ReachedLimit::Steps => Some(f64::from(self.limits.max_steps)),
            ReachedLimit::Time => seconds(self.limits.timeout),
            ReachedLimit::StepTime => seconds(self.limits.step_timeout),
            ReachedLimit::Window => self.terms().window.map(|window| window.tokens as f64),
        };
        LimitReached { limit, value }
    }

    /// Returns the limit that causes a stop for `reason`.
    pub(super) fn limit_of(&self, reason: StopReason) -> Option<ReachedLimit> {
        match reason {
            StopReason::MaxSteps => Some(ReachedLimit::Steps),
            StopReason::Timeout => Some(ReachedLimit::Time),
            StopReason::BudgetExceeded => self.exceeded_limit(Purpose::Step),
            StopReason::ContextFull => Some(ReachedLimit::Window),
            _ => None,
        }
    }

    /// Returns the action after an answer without calls.
    pub(super) fn after_answer(&self, moment: Moment) -> NextAction {
        if let Some(step) = self.after_withheld_answer() {
            return step;
        }
        let text = self.answer();
        if let Some(step) = self.after_stalled_answer(&text) {
            return step;
        }
        let failure = |kind, what: String| {
            let message = messages::incomplete_answer(&what, self.dropped_calls);
            Some(Failure { kind, message, retryable: false })
        };
        match self.finish.as_ref() {
            Some(FinishReason::Length | FinishReason::Paused)
                if self.continuations < self.limits.max_continuations =>
            {
                NextAction::AddUserMessage(
                    MessageOrigin::Continuation,
                    messages::CONTINUE_CUT_ANSWER.to_owned(),
                )
            }
            Some(FinishReason::Length | FinishReason::Paused) => {
                self.stop_with_answer(StopReason::Truncated, text, None)
            }
            Some(FinishReason::ContentFilter) => {
                let error = failure(FailureKind::Refusal, "the provider filtered the answer".to_owned());
                self.stop_with_answer(StopReason::ContentFilter, text, error)
            }
            Some(FinishReason::WindowFull) => {
                let what = "the answer was cut at the end of the model's window".to_owned();
                self.stop_with_answer(
                    StopReason::ContextFull,
                    text,
                    failure(FailureKind::ContextOverflow, what),
                )
            }
            Some(FinishReason::Filtered(why)) => {
                let error =
                    failure(FailureKind::Refusal, format!("the provider filtered the answer: `{why}`"));
                self.stop_with_answer(StopReason::ContentFilter, text, error)
            }
            Some(FinishReason::Refusal) => {
                let error = failure(FailureKind::Refusal, "the model refused to answer".to_owned());
                self.stop_with_answer(StopReason::ContentFilter, text, error)
            }
            Some(FinishReason::Other(name)) => {
                let message =
                    format!("the provider ended the answer with the unknown finish reason `{name}`");
                self.stop(StopReason::LlmError, failure(FailureKind::Malformed, message))
            }
            Some(FinishReason::Stop | FinishReason::ToolCalls) | None => {
                self.after_finished_answer(text, moment)
            }
        }
    }

    /// Whether a run that ends for `reason` outputs an earlier, evaluated answer instead of an unfinished one.
    fn keeps_best(&self, reason: StopReason) -> bool {
        !matches!(reason, StopReason::LlmDone | StopReason::Guardrail) && self.run.evaluation.has_best()
    }

    pub(super) fn stop_with_answer(
        &self,
        reason: StopReason,
        text: String,
        error: Option<Failure>,
    ) -> NextAction {
        if text.is_empty() || self.keeps_best(reason) {
            return self.stop(reason, error);
        }
        NextAction::Stop(RunEnd { output: text.into(), ..self.stop_with(reason, error) })
    }
}
