//! The schema of a structured answer, as far as servers must know it: for the strict modes of the wire formats.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name of every schema in `OpenAI`'s formats, which want one.
const SCHEMA_NAME: &str = "answer";

/// Keys of a schema's root that speak to validators and editors; some servers refuse them.
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

/// When a server takes a schema that the answer must fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StrictSchemaSupport {
    /// In every request.
    BesideTools,
    /// Where no tools are offered: beside them it is refused, or no tool can be called under it.
    #[default]
    Alone,
    /// Never: it knows only the older JSON mode, or nothing of the kind.
    Never,
}

/// A JSON Schema with what decides whether a strict mode can take it. What a server makes of it is only help for the
/// model: answers are validated here whatever it does.
#[derive(Debug, Clone, PartialEq)]
pub struct ResponseSchema {
    value: Value,
    closed: bool,
    complete: bool,
}

impl ResponseSchema {
    /// What `schema` means for strict modes.
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

    /// The schema as it is sent.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Whether no object of it may have further properties: what Anthropic demands.
    pub fn is_closed(&self) -> bool {
        self.closed
    }
}

/// Knows what is a structured answer.
pub trait AnswerValidator: std::fmt::Debug {
    /// Whether `text` is an answer that fits.
    fn is_valid(&self, text: &str) -> bool;
}

/// A schema as both of `OpenAI`'s formats write it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NamedSchema<'a> {
    name: &'static str,
    /// A strict schema must be closed and require every property. Another is refused as strict, and helps without.
    strict: bool,
    schema: &'a Value,
}

impl<'a> NamedSchema<'a> {
    /// Nothing for a schema of anything but an object, which `OpenAI` refuses strict or not.
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

/// Whether `holds` is true of every object in `schema`. Its depth is that which the JSON parser allows.
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

    /// Whether the schema is closed, and whether `OpenAI` takes it and as a strict one.
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
    fn what_only_speaks_to_validators_is_not_sent() {
        let schema = ResponseSchema::new(json!({"$schema": "x", "$id": "y", "type": "object", "title": "T"}));
        assert_eq!(schema.value(), &json!({"type": "object", "title": "T"}));
    }
}
