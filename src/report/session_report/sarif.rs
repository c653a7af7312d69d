//! Session report as SARIF 2.1.0 (OASIS standard, <https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>): the
//! findings of a review by `agent review` or `--review`, and whether the run ended well.
//!
//! Without a complete review and without findings the key `results` is absent, which means "not determined"; an empty list means
//! "none found".

use super::SessionReport;
use super::text;
use crate::json;
use crate::review_text::path_in_workspace;
use agent_core::language::Language;
use agent_core::review::FindingSeverity;
use agent_core::stop_reason::Status;
use agent_llm::endpoint_overrides::percent_encoded;
use agent_messages as messages;
use agent_terminal::sanitize_prose;
use agent_text::lines::words;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use strum::VariantArray;

/// Hexadecimal digits of a fingerprint.
const FINGERPRINT_CHARS: usize = 32;
/// Rule of the findings of `--review`.
const CHANGE_RULE: &str = "change-review";
/// Level of these findings: without approval, the run is no success.
const CHANGE_LEVEL: &str = "error";

/// Renders the report as one line of JSON.
pub(super) fn render(report: &SessionReport) -> io::Result<String> {
    let mut run = json!({
        "tool": {"driver": {
            "name": "agent",
            "version": env!("CARGO_PKG_VERSION"),
            "rules": rules(),
        }},
        "invocations": [invocation(report)],
    });
    let findings = findings(report);
    if let Some(run) = run.as_object_mut().filter(|_| !findings.is_empty() || undetermined(report).is_none())
    {
        let workspace = report.workspace.as_deref().map_or(Path::new("/"), Path::new);
        let mut seen = BTreeMap::new();
        let results = findings.iter().map(|finding| result(finding, workspace, &mut seen));
        run.insert("results".to_owned(), results.collect());
    }
    json::line(&json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }))
}

/// Returns the rules: one for each severity of `agent review`, then that of `--review`, whose findings have none. There are no finer ones:
/// findings are not from a fixed list.
fn rules() -> Vec<Value> {
    let rule = |id: &str, level: &str, text: String| json!({"id": id, "shortDescription": {"text": text}, "defaultConfiguration": {"level": level}});
    let of_severity = |severity: &FindingSeverity| {
        let text = format!("Finding of a code review by a model, severity {}", severity.name());
        rule(&rule_id(*severity), severity.sarif_level(), text)
    };
    let change = rule(
        CHANGE_RULE,
        CHANGE_LEVEL,
        "Finding of the review of the run's own changes by a model".to_owned(),
    );
    FindingSeverity::VARIANTS.iter().map(of_severity).chain([change]).collect()
}

fn rule_id(severity: FindingSeverity) -> String {
    format!("review/{}", severity.name())
}

/// A finding of either review.
struct ReportedFinding<'a> {
    severity: Option<FindingSeverity>,
    path: &'a str,
    lines: Option<(u32, u32)>,
    title: &'a str,
    /// What the message contains after the title.
    details: &'a str,
    fix: Option<&'a str>,
}

fn findings(report: &SessionReport) -> Vec<ReportedFinding<'_>> {
    let reviewed = report.review.iter().flat_map(|review| &review.findings).map(|finding| ReportedFinding {
        severity: Some(finding.severity),
        path: &finding.path,
        lines: Some((finding.line, finding.last_line())),
        title: &finding.title,
        details: &finding.message,
        fix: finding.suggested_fix(),
    });
    let changes = report.change_review.iter().flat_map(|review| &review.findings);
    let changes = changes.map(|finding| ReportedFinding {
        severity: None,
        path: &finding.file,
        lines: finding.line.map(|line| (line, line)),
        title: &finding.problem,
        details: "",
        fix: finding.fix.as_deref(),
    });
    reviewed.chain(changes).collect()
}

/// Returns why the findings of the run are not known, or not all of them; `None` after a complete review.
fn undetermined(report: &SessionReport) -> Option<String> {
    match (&report.review, &report.change_review) {
        (Some(_), _) => None,
        (None, None) => Some(messages::NO_REVIEW.to_owned()),
        (None, Some(review)) => (review.skipped || review.problem.is_some())
            .then(|| messages::change_review(review, Language::En)),
    }
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
    let notes = notes.chain(undetermined(report).map(|text| ("warning", text)));
    let notes: Vec<Value> =
        notes.map(|(level, text)| json!({"level": level, "message": {"text": text}})).collect();
    if !notes.is_empty() {
        invocation.insert("toolExecutionNotifications".to_owned(), notes.into());
    }
    invocation.into()
}

/// Returns a finding as a result. Its fingerprint does not contain the line, so that it stays when lines are added above; `seen`
/// counts equal ones.
fn result(finding: &ReportedFinding<'_>, workspace: &Path, seen: &mut BTreeMap<String, u32>) -> Value {
    let path = path_in_workspace(finding.path, workspace);
    let fingerprint = fingerprint(path.as_deref().unwrap_or(finding.path), finding.title);
    let times = seen.entry(fingerprint.clone()).and_modify(|times| *times += 1).or_insert(1);
    let (rule, index) = match finding.severity {
        Some(severity) => (rule_id(severity), severity as usize),
        None => (CHANGE_RULE.to_owned(), FindingSeverity::VARIANTS.len()),
    };
    let mut properties = json!({"inWorkspace": path.is_some()});
    if let Some(severity) = finding.severity {
        properties["severity"] = json!(severity);
    }
    let mut result = json!({
        "ruleId": rule,
        "ruleIndex": index,
        "level": finding.severity.map_or(CHANGE_LEVEL, FindingSeverity::sarif_level),
        "message": {"text": message(finding, path.is_some())},
        "partialFingerprints": {"pathAndTitle/v1": format!("{fingerprint}:{times}")},
        "properties": properties,
    });
    if let Some(path) = path {
        let mut location = json!({"artifactLocation": {"uri": uri(&path)}});
        if let Some((first, last)) = finding.lines {
            location["region"] = json!({"startLine": first, "endLine": last});
        }
        result["locations"] = json!([{"physicalLocation": location}]);
    }
    result
}

/// Returns title, description and suggestion, without control characters; for a finding outside of the workspace also the place
/// that it names.
fn message(finding: &ReportedFinding<'_>, is_inside: bool) -> String {
    let ReportedFinding { path, lines, title, details, fix, .. } = finding;
    let line = lines.map_or_else(String::new, |(first, _)| format!(":{first}"));
    let place = (!is_inside).then(|| format!("[not in the workspace: {path}{line}]"));
    let suggestion = fix.map(|suggestion| format!("Suggestion: {suggestion}"));
    let parts = [Some((*title).to_owned()), Some((*details).to_owned()), suggestion, place];
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
