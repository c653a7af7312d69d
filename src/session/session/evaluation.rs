//! Handles self-evaluation in a session: requests a verdict on each finished answer and retains the best answer.

use super::{Moment, NextAction, RunEnd, Session};
use crate::evaluation::{self, EvaluationInput, reply};
use crate::spending::Spending;
use agent_core::evaluation::{Assessment, Evaluation, EvaluationError, EvaluationErrorKind, EvaluationMode};
use agent_core::event::{MessageOrigin, Purpose};
use agent_core::failure::Failure;
use agent_core::message::Message;
use agent_core::run_result::Output;
use agent_core::stop_reason::{Status, StopReason};
use agent_messages as messages;
use std::borrow::Cow;
use std::sync::Arc;

/// Characters of evaluation input per token of the window: half of the usual number, because the reply needs room too.
const CHARS_PER_TOKEN: u64 = 2;

/// State of the evaluations in a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct EvaluationProgress {
    /// State of the request about the last answer.
    reply: EvaluationReply,
    /// Verdict on the last answer.
    last: Option<Evaluation>,
    best: Option<BestAnswer>,
    /// Number of answers evaluated.
    rounds: u32,
    /// How often the model was asked to improve its answer.
    retries: u32,
}

/// State of a request for a verdict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum EvaluationReply {
    /// Not sent yet.
    #[default]
    NotSent,
    /// Answered with this reply.
    Received(String),
    /// Failed, for this reason.
    Missing(String),
}

/// The best answer so far.
#[derive(Debug, Clone, PartialEq)]
struct BestAnswer {
    answer: String,
    evaluation: Evaluation,
}

impl EvaluationProgress {
    /// Resets the request and the verdict, because a new answer arrived.
    pub(super) fn answered(&mut self) {
        (self.reply, self.last) = (EvaluationReply::NotSent, None);
    }

    /// Records a user message.
    pub(super) fn note_message(&mut self, origin: MessageOrigin) {
        self.retries = self.retries.saturating_add(u32::from(origin == MessageOrigin::Evaluation));
    }

    /// Returns the evaluation of the answer that is the output of the run.
    pub(super) fn reported(&self) -> Option<Evaluation> {
        let best = self.best.as_ref()?;
        Some(Evaluation { rounds: self.rounds, ..best.evaluation.clone() })
    }

    /// Whether an evaluated answer is retained.
    pub(super) fn has_best(&self) -> bool {
        self.best.is_some()
    }
}

impl Session {
    /// Returns the action after a finished answer whose gates have passed: evaluate it, ask for an improvement,
    /// have the changes reviewed, or end the run.
    pub(super) fn check_evaluation(&self, done: RunEnd, moment: Moment) -> NextAction {
        let limits = self.limits.evaluation;
        let Some(last) = &self.run.evaluation.last else {
            return match limits.mode {
                EvaluationMode::Off => self.check_review(done, moment),
                EvaluationMode::Basic | EvaluationMode::Full => self.evaluation_step(done, moment),
            };
        };
        let may_improve = limits.mode == EvaluationMode::Full
            && last.was_performed()
            && self.run.evaluation.retries < limits.max_retries
            && self.has_room_for_a_step(moment);
        if last.passed {
            self.check_review(done, moment)
        } else if may_improve && moment.interrupted {
            self.stop(StopReason::UserInterrupt, None)
        } else if may_improve {
            let findings = self.delimiter.wrap(&messages::evaluation_findings(last));
            NextAction::AddUserMessage(MessageOrigin::Evaluation, messages::answer_rejected(last, &findings))
        } else {
            self.stop_partial(done)
        }
    }

    /// Whether the model works on an answer that an evaluation has rejected.
    pub fn improves_answer(&self) -> bool {
        self.run.evaluation.retries > 0
    }

    /// Ends the run as `partial`, with the best of its answers.
    pub(super) fn stop_partial(&self, done: RunEnd) -> NextAction {
        let output = self.best_output().unwrap_or(done.output);
        NextAction::Stop(RunEnd { status: Status::Partial, output, ..done })
    }

    /// Returns the best evaluated answer so far.
    pub(super) fn best_output(&self) -> Option<Output> {
        let answer = &self.run.evaluation.best.as_ref().filter(|best| !best.answer.is_empty())?.answer;
        match self.schema() {
            Some(schema) => schema.parse_answer(answer).ok().map(Output::Value),
            None => Some(answer.as_str().into()),
        }
    }

    /// Returns the notice for a run whose output is an earlier answer than its last.
    pub fn best_answer_notice(&self, verdict: &RunEnd) -> Option<String> {
        let Evaluation { round, rounds, .. } = self.run.evaluation.reported()?;
        let is_earlier = round < rounds || verdict.reason != StopReason::LlmDone;
        let is_output = || self.best_output().as_ref() == Some(&verdict.output);
        (is_earlier && is_output()).then(|| messages::best_answer(round, rounds))
    }

    /// Requests a verdict on the last answer, or records the verdict that arrived.
    fn evaluation_step(&self, done: RunEnd, moment: Moment) -> NextAction {
        let reason = match &self.run.evaluation.reply {
            EvaluationReply::Received(reply) => {
                let unreadable = || EvaluationError {
                    kind: EvaluationErrorKind::Unreadable,
                    message: messages::EVALUATION_UNREADABLE.to_owned(),
                };
                return NextAction::RecordEvaluation(
                    self.evaluation_of(reply::read(reply).ok_or_else(unreadable)),
                );
            }
            EvaluationReply::NotSent | EvaluationReply::Missing(_) if moment.interrupted => {
                let output = self.best_output().unwrap_or(done.output);
                return NextAction::Stop(RunEnd {
                    output,
                    ..self.stop_with(StopReason::UserInterrupt, None)
                });
            }
            EvaluationReply::NotSent => match self.evaluation_obstacle(moment) {
                None => return NextAction::CallModel(Purpose::Evaluation),
                Some(reason) => reason.to_owned(),
            },
            EvaluationReply::Missing(reason) => reason.clone(),
        };
        let error = EvaluationError { kind: EvaluationErrorKind::NotMade, message: reason };
        NextAction::RecordEvaluation(self.evaluation_of(Err(error)))
    }

    fn evaluation_of(&self, found: Result<Assessment, EvaluationError>) -> Evaluation {
        let limits = self.limits.evaluation;
        let (found, error) = match found {
            Ok(found) => (found, None),
            Err(error) => (Assessment::default(), Some(error)),
        };
        let round = self.run.evaluation.rounds.saturating_add(1);
        Evaluation {
            mode: limits.mode,
            passed: error.is_none() && found.completed && found.confidence >= limits.threshold,
            completed: found.completed,
            confidence: found.confidence,
            issues: found.issues,
            suggestion: found.suggestion,
            round,
            rounds: round,
            error,
        }
    }

    /// Returns why a verdict cannot be requested.
    fn evaluation_obstacle(&self, moment: Moment) -> Option<&'static str> {
        let left = self.limits.step_time(moment.elapsed);
        if self.exceeded_limit(Purpose::Evaluation).is_some() {
            Some(messages::EVALUATION_OVER_BUDGET)
        } else if left.is_some_and(|left| left.is_zero()) {
            Some(messages::EVALUATION_OUT_OF_TIME)
        } else {
            None
        }
    }

    /// Whether the run may take another step. Without one, asking for an improvement is pointless.
    pub(super) fn has_room_for_a_step(&self, moment: Moment) -> bool {
        self.run.steps < self.limits.max_steps
            && self.exceeded_limit(Purpose::Step).is_none()
            && self.limits.work_time().is_none_or(|end| moment.elapsed < end)
    }

    /// Builds the request for a verdict on the last answer.
    pub(super) fn evaluation_request(&self) -> Vec<Arc<Message>> {
        let window = self.terms().window.map_or(u64::MAX, |window| window.tokens);
        let max_chars = usize::try_from(window.saturating_mul(CHARS_PER_TOKEN)).unwrap_or(usize::MAX);
        let subject = EvaluationInput {
            task: self.prompts.first_and_last(&self.messages),
            answer: &self.answer(),
            messages: &self.messages,
            calls: self.tally.tool_calls,
            files: &self.tally.files,
            gates: self.run.gates.results(),
        };
        evaluation::request(&subject, &self.delimiter, max_chars)
    }

    /// Returns the spending for the next request for `purpose`, with the length of that request.
    pub(super) fn spending_for(&self, purpose: Purpose) -> Cow<'_, Spending> {
        let spending = &self.run.spending;
        if purpose != Purpose::Evaluation || !self.limits.caps.limit_requests() {
            return Cow::Borrowed(spending);
        }
        let request = self.evaluation_request();
        Cow::Owned(spending.for_request(request.iter().map(AsRef::as_ref)))
    }

    /// Records the reply to the request for a verdict; a withheld reply counts as missing.
    pub(super) fn record_evaluation_reply(&mut self, reply: Option<String>) {
        let reply = reply.filter(|_| !self.run.guardrails.is_withheld());
        self.run.guardrails.note_message();
        let missing = || EvaluationReply::Missing(messages::EVALUATION_NO_REPLY.to_owned());
        self.run.evaluation.reply = reply.map_or_else(missing, EvaluationReply::Received);
    }

    /// Records that the request for a verdict failed.
    pub(super) fn record_missing_evaluation(
        &mut self,
        failure: Option<&Failure>,
        abandoned: Option<StopReason>,
    ) {
        let reason = match (failure, abandoned) {
            (Some(failure), _) => failure.message.clone(),
            (None, Some(StopReason::BudgetExceeded)) => messages::EVALUATION_OVER_BUDGET.to_owned(),
            (None, _) => messages::EVALUATION_OUT_OF_TIME.to_owned(),
        };
        self.run.evaluation.reply = EvaluationReply::Missing(reason);
        if abandoned == Some(StopReason::UserInterrupt) {
            self.run.abandoned = abandoned;
        }
    }

    /// Records the evaluation of the last answer.
    pub(super) fn record_evaluation(&mut self, evaluation: &Evaluation) {
        let answer = self.answer();
        let EvaluationProgress { last, best, rounds, .. } = &mut self.run.evaluation;
        *rounds = evaluation.round;
        *last = Some(evaluation.clone());
        if best.as_ref().is_none_or(|best| evaluation.rank() >= best.evaluation.rank()) {
            *best = Some(BestAnswer { answer, evaluation: evaluation.clone() });
        }
    }
}
