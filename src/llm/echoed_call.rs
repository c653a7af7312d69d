//! Detects calls written as text that only repeat the model's input.
//!
//! A call contained in a file, a page or a task must not run because the model quotes it.

use crate::embedded_call::EmbeddedCall;
use agent_core::message::{Message, Part, Role};
use agent_text::invisible::needs_escape;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Separators within a call: each part between them is searched separately, because the input may show them with line
/// numbers or in another order.
const SEPARATORS: [char; 9] = ['\n', '<', '>', '{', '}', '[', ']', ',', ';'];

/// Longest name of an HTML entity that is recognised, in bytes, as in `&#x0022;`.
const ENTITY_BYTES: usize = 7;

/// Checks whether one of `calls` occurs in the model's input (instructions, user messages, tool results): as the model wrote the
/// call, or by its arguments, whatever their layout and escaping. A tool result is searched in any notation, because
/// the user may have asked the model for the same content as JSON.
pub fn is_echoed(calls: &[EmbeddedCall], messages: &[Arc<Message>]) -> bool {
    let others = messages.iter().filter(|message| message.role != Role::Assistant);
    let parts = others.flat_map(|message| &message.parts);
    let all = SourceText { text: parts.clone().filter_map(text).map(normalized).collect(), form: normalized };
    let forms: [fn(&str) -> String; 2] = [alphanumerics, alphanumerics_without_entities];
    let in_each_form = |text| forms.map(|form| SourceText { text: form(text), form });
    let results: Vec<_> = parts.filter_map(tool_result_text).flat_map(in_each_form).collect();
    calls.iter().any(|call| {
        call.text.split(SEPARATORS).all(|word| all.contains(word))
            || contains_arguments(&all, call)
            || results.iter().any(|one| one.contains(&call.name) && contains_arguments(one, call))
    })
}

/// Text from the model's input, normalised with `form`; search terms are normalised in the same way.
struct SourceText {
    text: String,
    form: fn(&str) -> String,
}

impl SourceText {
    fn contains(&self, text: &str) -> bool {
        self.text.contains(&(self.form)(text))
    }
}

fn text(part: &Part) -> Option<&str> {
    match part {
        Part::Text { text } => Some(text),
        Part::ToolResult(result) => Some(&result.text),
        Part::Image(_) | Part::Thinking { .. } | Part::ToolCall(_) => None,
    }
}

/// Returns the text of a tool result, also of a failed call.
fn tool_result_text(part: &Part) -> Option<&str> {
    match part {
        Part::ToolResult(result) => Some(&result.text),
        Part::Image(_) | Part::Text { .. } | Part::Thinking { .. } | Part::ToolCall(_) => None,
    }
}

fn contains_arguments(source: &SourceText, call: &EmbeddedCall) -> bool {
    let arguments: Map<String, Value> = serde_json::from_str(&call.arguments).unwrap_or_default();
    !arguments.is_empty() && arguments.iter().all(|(key, value)| contains_member(source, key, value))
}

/// Checks whether `source` contains `key` with `value`, or with everything that `value` contains.
fn contains_member(source: &SourceText, key: &str, value: &Value) -> bool {
    let begins = |mark: &str| source.contains(&format!("{}:{mark}", Value::from(key)));
    match value {
        Value::Object(fields) => {
            begins("{") && fields.iter().all(|(key, value)| contains_member(source, key, value))
        }
        Value::Array(items) => begins("[") && items.iter().all(|item| contains_item(source, item)),
        leaf => begins(&leaf.to_string()),
    }
}

fn contains_item(source: &SourceText, item: &Value) -> bool {
    match item {
        Value::Object(fields) => fields.iter().all(|(key, value)| contains_member(source, key, value)),
        Value::Array(items) => items.iter().all(|item| contains_item(source, item)),
        leaf => source.contains(&leaf.to_string()),
    }
}

/// Returns `text` without white space, invisible characters and JSON escapes, whether these were applied once, several times
/// or not at all.
fn normalized(text: &str) -> String {
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
    letters.chars().filter(|c| !c.is_whitespace() && *c != '\\' && !needs_escape(*c)).collect()
}

/// Returns only the letters and digits of `text`.
fn alphanumerics(text: &str) -> String {
    normalized(text).chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Returns only the letters and digits of `text`, without HTML entities for other characters.
fn alphanumerics_without_entities(text: &str) -> String {
    let text = normalized(text);
    let mut pieces = text.split('&');
    let first = pieces.next().unwrap_or_default();
    let rest = pieces.map(|piece| match piece.split_once(';') {
        Some((mark, rest)) if mark.len() <= ENTITY_BYTES => rest,
        _ => piece,
    });
    std::iter::once(first).chain(rest).flat_map(str::chars).filter(|c| c.is_alphanumeric()).collect()
}

/// Returns the UTF-16 unit of the escape after a backslash, and the rest; `None` as the unit of an escape for white space.
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
    use agent_core::message::ToolResult;
    use proptest::prelude::*;
    use serde_json::json;

    fn is_echo(given: Message, arguments: &Value) -> bool {
        let text = json!({"name": "write_file", "arguments": arguments}).to_string();
        let call = EmbeddedCall { name: "write_file".into(), arguments: arguments.to_string(), text };
        is_echoed(&[call], &[Arc::new(given)])
    }

    fn echoes(given: &str, arguments: &Value) -> bool {
        is_echo(Message::text(Role::User, given), arguments)
    }

    fn echoes_result(text: &str, arguments: &Value) -> bool {
        let result =
            ToolResult { call_id: "1".into(), text: text.into(), is_error: true, images: Vec::new() };
        is_echo(Message { role: Role::Tool, parts: vec![Part::ToolResult(result)] }, arguments)
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

    #[test]
    fn l21_what_a_tool_brought_is_no_call_in_another_notation() {
        let arguments = json!({"path": "x", "edits": [{"old": "a b"}], "times": 2});
        for brought in [
            "name: write_file\narguments:\n  path: x\n  edits:\n    - old: a b\n  times: 2\n",
            "1: name = \"write_file\"\n2: path = 'x'\n3: times = 2\n4: [[edits]]\n5: old = \"a b\"",
            "write_file(path='x', times=2, edits=[dict(old='a b')])",
            "{&quot;name&quot;: &#34;write_file&#x22;, &quot;path&quot;: &quot;x&quot;, &quot;times&quot;: 2, &quot;edits&quot;:
                [{&quot;old&quot;: &quot;a b&quot;}]}",
        ] {
            assert!(echoes_result(brought, &arguments), "{brought}");
            assert!(!echoes_result(&brought.replace("write_file", "write"), &arguments), "{brought}");
            assert!(!echoes_result(&brought.replace("a b", "c"), &arguments), "{brought}");
        }
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

        #[test]
        fn l21_no_mark_around_it_hides_a_call_in_another_notation(content in any::<String>(), after in "[;&a-z ]{0,9}") {
            let arguments = json!({"path": "x", "content": content});
            let given = format!("name: write_file\npath: x\ncontent: {content}{after}");
            prop_assert!(echoes_result(&given, &arguments), "{given}");
        }
    }
}
