//! Breakers: notice that a run goes nowhere, tell the model, and end the run when that does not help.
//!
//! A pure fold of the events of one run. Each answer is looked at twice: before its calls run, for those that repeat earlier
//! ones and do not run, and when all of them have their results.

mod announcement;
mod consecutive_errors;
mod fingerprint;
mod no_progress;
mod observed_calls;
mod repeated_calls;
mod text_answers;

use crate::core::event::{Event, FinishReason, MessageOrigin, Purpose};
use crate::core::limits::{BreakerLimits, OnRepeat};
use crate::core::message::Message;
use crate::core::stop_reason::StopReason;
use crate::messages;
use crate::tools::TypedTool;
use crate::tools::apply_patch::ApplyPatch;
use crate::tools::delete_file::DeleteFile;
use crate::tools::edit_file::EditFile;
use crate::tools::run_command::RunCommand;
use crate::tools::write_file::WriteFile;
use consecutive_errors::{ConsecutiveErrors, ErrorAction};
use no_progress::NoProgress;
use observed_calls::{ObservedCall, ObservedResult, Pattern};
use repeated_calls::Repetition;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
pub use text_answers::AnswerAction;
use text_answers::TextAnswers;

/// Answers after which an earlier pattern no longer makes the next one worse.
const RESET_AFTER_ANSWERS: u32 = 15;

/// Tools by which one acts: a model without any of them announces nothing that it could do.
const ACTING_TOOLS: [&str; 5] =
    [RunCommand::NAME, WriteFile::NAME, EditFile::NAME, ApplyPatch::NAME, DeleteFile::NAME];

/// What the breakers know of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Breakers {
    repetition: Repetition,
    errors: ConsecutiveErrors,
    standstill: NoProgress,
    texts: TextAnswers,
    /// Whether the model has tools by which it could act.
    can_act: bool,
    /// The calls of the last answer whose results are not all known.
    answer: Vec<ObservedCall>,
    /// Those of them that do not run.
    refused: BTreeMap<String, Pattern>,
    outcomes: BTreeMap<String, ObservedResult>,
    ladder: Escalation,
}

/// How far it has come: told, told once more that the plan must change, ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Escalation {
    /// Patterns found, each soon after the one before.
    found: u32,
    /// Answers since the last.
    since: u32,
    /// What is to be done about it.
    due: Option<PendingAction>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum PendingAction {
    Tell(Pattern),
    Demand(Pattern),
    End(StopReason),
}

impl Breakers {
    /// Takes note of an event of the run.
    pub fn apply(&mut self, event: &Event, limits: &BreakerLimits) {
        match event {
            Event::RunStart { tools, .. } => {
                self.can_act = tools.iter().any(|tool| ACTING_TOOLS.contains(&tool.as_str()));
            }
            Event::ModelResponse { purpose: Purpose::Step, message, finish, .. } => {
                self.answered(message, finish, limits);
            }
            Event::ToolCallEnd { name, result, changed, denial, .. } => {
                if self.answer.iter().any(|call| call.id == result.call_id) {
                    let outcome = ObservedResult::of(name, result, denial.as_ref(), changed);
                    self.outcomes.insert(result.call_id.clone(), outcome);
                }
                if !self.answer.is_empty() && self.outcomes.len() == self.answer.len() {
                    self.settle(limits);
                }
            }
            Event::UserMessage { origin: MessageOrigin::Breaker, .. } => {
                self.ladder.due = None;
                self.texts.note_warning();
            }
            _ => {}
        }
    }

    /// Why a call of the last answer does not run, in words for the model.
    pub fn refusal(&self, call_id: &str) -> Option<String> {
        self.refused.get(call_id).map(|pattern| messages::repeated_call_refused(&describe(pattern)))
    }

    /// What the model is to be told before it is asked again.
    pub fn warning(&self) -> Option<String> {
        match self.ladder.due.as_ref()? {
            PendingAction::Tell(pattern) => Some(messages::no_progress_warning(&describe(pattern))),
            PendingAction::Demand(pattern) => Some(messages::no_progress_last_warning(&describe(pattern))),
            PendingAction::End(_) => None,
        }
    }

    /// Why the run ends.
    pub fn stop_reason(&self) -> Option<StopReason> {
        match self.ladder.due {
            Some(PendingAction::End(reason)) => Some(reason),
            Some(PendingAction::Tell(_) | PendingAction::Demand(_)) | None => None,
        }
    }

    /// What follows from the last answer, which has no calls.
    pub fn answer_action(&self, limits: &BreakerLimits) -> Option<AnswerAction> {
        self.texts.answer_action(limits).filter(|_| self.can_act)
    }

    fn answered(&mut self, message: &Message, finish: &FinishReason, limits: &BreakerLimits) {
        let calls = message.tool_calls().filter(|_| finish.is_usable());
        self.answer = calls.map(|call| ObservedCall::of(call, limits)).collect();
        self.outcomes.clear();
        self.refused = self.repetition.plan(&self.answer, limits);
        if self.answer.is_empty() {
            self.texts.answered(&message.joined_text(), finish);
        } else {
            self.texts.called();
        }
    }

    /// All calls of an answer have their results: what they show.
    fn settle(&mut self, limits: &BreakerLimits) {
        let answer = std::mem::take(&mut self.answer);
        let refused = std::mem::take(&mut self.refused);
        let outcomes = std::mem::take(&mut self.outcomes);
        let ran = answer.iter().filter(|call| !refused.contains_key(&call.id));
        let ran: Vec<(&ObservedCall, &ObservedResult)> =
            ran.filter_map(|call| outcomes.get(&call.id).map(|outcome| (call, outcome))).collect();
        for (call, outcome) in &ran {
            self.repetition.settle(call, outcome, limits);
        }
        let stands = self.standstill.settle(ran.iter().copied(), limits);
        // A call that does not run because it repeats one that failed has failed too.
        let went = answer.iter().filter_map(|call| match outcomes.get(&call.id) {
            Some(outcome) if !refused.contains_key(&call.id) => Some(&outcome.went),
            _ => self.repetition.failed_before(call),
        });
        let errors = self.errors.settle(went, limits);
        let repeats = answer.iter().find_map(|call| refused.get(&call.id)).cloned();
        self.ladder.climb(repeats.or(stands), limits.on_repeat);
        match errors {
            Some(ErrorAction::End(pattern)) if self.stop_reason().is_none() => {
                self.ladder.due = Some(PendingAction::End(pattern.reason()));
            }
            Some(ErrorAction::Warn(pattern)) if self.ladder.due.is_none() => {
                self.ladder.due = Some(PendingAction::Tell(pattern));
            }
            Some(ErrorAction::End(_) | ErrorAction::Warn(_)) | None => {}
        }
    }
}

impl Escalation {
    /// One more answer, in which a pattern was found or none.
    fn climb(&mut self, found: Option<Pattern>, on_repeat: OnRepeat) {
        self.since = self.since.saturating_add(1);
        let Some(pattern) = found else { return };
        if self.since > RESET_AFTER_ANSWERS {
            self.found = 0;
        }
        self.since = 0;
        self.found = self.found.saturating_add(1);
        self.due = Some(match (on_repeat, self.found) {
            (OnRepeat::WarnThenStop, 1) => PendingAction::Tell(pattern),
            (OnRepeat::WarnThenStop, 2) => PendingAction::Demand(pattern),
            _ => PendingAction::End(pattern.reason()),
        });
    }
}

fn describe(pattern: &Pattern) -> String {
    match pattern {
        Pattern::Call(tool, times) => messages::same_call(tool, *times),
        Pattern::Cycle(tools) => messages::same_round(tools),
        Pattern::Errors(count) => messages::errors_in_a_row(*count),
        Pattern::SameError(tool, answers) => messages::same_error(tool, *answers),
        Pattern::SameResult(tool, answers) => messages::same_result(tool, *answers),
        Pattern::Reverted(path, times) => messages::reverted_edits(path, *times),
    }
}

#[cfg(test)]
mod breakers_tests;
#[cfg(test)]
mod corpus_tests;
