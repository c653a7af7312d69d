//! Counts errors in a row, in the order of the calls. The first success resets the count.

use super::fingerprint::Fingerprint;
use super::observed_calls::{CallOutcome, Pattern};
use agent_core::limits::{BreakerLimits, OnRepeat};

/// Lowest number of errors in a row for a warning.
const MIN_ERRORS_FOR_WARNING: u32 = 2;

/// Weights of an error and of a new one: a failed command with new output, as in the search for the cause of a failure, counts half.
const WEIGHT: u32 = 2;
const NEW_ERROR_WEIGHT: u32 = 1;

/// Number of error classes remembered in a row.
const MAX_CLASSES: usize = 100;

/// The errors since the last successful call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConsecutiveErrors {
    in_a_row: u32,
    weight: u32,
    /// Classes of the commands' output among them.
    classes: Vec<Option<Fingerprint>>,
    /// Number of answers that contain them.
    answers: u32,
    was_warned: bool,
}

/// Reaction to errors in a row.
#[derive(Debug, Clone, PartialEq)]
pub enum ErrorAction {
    /// Warn the model.
    Warn(Pattern),
    /// End the run.
    End(Pattern),
}

impl ConsecutiveErrors {
    /// Records the outcomes of the calls of an answer. Transient failures and refusals by the user neither count nor reset the row. A refusal by
    /// a rule counts as an error.
    pub fn settle<'a>(
        &mut self,
        answer: impl Iterator<Item = &'a CallOutcome>,
        limits: &BreakerLimits,
    ) -> Option<ErrorAction> {
        let mut failed = false;
        for status in answer {
            match status {
                CallOutcome::Success => *self = Self::default(),
                CallOutcome::Failure(_) => self.add(WEIGHT),
                CallOutcome::CommandFailure(class) => self.record_command_failure(*class),
                CallOutcome::TransientFailure | CallOutcome::Declined => continue,
            }
            failed = *status != CallOutcome::Success;
        }
        self.answers = self.answers.saturating_add(u32::from(failed));
        if failed { self.due_action(limits) } else { None }
    }

    /// Records a failed command. The first one, and one whose output repeats an earlier one, count as full errors.
    fn record_command_failure(&mut self, class: Option<Fingerprint>) {
        let is_new_error = self.in_a_row > 0 && !self.classes.contains(&class);
        if self.classes.len() < MAX_CLASSES {
            self.classes.push(class);
        }
        self.add(if is_new_error { NEW_ERROR_WEIGHT } else { WEIGHT });
    }

    fn add(&mut self, weight: u32) {
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.weight = self.weight.saturating_add(weight);
    }

    /// Returns the action that is due. The calls of one answer are made before any result is known, so the run ends only after the model could
    /// react.
    fn due_action(&mut self, limits: &BreakerLimits) -> Option<ErrorAction> {
        let limit = limits.consecutive_errors;
        let pattern = Pattern::Errors(self.in_a_row);
        let could_react = self.answers > 1 || self.in_a_row == 1 || limits.on_repeat == OnRepeat::Stop;
        if limit == 0 {
            return None;
        }
        let reaches = |errors: u32| self.weight >= errors.saturating_mul(WEIGHT);
        if reaches(limit) && could_react {
            return Some(ErrorAction::End(pattern));
        }
        let is_due = reaches(limit.saturating_sub(1).max(MIN_ERRORS_FOR_WARNING)) && !self.was_warned;
        let warns = is_due && limits.on_repeat == OnRepeat::WarnThenStop;
        self.was_warned |= warns;
        warns.then_some(ErrorAction::Warn(pattern))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(answers: &[&str], consecutive_errors: u32, on_repeat: OnRepeat) -> Vec<&'static str> {
        let limits = BreakerLimits { on_repeat, consecutive_errors, ..BreakerLimits::default() };
        let mut errors = ConsecutiveErrors::default();
        let status = |sign: char| match sign {
            'F' => CallOutcome::Failure(None),
            'c' => CallOutcome::CommandFailure(None),
            'x' | 'y' | 'z' => CallOutcome::CommandFailure(Some(Fingerprint::of_text(&sign.to_string()))),
            't' => CallOutcome::TransientFailure,
            'n' => CallOutcome::Declined,
            _ => CallOutcome::Success,
        };
        let answers = answers.iter().map(|answer| {
            let status: Vec<CallOutcome> = answer.chars().map(status).collect();
            match errors.settle(status.iter(), &limits) {
                None => "",
                Some(ErrorAction::Warn(_)) => "warn",
                Some(ErrorAction::End(_)) => "end",
            }
        });
        answers.collect()
    }

    #[test]
    fn l28_so_many_in_a_row_end_the_run_and_a_success_begins_anew() {
        let warns = OnRepeat::WarnThenStop;
        assert_eq!(after(&["F", "F", "F"], 3, warns), ["", "warn", "end"]);
        assert_eq!(after(&["F", "F", "F"], 3, OnRepeat::Stop), ["", "", "end"]);
        assert_eq!(
            after(&["F", "F", "+", "F", "F", "+", "F"], 3, warns),
            ["", "warn", "", "", "warn", "", ""]
        );
        assert_eq!(after(&["F", "F"], 2, warns), ["", "end"]);
        assert_eq!(after(&["F"], 1, warns), ["end"]);
        assert_eq!(after(&["F"; 9], 0, warns), [""; 9]);
    }

    #[test]
    fn l28_calls_of_one_answer_count_in_their_order() {
        let warns = OnRepeat::WarnThenStop;
        assert_eq!(after(&["FF+", "FF"], 3, warns), ["", "warn"]);
        assert_eq!(after(&["+FF", "F"], 3, warns), ["warn", "end"]);
        assert_eq!(after(&["FFFFF", "+"], 3, warns), ["warn", ""]);
        assert_eq!(after(&["FFFFF", "F"], 3, warns), ["warn", "end"]);
        assert_eq!(after(&["FFFFF"], 3, OnRepeat::Stop), ["end"]);
    }

    #[test]
    fn l28_commands_that_fail_and_say_something_new_count_half() {
        let warns = OnRepeat::WarnThenStop;
        assert_eq!(after(&["c", "c", "c"], 3, warns), ["", "warn", "end"]);
        assert_eq!(after(&["x", "x", "x"], 3, warns), ["", "warn", "end"]);
        assert_eq!(after(&["x", "y", "z", "x"], 3, warns), ["", "", "warn", "end"]);
        assert_eq!(after(&["F", "x", "y", "F"], 3, warns), ["", "", "warn", "end"]);
        assert_eq!(after(&["x", "c", "c"], 3, warns), ["", "", "warn"]);
    }

    #[test]
    fn l29_what_goes_by_itself_and_what_the_person_refused_neither_counts_nor_ends_the_row() {
        assert_eq!(after(&["F", "t", "t", "n", "F"], 2, OnRepeat::WarnThenStop), ["", "", "", "", "end"]);
    }
}
