//! Parses the verdict of an evaluation: the JSON object in the model's reply.

use agent_core::evaluation::{Assessment, Confidence};
use agent_text::excerpt;
use serde_json::{Map, Value};

/// Bytes of a reply that are parsed; a normal reply has a few hundred.
const MAX_REPLY_BYTES: usize = 64 * 1024;

/// Number of opening braces at which parsing is tried: each try scans the rest of the reply.
const MAX_TRIES: usize = 100;

/// Number of issues retained.
const MAX_ISSUES: usize = 20;

/// Characters of an issue, and of the suggestion.
const MAX_CHARS: usize = 1000;

/// Parses the verdict in `reply`: the whole text, its first code fence, or its first JSON object. Returns `None` when no object has the required
/// fields.
pub fn read(reply: &str) -> Option<Assessment> {
    let reply = reply.get(..reply.floor_char_boundary(MAX_REPLY_BYTES)).unwrap_or_default();
    let fenced = || fenced(reply).and_then(object);
    assessment_of(&object(reply).or_else(fenced).or_else(|| embedded(reply))?)
}

/// Parses `text` as a JSON object.
fn object(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).ok()
}

/// Returns the content of the first code fence.
fn fenced(text: &str) -> Option<&str> {
    let (_, after) = text.split_once("```")?;
    let (_, body) = after.split_once('\n')?;
    body.split_once("```").map(|(body, _)| body)
}

/// Returns the first JSON object in the text.
fn embedded(text: &str) -> Option<Map<String, Value>> {
    let starts = text.match_indices('{').take(MAX_TRIES);
    starts
        .map_while(|(start, _)| text.get(start..))
        .find_map(|rest| serde_json::Deserializer::from_str(rest).into_iter().next()?.ok())
}

/// Converts an object to a verdict. Returns `None` when a field is missing or has another type.
fn assessment_of(object: &Map<String, Value>) -> Option<Assessment> {
    let issues = match object.get("issues") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(issues)) => {
            issues.iter().take(MAX_ISSUES).map(bounded_text).collect::<Option<Vec<String>>>()?
        }
        Some(_) => return None,
    };
    let suggestion = match object.get("suggestion") {
        None | Some(Value::Null) => String::new(),
        Some(suggestion) => bounded_text(suggestion)?,
    };
    Some(Assessment {
        completed: object.get("completed")?.as_bool()?,
        confidence: Confidence::try_from(object.get("confidence")?.as_f64()?).ok()?,
        issues: issues.into_iter().filter(|issue| !issue.is_empty()).collect(),
        suggestion,
    })
}

fn bounded_text(value: &Value) -> Option<String> {
    value.as_str().map(|text| excerpt::by_chars(text.trim(), MAX_CHARS).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const OBJECT: &str = r#"{"completed": false, "confidence": 0.25, "issues": ["no } test", "b"], "suggestion": "add \"one\" {"}"#;

    fn expected() -> Assessment {
        Assessment {
            completed: false,
            confidence: Confidence::try_from(0.25).unwrap(),
            issues: vec!["no } test".into(), "b".into()],
            suggestion: "add \"one\" {".into(),
        }
    }

    #[test]
    fn a17_the_object_is_the_whole_reply_or_in_its_fence_or_the_first_in_it() {
        for reply in [
            OBJECT.to_owned(),
            format!("\n {OBJECT}\n"),
            format!("```json\n{OBJECT}\n```"),
            format!("I looked at it.\n```\n{OBJECT}\n```\nThat is {{all}}."),
            format!("Of {{all}} files {{one is: {OBJECT}"),
            format!("I think: {OBJECT} and {{\"completed\": true, \"confidence\": 1}}"),
        ] {
            assert_eq!(read(&reply), Some(expected()), "{reply}");
        }
    }

    #[test]
    fn a17_what_does_not_say_what_was_asked_for_says_nothing() {
        for reply in [
            "",
            "The task is done.",
            "{completed: true}",
            "{\"completed\": true",
            "}{",
            "[{\"completed\": true}]",
            r#"{"completed": true}"#,
            r#"{"confidence": 1}"#,
            r#"{"completed": "true", "confidence": 1}"#,
            r#"{"completed": true, "confidence": "1"}"#,
            r#"{"completed": true, "confidence": 1.5}"#,
            r#"{"completed": true, "confidence": -1}"#,
            r#"{"completed": true, "confidence": 80}"#,
            r#"{"completed": true, "confidence": 1, "issues": "none"}"#,
            r#"{"completed": true, "confidence": 1, "issues": [1]}"#,
            r#"{"completed": true, "confidence": 1, "suggestion": []}"#,
            r#"{"is it": {"completed": true, "confidence": 1}}"#,
            r#"{"first": 1} {"completed": true, "confidence": 1}"#,
        ] {
            assert_eq!(read(reply), None, "{reply}");
        }
    }

    #[test]
    fn a17_issues_and_suggestion_may_be_missing() {
        let found = read(r#"{"completed": true, "confidence": 1}"#).unwrap();
        assert!(found.completed && found.issues.is_empty() && found.suggestion.is_empty());
        assert_eq!(
            read(r#"{"completed": true, "confidence": 1.0, "issues": null, "suggestion": null}"#),
            Some(found)
        );
    }

    #[test]
    fn a17_a_reply_is_bounded_in_depth_length_and_issues() {
        assert_eq!(read(&"{\"a\":".repeat(100_000)), None);
        assert_eq!(read(&format!("{}{OBJECT}", " ".repeat(MAX_REPLY_BYTES))), None);
        let issues = vec!["x".repeat(MAX_CHARS * 2); MAX_ISSUES + 5];
        let found =
            read(&json!({"completed": false, "confidence": 0, "issues": issues}).to_string()).unwrap();
        assert_eq!(found.issues.len(), MAX_ISSUES);
        assert!(found.issues.iter().all(|issue| issue.chars().count() <= MAX_CHARS));
    }

    proptest! {
        #[test]
        fn a17_no_reply_makes_it_fail(reply in r#"[`{}\[\]"\\a-z:,\n ]{0,80}"#) {
            let _ = read(&reply);
        }

        #[test]
        fn a17_what_is_written_is_read_whatever_strings_hold_and_text_stands_around(
            issues in prop::collection::vec(r#"[{}"\\`a-z]{1,12}"#, 0..4),
            suggestion in r#"[{}"\\a-z]{0,12}"#,
            completed: bool,
            parts in 0_u32..=1000,
            before in "[a-z .\n]{0,20}",
            after in "[a-z{} .\n]{0,20}",
        ) {
            let confidence = f64::from(parts) / 1000.0;
            let object = json!({"completed": completed, "confidence": confidence, "issues": issues, "suggestion": suggestion});
            let reply = format!("{before}{object}{after}");
            prop_assume!(!reply.contains("```"));
            let expected = Assessment {
                completed,
                confidence: Confidence::try_from(confidence).unwrap(),
                issues,
                suggestion,
            };
            prop_assert_eq!(read(&reply), Some(expected));
        }
    }
}
