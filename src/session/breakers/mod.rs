//! Breakers: detect a run that makes no progress, warn the model, and end the run when the warning does not help.
//!
//! A pure fold of the events of one run. Each answer is checked twice: before its calls run, to refuse repeated ones, and when all its calls have
//! results.

mod announcement;
mod consecutive_errors;
mod fingerprint;
mod no_progress;
mod observed_calls;
mod repeated_calls;
mod text_answers;

use agent_core::event::{Event, FinishReason, MessageOrigin, Purpose};
use agent_core::limits::{BreakerLimits, OnRepeat};
use agent_core::message::Message;
use agent_core::stop_reason::StopReason;
use agent_messages as messages;
use agent_tools::TypedTool;
use agent_tools::apply_patch::ApplyPatch;
use agent_tools::delete_file::DeleteFile;
use agent_tools::edit_file::EditFile;
use agent_tools::run_command::RunCommand;
use agent_tools::write_file::WriteFile;
use consecutive_errors::{ConsecutiveErrors, ErrorAction};
use no_progress::NoProgress;
use observed_calls::{ObservedCall, ObservedResult, Pattern};
use repeated_calls::Repetition;
use std::collections::BTreeMap;
pub use text_answers::AnswerAction;
use text_answers::TextAnswers;

/// Number of answers after which an earlier pattern no longer counts.
const RESET_AFTER_ANSWERS: u32 = 15;

/// Tools that change something. A model without any of them cannot announce an action.
const ACTING_TOOLS: [&str; 5] =
    [RunCommand::NAME, WriteFile::NAME, EditFile::NAME, ApplyPatch::NAME, DeleteFile::NAME];

/// State of the breakers of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Breakers {
    repetition: Repetition,
    errors: ConsecutiveErrors,
    no_progress: NoProgress,
    texts: TextAnswers,
    /// Whether the model has a tool that changes something.
    can_act: bool,
    /// Calls of the last answer while results are missing.
    answer: Vec<ObservedCall>,
    /// Calls of the last answer that are refused.
    refused: BTreeMap<String, Pattern>,
    outcomes: BTreeMap<String, ObservedResult>,
    escalation: Escalation,
}

/// Escalation level: a warning, then a last warning, then the end of the run.
#[derive(Debug, Clone, Default, PartialEq)]
struct Escalation {
    /// Number of patterns found in close succession.
    found: u32,
    /// Number of answers since the last pattern.
    since: u32,
    /// The action that is due.
    due: Option<PendingAction>,
}

/// A due action of the breakers.
#[derive(Debug, Clone, PartialEq)]
enum PendingAction {
    Warn(Pattern),
    LastWarning(Pattern),
    End(StopReason),
}

impl Breakers {
    /// Applies an event of the run.
    pub fn apply(&mut self, event: &Event, limits: &BreakerLimits) {
        match event {
            Event::RunStart { tools, .. } => {
                self.can_act = tools.iter().any(|tool| ACTING_TOOLS.contains(&tool.as_str()));
            }
            Event::ModelResponse { purpose: Purpose::Step, message, finish, .. } => {
                self.answered(message, finish, limits);
            }
            Event::ToolCallEnd { result, changed, denial, .. } => {
                if let Some(call) = self.answer.iter().find(|call| call.id == result.call_id) {
                    let outcome = ObservedResult::of(&call.tool, result, denial.as_ref(), changed);
                    self.outcomes.insert(result.call_id.clone(), outcome);
                }
                if !self.answer.is_empty() && self.outcomes.len() == self.answer.len() {
                    self.settle(limits);
                }
            }
            Event::UserMessage { origin: MessageOrigin::Breaker, .. } => {
                self.escalation.due = None;
                self.texts.note_warning();
            }
            _ => {}
        }
    }

    /// Returns the message to the model when the call is refused.
    pub fn refusal(&self, call_id: &str) -> Option<String> {
        self.refused.get(call_id).map(|pattern| messages::repeated_call_refused(&describe(pattern)))
    }

    /// Returns the warning to add before the next model call.
    pub fn warning(&self) -> Option<String> {
        match self.escalation.due.as_ref()? {
            PendingAction::Warn(pattern) => Some(messages::no_progress_warning(&describe(pattern))),
            PendingAction::LastWarning(pattern) => {
                Some(messages::no_progress_last_warning(&describe(pattern)))
            }
            PendingAction::End(_) => None,
        }
    }

    /// Returns the reason for which the run must end.
    pub fn stop_reason(&self) -> Option<StopReason> {
        match self.escalation.due {
            Some(PendingAction::End(reason)) => Some(reason),
            Some(PendingAction::Warn(_) | PendingAction::LastWarning(_)) | None => None,
        }
    }

    /// Returns the reaction to the last answer when it contains no calls.
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

    /// Evaluates an answer when all its calls have results.
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
        let stalled = self.no_progress.settle(ran.iter().copied(), limits);
        // A refused call that repeats a failed one counts as failed too.
        let statuses = answer.iter().filter_map(|call| match outcomes.get(&call.id) {
            Some(outcome) if !refused.contains_key(&call.id) => Some(&outcome.status),
            _ => self.repetition.failed_before(call),
        });
        let errors = self.errors.settle(statuses, limits);
        let repeats = answer.iter().find_map(|call| refused.get(&call.id)).cloned();
        self.escalation.record(repeats.or(stalled), limits.on_repeat);
        match errors {
            Some(ErrorAction::End(pattern)) if self.stop_reason().is_none() => {
                self.escalation.due = Some(PendingAction::End(pattern.reason()));
            }
            Some(ErrorAction::Warn(pattern)) if self.escalation.due.is_none() => {
                self.escalation.due = Some(PendingAction::Warn(pattern));
            }
            Some(ErrorAction::End(_) | ErrorAction::Warn(_)) | None => {}
        }
    }
}

impl Escalation {
    /// Records an answer and the pattern found in it, and raises the level.
    fn record(&mut self, found: Option<Pattern>, on_repeat: OnRepeat) {
        self.since = self.since.saturating_add(1);
        let Some(pattern) = found else { return };
        if self.since > RESET_AFTER_ANSWERS {
            self.found = 0;
        }
        self.since = 0;
        self.found = self.found.saturating_add(1);
        self.due = Some(match (on_repeat, self.found) {
            (OnRepeat::WarnThenStop, 1) => PendingAction::Warn(pattern),
            (OnRepeat::WarnThenStop, 2) => PendingAction::LastWarning(pattern),
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
