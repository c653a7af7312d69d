//! What `agent replay` says: what was done again, and where it first went another way.

use super::numbers::count;
use crate::text::diff;
use crate::text::lines::one_line;
use std::collections::BTreeMap;
use std::fmt::Write;

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
pub const REPLAYED_UNTIL_KILLED: &str = "the same, up to where its process was killed";

/// The journal lacks a record.
pub fn replayed_record_missing(seq: u64) -> String {
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
pub const REPLAY_REQUEST_DIFFERS: &str =
    "  The model would now be asked something else: a message since the request before is not what it was.\n";

/// Everything that was done again.
pub fn replayed(runs: usize, records: usize, compared: usize, requests: usize) -> String {
    let (runs, records) = (count(runs as u64, "run"), count(records as u64, "event"));
    format!("{runs}, {records}; compared what was asked in {compared} of {requests} requests")
}

/// What stands in a copy of a session where its state was kept.
pub const STATE_LEFT_OUT: &str = "the state that was kept here was left out of this copy";

/// A session in which no run began.
pub const NOTHING_TO_REPLAY: &str = "no run began in this session: there is nothing to replay";

/// A session that a later version has written to.
pub const REPLAY_LATER_VERSION: &str =
    "a later version of agent has written to this session: replay it with that version";

/// Reasons why a call is not done again.
pub const DID_NOT_RUN: &str = "did not run then";
/// The person or the time ended the run while it was at work.
pub const IN_INTERRUPTED_STEP: &str = "in a step that was cut short";
/// What background commands have written depends on when one looks.
pub const BACKGROUND_OUTPUT_CALL: &str = "about the output of a background command so far";
/// It would ask the web.
pub const WEB_CALL: &str = "of the web";
/// It would ask a model.
pub const SUBAGENT_CALL: &str = "of a subagent";
/// It is a command, and nothing would keep it from the workspace itself.
pub const UNSANDBOXED_COMMAND: &str = "commands, which have no view of the file system of their own here";

/// Files that are named.
const MAX_LISTED: usize = 10;

/// Where calls are done again.
pub fn replay_copy(workspace: &str, files: usize) -> String {
    let files = count(files as u64, "file");
    format!("the tools run in a copy of {workspace} ({files}), which is removed afterwards")
}

/// A call is made again.
pub fn replay_call(tool: &str, summary: &str) -> String {
    format!("again: {} {}", one_line(tool, VALUE_CHARS), one_line(summary, VALUE_CHARS))
}

/// The session was not at work here.
pub fn replay_imported(from: &str) -> String {
    format!(
        "this session was brought here from {}: the copy is made of the files that are here now",
        one_line(from, VALUE_CHARS)
    )
}

/// What the copy lacks.
pub fn replay_left_out(what: &[String]) -> String {
    format!("not copied: {}", list_names(what))
}

/// Caches, which are empty in the copy.
pub fn replay_caches(caches: &[String]) -> String {
    format!("empty in the copy, because they are caches: {}", list_names(caches))
}

/// Files of which it is not kept any more, or never was, what they were.
pub fn replay_contents_missing(files: &[String]) -> String {
    format!(
        "not as they were then, because that is not kept here: {}; results that depend on them will differ",
        list_names(files)
    )
}

/// There can be no copy.
pub fn replay_no_copy(workspace: &str, why: &str) -> String {
    format!("--live-tools: cannot copy {workspace}: {why}. `agent replay` alone needs no copy")
}

/// The copy would be a part of what is copied.
pub fn replay_cache_in_workspace(workspace: &str, cache: &str) -> String {
    format!(
        "--live-tools: {workspace} holds {cache}, where the copy would be made: set AGENT_HOME or XDG_CACHE_HOME to a \
         directory elsewhere"
    )
}

/// The person asked to stop.
pub const REPLAY_INTERRUPTED: &str = "the same, up to where you interrupted the replay";

/// A call that gives another result now: the tool, what it was to do, and both results.
pub fn replay_other_result(tool: &str, summary: &str, recorded: &str, now: &str) -> String {
    let mut text = format!(
        "  {} gives another result (- recorded, + now): {}\n",
        one_line(tool, VALUE_CHARS),
        one_line(summary, VALUE_CHARS)
    );
    // Without the two lines that name files, and with both texts ending their last line.
    let diff = diff::unified("", &format!("{recorded}\n"), &format!("{now}\n"));
    for line in diff.lines().skip(2) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {line}");
    }
    text
}

/// The call is not permitted to whoever replays.
pub const REPLAY_REFUSED: &str = "  It ran then and is refused now: your own configuration and mode decide, and nobody is asked (`--mode`, `agent help permissions`).\n";

/// What became of the calls.
pub fn replayed_calls(again: usize, taken: &BTreeMap<&'static str, usize>) -> String {
    let mut text = format!("{} made again", count(again as u64, "call"));
    if !taken.is_empty() {
        let of: Vec<String> = taken.iter().map(|(why, how_many)| format!("{how_many} {why}")).collect();
        let _ = write!(text, "; taken from the journal: {}", of.join(", "));
    }
    text
}

fn list_names(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(MAX_LISTED).map(|name| one_line(name, VALUE_CHARS)).collect();
    let more = names.len().saturating_sub(MAX_LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &more
}
