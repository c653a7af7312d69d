//! Errors in a row: counted in the order of the calls, ended by the first success.

use super::fingerprint::Fingerprint;
use super::observed_calls::{CallOutcome, Pattern};
use crate::core::limits::{BreakerLimits, OnRepeat};
use serde::{Deserialize, Serialize};

/// The least number of errors in a row that is worth a word.
const WORTH_A_WORD: u32 = 2;

/// What an error weighs, and what one that says something new does: that of a command by which the cause of a failure is looked for.
const WEIGHT: u32 = 2;
const WEIGHT_OF_NEWS: u32 = 1;

/// Classes of errors that are remembered in a row.
const MAX_CLASSES: usize = 100;

/// The errors since the last call that went well.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ConsecutiveErrors {
    in_a_row: u32,
    weight: u32,
    /// What commands among them said, where they said something.
    classes: Vec<Option<Fingerprint>>,
    /// Answers of the model that they stand in.
    answers: u32,
    was_told: bool,
}

/// What follows from them.
#[derive(Debug, Clone, PartialEq)]
pub enum ErrorAction {
    /// The model is told.
    Warn(Pattern),
    /// The run ends.
    End(Pattern),
}

impl ConsecutiveErrors {
    /// Takes note of how the calls of an answer went. What goes by itself and what the person refused neither counts nor
    /// ends the row; what a rule refused is an error, because it brings the run no further.
    pub fn settle<'a>(
        &mut self,
        answer: impl Iterator<Item = &'a CallOutcome>,
        limits: &BreakerLimits,
    ) -> Option<ErrorAction> {
        let mut failed = false;
        for went in answer {
            match went {
                CallOutcome::Well => *self = Self::default(),
                CallOutcome::Badly(_) => self.add(WEIGHT),
                CallOutcome::Unsuccessfully(class) => self.failed(*class),
                CallOutcome::Transiently | CallOutcome::Against => continue,
            }
            failed = *went != CallOutcome::Well;
        }
        self.answers = self.answers.saturating_add(u32::from(failed));
        if failed { self.consequence(limits) } else { None }
    }

    /// A command failed: the first one, and each that says what another has said, is an error like others.
    fn failed(&mut self, class: Option<Fingerprint>) {
        let is_news = self.in_a_row > 0 && !self.classes.contains(&class);
        if self.classes.len() < MAX_CLASSES {
            self.classes.push(class);
        }
        self.add(if is_news { WEIGHT_OF_NEWS } else { WEIGHT });
    }

    fn add(&mut self, weight: u32) {
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.weight = self.weight.saturating_add(weight);
    }

    /// Calls of one answer do not know of each other's errors: a run does not end before the model could react.
    fn consequence(&mut self, limits: &BreakerLimits) -> Option<ErrorAction> {
        let most = limits.consecutive_errors;
        let pattern = Pattern::Errors(self.in_a_row);
        let could_react = self.answers > 1 || self.in_a_row == 1 || limits.on_repeat == OnRepeat::Stop;
        if most == 0 {
            return None;
        }
        let are = |errors: u32| self.weight >= errors.saturating_mul(WEIGHT);
        if are(most) && could_react {
            return Some(ErrorAction::End(pattern));
        }
        let is_due = are(most.saturating_sub(1).max(WORTH_A_WORD)) && !self.was_told;
        let tells = is_due && limits.on_repeat == OnRepeat::WarnThenStop;
        self.was_told |= tells;
        tells.then_some(ErrorAction::Warn(pattern))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(answers: &[&str], consecutive_errors: u32, on_repeat: OnRepeat) -> Vec<&'static str> {
        let limits = BreakerLimits { on_repeat, consecutive_errors, ..BreakerLimits::default() };
        let mut errors = ConsecutiveErrors::default();
        let went = |sign: char| match sign {
            'F' => CallOutcome::Badly(None),
            'c' => CallOutcome::Unsuccessfully(None),
            'x' | 'y' | 'z' => CallOutcome::Unsuccessfully(Some(Fingerprint::of_text(&sign.to_string()))),
            't' => CallOutcome::Transiently,
            'n' => CallOutcome::Against,
            _ => CallOutcome::Well,
        };
        let answers = answers.iter().map(|answer| {
            let went: Vec<CallOutcome> = answer.chars().map(went).collect();
            match errors.settle(went.iter(), &limits) {
                None => "",
                Some(ErrorAction::Warn(_)) => "tell",
                Some(ErrorAction::End(_)) => "end",
            }
        });
        answers.collect()
    }

    #[test]
    fn l28_so_many_in_a_row_end_the_run_and_a_success_begins_anew() {
        let warns = OnRepeat::WarnThenStop;
        assert_eq!(after(&["F", "F", "F"], 3, warns), ["", "tell", "end"]);
        assert_eq!(after(&["F", "F", "F"], 3, OnRepeat::Stop), ["", "", "end"]);
        assert_eq!(
            after(&["F", "F", "+", "F", "F", "+", "F"], 3, warns),
            ["", "tell", "", "", "tell", "", ""]
        );
        assert_eq!(after(&["F", "F"], 2, warns), ["", "end"]);
        assert_eq!(after(&["F"], 1, warns), ["end"]);
        assert_eq!(after(&["F"; 9], 0, warns), [""; 9]);
    }

    #[test]
    fn l28_calls_of_one_answer_count_in_their_order() {
        let warns = OnRepeat::WarnThenStop;
        assert_eq!(after(&["FF+", "FF"], 3, warns), ["", "tell"]);
        assert_eq!(after(&["+FF", "F"], 3, warns), ["tell", "end"]);
        assert_eq!(after(&["FFFFF", "+"], 3, warns), ["tell", ""]);
        assert_eq!(after(&["FFFFF", "F"], 3, warns), ["tell", "end"]);
        assert_eq!(after(&["FFFFF"], 3, OnRepeat::Stop), ["end"]);
    }

    #[test]
    fn l28_commands_that_fail_and_say_something_new_count_half() {
        let warns = OnRepeat::WarnThenStop;
        assert_eq!(after(&["c", "c", "c"], 3, warns), ["", "tell", "end"]);
        assert_eq!(after(&["x", "x", "x"], 3, warns), ["", "tell", "end"]);
        assert_eq!(after(&["x", "y", "z", "x"], 3, warns), ["", "", "tell", "end"]);
        assert_eq!(after(&["F", "x", "y", "F"], 3, warns), ["", "", "tell", "end"]);
        assert_eq!(after(&["x", "c", "c"], 3, warns), ["", "", "tell"]);
    }

    #[test]
    fn l29_what_goes_by_itself_and_what_the_person_refused_neither_counts_nor_ends_the_row() {
        assert_eq!(after(&["F", "t", "t", "n", "F"], 2, OnRepeat::WarnThenStop), ["", "", "", "", "end"]);
    }
}
