//! Recognises JSON tool calls that a model writes as text; they count only if they are the whole answer.

use agent_text::json_bounds;
use serde_json::{Map, Value};

/// A call found in text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddedCall {
    /// Name of an offered tool.
    pub name: String,
    /// Arguments as JSON.
    pub arguments: String,
    /// The whole call as the model wrote it.
    pub text: String,
}

/// Checks whether a partial answer could still become an embedded call.
pub fn is_possible_prefix(text: &str) -> bool {
    let text = text.trim_start();
    text.is_empty() || text.starts_with(['{', '[']) || text.starts_with("```") || "```".starts_with(text)
}

/// Returns the calls that make up `text`: one JSON object `{name, arguments | parameters | args}`, also nested in
/// `function`, or an array of them, bare or in one code fence. Returns none if the text contains anything else, names a tool
/// that is not `offered`, or lacks an arguments object: ordinary JSON is an answer.
pub fn find(text: &str, offered: &dyn Fn(&str) -> bool) -> Vec<EmbeddedCall> {
    let inner = strip_code_fence(text.trim());
    if !inner.starts_with(['{', '[']) || json_bounds::check(inner.as_bytes()).is_err() {
        return Vec::new();
    }
    let calls: Option<Vec<_>> = match serde_json::from_str(inner) {
        Ok(Value::Array(items)) => items.into_iter().map(|item| parse_call(item, offered)).collect(),
        Ok(item) => parse_call(item, offered).map(|call| vec![call]),
        Err(_) => None,
    };
    calls.unwrap_or_default()
}

/// Returns the call that a JSON value represents, if it names an offered tool.
pub fn parse_call(item: Value, offered: &dyn Fn(&str) -> bool) -> Option<EmbeddedCall> {
    let text = item.to_string();
    let Value::Object(mut object) = item else { return None };
    if let Some(Value::Object(inner)) = object.shift_remove("function") {
        object = inner;
    }
    let name = object.get("name").and_then(|name| offered_name(name.as_str()?, offered))?.to_owned();
    let arguments = ["arguments", "parameters", "args"].iter().find_map(|key| object.get(*key))?;
    let arguments = match arguments {
        Value::Object(_) => arguments.to_string(),
        Value::String(text) if serde_json::from_str::<Map<String, Value>>(text).is_ok() => text.clone(),
        _ => return None,
    };
    Some(EmbeddedCall { name, arguments, text })
}

/// Returns the offered tool that `name` means: the name itself, or the name without the affixes that models and servers are
/// known to add: `functions.NAME:0` (Kimi), `default_api.NAME` (Gemini), `NAME<|channel|>commentary` (gpt-oss).
pub fn offered_name<'a>(name: &'a str, offered: &dyn Fn(&str) -> bool) -> Option<&'a str> {
    const PREFIXES: [&str; 3] = ["functions.", "default_api.", "default_api:"];
    let name = name.trim();
    if offered(name) {
        return Some(name);
    }
    let bare = name.split_once("<|").map_or(name, |(bare, _)| bare).trim();
    let bare = PREFIXES.iter().find_map(|prefix| bare.strip_prefix(prefix)).unwrap_or(bare);
    let numbered =
        bare.rsplit_once(':').filter(|(_, number)| number.bytes().all(|byte| byte.is_ascii_digit()));
    Some(numbered.map_or(bare, |(bare, _)| bare)).filter(|name| offered(name))
}

/// Returns the content of a text that is one code fence, or else the text itself.
fn strip_code_fence(text: &str) -> &str {
    let fenced = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    match fenced.and_then(|rest| rest.split_once('\n')) {
        Some((language, inner)) if !language.contains('`') && !inner.contains("```") => inner.trim(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(text: &str) -> Vec<String> {
        find(text, &|name| name == "read_file").into_iter().map(|call| call.name + &call.arguments).collect()
    }

    #[test]
    fn l21_a_whole_text_call_is_found_bare_fenced_nested_and_listed() {
        let expected = ["read_file{\"path\":\"a\"}"];
        for text in [
            r#"{"name":"read_file","arguments":{"path":"a"}}"#,
            r#" {"name":"read_file","parameters":{"path":"a"}} "#,
            "```json\n{\"name\":\"read_file\",\"args\":{\"path\":\"a\"}}\n```",
            r#"{"type":"function","function":{"name":"read_file","arguments":"{\"path\":\"a\"}"}}"#,
            r#"[{"name":"read_file","arguments":{"path":"a"}}]"#,
        ] {
            assert_eq!(names(text), expected, "{text}");
            assert!(is_possible_prefix(text), "{text}");
        }
    }

    #[test]
    fn l22_ordinary_json_and_text_around_a_call_stay_text() {
        for text in [
            r#"{"name":"x"}"#,
            r#"{"name":"read_file"}"#,
            r#"{"name":"read_file","arguments":"none"}"#,
            r#"{"name":"other","arguments":{}}"#,
            r#"[{"name":"read_file","arguments":{}}, {"name":"x"}]"#,
            r#"I call {"name":"read_file","arguments":{}}"#,
            "```\n{}\n```\n{\"name\":\"read_file\",\"arguments\":{}}\n```",
            "[]",
            "",
        ] {
            assert_eq!(names(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn a_name_is_freed_of_what_stands_around_it_only_where_that_makes_it_one_of_the_offered() {
        let offered = |name: &str| name == "read" || name == "a:1";
        for name in [
            "read",
            " read ",
            "functions.read",
            "functions.read:12",
            "default_api.read",
            "read<|channel|>json",
        ] {
            assert_eq!(offered_name(name, &offered), Some("read"), "{name}");
        }
        assert_eq!(offered_name("a:1", &offered), Some("a:1"));
        for name in ["", "reader", "read:x", "x.read", "functions.write", "<|channel|>read"] {
            assert_eq!(offered_name(name, &offered), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_fail(text in r#"[`{}\[\]"a-z:,\n ]{0,60}"#) {
            let _ = find(&text, &|_| true);
        }
    }
}
