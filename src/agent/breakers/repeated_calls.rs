//! Calls that repeat: the same one in a row, and the same few in turn. The call that would be once too often does not run.

use super::fingerprint::Fingerprint;
use super::observed_calls::{CallOutcome, ObservedCall, ObservedResult, Pattern};
use crate::core::limits::BreakerLimits;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How often a round of calls is made when it is noticed: with its last call.
const ROUNDS: usize = 3;

/// How many times more often than another a call may be repeated that waits for something, or that failed for reasons
/// that go by themselves.
const PATIENCE: u32 = 10;

/// The least number at which a repetition can be one.
const FEWEST: u32 = 2;

/// What is known of the calls so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Repetition {
    row: Option<Row>,
    recent: VecDeque<RecentCall>,
    /// What does not run before another call has, and why.
    barred: Option<BlockedPattern>,
}

/// The calls of a pattern that was noticed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct BlockedPattern {
    keys: BTreeSet<Fingerprint>,
    pattern: Pattern,
}

impl BlockedPattern {
    /// The pattern, which one of its calls goes on with.
    fn once_more(&mut self) -> Pattern {
        if let Pattern::Call(_, times) = &mut self.pattern {
            *times = times.saturating_add(1);
        }
        self.pattern.clone()
    }
}

/// Equal calls in a row that gave equal results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Row {
    key: Fingerprint,
    result: Option<Fingerprint>,
    times: u32,
    is_patient: bool,
    /// How the last of them went; nothing as long as that is not known.
    went: Option<CallOutcome>,
}

/// A call that was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct RecentCall {
    key: Fingerprint,
    tool: String,
    /// Nothing as long as it is not known, or once it does not matter.
    result: Option<Fingerprint>,
}

impl RecentCall {
    /// Whether both are the same call, with the same result as far as that is known.
    fn repeats(&self, other: &Self) -> bool {
        let same_result = match (self.result, other.result) {
            (Some(one), Some(two)) => one == two,
            _ => true,
        };
        self.key == other.key && same_result
    }
}

impl Repetition {
    /// Which calls of an answer do not run, by their ids, and why. What calls of one answer will give is not known, so equal ones
    /// are taken to give the same.
    pub fn plan(&mut self, answer: &[ObservedCall], limits: &BreakerLimits) -> BTreeMap<String, Pattern> {
        let mut ahead = self.clone();
        let mut refused = BTreeMap::new();
        for call in answer {
            if let Some(pattern) = ahead.consider(call, limits) {
                refused.insert(call.id.clone(), pattern);
            }
        }
        self.barred = ahead.barred;
        refused
    }

    /// Whether `call` would be once too often; takes note that it is made where it is not.
    fn consider(&mut self, call: &ObservedCall, limits: &BreakerLimits) -> Option<Pattern> {
        let Some(key) = call.key.filter(|_| !call.is_exempt) else {
            self.barred = None;
            self.interrupted();
            return None;
        };
        match &mut self.barred {
            Some(barred) if barred.keys.contains(&key) => return Some(barred.once_more()),
            _ => self.barred = None,
        }
        let found = self.row_with(key, call, limits).or_else(|| self.round_with(key, call, limits));
        if let Some((pattern, keys)) = found {
            self.barred = Some(BlockedPattern { keys, pattern: pattern.clone() });
            return Some(pattern);
        }
        self.note(call, key, None, limits);
        None
    }

    /// The pattern when `call` is one equal call too many in a row.
    fn row_with(
        &self,
        key: Fingerprint,
        call: &ObservedCall,
        limits: &BreakerLimits,
    ) -> Option<(Pattern, BTreeSet<Fingerprint>)> {
        let row = self.row.as_ref().filter(|row| row.key == key)?;
        let patience = if row.is_patient || call.waits { PATIENCE } else { 1 };
        let most = limits.repeated_calls.max(FEWEST).saturating_mul(patience);
        let times = row.times.saturating_add(1);
        (limits.repeated_calls > 0 && times >= most)
            .then(|| (Pattern::Call(call.tool.clone(), times), BTreeSet::from([key])))
    }

    /// The pattern when `call` ends the last of several equal rounds. Of one call a round is not made: that is a row.
    fn round_with(
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

    /// Takes note of what became of `call`.
    pub fn settle(&mut self, call: &ObservedCall, outcome: &ObservedResult, limits: &BreakerLimits) {
        match call.key.filter(|_| !call.is_exempt) {
            Some(key) => self.note(call, key, Some(outcome), limits),
            None => self.interrupted(),
        }
    }

    /// How the last call failed, when that is the one that `call` repeats.
    pub fn failed_before(&self, call: &ObservedCall) -> Option<&CallOutcome> {
        let row = self.row.as_ref().filter(|row| Some(row.key) == call.key)?;
        row.went.as_ref().filter(|went| **went != CallOutcome::Well)
    }

    fn note(
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
        let went = outcome.map(|outcome| outcome.went.clone()).or(earlier.and_then(|row| row.went));
        let is_patient = call.waits || went == Some(CallOutcome::Transiently);
        self.row = Some(Row { key, result, times, is_patient, went });
        if is_patient {
            // Where something is waited for, rounds are made on purpose.
            return self.recent.clear();
        }
        self.recent.push_back(RecentCall { key, tool: call.tool.clone(), result });
        let window = usize::try_from(limits.repeat_window).unwrap_or(usize::MAX);
        while self.recent.len() > window {
            self.recent.pop_front();
        }
    }

    /// Something else was done.
    fn interrupted(&mut self) {
        self.row = None;
        self.recent.clear();
    }
}
