//! Session report as SARIF 2.1.0 (OASIS standard, <https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>): the
//! findings of a review, and whether the run ended well.
//!
//! Without a complete review the key `results` is absent, which means "not determined"; an empty list means "none found".

use super::SessionReport;
use super::text;
use crate::core::review::{Finding, FindingSeverity};
use crate::core::stop_reason::Status;
use crate::llm::endpoint_overrides::percent_encoded;
use crate::messages;
use crate::report::json;
use crate::report::review_text::path_in_workspace;
use crate::terminal::sanitize_prose;
use crate::text::lines::words;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use strum::VariantArray;

/// Hexadecimal digits of a fingerprint.
const FINGERPRINT_CHARS: usize = 32;

/// Renders the report as one line of JSON.
pub(super) fn render(report: &SessionReport) -> io::Result<String> {
    let mut run = json!({
        "tool": {"driver": {
            "name": env!("CARGO_PKG_NAME"),
            "version": env!("CARGO_PKG_VERSION"),
            "rules": FindingSeverity::VARIANTS.iter().map(|severity| rule(*severity)).collect::<Vec<_>>(),
        }},
        "invocations": [invocation(report)],
    });
    if let (Some(run), Some(review)) = (run.as_object_mut(), &report.review) {
        let workspace = report.workspace.as_deref().map_or(Path::new("/"), Path::new);
        let mut seen = BTreeMap::new();
        let results = review.findings.iter().map(|finding| result(finding, workspace, &mut seen));
        run.insert("results".to_owned(), results.collect());
    }
    json::line(&json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }))
}

/// Returns the rule for findings of a severity. A review has no finer rules: its findings are not from a fixed list.
fn rule(severity: FindingSeverity) -> Value {
    let name = severity.name();
    json!({
        "id": rule_id(severity),
        "shortDescription": {"text": format!("Finding of a code review by a model, severity {name}")},
        "defaultConfiguration": {"level": severity.sarif_level()},
    })
}

fn rule_id(severity: FindingSeverity) -> String {
    format!("review/{}", severity.name())
}

/// Returns how the run ended, with a notification if that was not a complete review.
fn invocation(report: &SessionReport) -> Value {
    let mut invocation = Map::new();
    invocation.insert("executionSuccessful".to_owned(), (report.status == Some(Status::Success)).into());
    for (key, time) in [("startTimeUtc", report.started_ms), ("endTimeUtc", report.completed_ms)] {
        invocation.extend(time.map(|ms| (key.to_owned(), format!("{}Z", messages::iso_time(ms)).into())));
    }
    let failed = report.status != Some(Status::Success);
    let notes = failed.then(|| ("error", text::failure_text(report))).into_iter();
    let notes = notes.chain(report.review.is_none().then(|| ("warning", messages::NO_REVIEW.to_owned())));
    let notes: Vec<Value> =
        notes.map(|(level, text)| json!({"level": level, "message": {"text": text}})).collect();
    if !notes.is_empty() {
        invocation.insert("toolExecutionNotifications".to_owned(), notes.into());
    }
    invocation.into()
}

/// Returns a finding as a result. Its fingerprint does not contain the line, so that it stays when lines are added above; `seen`
/// counts equal ones.
fn result(finding: &Finding, workspace: &Path, seen: &mut BTreeMap<String, u32>) -> Value {
    let path = path_in_workspace(finding, workspace);
    let fingerprint = fingerprint(path.as_deref().unwrap_or(&finding.path), &finding.title);
    let times = seen.entry(fingerprint.clone()).and_modify(|times| *times += 1).or_insert(1);
    let mut result = json!({
        "ruleId": rule_id(finding.severity),
        "ruleIndex": finding.severity as usize,
        "level": finding.severity.sarif_level(),
        "message": {"text": message(finding, path.is_some())},
        "partialFingerprints": {"pathAndTitle/v1": format!("{fingerprint}:{times}")},
        "properties": {"severity": finding.severity, "inWorkspace": path.is_some()},
    });
    if let (Some(result), Some(path)) = (result.as_object_mut(), path) {
        let region = json!({"startLine": finding.line, "endLine": finding.last_line()});
        let location = json!({"artifactLocation": {"uri": uri(&path)}, "region": region});
        result.insert("locations".to_owned(), json!([{"physicalLocation": location}]));
    }
    result
}

/// Returns title, description and suggestion, without control characters; for a finding outside of the workspace also the place
/// that it names.
fn message(finding: &Finding, is_inside: bool) -> String {
    let place = (!is_inside).then(|| format!("[not in the workspace: {}:{}]", finding.path, finding.line));
    let suggestion = finding.suggested_fix().map(|suggestion| format!("Suggestion: {suggestion}"));
    let parts = [Some(finding.title.clone()), Some(finding.message.clone()), suggestion, place];
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.trim().is_empty()).collect();
    sanitize_prose(&parts.join("\n\n")).into_owned()
}

/// Returns a hash of the path and of the words of the title.
fn fingerprint(path: &str, title: &str) -> String {
    let words = words(&title.to_lowercase());
    let mut hasher = blake3::Hasher::new();
    hasher.update(path.as_bytes()).update(b"\0").update(words.as_bytes());
    hasher.finalize().to_hex().chars().take(FINGERPRINT_CHARS).collect()
}

/// Returns a relative path as a URI reference (RFC 3986).
fn uri(path: &str) -> String {
    path.split('/').map(percent_encoded).collect::<Vec<_>>().join("/")
}
