//! Work that leads nowhere although its calls differ: the same error, the same result, the same contents of a file again.

use super::fingerprint::Fingerprint;
use super::observed_calls::{CallOutcome, ObservedCall, ObservedResult, Pattern};
use crate::core::limits::BreakerLimits;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Classes of errors, and contents of a file, that are remembered; older ones are forgotten.
const MAX_REMEMBERED: usize = 100;

/// What is known of errors, results and files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NoProgress {
    errors: Vec<SameError>,
    results: BTreeMap<String, SameResult>,
    files: BTreeMap<String, Contents>,
    /// Answers so far.
    answers: u32,
}

/// A class of errors of a tool that has not succeeded since.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SameError {
    tool: String,
    class: Fingerprint,
    answers: u32,
    last: u32,
}

/// The last result of a tool, and the calls that gave it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SameResult {
    result: Fingerprint,
    calls: BTreeSet<Fingerprint>,
    answers: u32,
    last: u32,
}

/// The contents that a file has had.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Contents {
    had: Vec<Fingerprint>,
    /// How often it went back to one of them, since it last had a new one.
    returns: u32,
}

impl NoProgress {
    /// Takes note of the calls of an answer that ran, and of what became of them; the pattern they make.
    pub fn settle<'a>(
        &mut self,
        answer: impl Iterator<Item = (&'a ObservedCall, &'a ObservedResult)>,
        limits: &BreakerLimits,
    ) -> Option<Pattern> {
        self.answers = self.answers.saturating_add(1);
        let mut found = None;
        for (call, outcome) in answer {
            let returned = outcome.edits.iter().filter_map(|edit| self.edited(edit, limits)).last();
            if !outcome.edits.is_empty() {
                self.errors.clear();
                self.results.clear();
            }
            let pattern = match outcome.went {
                CallOutcome::Well => self.succeeded(call, outcome, limits),
                CallOutcome::Badly(class) | CallOutcome::Unsuccessfully(class) => {
                    class.and_then(|class| self.failed(call, class, limits))
                }
                CallOutcome::Transiently | CallOutcome::Against => None,
            };
            found = found.or(returned).or(pattern);
        }
        found
    }

    /// A file was changed: whether it has gone back too often.
    fn edited(
        &mut self,
        (path, before, after): &(String, Fingerprint, Fingerprint),
        limits: &BreakerLimits,
    ) -> Option<Pattern> {
        let file = self.files.entry(path.clone()).or_default();
        if !file.had.contains(before) {
            file.had.push(*before);
        }
        if before == after {
            return None;
        }
        if !file.had.contains(after) {
            file.returns = 0;
            file.had.push(*after);
            let beyond = file.had.len().saturating_sub(MAX_REMEMBERED);
            file.had.drain(..beyond);
            return None;
        }
        file.returns = file.returns.saturating_add(1);
        let is_found = limits.reverted_edits > 0 && file.returns >= limits.reverted_edits;
        is_found.then(|| Pattern::Reverted(path.clone(), file.returns))
    }

    /// A call failed. Equal errors of one answer count once: its calls did not know of each other.
    fn failed(&mut self, call: &ObservedCall, class: Fingerprint, limits: &BreakerLimits) -> Option<Pattern> {
        let now = self.answers;
        let known = self.errors.iter_mut().find(|error| error.tool == call.tool && error.class == class);
        let Some(error) = known else {
            let beyond = self.errors.len().saturating_add(1).saturating_sub(MAX_REMEMBERED);
            self.errors.drain(..beyond);
            self.errors.push(SameError { tool: call.tool.clone(), class, answers: 1, last: now });
            return None;
        };
        error.answers = error.answers.saturating_add(u32::from(error.last != now));
        error.last = now;
        let is_found = limits.same_errors > 0 && error.answers >= limits.same_errors;
        is_found.then(|| Pattern::SameError(call.tool.clone(), error.answers))
    }

    /// A call went well: whether its tool says the same whatever it is asked.
    fn succeeded(
        &mut self,
        call: &ObservedCall,
        outcome: &ObservedResult,
        limits: &BreakerLimits,
    ) -> Option<Pattern> {
        self.errors.retain(|error| error.tool != call.tool);
        let Some(key) = call.key.filter(|_| outcome.is_telling && !call.waits && !call.is_exempt) else {
            self.results.remove(&call.tool);
            return None;
        };
        let now = self.answers;
        let known = self.results.get_mut(&call.tool).filter(|same| same.result == outcome.result);
        let Some(same) = known else {
            let calls = BTreeSet::from([key]);
            let first = SameResult { result: outcome.result, calls, answers: 1, last: now };
            self.results.insert(call.tool.clone(), first);
            return None;
        };
        let is_new = same.calls.len() < MAX_REMEMBERED && same.calls.insert(key);
        let counts = is_new && same.last != now;
        same.answers = same.answers.saturating_add(u32::from(counts));
        same.last = now;
        let is_found = counts && limits.same_results > 0 && same.answers >= limits.same_results;
        is_found.then(|| Pattern::SameResult(call.tool.clone(), same.answers))
    }
}
