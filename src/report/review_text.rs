//! Findings of a review as plain text, and the place that a finding names.

use agent_core::language::Language;
use agent_core::review::{Finding, FindingSeverity, Review};
use agent_messages::{self as messages, FindingPlace};
use agent_terminal::one_line;
use agent_workspace::path::RelPath;
use std::collections::BTreeSet;
use std::path::Path;
use strum::VariantArray;

/// Characters of a path or a title.
const LINE_CHARS: usize = 300;

/// Returns the `path` of a finding from the workspace root; `None` if it leads out of the workspace or names no file.
pub fn path_in_workspace(path: &str, workspace: &Path) -> Option<String> {
    let path = RelPath::parse(path, &[workspace]).ok()?;
    (!path.is_root()).then(|| path.as_str().to_owned())
}

/// Returns `path:line` or `path:line-line` of a finding, on one line.
pub fn location(finding: &Finding) -> String {
    let (path, line, last) = (one_line(&finding.path, LINE_CHARS), finding.line, finding.last_line());
    if last > line { format!("{path}:{line}-{last}") } else { format!("{path}:{line}") }
}

/// Returns severity, place and title of a finding on one line.
pub fn headline(finding: &Finding) -> String {
    let title = one_line(&finding.title, LINE_CHARS);
    format!("{} {}: {title}", finding.severity.name(), location(finding))
}

/// Returns the text of a review: each finding with its place, description and suggestion, the numbers, and the summary.
/// A finding outside of the `changed` files or of the `workspace` is marked.
pub fn review_text(
    review: &Review,
    workspace: &Path,
    changed: &BTreeSet<String>,
    language: Language,
) -> String {
    let mut lines = Vec::new();
    for finding in &review.findings {
        let place = match path_in_workspace(&finding.path, workspace) {
            None => FindingPlace::OutsideWorkspace,
            Some(path) if changed.contains(&path) => FindingPlace::Changed,
            Some(_) => FindingPlace::OutsideDiff,
        };
        lines.push(format!("{}{}", headline(finding), messages::finding_place(place, language)));
        lines.extend(finding.message.lines().map(|line| format!("    {line}")));
        let suggestion = finding.suggested_fix().into_iter().flat_map(str::lines);
        let label = messages::suggestion_label(language);
        lines.extend(suggestion.enumerate().map(|(at, line)| match at {
            0 => format!("    {label}: {line}"),
            _ => format!("    {line}"),
        }));
        lines.push(String::new());
    }
    lines.push(messages::finding_count(&counts(review), language));
    lines.extend(review.summary.lines().map(str::to_owned));
    lines.join("\n")
}

/// Returns the number of findings of each severity that occurs, the highest first.
fn counts(review: &Review) -> Vec<(FindingSeverity, usize)> {
    let count = |severity: &FindingSeverity| {
        review.findings.iter().filter(|finding| finding.severity == *severity).count()
    };
    let all = FindingSeverity::VARIANTS.iter().rev().map(|severity| (*severity, count(severity)));
    all.filter(|(_, count)| *count > 0).collect()
}
