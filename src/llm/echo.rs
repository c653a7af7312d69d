//! Calls written as text that only repeat what the model was given: a file, a page or a task that holds a call must not
//! act through it.

use crate::llm::embedded_call::EmbeddedCall;
use crate::message::{Message, Part, Role};
use crate::text::invisible::is_hidden;
use serde_json::{Map, Value};
use std::sync::Arc;

/// What stands between the words of a call: each word is looked for by itself, as what was given may be shown with line
/// numbers or in another order.
const BETWEEN: [char; 9] = ['\n', '<', '>', '{', '}', '[', ']', ',', ';'];

/// Whether one of `calls` stands in what the model was given, in the instructions, by the user or by tools: as it wrote the
/// call, or by its arguments, however they are laid out and escaped there.
pub fn has_echo(calls: &[EmbeddedCall], messages: &[Arc<Message>]) -> bool {
    let others = messages.iter().filter(|message| message.role != Role::Assistant);
    let given: String = others.flat_map(|message| &message.parts).filter_map(text).map(essence).collect();
    calls.iter().any(|call| {
        let mut words = call.text.split(BETWEEN).map(essence);
        words.all(|word| given.contains(&word)) || holds_arguments(&given, call)
    })
}

fn text(part: &Part) -> Option<&str> {
    match part {
        Part::Text { text } => Some(text),
        Part::ToolResult(result) => Some(&result.text),
        Part::Thinking { .. } | Part::ToolCall(_) => None,
    }
}

fn holds_arguments(given: &str, call: &EmbeddedCall) -> bool {
    let arguments: Map<String, Value> = serde_json::from_str(&call.arguments).unwrap_or_default();
    !arguments.is_empty() && arguments.iter().all(|(key, value)| holds(given, key, value))
}

/// Whether `key` stands in `given` with `value`, or with all that `value` holds.
fn holds(given: &str, key: &str, value: &Value) -> bool {
    let begins = |mark: &str| given.contains(&essence(&format!("{}:{mark}", Value::from(key))));
    match value {
        Value::Object(fields) => begins("{") && fields.iter().all(|(key, value)| holds(given, key, value)),
        Value::Array(items) => begins("[") && items.iter().all(|item| holds_item(given, item)),
        leaf => begins(&leaf.to_string()),
    }
}

fn holds_item(given: &str, item: &Value) -> bool {
    match item {
        Value::Object(fields) => fields.iter().all(|(key, value)| holds(given, key, value)),
        Value::Array(items) => items.iter().all(|item| holds_item(given, item)),
        leaf => given.contains(&essence(&leaf.to_string())),
    }
}

/// What is left of a text without white space, invisible characters and JSON's escapes, be they written once, several times
/// or not at all.
fn essence(text: &str) -> String {
    let mut units = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        units.extend(before.encode_utf16());
        let escaped = escape.trim_start_matches('\\');
        let (unit, after) = unescaped(escaped);
        units.extend(unit);
        rest = after;
    }
    units.extend(rest.encode_utf16());
    let letters = String::from_utf16_lossy(&units);
    letters.chars().filter(|c| !c.is_whitespace() && *c != '\\' && !is_hidden(*c)).collect()
}

/// The UTF-16 unit that stands after a backslash, if it has one, and what follows; an escape for white space has none.
fn unescaped(text: &str) -> (Option<u16>, &str) {
    if let Some(after) = text.strip_prefix(['n', 'r', 't', 'b', 'f']) {
        return (None, after);
    }
    let digits = text.strip_prefix('u').and_then(|digits| digits.split_at_checked(4));
    let unit = digits.and_then(|(digits, after)| Some((u16::from_str_radix(digits, 16).ok()?, after)));
    unit.map_or((None, text), |(unit, after)| (Some(unit), after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn echoes(given: &str, arguments: &Value) -> bool {
        let text = json!({"name": "write_file", "arguments": arguments}).to_string();
        let call = EmbeddedCall { name: "write_file".into(), arguments: arguments.to_string(), text };
        has_echo(&[call], &[Arc::new(Message::text(Role::User, given))])
    }

    #[test]
    fn l21_a_call_is_found_by_its_arguments_whatever_stands_around_them() {
        let nested = json!({"path": "x", "edits": [{"old": "a", "new": "b"}, "c"], "deep": {"n": 5}});
        assert!(echoes(&json!({ "other": nested }).to_string(), &nested));
        assert!(echoes(
            "{\"deep\": {\"n\": 5}, \"path\": \"x\", \"edits\": [\"c\", {\"new\": \"b\", \"old\": \"a\"}]}",
            &nested
        ));
        for given in ["", "x a b c 5", "{\"path\": \"x\", \"edits\": [], \"deep\": {\"n\": 5}}"] {
            assert!(!echoes(given, &nested), "{given}");
        }
    }

    #[test]
    fn l21_a_call_without_arguments_is_found_by_its_name() {
        assert!(echoes("{\"name\": \"write_file\", \"arguments\": {}}", &json!({})));
        assert!(!echoes("fn main() {}", &json!({})));
    }

    proptest! {
        #[test]
        fn l21_no_layout_and_no_escape_hides_a_call(content in any::<String>(), times in 0..3) {
            let arguments = json!({"path": "x", "content": content});
            let mut given = format!("{:#}", json!({ "call": arguments }));
            for _ in 0..times {
                given = Value::from(given).to_string();
            }
            prop_assert!(echoes(&given, &arguments));
        }
    }
}
