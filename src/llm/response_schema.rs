//! Schema of a structured answer, as needed for the strict modes of the wire formats.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Name of every schema in `OpenAI`'s formats, which require one.
const SCHEMA_NAME: &str = "answer";

/// Keys of a schema's root that are meant for validators and editors; some servers refuse them.
const FOR_VALIDATORS: [&str; 3] = ["$schema", "$id", "$comment"];

/// Keywords whose value is a schema or a list of schemas.
const SCHEMAS: [&str; 12] = [
    "items",
    "prefixItems",
    "contains",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "additionalProperties",
    "propertyNames",
];

/// Keywords whose value is an object of schemas.
const NAMED_SCHEMAS: [&str; 4] = ["properties", "$defs", "definitions", "patternProperties"];

/// When a server accepts a schema of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StrictSchemaSupport {
    /// In every request.
    BesideTools,
    /// Only without tools: with tools the schema is refused, or it prevents tool calls.
    #[default]
    Alone,
    /// Never: the server has only the older JSON mode, or nothing of the kind.
    Never,
}

/// A JSON Schema, with the properties that decide whether a strict mode accepts it. A strict mode only helps the
/// model: answers are always validated here.
#[derive(Debug, Clone, PartialEq)]
pub struct ResponseSchema {
    value: Value,
    closed: bool,
    complete: bool,
}

impl ResponseSchema {
    /// Creates the schema from JSON and determines its properties.
    pub fn new(mut schema: Value) -> Self {
        if let Some(root) = schema.as_object_mut() {
            for key in FOR_VALIDATORS {
                root.shift_remove(key);
            }
        }
        let closed =
            every_object(&schema, &|object| object.get("additionalProperties") == Some(&false.into()));
        let complete = every_object(&schema, &requires_all);
        Self { value: schema, closed, complete }
    }

    /// Returns the schema as it is sent.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Checks whether no object of the schema allows additional properties, as Anthropic requires.
    pub fn is_closed(&self) -> bool {
        self.closed
    }
}

/// Validator of structured answers.
pub trait AnswerValidator: std::fmt::Debug {
    /// Checks whether `text` is a valid structured answer.
    fn is_valid(&self, text: &str) -> bool;
}

/// A schema in the notation of both `OpenAI` formats.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NamedSchema<'a> {
    name: &'static str,
    /// Whether the schema is closed and requires every property. Others are refused in strict mode, and still help without it.
    strict: bool,
    schema: &'a Value,
}

impl<'a> NamedSchema<'a> {
    /// Returns `None` for a schema whose root is not an object, which `OpenAI` always refuses.
    pub fn of(schema: &'a ResponseSchema) -> Option<Self> {
        let is_object = schema.value.get("type").is_some_and(|kind| kind == "object");
        let strict = schema.closed && schema.complete;
        is_object.then_some(Self { name: SCHEMA_NAME, strict, schema: &schema.value })
    }
}

fn requires_all(object: &Value) -> bool {
    let required = object.get("required").and_then(Value::as_array);
    let names = object.get("properties").and_then(Value::as_object).into_iter().flatten();
    names.map(|(name, _)| name).all(|name| required.is_some_and(|all| all.iter().any(|one| one == name)))
}

/// Checks whether `holds` is true of every object in `schema`. The JSON parser limits the depth.
fn every_object(schema: &Value, holds: &dyn Fn(&Value) -> bool) -> bool {
    let is_object =
        |kind: &Value| kind == "object" || kind.as_array().is_some_and(|all| all.contains(&"object".into()));
    let object = schema.get("type").is_some_and(is_object) || schema.get("properties").is_some();
    let below = SCHEMAS.iter().filter_map(|key| schema.get(key)).flat_map(|below| match below {
        Value::Array(all) => all.iter().collect(),
        one => vec![one],
    });
    let named =
        NAMED_SCHEMAS.iter().filter_map(|key| schema.get(key)?.as_object()).flat_map(|all| all.values());
    (!object || holds(schema)) && below.chain(named).all(|below| every_object(below, holds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns whether the schema is closed, and whether `OpenAI` accepts it (`Some`) and as a strict one.
    fn kinds(schema: Value) -> (bool, Option<bool>) {
        let schema = ResponseSchema::new(schema);
        (schema.is_closed(), NamedSchema::of(&schema).map(|named| named.strict))
    }

    #[test]
    fn a_schema_is_strict_when_every_object_is_closed_and_every_property_required() {
        let inner = json!({"type": "object", "properties": {"b": {}}, "required": ["b"], "additionalProperties": false});
        let with = |inner: &Value| {
            json!({"type": "object", "properties": {"a": {"type": "array", "items": inner}}, "required": ["a"],
                "additionalProperties": false})
        };
        assert_eq!(kinds(with(&inner)), (true, Some(true)));
        let optional = json!({"type": "object", "properties": {"b": {}}, "additionalProperties": false});
        assert_eq!(kinds(with(&optional)), (true, Some(false)));
        let open = json!({"type": ["object", "null"], "properties": {"b": {}}, "required": ["b"]});
        assert_eq!(kinds(with(&open)), (false, Some(false)));
        assert!(!kinds(json!({"$defs": {"x": open}, "type": "object", "additionalProperties": false})).0);
        assert_eq!(kinds(json!({"type": "array", "items": inner})), (true, None));
        assert_eq!(kinds(json!(true)), (true, None));
    }

    #[test]
    fn keys_for_validators_are_not_sent() {
        let schema = ResponseSchema::new(json!({"$schema": "x", "$id": "y", "type": "object", "title": "T"}));
        assert_eq!(schema.value(), &json!({"type": "object", "title": "T"}));
    }
}
