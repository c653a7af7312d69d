//! `reasoning_details`: opaque reasoning that `OpenRouter` expects back unmodified.
//!
//! Without it, Gemini 3 and Claude refuse the next request: <https://openrouter.ai/docs/use-cases/reasoning-tokens>.

use serde_json::{Map, Value};

/// Key of the details on the wire and in stored data.
pub const DETAILS: &str = "reasoning_details";
/// Limit on the stored details of one answer; real answers have a few.
const DETAILS_CAP: usize = 1024;
/// Text fields of a detail that a stream sends in pieces; all other fields arrive whole.
const TEXTS: [&str; 4] = ["text", "summary", "data", "signature"];

/// Appends the details of one event to those in `opaque`. Adjacent details of the same type and index are joined.
pub fn merge(pieces: &[Value], opaque: &mut Value) {
    if !opaque.is_object() {
        *opaque = Value::Object(Map::from_iter([(DETAILS.to_owned(), Value::Array(Vec::new()))]));
    }
    let Some(known) = opaque.get_mut(DETAILS).and_then(Value::as_array_mut) else { return };
    for piece in pieces.iter().filter_map(Value::as_object) {
        let full = known.len() >= DETAILS_CAP;
        match known.last_mut().and_then(Value::as_object_mut) {
            Some(last) if continues(last, piece) => join(last, piece),
            _ if full => {}
            _ => known.push(Value::Object(piece.clone())),
        }
    }
}

fn continues(last: &Map<String, Value>, piece: &Map<String, Value>) -> bool {
    piece.contains_key("index") && ["type", "index"].iter().all(|key| last.get(*key) == piece.get(*key))
}

fn join(last: &mut Map<String, Value>, piece: &Map<String, Value>) {
    for (key, value) in piece.iter().filter(|(_, value)| !value.is_null()) {
        match (last.get_mut(key), value) {
            (Some(Value::String(text)), Value::String(more)) if TEXTS.contains(&key.as_str()) => {
                text.push_str(more);
            }
            _ => {
                last.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn the_pieces_of_a_stream_become_the_details_of_a_whole_answer() {
        let mut opaque = Value::Null;
        merge(
            &[json!({"type": "reasoning.text", "text": "I ", "index": 0, "format": "f", "signature": null})],
            &mut opaque,
        );
        merge(&[json!({"type": "reasoning.text", "text": "look.", "index": 0})], &mut opaque);
        merge(&[json!({"type": "reasoning.text", "signature": "s", "index": 0})], &mut opaque);
        merge(
            &[json!({"type": "reasoning.encrypted", "data": "x", "index": 0, "id": "call_1"}), json!(7)],
            &mut opaque,
        );
        let whole = json!({DETAILS: [
            {"type": "reasoning.text", "text": "I look.", "index": 0, "format": "f", "signature": "s"},
            {"type": "reasoning.encrypted", "data": "x", "index": 0, "id": "call_1"},
        ]});
        assert_eq!(opaque, whole);
    }

    #[test]
    fn details_without_an_index_are_each_one() {
        let mut opaque = Value::Null;
        merge(&[json!({"type": "t", "text": "a"}), json!({"type": "t", "text": "b"})], &mut opaque);
        assert_eq!(opaque[DETAILS].as_array().unwrap().len(), 2);
    }

    proptest! {
        #[test]
        fn however_a_text_is_cut_it_is_whole_again(text in "\\PC{0,20}", at in 0usize..20) {
            let at = text.char_indices().map(|(at, _)| at).nth(at).unwrap_or(text.len());
            let detail = |text: &str| json!({"type": "reasoning.text", "text": text, "index": 3});
            let (mut whole, mut cut) = (Value::Null, Value::Null);
            merge(&[detail(&text)], &mut whole);
            merge(&[detail(&text[..at])], &mut cut);
            merge(&[detail(&text[at..])], &mut cut);
            prop_assert_eq!(whole, cut);
        }
    }
}
