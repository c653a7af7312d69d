//! Calls written as text that only repeat what the model was given: a file, a page or a task that holds a call must not
//! act through it.

use crate::core::message::{Message, Part, Role};
use crate::llm::embedded_call::EmbeddedCall;
use crate::text::invisible::is_hidden;
use serde_json::{Map, Value};
use std::sync::Arc;

/// What stands between the words of a call: each word is looked for by itself, as what was given may be shown with line
/// numbers or in another order.
const SEPARATORS: [char; 9] = ['\n', '<', '>', '{', '}', '[', ']', ',', ';'];

/// The longest name of a mark in HTML that is looked for, as in `&#x0022;`.
const ENTITY_BYTES: usize = 7;

/// Whether one of `calls` stands in what the model was given, in the instructions, by the user or by tools: as it wrote the
/// call, or by its arguments, however they are laid out and escaped there; or in what one tool brought, in any notation, as
/// somebody may have asked the model for the same in JSON.
pub fn is_echoed(calls: &[EmbeddedCall], messages: &[Arc<Message>]) -> bool {
    let others = messages.iter().filter(|message| message.role != Role::Assistant);
    let parts = others.flat_map(|message| &message.parts);
    let all = SourceText { text: parts.clone().filter_map(text).map(normalized).collect(), form: normalized };
    let forms: [fn(&str) -> String; 2] = [alphanumerics, alphanumerics_without_entities];
    let in_each_form = |text| forms.map(|form| SourceText { text: form(text), form });
    let brought: Vec<_> = parts.filter_map(tool_result_text).flat_map(in_each_form).collect();
    calls.iter().any(|call| {
        call.text.split(SEPARATORS).all(|word| all.contains(word))
            || contains_arguments(&all, call)
            || brought.iter().any(|one| one.contains(&call.name) && contains_arguments(one, call))
    })
}

/// A text of those that the model was given, in the form in which something is looked for in it.
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
        Part::Thinking { .. } | Part::ToolCall(_) => None,
    }
}

/// What a tool brought, be it a page of errors or the output of a command that failed.
fn tool_result_text(part: &Part) -> Option<&str> {
    match part {
        Part::ToolResult(result) => Some(&result.text),
        Part::Text { .. } | Part::Thinking { .. } | Part::ToolCall(_) => None,
    }
}

fn contains_arguments(source: &SourceText, call: &EmbeddedCall) -> bool {
    let arguments: Map<String, Value> = serde_json::from_str(&call.arguments).unwrap_or_default();
    !arguments.is_empty() && arguments.iter().all(|(key, value)| contains_member(source, key, value))
}

/// Whether `key` stands in `given` with `value`, or with all that `value` holds.
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

/// What is left of a text without white space, invisible characters and JSON's escapes, be they written once, several times
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
    letters.chars().filter(|c| !c.is_whitespace() && *c != '\\' && !is_hidden(*c)).collect()
}

/// What is left of it without the marks of any notation.
fn alphanumerics(text: &str) -> String {
    normalized(text).chars().filter(|c| c.is_alphanumeric()).collect()
}

/// The same without what HTML writes for such marks.
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
    use crate::core::message::ToolResult;
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
        let result = ToolResult { call_id: "1".into(), text: text.into(), is_error: true };
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
