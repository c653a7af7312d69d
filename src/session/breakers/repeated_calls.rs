//! Detects repeated calls: the same call several times in a row, and cycles of a few calls. The call that completes the pattern is refused.

use super::fingerprint::Fingerprint;
use super::observed_calls::{CallOutcome, ObservedCall, ObservedResult, Pattern};
use agent_core::limits::BreakerLimits;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Number of rounds at which a cycle is detected, on the last call of the last round.
const ROUNDS: usize = 3;

/// Factor on the limit for calls that wait for something, or that failed with a transient error.
const PATIENCE_FACTOR: u32 = 10;

/// Lowest limit on equal calls in a row.
const MIN_REPEATS: u32 = 2;

/// State of the detector: the recent calls of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Repetition {
    row: Option<Row>,
    recent: VecDeque<RecentCall>,
    /// The detected pattern whose calls are refused until another call is made.
    blocked: Option<BlockedPattern>,
}

/// The calls of a detected pattern.
#[derive(Debug, Clone, PartialEq)]
struct BlockedPattern {
    keys: BTreeSet<Fingerprint>,
    pattern: Pattern,
}

impl BlockedPattern {
    /// Counts another call of the pattern and returns the pattern.
    fn count_repeat(&mut self) -> Pattern {
        if let Pattern::Call(_, times) = &mut self.pattern {
            *times = times.saturating_add(1);
        }
        self.pattern.clone()
    }
}

/// Equal calls in a row with equal results.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    key: Fingerprint,
    result: Option<Fingerprint>,
    times: u32,
    is_patient: bool,
    /// Outcome of the last of them; `None` while it is unknown.
    status: Option<CallOutcome>,
}

/// A call that was made.
#[derive(Debug, Clone, PartialEq)]
struct RecentCall {
    key: Fingerprint,
    tool: String,
    /// Fingerprint of the result; `None` while it is unknown.
    result: Option<Fingerprint>,
}

impl RecentCall {
    /// Whether both are the same call with the same result; an unknown result equals any.
    fn repeats(&self, other: &Self) -> bool {
        let same_result = match (self.result, other.result) {
            (Some(one), Some(two)) => one == two,
            _ => true,
        };
        self.key == other.key && same_result
    }
}

impl Repetition {
    /// Returns the calls of an answer to refuse, by id, each with its pattern. The results of the calls are still unknown; equal calls are
    /// assumed to give equal results.
    pub fn plan(&mut self, answer: &[ObservedCall], limits: &BreakerLimits) -> BTreeMap<String, Pattern> {
        let mut ahead = self.clone();
        let mut refused = BTreeMap::new();
        for call in answer {
            if let Some(pattern) = ahead.check_call(call, limits) {
                refused.insert(call.id.clone(), pattern);
            }
        }
        self.blocked = ahead.blocked;
        refused
    }

    /// Returns the pattern that `call` completes. Otherwise records the call.
    fn check_call(&mut self, call: &ObservedCall, limits: &BreakerLimits) -> Option<Pattern> {
        let Some(key) = call.key.filter(|_| !call.is_exempt) else {
            self.blocked = None;
            self.reset();
            return None;
        };
        match &mut self.blocked {
            Some(blocked) if blocked.keys.contains(&key) => return Some(blocked.count_repeat()),
            _ => self.blocked = None,
        }
        let found = self.find_row(key, call, limits).or_else(|| self.find_cycle(key, call, limits));
        if let Some((pattern, keys)) = found {
            self.blocked = Some(BlockedPattern { keys, pattern: pattern.clone() });
            return Some(pattern);
        }
        self.record_call(call, key, None, limits);
        None
    }

    /// Returns the pattern when `call` reaches the limit on equal calls in a row.
    fn find_row(
        &self,
        key: Fingerprint,
        call: &ObservedCall,
        limits: &BreakerLimits,
    ) -> Option<(Pattern, BTreeSet<Fingerprint>)> {
        let row = self.row.as_ref().filter(|row| row.key == key)?;
        let patience = if row.is_patient || call.waits { PATIENCE_FACTOR } else { 1 };
        let limit = limits.repeated_calls.max(MIN_REPEATS).saturating_mul(patience);
        let times = row.times.saturating_add(1);
        (limits.repeated_calls > 0 && times >= limit)
            .then(|| (Pattern::Call(call.tool.clone(), times), BTreeSet::from([key])))
    }

    /// Returns the pattern when `call` completes the last of several equal rounds of at least two different calls.
    fn find_cycle(
        &self,
        key: Fingerprint,
        call: &ObservedCall,
        limits: &BreakerLimits,
    ) -> Option<(Pattern, BTreeSet<Fingerprint>)> {
        let window = usize::try_from(limits.repeat_window).unwrap_or(usize::MAX);
        let next = RecentCall { key, tool: call.tool.clone(), result: None };
        let calls: Vec<&RecentCall> = self.recent.iter().chain([&next]).collect();
        let longest = window.min(calls.len()) / ROUNDS;
        (2..=longest).find_map(|length| {
            let rounds = calls.get(calls.len().saturating_sub(length.saturating_mul(ROUNDS))..)?;
            let repeats = rounds.iter().zip(rounds.iter().skip(length)).all(|(one, two)| one.repeats(two));
            let round = rounds.get(..length)?;
            let keys: BTreeSet<Fingerprint> = round.iter().map(|made| made.key).collect();
            let tools = || round.iter().map(|made| made.tool.clone()).collect();
            (repeats && keys.len() > 1).then(|| (Pattern::Cycle(tools()), keys))
        })
    }

    /// Records the outcome of `call`.
    pub fn settle(&mut self, call: &ObservedCall, outcome: &ObservedResult, limits: &BreakerLimits) {
        match call.key.filter(|_| !call.is_exempt) {
            Some(key) => self.record_call(call, key, Some(outcome), limits),
            None => self.reset(),
        }
    }

    /// Returns the failed outcome of the last call, if `call` repeats it.
    pub fn failed_before(&self, call: &ObservedCall) -> Option<&CallOutcome> {
        let row = self.row.as_ref().filter(|row| Some(row.key) == call.key)?;
        row.status.as_ref().filter(|status| **status != CallOutcome::Success)
    }

    fn record_call(
        &mut self,
        call: &ObservedCall,
        key: Fingerprint,
        outcome: Option<&ObservedResult>,
        limits: &BreakerLimits,
    ) {
        let earlier = self.row.take().filter(|row| row.key == key);
        let result = outcome.map(|outcome| outcome.result);
        let repeats = |row: &Row| row.result.is_none() || result.is_none() || row.result == result;
        let times = earlier.as_ref().filter(|row| repeats(row)).map_or(1, |row| row.times.saturating_add(1));
        let result = result.or(earlier.as_ref().and_then(|row| row.result));
        let status = outcome.map(|outcome| outcome.status.clone()).or(earlier.and_then(|row| row.status));
        let is_patient = call.waits || status == Some(CallOutcome::TransientFailure);
        self.row = Some(Row { key, result, times, is_patient, status });
        if is_patient {
            // Polling makes rounds on purpose.
            return self.recent.clear();
        }
        self.recent.push_back(RecentCall { key, tool: call.tool.clone(), result });
        let window = usize::try_from(limits.repeat_window).unwrap_or(usize::MAX);
        while self.recent.len() > window {
            self.recent.pop_front();
        }
    }

    /// Resets the detector after a call that is not counted.
    fn reset(&mut self) {
        self.row = None;
        self.recent.clear();
    }
}
