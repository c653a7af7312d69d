//! Helpers shared by the renderers of all formats.

use crate::scripted::Call;
use serde_json::Value;

/// Splits a text into pieces of `size` characters; an empty text has none.
pub fn pieces(text: Option<&str>, size: Option<usize>) -> Vec<String> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Vec::new() };
    let Some(size) = size else { return vec![text.to_owned()] };
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(size.max(1)).map(|piece| piece.iter().collect()).collect()
}

/// Returns the id of the call at `index` in the answer to request `number`.
pub fn id(call: &Call, number: usize, index: usize) -> String {
    call.id.clone().unwrap_or_else(|| format!("call_{}_{}", number + 1, index + 1))
}

/// Returns the arguments as the model writes them.
pub fn arguments(call: &Call) -> String {
    match &call.arguments {
        Value::String(raw) => raw.clone(),
        Value::Null => "{}".into(),
        object => object.to_string(),
    }
}
