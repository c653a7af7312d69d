//! Parts of earlier turns in a form that servers accept: text, tool names, arguments and call ids.

use crate::ToolDefinition;
use agent_core::message::{Message, Part, ToolCall};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The longest tool name that `OpenAI` and Anthropic accept, in characters.
const NAME_LENGTH: usize = 64;

/// Returns the text of a message; borrowed in the usual case of one part.
pub fn content(message: &Message) -> Cow<'_, str> {
    let mut texts = message.parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        Part::Image(_) | Part::Thinking { .. } | Part::ToolCall(_) | Part::ToolResult(_) => None,
    });
    match (texts.next(), texts.next()) {
        (None, _) => Cow::Borrowed(""),
        (Some(only), None) => Cow::Borrowed(only),
        (Some(_), Some(_)) => Cow::Owned(message.joined_text()),
    }
}

/// Returns the tool name as the model wrote it, or a sanitized one: because of a single invalid name, `OpenAI` would refuse every
/// later request. It accepts only letters, digits, `_` and `-`.
pub fn tool_name(call: &ToolCall) -> Cow<'_, str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !call.name.is_empty() && call.name.len() <= NAME_LENGTH && call.name.chars().all(allowed) {
        return Cow::Borrowed(&call.name);
    }
    let cleaned: String =
        call.name.chars().take(NAME_LENGTH).map(|c| if allowed(c) { c } else { '_' }).collect();
    Cow::Owned(if cleaned.is_empty() { "unnamed".into() } else { cleaned })
}

/// Returns the arguments as the model wrote them. Arguments that are not JSON are wrapped: vLLM, Ollama and llama.cpp parse the
/// arguments of the whole history and would refuse every later request.
pub fn arguments_json(call: &ToolCall) -> Cow<'_, str> {
    if serde_json::from_str::<IgnoredAny>(&call.arguments).is_ok() {
        return Cow::Borrowed(&call.arguments);
    }
    Cow::Owned(serde_json::json!({ "invalid_json": call.arguments }).to_string())
}

/// Returns the arguments as a JSON object; anything else is wrapped in one, for formats in which arguments are not text.
pub fn arguments_object(call: &ToolCall) -> Cow<'_, str> {
    let text = call.arguments.trim();
    if text.starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(serde_json::json!({ "invalid_json": call.arguments }).to_string())
}

/// Returns an id with only letters, digits, `_` and `-` and at most `longest` characters, for servers that refuse others:
/// the original id, or one derived from it deterministically that differs for different ids.
pub fn sanitized_id(id: &str, longest: usize) -> Cow<'_, str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !id.is_empty() && id.len() <= longest && id.chars().all(allowed) {
        return Cow::Borrowed(id);
    }
    let hash = format!("{:016x}", fnv1a(id));
    let kept = longest.saturating_sub(hash.len() + 1);
    let kept: String = id.chars().take(kept).map(|c| if allowed(c) { c } else { '_' }).collect();
    Cow::Owned(if kept.is_empty() { hash } else { format!("{kept}_{hash}") })
}

/// Returns an id of nine letters and digits: the original id, or one derived from it deterministically.
pub fn nine_character_id(id: &str) -> Cow<'_, str> {
    /// Letters and digits.
    const DIGITS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Cow::Borrowed(id);
    }
    let powers = std::iter::successors(Some(1_u64), |power| power.checked_mul(62));
    let digits = powers.take(9).map(|power| fnv1a(id) / power % 62);
    let digit = |digit: u64| {
        usize::try_from(digit).ok().and_then(|at| DIGITS.get(at)).copied().map_or('0', char::from)
    };
    Cow::Owned(digits.map(digit).collect())
}

/// FNV-1a, 64 bit: <https://www.rfc-editor.org/rfc/rfc9923>.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Returns a placeholder tool for servers that require a tool even if none may be called.
pub fn placeholder_tool() -> ToolDefinition {
    ToolDefinition {
        name: "none".into(),
        description: "No tool is available any more.".into(),
        parameters: serde_json::json!({"type": "object", "properties": {}}).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: &str) -> ToolCall {
        ToolCall::new("a", name, arguments)
    }

    #[test]
    fn a_name_that_no_tool_can_have_does_not_spoil_later_requests() {
        let long = "x".repeat(100);
        for (written, sent) in [
            ("", "unnamed"),
            ("functions.read file", "functions_read_file"),
            (&long, &long[..64]),
            ("read_file-2", "read_file-2"),
        ] {
            assert_eq!(tool_name(&call(written, "{}")), sent);
        }
    }

    #[test]
    fn arguments_that_are_no_object_are_wrapped_and_others_stay_as_they_are() {
        assert_eq!(arguments_object(&call("n", " {\"b\": 1e999,\"a\":2} ")), "{\"b\": 1e999,\"a\":2}");
        assert_eq!(arguments_object(&call("n", "[1]")), "{\"invalid_json\":\"[1]\"}");
        assert_eq!(arguments_object(&call("n", "{\"a\":")), "{\"invalid_json\":\"{\\\"a\\\":\"}");
    }

    #[test]
    fn foreign_ids_become_nine_letters_and_digits_and_stay_apart() {
        assert_eq!(nine_character_id("aB3xK9mP2"), "aB3xK9mP2");
        let ids = (0..1000).map(|n| format!("call_{n}")).chain([String::new(), "functions.read:0".into()]);
        let made: std::collections::BTreeSet<String> = ids
            .map(|id| nine_character_id(&id).into_owned())
            .inspect(|id| assert!(id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()), "{id}"))
            .collect();
        assert_eq!(made.len(), 1002);
    }

    #[test]
    fn foreign_ids_become_plain_and_stay_apart() {
        assert_eq!(sanitized_id("toolu_01-x", 64), "toolu_01-x");
        let made: Vec<_> = ["functions.read:0", "functions/read:0", "", &"x".repeat(65)]
            .map(|id| sanitized_id(id, 64).into_owned())
            .into();
        for (at, id) in made.iter().enumerate() {
            assert!(!id.is_empty() && id.len() <= 64 && *id == sanitized_id(id, 64), "{id}");
            assert!(!made[..at].contains(id), "{id}");
        }
    }
}
