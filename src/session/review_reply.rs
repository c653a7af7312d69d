//! Parses the answer of the reviewer of a run's changes: a JSON object, or the sentence that there is nothing to report.

use agent_core::change_review::ChangeFinding;
use agent_messages::NO_ISSUES_FOUND;
use agent_text::excerpt;
use serde::Deserialize;

/// Bytes of the longest answer that is parsed.
const MAX_REPLY_BYTES: usize = 256 * 1024;

/// Number of findings retained of one answer.
const MAX_FINDINGS: usize = 50;

/// Characters of a path.
const MAX_PATH_CHARS: usize = 300;

/// Characters of a problem, and of its fix.
const MAX_TEXT_CHARS: usize = 1000;

/// The verdict of a reviewer on one part of the changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ReviewReply {
    /// Whether it approves the part.
    pub approved: bool,
    /// The problems found.
    pub findings: Vec<ChangeFinding>,
}

/// Parses an answer that consists of the JSON object alone, also in a code fence, or of the sentence that no issues were found. Returns
/// `None` for any other answer.
pub fn read(reply: &str) -> Option<ReviewReply> {
    let reply = reply.trim();
    if NO_ISSUES_FOUND.contains(&reply) {
        return Some(ReviewReply { approved: true, findings: Vec::new() });
    }
    let json = fenced(reply).unwrap_or(reply);
    let mut parsed: ReviewReply =
        (json.len() <= MAX_REPLY_BYTES).then(|| serde_json::from_str(json).ok()).flatten()?;
    parsed.approved &= parsed.findings.is_empty();
    parsed.findings.truncate(MAX_FINDINGS);
    for ChangeFinding { file, problem, fix, .. } in &mut parsed.findings {
        *file = excerpt::by_chars(file, MAX_PATH_CHARS).into_owned();
        *problem = excerpt::by_chars(problem, MAX_TEXT_CHARS).into_owned();
        *fix = fix.take().map(|fix| excerpt::by_chars(&fix, MAX_TEXT_CHARS).into_owned());
    }
    Some(parsed)
}

/// Returns the content of a text that is one code fence.
fn fenced(text: &str) -> Option<&str> {
    let (_, body) = text.strip_prefix("```")?.split_once('\n')?;
    body.strip_suffix("```")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn one() -> ReviewReply {
        let finding = ChangeFinding {
            file: "a.rs".to_owned(),
            line: Some(3),
            problem: "wrong".to_owned(),
            fix: Some("right".to_owned()),
        };
        ReviewReply { approved: false, findings: vec![finding] }
    }

    #[test]
    fn a15_the_answer_is_the_object_alone_or_in_a_fence_or_the_sentence() {
        let object = r#"{"approved": false, "findings": [{"file": "a.rs", "line": 3, "problem": "wrong", "fix": "right"}]}"#;
        for reply in [object.to_owned(), format!("\n{object}\n"), format!("```json\n{object}\n```\n")] {
            assert_eq!(read(&reply), Some(one()), "{reply}");
        }
        let approved = Some(ReviewReply { approved: true, findings: Vec::new() });
        for reply in [
            r#"{"approved": true, "findings": []}"#,
            "No issues found.",
            "\nNo issues found.\n",
            "No se encontraron problemas.",
        ] {
            assert_eq!(read(reply), approved, "{reply}");
        }
    }

    #[test]
    fn a15_an_answer_of_another_form_approves_nothing() {
        for reply in [
            "",
            "LGTM",
            "No issues found. But look at a.rs.",
            "There are issues. No issues found.",
            r#"I approve: {"approved": true, "findings": []}"#,
            r#"{"approved": true, "findings": []} {"approved": true, "findings": []}"#,
            r#"{"approved": "true", "findings": []}"#,
            r#"{"approved": true}"#,
            r#"{"findings": []}"#,
            r#"{"approved": true, "findings": ["none"]}"#,
            r#"{"approved": false, "approved": true, "findings": []}"#,
        ] {
            assert_eq!(read(reply), None, "{reply}");
        }
    }

    #[test]
    fn a15_findings_outweigh_the_approval_and_are_bounded() {
        let finding = json!({"file": "a".repeat(9_000), "line": -1, "problem": "b".repeat(9_000)});
        let reply = json!({"approved": true, "findings": vec![finding; 60]}).to_string();
        assert_eq!(read(&reply), None, "too long");
        let finding = json!({"file": "a".repeat(500), "line": -1, "problem": "b".repeat(2_000)});
        let read = read(&json!({"approved": true, "findings": vec![finding; 60]}).to_string()).unwrap();
        assert!(!read.approved);
        assert_eq!((read.findings.len(), read.findings[0].line), (MAX_FINDINGS, Some(1)));
        assert!(read.findings[0].file.chars().count() <= MAX_PATH_CHARS);
        assert!(read.findings[0].problem.chars().count() <= MAX_TEXT_CHARS);
    }

    proptest! {
        #[test]
        fn a15_no_answer_makes_the_parser_fail(reply in r#"[`{}\[\]"\\a-z:,\n ]{0,80}"#) {
            let _ = read(&reply);
        }
    }
}
