//! Parses the JSON arguments of a call strictly, with error messages that contain the position.

use agent_core::message::{MCP_PREFIX, ToolCall};
use agent_text::json_bounds;
use agent_tools::toolbox::{CALL_TOOL, named_tool};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;

/// Maximum characters shown of a duplicate key.
const MAX_SHOWN_KEY_CHARS: usize = 40;

/// Parses `raw` as a JSON object.
///
/// # Errors
/// A message for the model when it is anything else. Empty text is an error because the answer may have been cut off.
/// A duplicate key is an error because either value may be the intended one.
pub fn parse(raw: &str) -> Result<Value, String> {
    if raw.trim().is_empty() {
        return Err(
            "Invalid arguments: there are none. The tool was not run; send the call again with a JSON \
            object, {} if the tool needs no arguments."
                .to_owned(),
        );
    }
    json_bounds::check(raw.as_bytes()).map_err(|error| format!("Invalid arguments: {error}."))?;
    match serde_json::from_str::<UniqueKeyObject>(raw) {
        Ok(UniqueKeyObject(object)) => Ok(Value::Object(object)),
        Err(error) if error.is_data() => Err(format!(
            "Invalid arguments: {error}. The tool was not run; send the call again with one JSON object."
        )),
        Err(error) => Err(format!(
            "Invalid arguments: not valid JSON ({error}). The tool was not run; send the call again with complete, \
             correctly escaped JSON."
        )),
    }
}

/// Returns `call` as a call of the tool that it is about: one of `call_tool` becomes one of the tool of a server that it names.
pub fn effective_call(call: &ToolCall) -> Cow<'_, ToolCall> {
    if call.name == CALL_TOOL
        && let Ok(args) = parse(&call.arguments)
    {
        let (name, input) = named_tool(&args);
        if name.starts_with(MCP_PREFIX) {
            let named = ToolCall::new(call.id.clone(), name, input.to_string());
            return Cow::Owned(named.with_opaque(call.opaque.clone()));
        }
    }
    Cow::Borrowed(call)
}

/// A JSON object without duplicate keys.
struct UniqueKeyObject(Map<String, Value>);

impl<'de> Deserialize<'de> for UniqueKeyObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(UniqueKeyVisitor).map(Self)
    }
}

struct UniqueKeyVisitor;

impl<'de> Visitor<'de> for UniqueKeyVisitor {
    type Value = Map<String, Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if object.contains_key(&key) {
                let shown: String = key.chars().take(MAX_SHOWN_KEY_CHARS).collect();
                return Err(A::Error::custom(format!("the key `{shown}` occurs twice")));
            }
            object.insert(key, entries.next_value()?);
        }
        Ok(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn l20_what_is_wrong_is_told_with_its_position() {
        for (raw, expected) in [
            ("{\"path\":", "EOF while parsing a value at line 1 column 8"),
            ("{\"path\": \"C:\\users\"}", "invalid escape at line 1 column"),
            ("{\"path\":\"a\"}{\"path\":\"b\"}", "trailing characters at line 1 column 13"),
            ("{\"content\":\"a\nb\"}", "control character"),
            ("{\"path\":\"a\",\n \"path\":\"b\"}", "the key `path` occurs twice at line 2 column"),
            ("[\"a\"]", "expected a JSON object at line 1 column"),
            ("3", "expected a JSON object at line 1 column"),
        ] {
            let problem = parse(raw).unwrap_err();
            assert!(
                problem.contains(expected) && problem.contains("The tool was not run"),
                "{raw}: {problem}"
            );
        }
    }

    #[test]
    fn l19_missing_arguments_are_not_an_empty_object() {
        for raw in ["", " \n", "null"] {
            assert!(parse(raw).is_err(), "{raw:?}");
        }
        assert_eq!(parse(" {\"a\": {\"b\": 1}} "), Ok(json!({"a": {"b": 1}})));
    }

    #[test]
    fn a_long_key_is_not_repeated_to_the_model() {
        let key = "k".repeat(100_000);
        assert!(parse(&format!("{{\"{key}\":1,\"{key}\":2}}")).unwrap_err().len() < 300);
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_is_what_was_written(raw in r#"[{}\[\]":,a-b0-1 \\]{0,24}"#) {
            if let Ok(value) = parse(&raw) {
                prop_assert_eq!(Ok(value), serde_json::from_str::<Value>(&raw).map_err(|error| error.to_string()));
            }
        }
    }
}
