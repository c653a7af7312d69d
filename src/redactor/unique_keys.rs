//! Parses redacted JSON without losing object members whose keys became equal by redaction.

use super::MARKER;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// Parses `json`. For duplicate keys the last member counts, as usual, but keys that contain a redaction marker are
/// numbered.
///
/// # Errors
/// When the text is not one JSON value.
pub fn read_with_unique_keys(json: &str) -> serde_json::Result<Value> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let value = UniqueKeyReader.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Returns `key`, with a number appended if `fields` contains it already.
pub(super) fn unique_key(fields: &Map<String, Value>, key: String) -> String {
    if !fields.contains_key(&key) {
        return key;
    }
    let numbered = (2_u32..).map(|number| format!("{key} ({number})"));
    numbered.into_iter().find(|free| !fields.contains_key(free)).unwrap_or(key)
}

struct UniqueKeyReader;

impl<'de> DeserializeSeed<'de> for UniqueKeyReader {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueKeyReader {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(Self)? {
            all.push(item);
        }
        Ok(all.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            let key = if key.contains(MARKER) { unique_key(&fields, key) } else { key };
            fields.insert(key, members.next_value_seed(Self)?);
        }
        Ok(fields.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn members_that_have_become_the_same_are_numbered_and_no_others() {
        let read = read_with_unique_keys(
            r#"{"[redacted: A]": 1, "x": [{"[redacted: A]": 2, "[redacted: A]": 3}], "[redacted: A]": 4, "x": 5}"#,
        );
        assert_eq!(read.unwrap(), serde_json::json!({"[redacted: A]": 1, "[redacted: A] (2)": 4, "x": 5}));
        for text in ["", "{} {}", "{", "nul"] {
            read_with_unique_keys(text).unwrap_err();
        }
    }

    proptest! {
        #[test]
        fn everything_else_is_read_as_by_anybody(
            text in r#"[ \[\]{}:,"a0-9.eE+-]{0,12}|\[(null|true|-?[0-9]{1,20}|[0-9.]{1,5}e?[0-9]|"[ -!#-\[\]-~é]{0,5}"|\{"a":1,"b":\[\],"a":2\})?\]"#
        ) {
            let expected = serde_json::from_str::<Value>(&text).map_err(|error| error.to_string());
            prop_assert_eq!(read_with_unique_keys(&text).map_err(|error| error.to_string()), expected);
        }
    }
}
