//! Builds the body of a request: the constant part first, then the growing list of messages.

use serde::Serialize;

/// Capacity reserved for the part before the messages; instructions and tools of an ordinary run take about ten KiB.
const HEAD_BYTES: usize = 16 * 1024;

/// End of a body: closes the list and the object.
pub const BODY_END: &[u8] = b"]}";

/// Returns the JSON of `head`, a non-empty object, with the list `name` as its last member; `items` is the JSON of the list's items.
///
/// # Errors
/// When `head` has no JSON form.
pub fn encode_body(head: &impl Serialize, name: &str, items: &[u8]) -> serde_json::Result<Vec<u8>> {
    let mut body = start_body(head, name, items.len())?;
    body.extend_from_slice(items);
    body.extend_from_slice(BODY_END);
    Ok(body)
}

/// Returns the same up to the items, with capacity for `bytes` more; the caller appends the items and [`BODY_END`].
///
/// # Errors
/// When `head` has no JSON form.
pub fn start_body(head: &impl Serialize, name: &str, bytes: usize) -> serde_json::Result<Vec<u8>> {
    let mut body = Vec::with_capacity(HEAD_BYTES.saturating_add(bytes));
    serde_json::to_writer(&mut body, head)?;
    body.pop();
    for part in [b",\"", name.as_bytes(), b"\":["] {
        body.extend_from_slice(part);
    }
    Ok(body)
}

/// Appends `item` to the JSON of a list's items, with a comma between them.
///
/// # Errors
/// When `item` has no JSON form.
pub fn push_item(items: &mut Vec<u8>, item: &impl Serialize) -> serde_json::Result<()> {
    if !items.is_empty() {
        items.push(b',');
    }
    serde_json::to_writer(items, item)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn the_list_is_a_member_of_the_object() {
        let whole = encode_body(&json!({"model": "m"}), "messages", b"{\"role\":\"user\"}").unwrap();
        let expected = json!({"model": "m", "messages": [{"role": "user"}]});
        assert_eq!(serde_json::from_slice::<Value>(&whole).unwrap(), expected);
        assert_eq!(
            encode_body(&json!({"model": "m"}), "input", b"").unwrap(),
            b"{\"model\":\"m\",\"input\":[]}"
        );
    }
}
