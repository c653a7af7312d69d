//! What the tools that look through the workspace share: a thread of their own, a time limit, and how results read.

use crate::text::lines::{QUOTE_CHARS, escape_controls, one_line, pluralize};
use crate::tools::ToolContext;
use crate::workspace::search::{ResultLine, SearchResults};
use crate::workspace::walk::{Listing, MAX_ENTRIES};
use globset::{GlobBuilder, GlobMatcher};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longest time one search or listing may take (spec.md 1.6); what was found until then is returned.
const TIME_LIMIT: Duration = Duration::from_secs(15);

/// Entries a listing shows.
pub const MAX_LISTED: usize = 1000;

/// Why something could not be looked at.
const UNREADABLE: &str =
    "unreadable, with a line that is too long, or with an ignore file that is no plain file";

/// Sets a flag when dropped, so that an abandoned search ends.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` on a thread of its own; its flag is set at the time limit, on cancellation, and when nobody waits any more.
///
/// # Errors
/// When the work died.
pub async fn run_blocking<T: Send + 'static>(
    cx: &ToolContext,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> Result<T, String> {
    let stop = StopOnDrop(Arc::new(AtomicBool::new(false)));
    let flag = Arc::clone(&stop.0);
    let mut task = tokio::task::spawn_blocking(move || work(&flag));
    let done = tokio::select! {
        done = &mut task => Some(done),
        () = cx.cancel.cancelled() => None,
        () = tokio::time::sleep(TIME_LIMIT) => None,
    };
    let done = if let Some(done) = done {
        done
    } else {
        stop.0.store(true, Ordering::Relaxed);
        task.await
    };
    done.map_err(|error| format!("The search failed: {error}"))
}

/// A glob as a person writes it: `*` stays within a directory, `{a,b}` are alternatives.
///
/// # Errors
/// A text for the model when it cannot be read.
pub fn parse_glob(pattern: Option<&str>) -> Result<Option<GlobMatcher>, String> {
    let pattern = pattern.map(|pattern| pattern.trim_start_matches("./"));
    let Some(pattern) = pattern.filter(|pattern| !pattern.is_empty()) else { return Ok(None) };
    GlobBuilder::new(pattern)
        .literal_separator(true)
        .build()
        .map(|glob| Some(glob.compile_matcher()))
        .map_err(|error| format!("Invalid glob pattern: {}", error.kind()))
}

/// What a listing left out.
pub fn write_listing_notes(out: &mut String, listing: &Listing) {
    let missing = listing.total.saturating_sub(listing.entries.len());
    // Writing to a String cannot fail.
    if missing > 0 {
        let _ = write!(out, "\n[{missing} more are not shown; narrow the pattern or the path.]");
    }
    if listing.unreadable > 0 {
        let _ = write!(out, "\n[{} left out: {UNREADABLE}]", pluralize(listing.unreadable, "place"));
    }
    if listing.is_incomplete {
        let _ = write!(out, "\n[{}]", cut_note());
    }
}

fn cut_note() -> String {
    format!(
        "Incomplete: ended after {} s or {MAX_ENTRIES} entries, or was cancelled; narrow the path.",
        TIME_LIMIT.as_secs()
    )
}

/// Results with context, one block for each run of lines: `📄 file:line`, hits marked with `>`.
pub fn format_blocks(results: &SearchResults) -> String {
    let mut out = String::new();
    for (path, lines) in &results.files {
        for run in lines.chunk_by(|a, b| b.number == a.number + 1) {
            let Some(hit) = run.iter().find(|line| line.matched) else { continue };
            if !out.is_empty() {
                out.push('\n');
            }
            let _ = writeln!(out, "📄 {}:{}", escape_controls(path), hit.number);
            let width = run.last().map_or(1, |line| line.number.to_string().len());
            for ResultLine { number, text, matched } in run {
                let mark = if *matched { '>' } else { ' ' };
                let _ = writeln!(out, "{mark} {number:width$} | {text}");
            }
        }
    }
    out
}

/// Results without context, `file:line: text`.
pub fn format_lines(results: &SearchResults) -> String {
    let mut out = String::new();
    for (path, lines) in &results.files {
        for line in lines.iter().filter(|line| line.matched) {
            let _ = writeln!(out, "{}:{}: {}", escape_controls(path), line.number, line.text);
        }
    }
    out
}

/// The whole answer: `body`, or that nothing was found, and what was left out.
pub fn format_answer(results: &SearchResults, wanted: &str, body: String, most: usize) -> String {
    let mut out = if results.hits == 0 {
        format!("No results for '{}'\n", one_line(wanted, QUOTE_CHARS))
    } else {
        body
    };
    if results.has_more {
        let _ = writeln!(
            out,
            "[Limit: the first {most} matching lines by path; there are more. Narrow the pattern or the path, or raise max_results.]"
        );
    }
    for (count, why) in
        [(results.hidden, "sensitive"), (results.too_large, "too large"), (results.unreadable, UNREADABLE)]
    {
        if count > 0 {
            let _ = writeln!(out, "[{} left out: {why}]", pluralize(count, "file"));
        }
    }
    if results.is_incomplete {
        let _ = writeln!(out, "[{}]", cut_note());
    }
    out.truncate(out.trim_end().len());
    out
}
