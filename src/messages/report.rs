//! Messages about session reports.

use crate::stop_reason_text;
use agent_core::language::Language;
use agent_core::stop_reason::StopReason;
use std::io;
use std::path::Path;

/// Valid report formats, for an error about an unknown one.
pub const REPORT_FORMS: &str = "the formats are json, markdown, github, html, junit and sarif";

/// Line about a model call that ended before its answer.
pub fn model_call_abandoned(reason: StopReason) -> String {
    format!("a model call was abandoned: {}", stop_reason_text(reason, None, Language::En))
}

/// Warning that the report was written to `path` instead of `wanted`.
pub fn report_written_elsewhere(wanted: &Path, error: &io::Error, path: &Path) -> String {
    format!("the report could not be written to {} ({error}); it is in {}", wanted.display(), path.display())
}

/// Warning that the report of an ended run could not be written.
pub fn report_not_written(wanted: Option<&Path>, why: &str, session: Option<&str>) -> String {
    let place = wanted.map_or_else(String::new, |path| format!(" to {}", path.display()));
    let again =
        session.map_or_else(String::new, |id| format!("; create it with `agent report {id} -o FILE`"));
    format!("the report could not be written{place}: {why}{again}")
}
