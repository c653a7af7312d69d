//! What `agent replay` says: what was done again, and where it first went another way.

use super::figures::count;
use crate::text::lines::one_line;

/// Characters shown of a value; it has been cut before it is made harmless.
const VALUE_CHARS: usize = 300;

/// A run that was done again.
pub fn replayed_run(number: usize, from: u64, records: usize, how: &str) -> String {
    let last = from.saturating_add(u64::try_from(records).unwrap_or(u64::MAX)).saturating_sub(1);
    format!("run {number}, events {from} to {last}: {how}")
}

/// It ended as it ended then.
pub fn replayed_same(reason: Option<&str>) -> String {
    format!("the same, to its end ({})", reason.unwrap_or("it failed"))
}

/// Its process was killed.
pub const REPLAYED_CUT_OFF: &str = "the same, up to where its process was killed";

/// The journal lacks a record.
pub fn replayed_lacks(seq: u64) -> String {
    format!(
        "the same, up to event {seq}, which the journal lacks: it is damaged, or the event was left out when the session was imported or \
         forked"
    )
}

/// The journal does not say what is needed.
pub fn replayed_unknown(why: &str) -> String {
    format!("cannot be replayed exactly: {}", one_line(why, VALUE_CHARS))
}

/// It goes another way.
pub fn replayed_differs(event: u64, step: u32) -> String {
    format!("differs at event {event}, step {step}")
}

/// Where it does: the kind of event and the place in it, with both values.
pub fn replay_difference(kind: &str, place: &str, recorded: &str, now: &str) -> String {
    let place = if place.is_empty() { String::new() } else { format!(", {}", one_line(place, VALUE_CHARS)) };
    let shown = |text| one_line(text, VALUE_CHARS);
    format!("  {kind}{place}\n  recorded: {}\n  now:      {}\n", shown(recorded), shown(now))
}

/// What it means that a digest is another one.
pub const REPLAY_ASKS_ELSE: &str =
    "  The model would now be asked something else: a message since the request before is not what it was.\n";

/// Everything that was done again.
pub fn replayed(runs: usize, records: usize, compared: usize, requests: usize) -> String {
    let (runs, records) = (count(runs as u64, "run"), count(records as u64, "event"));
    format!("{runs}, {records}; compared what was asked in {compared} of {requests} requests")
}

/// A session in which no run began.
pub const NOTHING_TO_REPLAY: &str = "no run began in this session: there is nothing to replay";

/// A session that a later version has written to.
pub const REPLAY_LATER_VERSION: &str =
    "a later version of agent has written to this session: replay it with that version";
