//! What the renderings of all formats share.

use crate::llm::scripted::Call;
use serde_json::Value;

/// A text in pieces of so many characters; none of an empty one.
pub fn pieces(text: Option<&str>, size: Option<usize>) -> Vec<String> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Vec::new() };
    let Some(size) = size else { return vec![text.to_owned()] };
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(size.max(1)).map(|piece| piece.iter().collect()).collect()
}

/// The id of the call that stands at `index` in the answer to request `number`.
pub fn id(call: &Call, number: usize, index: usize) -> String {
    call.id.clone().unwrap_or_else(|| format!("call_{}_{}", number + 1, index + 1))
}

/// The arguments as the model writes them.
pub fn arguments(call: &Call) -> String {
    match &call.arguments {
        Value::String(raw) => raw.clone(),
        Value::Null => "{}".into(),
        object => object.to_string(),
    }
}
