//! What a session does about self-evaluation: an answer counts as done when the model, asked for a verdict, says so; of those that
//! were found wanting the best is kept.

use super::{Moment, NextAction, RunOutcome, Session};
use crate::agent::evaluation::{self, EvaluationInput, reply};
use crate::agent::spending::Spending;
use crate::core::evaluation::{Assessment, Evaluation, EvaluationError, EvaluationErrorKind, EvaluationMode};
use crate::core::event::{MessageOrigin, Purpose};
use crate::core::failure::Failure;
use crate::core::message::Message;
use crate::core::run_result::Output;
use crate::core::stop_reason::{Status, StopReason};
use crate::messages;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// Characters of what is judged that a token of a window has room for: half of them, as the reply needs room too.
const CHARS_PER_TOKEN: u64 = 2;

/// How far the evaluations of a run have come.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct EvaluationProgress {
    /// What became of the request about the last answer.
    reply: EvaluationReply,
    /// What it found.
    last: Option<Evaluation>,
    best: Option<BestAnswer>,
    /// How many answers were evaluated.
    rounds: u32,
    /// How often the model was told.
    told: u32,
}

/// What became of a request for a verdict.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
enum EvaluationReply {
    /// It was not made yet.
    #[default]
    Open,
    /// It has this reply.
    Came(String),
    /// It has none, for this reason.
    Missing(String),
}

/// The best answer so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct BestAnswer {
    answer: String,
    evaluation: Evaluation,
}

impl EvaluationProgress {
    /// There is another answer.
    pub(super) fn answered(&mut self) {
        (self.reply, self.last) = (EvaluationReply::Open, None);
    }

    /// Somebody said something to the model.
    pub(super) fn note_message(&mut self, origin: MessageOrigin) {
        self.told = self.told.saturating_add(u32::from(origin == MessageOrigin::Evaluation));
    }

    /// What was found about the answer that is the output of the run.
    pub(super) fn reported(&self) -> Option<Evaluation> {
        let best = self.best.as_ref()?;
        Some(Evaluation { rounds: self.rounds, ..best.evaluation.clone() })
    }

    /// Whether an answer was evaluated that is worth keeping.
    pub(super) fn has_best(&self) -> bool {
        self.best.is_some()
    }
}

impl Session {
    /// The end of a run whose model says that it is done and whose gates have passed, once its answer was evaluated; or what is to
    /// be done first.
    pub(super) fn check_evaluation(&self, done: RunOutcome, moment: Moment) -> NextAction {
        let limits = self.limits.evaluation;
        let Some(last) = &self.run.evaluating.last else {
            return match limits.mode {
                EvaluationMode::Off => NextAction::Stop(done),
                EvaluationMode::Basic | EvaluationMode::Full => self.evaluation_step(done, moment),
            };
        };
        let may_improve = limits.mode == EvaluationMode::Full
            && last.was_performed()
            && self.run.evaluating.told < limits.max_retries
            && self.has_room_for_a_step(moment);
        if last.passed {
            NextAction::Stop(done)
        } else if may_improve && moment.interrupted {
            self.stop(StopReason::UserInterrupt, None)
        } else if may_improve {
            let findings = self.mark.wrap(&messages::evaluation_findings(last));
            NextAction::AddUserMessage(MessageOrigin::Evaluation, messages::answer_rejected(last, &findings))
        } else {
            self.stop_partial(done)
        }
    }

    /// The end of a run whose model says that it is done, which it is not: with the best of its answers.
    pub(super) fn stop_partial(&self, done: RunOutcome) -> NextAction {
        let output = self.best_output().unwrap_or(done.output);
        NextAction::Stop(RunOutcome { status: Status::Partial, output, ..done })
    }

    /// The best answer so far, where one was evaluated.
    pub(super) fn best_output(&self) -> Option<Output> {
        let answer = &self.run.evaluating.best.as_ref().filter(|best| !best.answer.is_empty())?.answer;
        match self.schema() {
            Some(schema) => schema.parse_answer(answer).ok().map(Output::Value),
            None => Some(answer.as_str().into()),
        }
    }

    /// What is said where the output of a run that ended with `verdict` is an earlier answer than its last.
    pub fn best_answer_notice(&self, verdict: &RunOutcome) -> Option<String> {
        let Evaluation { round, rounds, .. } = self.run.evaluating.reported()?;
        let is_earlier = round < rounds || verdict.reason != StopReason::LlmDone;
        let is_output = || self.best_output().as_ref() == Some(&verdict.output);
        (is_earlier && is_output()).then(|| messages::best_answer(round, rounds))
    }

    /// Asks for a verdict on the last answer, or tells what became of that.
    fn evaluation_step(&self, done: RunOutcome, moment: Moment) -> NextAction {
        let why = match &self.run.evaluating.reply {
            EvaluationReply::Came(reply) => {
                let unreadable = || EvaluationError {
                    kind: EvaluationErrorKind::Unreadable,
                    message: messages::EVALUATION_UNREADABLE.to_owned(),
                };
                return NextAction::RecordEvaluation(
                    self.evaluation_of(reply::read(reply).ok_or_else(unreadable)),
                );
            }
            EvaluationReply::Open | EvaluationReply::Missing(_) if moment.interrupted => {
                let output = self.best_output().unwrap_or(done.output);
                return NextAction::Stop(RunOutcome {
                    output,
                    ..self.stop_with(StopReason::UserInterrupt, None)
                });
            }
            EvaluationReply::Open => match self.evaluation_obstacle(moment) {
                None => return NextAction::CallModel(Purpose::Evaluation),
                Some(why) => why.to_owned(),
            },
            EvaluationReply::Missing(why) => why.clone(),
        };
        let error = EvaluationError { kind: EvaluationErrorKind::NotMade, message: why };
        NextAction::RecordEvaluation(self.evaluation_of(Err(error)))
    }

    fn evaluation_of(&self, found: Result<Assessment, EvaluationError>) -> Evaluation {
        let limits = self.limits.evaluation;
        let (found, error) = match found {
            Ok(found) => (found, None),
            Err(error) => (Assessment::default(), Some(error)),
        };
        let round = self.run.evaluating.rounds.saturating_add(1);
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

    /// Why the model cannot be asked for a verdict.
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

    /// Whether the run may take another step: it would be pointless to tell the model anything otherwise.
    fn has_room_for_a_step(&self, moment: Moment) -> bool {
        self.run.steps < self.limits.max_steps
            && self.exceeded_limit(Purpose::Step).is_none()
            && self.limits.work_time().is_none_or(|end| moment.elapsed < end)
    }

    /// What the model is asked about the last answer.
    pub(super) fn evaluation_request(&self) -> Vec<Arc<Message>> {
        let window = self.terms().window.map_or(u64::MAX, |window| window.tokens);
        let most = usize::try_from(window.saturating_mul(CHARS_PER_TOKEN)).unwrap_or(usize::MAX);
        let subject = EvaluationInput {
            task: self.prompts.first_and_last(&self.messages),
            answer: &self.answer(),
            messages: &self.messages,
            calls: self.tally.tool_calls,
            files: &self.tally.files,
            gates: self.run.gating.results(),
        };
        evaluation::request(&subject, &self.mark, most)
    }

    /// What the next request for `purpose` is paid from, knowing how long it is.
    pub(super) fn spending_for(&self, purpose: Purpose) -> Cow<'_, Spending> {
        let spending = &self.run.spending;
        if purpose != Purpose::Evaluation || !self.limits.caps.limit_requests() {
            return Cow::Borrowed(spending);
        }
        let request = self.evaluation_request();
        Cow::Owned(spending.for_request(request.iter().map(AsRef::as_ref)))
    }

    /// The request for a verdict has ended, with `reply` where one came that nobody withholds.
    pub(super) fn record_evaluation_reply(&mut self, reply: Option<String>) {
        let reply = reply.filter(|_| !self.run.screening.is_withheld());
        self.run.screening.note_message();
        let missing = || EvaluationReply::Missing(messages::EVALUATION_NO_REPLY.to_owned());
        self.run.evaluating.reply = reply.map_or_else(missing, EvaluationReply::Came);
    }

    /// The request for a verdict has ended without a reply.
    pub(super) fn record_missing_evaluation(
        &mut self,
        failure: Option<&Failure>,
        abandoned: Option<StopReason>,
    ) {
        let why = match (failure, abandoned) {
            (Some(failure), _) => failure.message.clone(),
            (None, Some(StopReason::BudgetExceeded)) => messages::EVALUATION_OVER_BUDGET.to_owned(),
            (None, _) => messages::EVALUATION_OUT_OF_TIME.to_owned(),
        };
        self.run.evaluating.reply = EvaluationReply::Missing(why);
        if abandoned == Some(StopReason::UserInterrupt) {
            self.run.abandoned = abandoned;
        }
    }

    /// The last answer was evaluated.
    pub(super) fn record_evaluation(&mut self, evaluation: &Evaluation) {
        let answer = self.answer();
        let EvaluationProgress { last, best, rounds, .. } = &mut self.run.evaluating;
        *rounds = evaluation.round;
        *last = Some(evaluation.clone());
        if best.as_ref().is_none_or(|best| evaluation.rank() >= best.evaluation.rank()) {
            *best = Some(BestAnswer { answer, evaluation: evaluation.clone() });
        }
    }
}
