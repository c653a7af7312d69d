//! Detects a lack of progress although the calls differ: the same error, the same result, or the same contents of a file again.

use super::fingerprint::Fingerprint;
use super::observed_calls::{CallOutcome, ObservedCall, ObservedResult, Pattern};
use agent_core::limits::BreakerLimits;
use std::collections::{BTreeMap, BTreeSet};

/// Number of error classes, and of contents of a file, that are remembered; the oldest are dropped.
const MAX_REMEMBERED: usize = 100;

/// State of the detector: errors, results and files of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NoProgress {
    errors: Vec<SameError>,
    results: BTreeMap<String, SameResult>,
    files: BTreeMap<String, Contents>,
    /// Number of answers so far.
    answers: u32,
}

/// An error class of a tool that has not succeeded since.
#[derive(Debug, Clone, PartialEq)]
struct SameError {
    tool: String,
    class: Fingerprint,
    answers: u32,
    last: u32,
}

/// The last result of a tool, and the calls that returned it.
#[derive(Debug, Clone, PartialEq)]
struct SameResult {
    result: Fingerprint,
    calls: BTreeSet<Fingerprint>,
    answers: u32,
    last: u32,
}

/// The contents that a file has had.
#[derive(Debug, Clone, Default, PartialEq)]
struct Contents {
    had: Vec<Fingerprint>,
    /// Number of returns to earlier contents since the last new contents.
    returns: u32,
}

impl NoProgress {
    /// Records the calls of an answer that ran and their outcomes. Returns the pattern that they form.
    pub fn settle<'a>(
        &mut self,
        answer: impl Iterator<Item = (&'a ObservedCall, &'a ObservedResult)>,
        limits: &BreakerLimits,
    ) -> Option<Pattern> {
        self.answers = self.answers.saturating_add(1);
        let mut found = None;
        for (call, outcome) in answer {
            let returned = outcome.edits.iter().filter_map(|edit| self.record_edit(edit, limits)).last();
            if !outcome.edits.is_empty() {
                self.errors.clear();
                self.results.clear();
            }
            let pattern = match outcome.status {
                CallOutcome::Success => self.record_success(call, outcome, limits),
                CallOutcome::Failure(class) | CallOutcome::CommandFailure(class) => {
                    class.and_then(|class| self.record_failure(call, class, limits))
                }
                CallOutcome::TransientFailure | CallOutcome::Declined => None,
            };
            found = found.or(returned).or(pattern);
        }
        found
    }

    /// Records a change of a file. Returns the pattern when the file has been reverted too often.
    fn record_edit(
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

    /// Records a failed call. Equal errors within one answer count once, because its calls were made before any result was known.
    fn record_failure(
        &mut self,
        call: &ObservedCall,
        class: Fingerprint,
        limits: &BreakerLimits,
    ) -> Option<Pattern> {
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

    /// Records a successful call. Returns the pattern when its tool gives the same result to different calls.
    fn record_success(
        &mut self,
        call: &ObservedCall,
        outcome: &ObservedResult,
        limits: &BreakerLimits,
    ) -> Option<Pattern> {
        self.errors.retain(|error| error.tool != call.tool);
        let Some(key) = call.key.filter(|_| outcome.is_distinctive && !call.waits && !call.is_exempt) else {
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
