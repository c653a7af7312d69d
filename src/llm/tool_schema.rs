//! The schema of a tool's arguments: a tree to read, and the text that each request carries, written once.

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::ops::Deref;
use std::sync::Arc;

/// A JSON Schema; cheap to clone, to compare with its clones and to write into a request.
#[derive(Debug, Clone)]
pub struct ToolSchema(Arc<Written>);

#[derive(Debug)]
struct Written {
    tree: Value,
    text: Box<RawValue>,
}

impl ToolSchema {
    /// Its text.
    pub fn text(&self) -> &str {
        self.0.text.get()
    }
}

impl From<Value> for ToolSchema {
    fn from(tree: Value) -> Self {
        // A tree of JSON always has a text, and that is always JSON.
        let text = serde_json::value::to_raw_value(&tree).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self(Arc::new(Written { tree, text }))
    }
}

impl Deref for ToolSchema {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0.tree
    }
}

impl PartialEq for ToolSchema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.tree == other.0.tree
    }
}

impl Serialize for ToolSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.text.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn it_is_read_as_a_tree_and_sent_as_its_text() {
        let schema = ToolSchema::from(json!({"type": "object", "b": [1, 2.5], "a": "\u{2028}\n"}));
        assert_eq!(schema.get("type"), Some(&json!("object")));
        assert_eq!(schema.text(), schema.to_string(), "byte for byte what the tree would be");
        assert_eq!(serde_json::to_string(&[&schema]).unwrap(), format!("[{}]", schema.text()));
        assert_eq!(serde_json::to_value(&schema).unwrap(), *schema);
    }

    #[test]
    fn equal_trees_are_equal_schemas() {
        let schema = ToolSchema::from(json!({"a": 1}));
        assert_eq!(schema, schema.clone());
        assert_eq!(schema, ToolSchema::from(json!({"a": 1})));
        assert_ne!(schema, ToolSchema::from(json!({"a": 2})));
    }
}
