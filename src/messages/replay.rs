//! Messages of `agent replay`: what was replayed, and the first difference.

use super::numbers::count;
use agent_text::diff;
use agent_text::lines::one_line;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Characters shown of a value; cutting precedes sanitizing.
const VALUE_CHARS: usize = 300;

/// Result of replaying one run: `records` events from number `from` on.
pub fn replayed_run(number: usize, from: u64, records: usize, how: &str) -> String {
    let last = from.saturating_add(u64::try_from(records).unwrap_or(u64::MAX)).saturating_sub(1);
    format!("run {number}, events {from} to {last}: {how}")
}

/// Result: no difference.
pub fn replayed_same(reason: Option<&str>) -> String {
    format!("identical to its end ({})", reason.unwrap_or("it failed"))
}

/// Result: no difference in a run whose process was killed.
pub const REPLAYED_UNTIL_KILLED: &str = "identical up to where its process was killed";

/// Result: no difference up to a missing record.
pub fn replayed_record_missing(seq: u64) -> String {
    format!(
        "identical up to event {seq}, which is missing: the journal is damaged, or the event was omitted when the session was imported or \
         forked"
    )
}

/// Result: the journal lacks information that a replay needs.
pub fn replayed_unknown(why: &str) -> String {
    format!("cannot be replayed exactly: {}", one_line(why, VALUE_CHARS))
}

/// Result: the first difference.
pub fn replayed_differs(event: u64, step: u32) -> String {
    format!("differs at event {event}, step {step}")
}

/// Details of a difference: the kind of event, the path within it and both values.
pub fn replay_difference(kind: &str, place: &str, recorded: &str, now: &str) -> String {
    let place = if place.is_empty() { String::new() } else { format!(", {}", one_line(place, VALUE_CHARS)) };
    let shown = |text| one_line(text, VALUE_CHARS);
    format!("  {kind}{place}\n  recorded: {}\n  now:      {}\n", shown(recorded), shown(now))
}

/// Explanation of a different request digest.
pub const REPLAY_REQUEST_DIFFERS: &str =
    "  The request to the model differs: a message added since the previous request has changed.\n";

/// Totals of a replay.
pub fn replayed(runs: usize, records: usize, compared: usize, requests: usize) -> String {
    let (runs, records) = (count(runs as u64, "run"), count(records as u64, "event"));
    format!("{runs}, {records}; compared the content of {compared} of {requests} requests")
}

/// Error for a session without runs.
pub const NOTHING_TO_REPLAY: &str = "this session has no run to replay";

/// Error for a session written by a later version.
pub const REPLAY_LATER_VERSION: &str =
    "a later version of agent has written to this session: replay it with that version";

/// Calls taken from the journal: refused or not run.
pub const DID_NOT_RUN: &str = "did not run then";
/// Calls taken from the journal: in a step that the user or a timeout interrupted.
pub const IN_INTERRUPTED_STEP: &str = "in a step that was cut short";
/// Calls taken from the journal: they read background output, which depends on time.
pub const BACKGROUND_OUTPUT_CALL: &str = "reading the output of a background command";
/// Calls taken from the journal: requests to the web.
pub const WEB_CALL: &str = "to the web";
/// Calls taken from the journal: of MCP servers, which are not started.
pub const MCP_CALL: &str = "to MCP servers";
/// Calls taken from the journal: subagents, which call a model.
pub const SUBAGENT_CALL: &str = "to a subagent";

/// Calls that are not repeated: questions.
pub const QUESTION_CALL: &str = "a question to the user";
/// Calls taken from the journal: commands that no sandbox keeps away from the original workspace.
pub const UNSANDBOXED_COMMAND: &str = "commands, because no sandbox isolates the file system here";

/// Maximum number of names listed.
const MAX_LISTED: usize = 10;

/// Notice about the copy of the workspace that the tools run in.
pub fn replay_copy(workspace: &str, files: usize) -> String {
    let files = count(files as u64, "file");
    format!("the tools run in a copy of {workspace} ({files}), which is removed afterwards")
}

/// Progress line about a call that runs again.
pub fn replay_call(tool: &str, summary: &str) -> String {
    format!("again: {} {}", one_line(tool, VALUE_CHARS), one_line(summary, VALUE_CHARS))
}

/// Warning that the session was imported, so the original files may be missing.
pub fn replay_imported(from: &str) -> String {
    format!(
        "this session was imported from {}: the copy contains the current files of this workspace",
        one_line(from, VALUE_CHARS)
    )
}

/// Paths missing from the copy.
pub fn replay_left_out(what: &[String]) -> String {
    format!("not copied: {}", list_names(what))
}

/// Cache directories, which are empty in the copy.
pub fn replay_caches(caches: &[String]) -> String {
    format!("empty in the copy, because they are caches: {}", list_names(caches))
}

/// Warning about files whose original content is not stored.
pub fn replay_contents_missing(files: &[String]) -> String {
    format!(
        "not at their original content, because it is not stored here: {}; results that depend on them will differ",
        list_names(files)
    )
}

/// Error for a workspace that cannot be copied.
pub fn replay_no_copy(workspace: &str, why: &str) -> String {
    format!("--live-tools: cannot copy {workspace}: {why}. `agent replay` alone needs no copy")
}

/// Error for a cache directory inside the workspace.
pub fn replay_cache_in_workspace(workspace: &str, cache: &str) -> String {
    format!(
        "--live-tools: {workspace} contains {cache}, where the copy would be created: set AGENT_HOME or XDG_CACHE_HOME to a \
         directory elsewhere"
    )
}

/// Result: no difference up to the user's interrupt.
pub const REPLAY_INTERRUPTED: &str = "identical up to where you interrupted the replay";

/// Call whose result differs now: tool, summary and a diff of both results.
pub fn replay_other_result(tool: &str, summary: &str, recorded: &str, now: &str) -> String {
    let mut text = format!(
        "  {} gives another result (- recorded, + now): {}\n",
        one_line(tool, VALUE_CHARS),
        one_line(summary, VALUE_CHARS)
    );
    // Skips the two lines with file names; both texts end with a newline.
    let diff = diff::unified("", &format!("{recorded}\n"), &format!("{now}\n"));
    for line in diff.lines().skip(2) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {line}");
    }
    text
}

/// Call that ran in the session and is refused in the replay.
pub const REPLAY_REFUSED: &str = "  It ran in the session and is refused now: your configuration and mode decide, without a question (`--mode`, `agent help permissions`).\n";

/// Totals: calls that ran again, and calls taken from the journal by reason.
pub fn replayed_calls(again: usize, taken: &BTreeMap<&'static str, usize>) -> String {
    let mut text = format!("{} run again", count(again as u64, "call"));
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
