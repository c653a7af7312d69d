//! A value together with its JSON, serialized once for all requests.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::ops::Deref;
use std::sync::Arc;

/// A value with its JSON; cheap to clone, to compare with its clones and to write into a request.
#[derive(Debug, Clone)]
pub struct Preserialized<T>(Arc<(T, Box<RawValue>)>);

impl<T> Preserialized<T> {
    /// Returns the JSON.
    pub fn json(&self) -> &str {
        self.0.1.get()
    }
}

impl<T: Serialize> From<T> for Preserialized<T> {
    fn from(value: T) -> Self {
        // A text and a tree of JSON always have a JSON form.
        let json = serde_json::value::to_raw_value(&value).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self(Arc::new((value, json)))
    }
}

impl From<&str> for Preserialized<String> {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl<T> Deref for Preserialized<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.0
    }
}

impl<T: PartialEq> PartialEq for Preserialized<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

impl<T> Serialize for Preserialized<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.1.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_preserialized_value_is_read_as_a_value_and_sent_as_json() {
        let schema = Preserialized::from(json!({"type": "object", "b": [1, 2.5], "a": "\u{2028}\n"}));
        assert_eq!(schema.get("type"), Some(&json!("object")));
        assert_eq!(schema.json(), schema.to_string(), "byte for byte what the tree would be");
        assert_eq!(serde_json::to_string(&[&schema]).unwrap(), format!("[{}]", schema.json()));
        assert_eq!(serde_json::to_value(&schema).unwrap(), *schema);
        let text = Preserialized::<String>::from("a \"b\"\n");
        assert_eq!((text.as_str(), text.json()), ("a \"b\"\n", r#""a \"b\"\n""#));
    }

    #[test]
    fn equal_values_are_equal() {
        let schema = Preserialized::<Value>::from(json!({"a": 1}));
        assert_eq!(schema, schema.clone());
        assert_eq!(schema, Preserialized::from(json!({"a": 1})));
        assert_ne!(schema, Preserialized::from(json!({"a": 2})));
    }
}
