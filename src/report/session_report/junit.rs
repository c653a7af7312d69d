//! Session report as `JUnit` XML: one suite with the run, its quality gates, the guardrails that ended it, the evaluation of
//! its answer, the review of its changes, and the findings of `agent review` as test cases.
//!
//! The format has no standard. The elements, their order and the attributes are those that both published schemas accept:
//! `junit-10.xsd` of Jenkins' xUnit plugin, and `JUnit.xsd` of Windy Road.

use super::SessionReport;
use super::html_writer::HtmlWriter;
use super::text;
use crate::review_text::{headline, location};
use agent_core::change_review::{ChangeFinding, ChangeReview};
use agent_core::guardrail::GuardrailAction;
use agent_core::language::Language;
use agent_core::quality_gate::GateResult;
use agent_core::review::Finding;
use agent_core::stop_reason::Status;
use agent_messages as messages;
use agent_terminal::one_line;

/// Characters of an attribute.
const ATTRIBUTE_CHARS: usize = 500;

/// A test case.
struct Case {
    class: &'static str,
    name: String,
    duration_ms: u64,
    outcome: CaseOutcome,
}

/// Outcome of a test case.
enum CaseOutcome {
    Passed,
    /// Did not pass, which does not fail the run.
    Skipped(String),
    /// Did not pass; first a line, then the details.
    Failed(String, String),
    /// Could not be carried out.
    Error(String, String),
}

/// Renders the report. Characters that XML 1.0 forbids are shown as escapes.
pub(super) fn render(report: &SessionReport) -> String {
    let cases = cases(report);
    let mut page = HtmlWriter::default();
    page.markup("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite");
    attribute(&mut page, " name=\"", "agent");
    attribute(&mut page, " id=\"", "0");
    attribute(&mut page, " package=\"", "agent");
    attribute(&mut page, " hostname=\"", "localhost");
    if let Some(started) = report.started_ms {
        attribute(&mut page, " timestamp=\"", &messages::iso_time(started));
    }
    let count = |matches: fn(&CaseOutcome) -> bool| {
        cases.iter().filter(|case| matches(&case.outcome)).count().to_string()
    };
    attribute(&mut page, " tests=\"", &count(|_| true));
    attribute(&mut page, " failures=\"", &count(|outcome| matches!(outcome, CaseOutcome::Failed(..))));
    attribute(&mut page, " errors=\"", &count(|outcome| matches!(outcome, CaseOutcome::Error(..))));
    attribute(&mut page, " skipped=\"", &count(|outcome| matches!(outcome, CaseOutcome::Skipped(_))));
    attribute(&mut page, " time=\"", &seconds(report.duration_ms));
    page.markup(">\n<properties>\n");
    for (name, value) in text::setting(report) {
        attribute(&mut page, "<property name=\"", name);
        attribute(&mut page, " value=\"", &value);
        page.markup("/>\n");
    }
    page.markup("</properties>\n");
    for case in &cases {
        add_case(&mut page, case);
    }
    let warnings: Vec<&str> = report.warnings.iter().map(|warning| warning.text.as_str()).collect();
    page.markup("<system-out>");
    verbatim(&mut page, &report.output);
    page.markup("</system-out>\n<system-err>");
    verbatim(&mut page, &warnings.join("\n"));
    page.markup("</system-err>\n</testsuite>\n</testsuites>\n");
    page.finish()
}

fn cases(report: &SessionReport) -> Vec<Case> {
    let run = Case {
        class: "agent",
        name: "run".to_owned(),
        duration_ms: report.duration_ms,
        outcome: match report.status {
            Some(Status::Success) => CaseOutcome::Passed,
            Some(Status::Partial) => CaseOutcome::Failed(text::verdict(report), text::failure_text(report)),
            Some(Status::Failed) | None => {
                CaseOutcome::Error(text::verdict(report), text::failure_text(report))
            }
        },
    };
    let ended = report.guardrails.iter().filter(|guardrail| guardrail.action == GuardrailAction::Halt);
    let guardrails = ended.map(|guardrail| {
        let text = messages::guardrail_triggered(guardrail, Language::En);
        let outcome = CaseOutcome::Failed(text, guardrail.message.clone());
        Case { class: "agent.guardrail", name: guardrail.name.clone(), duration_ms: 0, outcome }
    });
    let evaluation = report.evaluation.iter().map(|result| Case {
        class: "agent.evaluation",
        name: "evaluation of the answer".to_owned(),
        duration_ms: 0,
        outcome: if result.passed {
            CaseOutcome::Passed
        } else {
            CaseOutcome::Failed(
                messages::evaluation(result, Language::En),
                messages::evaluation_findings(result),
            )
        },
    });
    let change_review = report.change_review.iter().map(change_review_case);
    let change_findings = report.change_review.iter().flat_map(|review| &review.findings);
    let findings = report.review.iter().flat_map(|review| &review.findings).map(finding_case);
    let gates = report.quality_gates.iter().map(gate_case);
    std::iter::once(run)
        .chain(gates)
        .chain(guardrails)
        .chain(evaluation)
        .chain(change_review)
        .chain(change_findings.map(change_finding_case))
        .chain(findings)
        .collect()
}

fn change_review_case(review: &ChangeReview) -> Case {
    let line = messages::change_review(review, Language::En);
    let outcome = match (review.approved, review.skipped) {
        (true, _) => CaseOutcome::Passed,
        (false, true) => CaseOutcome::Skipped(line),
        (false, false) => CaseOutcome::Failed(line, String::new()),
    };
    Case { class: "agent.review", name: "review of the changes".to_owned(), duration_ms: 0, outcome }
}

fn change_finding_case(finding: &ChangeFinding) -> Case {
    let name = format!("{}: {}", messages::change_finding_place(finding), finding.problem);
    let suggestion = finding.fix.iter().map(|fix| format!("Suggestion: {fix}"));
    let outcome = CaseOutcome::Failed(finding.problem.clone(), suggestion.collect());
    Case { class: "agent.review", name, duration_ms: 0, outcome }
}

fn gate_case(gate: &GateResult) -> Case {
    let line = messages::gate(gate, Language::En);
    let outcome = match (gate.passed, gate.required) {
        (true, _) => CaseOutcome::Passed,
        (false, true) => CaseOutcome::Failed(line, gate.output.clone()),
        (false, false) => CaseOutcome::Skipped(line),
    };
    Case { class: "agent.gate", name: gate.name.clone(), duration_ms: gate.duration_ms, outcome }
}

fn finding_case(finding: &Finding) -> Case {
    let suggestion = finding.suggested_fix().map(|text| format!("\nSuggestion: {text}"));
    let details = format!("{}{}", finding.message, suggestion.unwrap_or_default());
    Case {
        class: "agent.review",
        name: format!("{}: {}", location(finding), finding.title),
        duration_ms: 0,
        outcome: CaseOutcome::Failed(headline(finding), details),
    }
}

fn add_case(page: &mut HtmlWriter, case: &Case) {
    attribute(page, "<testcase classname=\"", case.class);
    attribute(page, " name=\"", &case.name);
    attribute(page, " time=\"", &seconds(case.duration_ms));
    let (open, line, details, close) = match &case.outcome {
        CaseOutcome::Passed => {
            page.markup("/>\n");
            return;
        }
        CaseOutcome::Skipped(line) => ("><skipped message=\"", line, "", "</skipped></testcase>\n"),
        CaseOutcome::Failed(line, details) => {
            ("><failure type=\"failure\" message=\"", line, details.as_str(), "</failure></testcase>\n")
        }
        CaseOutcome::Error(line, details) => {
            ("><error type=\"error\" message=\"", line, details.as_str(), "</error></testcase>\n")
        }
    };
    attribute(page, open, line);
    page.markup(">");
    verbatim(page, details);
    page.markup(close);
}

/// Adds an attribute; `start` is its name with the opening quote.
fn attribute(page: &mut HtmlWriter, start: &'static str, value: &str) {
    page.markup(start);
    verbatim(page, &one_line(value, ATTRIBUTE_CHARS));
    page.markup("\"");
}

/// Adds text. The noncharacters U+FFFE and U+FFFF, which XML forbids, are replaced; the writer escapes the control characters.
fn verbatim(page: &mut HtmlWriter, text: &str) {
    page.verbatim(&text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}"));
}

/// Formats milliseconds as seconds with three decimals.
fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1_000, ms % 1_000)
}
