//! What is said about reports.

use crate::core::language::Language;
use crate::core::stop_reason::StopReason;
use crate::messages::stop_reason_text;
use std::io;
use std::path::Path;

/// The forms of a report.
pub const REPORT_FORMS: &str = "the forms are json, markdown, github and html";

/// A model call that ended before its answer.
pub fn model_call_abandoned(reason: StopReason) -> String {
    format!("a model call was given up: {}", stop_reason_text(reason, Language::En))
}

/// Where the report is instead of where it was wanted.
pub fn report_written_elsewhere(wanted: &Path, error: &io::Error, path: &Path) -> String {
    format!("the report could not be written to {} ({error}); it is in {}", wanted.display(), path.display())
}

/// There is no report; the run has ended all the same.
pub fn report_not_written(wanted: Option<&Path>, why: &str, session: Option<&str>) -> String {
    let place = wanted.map_or_else(String::new, |path| format!(" to {}", path.display()));
    let again = session.map_or_else(String::new, |id| format!("; `agent report {id} -o FILE` makes it"));
    format!("the report could not be written{place}: {why}{again}")
}
