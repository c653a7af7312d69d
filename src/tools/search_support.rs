//! Shared parts of the search and listing tools: blocking execution with a time limit, globs and the format of results.

use crate::ToolContext;
use agent_runtime::blocking;
use agent_text::lines::{QUOTE_CHARS, escape_controls, one_line, pluralize};
use agent_workspace::search::{ResultLine, SearchResults};
use agent_workspace::walk::{Listing, MAX_ENTRIES};
use globset::{GlobBuilder, GlobMatcher};
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Time limit of one search or listing, after which the results so far are returned.
const TIME_LIMIT: Duration = Duration::from_secs(15);

/// Maximum number of entries in a listing.
pub const MAX_LISTED: usize = 1000;

/// Why files were not searched, or places not listed.
const UNREADABLE: &str =
    "unreadable, with a line that is too long, or with an ignore file that is not a regular file";

/// Runs `work` on a blocking thread. Its stop flag is set at the time limit, on cancellation, and when this future is
/// dropped.
///
/// # Errors
/// When the work panicked.
pub async fn run_blocking<T: Send + 'static>(
    cx: &ToolContext,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> Result<T, String> {
    let done = blocking::run_blocking(TIME_LIMIT, &cx.cancel, work).await;
    done.map_err(|error| format!("The search failed: {error}"))
}

/// Compiles a glob: `*` does not match `/`, `{a,b}` are alternatives. A missing or empty pattern gives `None`.
///
/// # Errors
/// A message for the model when the pattern is invalid.
pub fn parse_glob(pattern: Option<&str>) -> Result<Option<GlobMatcher>, String> {
    let pattern = pattern.map(|pattern| pattern.trim_start_matches("./"));
    let Some(pattern) = pattern.filter(|pattern| !pattern.is_empty()) else { return Ok(None) };
    GlobBuilder::new(pattern)
        .literal_separator(true)
        .build()
        .map(|glob| Some(glob.compile_matcher()))
        .map_err(|error| format!("Invalid glob pattern: {}", error.kind()))
}

/// Appends notes on what a listing omits.
pub fn write_listing_notes(out: &mut String, listing: &Listing) {
    let missing = listing.total.saturating_sub(listing.entries.len());
    // Writing to a String cannot fail.
    if missing > 0 {
        let _ = write!(out, "\n[{missing} more are not shown; narrow the pattern or the path.]");
    }
    if listing.total == 0 && listing.ignored > 0 {
        let _ = write!(out, "\n[{}]", ignored_note(listing.ignored));
    }
    if listing.unreadable > 0 {
        let _ = write!(out, "\n[{} left out: {UNREADABLE}]", pluralize(listing.unreadable, "place"));
    }
    if listing.is_incomplete {
        let _ = write!(out, "\n[{}]", cut_note());
    }
}

/// Explains why nothing may have been found: the number of entries that were not searched.
fn ignored_note(count: usize) -> String {
    let noun = if count == 1 { "entry" } else { "entries" };
    format!(
        "{count} {noun} left out: named in ignore files, hidden directories, or such as node_modules, dist, build; \
         name one as path to search it"
    )
}

fn cut_note() -> String {
    format!(
        "Incomplete: ended after {} s or {MAX_ENTRIES} entries, or was cancelled; narrow the path.",
        TIME_LIMIT.as_secs()
    )
}

/// Formats results with context, one block for each run of lines: `📄 file:line`, hits marked with `>`.
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

/// Formats results without context: `file:line: text`.
pub fn format_lines(results: &SearchResults) -> String {
    let mut out = String::new();
    for (path, lines) in &results.files {
        for line in lines.iter().filter(|line| line.matched) {
            let _ = writeln!(out, "{}:{}: {}", escape_controls(path), line.number, line.text);
        }
    }
    out
}

/// Builds the result of a search: `body`, or a message that nothing was found, and notes on what was omitted.
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
    if results.hits == 0 && results.ignored > 0 {
        let _ = writeln!(out, "[{}]", ignored_note(results.ignored));
    }
    if results.is_incomplete {
        let _ = writeln!(out, "[{}]", cut_note());
    }
    out.truncate(out.trim_end().len());
    out
}
