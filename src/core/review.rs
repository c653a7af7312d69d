//! Findings of a code review, and the built-in schema of the answer that contains them.

use crate::line_number::{line_number, optional_line_number};
use crate::run_result::{Output, RunResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// JSON Schema of a [`Review`]. It is written by hand, because the strict modes of some servers refuse ranges and
/// `oneOf`, which generated schemas contain.
pub const REVIEW_SCHEMA: &str = include_str!("../../config/schema/review.json");

/// Severity of a finding, from the lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum FindingSeverity {
    /// A remark.
    Info,
    /// Needless complexity, or a misleading name.
    Low,
    /// A failure in a rare case, or a missing test of risky code.
    Medium,
    /// Wrong results or a failure in a likely case.
    High,
    /// Loss of data, a security hole, or a crash in normal use.
    Critical,
}

crate::impl_name!(FindingSeverity);

impl FindingSeverity {
    /// Returns the level of SARIF: `error`, `warning` or `note`.
    pub fn sarif_level(self) -> &'static str {
        match self {
            Self::Critical | Self::High => "error",
            Self::Medium => "warning",
            Self::Low | Self::Info => "note",
        }
    }
}

/// A problem that a review found. All texts come from a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// File, relative to the workspace; may name anything.
    pub path: String,
    /// First line, from 1.
    #[serde(deserialize_with = "line_number")]
    pub line: u32,
    /// Last line; null if the problem is one line.
    #[serde(deserialize_with = "optional_line_number")]
    pub end_line: Option<u32>,
    /// Severity of the problem.
    pub severity: FindingSeverity,
    /// The problem in one line.
    pub title: String,
    /// Description of the problem.
    pub message: String,
    /// The smallest fix; null if there is none.
    pub suggestion: Option<String>,
}

/// The answer of a review.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Review {
    /// Scope and overall result.
    pub summary: String,
    /// The problems.
    pub findings: Vec<Finding>,
}

impl Finding {
    /// Returns the last line, at least the first.
    pub fn last_line(&self) -> u32 {
        self.end_line.unwrap_or(self.line).max(self.line)
    }

    /// Returns the suggested fix, unless it is blank.
    pub fn suggested_fix(&self) -> Option<&str> {
        self.suggestion.as_deref().filter(|fix| !fix.trim().is_empty())
    }
}

impl Review {
    /// Returns the review in the output of a run, its findings sorted by file and line. `None` if the output is not one: another
    /// task, an answer that does not fit the schema, or a run that ended early.
    pub fn from_result(result: &RunResult) -> Option<Self> {
        let Output::Value(value) = &result.output else { return None };
        let mut review: Self = serde_json::from_value(value.clone()).ok()?;
        review.findings.sort_by(|a, b| {
            (&a.path, a.line, b.severity, &a.title).cmp(&(&b.path, b.line, a.severity, &b.title))
        });
        (result.output_valid == Some(true)).then_some(review)
    }

    /// Returns the highest severity of a finding.
    pub fn highest_severity(&self) -> Option<FindingSeverity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line_number::MAX_LINE;
    use serde_json::{Value, json};
    use strum::VariantArray;

    fn result(output: Value) -> RunResult {
        RunResult { output: Output::Value(output), output_valid: Some(true), ..RunResult::default() }
    }

    fn finding(path: &str, line: &Value, severity: &str) -> Value {
        json!({"path": path, "line": line, "end_line": null, "severity": severity, "title": "t", "message": "m",
            "suggestion": null})
    }

    #[test]
    fn review_findings_are_sorted_and_lines_are_brought_into_range() {
        let findings = [
            finding("b", &json!(1), "low"),
            finding("a", &json!(9), "info"),
            finding("a", &json!(-3), "low"),
            finding("a", &json!(1.0), "critical"),
            finding("a", &json!(u64::MAX), "high"),
        ];
        let review = Review::from_result(&result(json!({"summary": "s", "findings": findings}))).unwrap();
        let order: Vec<_> =
            review.findings.iter().map(|it| (it.path.as_str(), it.line, it.severity.name())).collect();
        assert_eq!(
            order,
            [
                ("a", 1, "critical"),
                ("a", 1, "low"),
                ("a", 9, "info"),
                ("a", MAX_LINE, "high"),
                ("b", 1, "low")
            ]
        );
        assert_eq!(review.highest_severity(), Some(FindingSeverity::Critical));
    }

    #[test]
    fn an_output_that_is_not_a_valid_review_is_none() {
        let review = json!({"summary": "s", "findings": []});
        assert!(Review::from_result(&result(review.clone())).is_some());
        let partial = RunResult { output_valid: Some(false), ..result(review.clone()) };
        let text = RunResult { output: review.to_string().into(), ..result(Value::Null) };
        for other in [partial, text, result(json!({"summary": "s"})), result(json!({"files": []}))] {
            assert_eq!(Review::from_result(&other), None);
        }
    }

    #[test]
    fn the_schema_and_the_types_have_the_same_keys_and_severities() {
        let schema: Value = serde_json::from_str(REVIEW_SCHEMA).unwrap();
        let item = &schema["properties"]["findings"]["items"];
        let keys = |object: &Value| -> Vec<String> { object.as_object().unwrap().keys().cloned().collect() };
        let finding: Finding = serde_json::from_value(finding("a", &json!(1), "low")).unwrap();
        assert_eq!(keys(&item["properties"]), keys(&serde_json::to_value(finding).unwrap()));
        assert_eq!(item["required"], json!(keys(&item["properties"])));
        assert_eq!(keys(&schema["properties"]), keys(&serde_json::to_value(Review::default()).unwrap()));
        let severities: Vec<_> = FindingSeverity::VARIANTS.iter().map(|severity| severity.name()).collect();
        assert_eq!(item["properties"]["severity"]["enum"], json!(severities));
    }
}
