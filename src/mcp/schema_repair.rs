//! Repairs the schemas of tools: model servers refuse a request for a single schema that is invalid or uses what they do not support.

use agent_tools::arguments::fits_type;
use serde_json::{Map, Value, json};

/// Keywords that `OpenAI` or Anthropic refuse at the top of a schema.
const REFUSED_AT_TOP: [&str; 8] = ["oneOf", "anyOf", "allOf", "not", "if", "then", "else", "enum"];
/// Those of them whose value is a list of alternatives.
const ALTERNATIVES: [&str; 3] = ["oneOf", "anyOf", "allOf"];
/// Keywords whose value contains schemas by name.
const NAMED_SCHEMAS: [&str; 5] =
    ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];
/// Keywords whose value is a schema or a list of schemas.
const SCHEMAS: [&str; 14] = [
    "items",
    "prefixItems",
    "additionalItems",
    "additionalProperties",
    "propertyNames",
    "contains",
    "oneOf",
    "anyOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedProperties",
];
/// The types of JSON Schema.
const TYPES: [&str; 7] = ["object", "array", "string", "integer", "number", "boolean", "null"];

/// Makes `schema` an object schema that model servers accept. Only restrictions are dropped, never an argument.
pub fn repair(schema: &mut Value) {
    let root = schema.clone();
    repair_part(schema, &root);
    let Some(keys) = schema.as_object_mut() else { return };
    let dropped: Vec<(&str, Value)> =
        REFUSED_AT_TOP.iter().filter_map(|key| Some((*key, keys.remove(*key)?))).collect();
    let mut arguments = match keys.remove("properties") {
        Some(Value::Object(arguments)) => arguments,
        _ => Map::new(),
    };
    for (key, alternatives) in &dropped {
        let alternatives = alternatives.as_array().filter(|_| ALTERNATIVES.contains(key));
        for (name, argument) in alternatives.into_iter().flatten().filter_map(properties).flatten() {
            arguments.entry(name).or_insert_with(|| argument.clone());
        }
    }
    keys.insert("type".to_owned(), "object".into());
    keys.insert("properties".to_owned(), Value::Object(arguments));
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}

/// Repairs a schema in `root`.
fn repair_part(schema: &mut Value, root: &Value) {
    let Some(keys) = schema.as_object_mut() else { return };
    // Programs write null for what they do not set; as a value it has a meaning.
    keys.retain(|key, value| !value.is_null() || matches!(key.as_str(), "default" | "const"));
    let is_foreign = |reference: &Value| {
        let path = reference.as_str().and_then(|reference| reference.strip_prefix('#'));
        path.is_none_or(|path| root.pointer(path).is_none())
    };
    if keys.get("$ref").is_some_and(is_foreign) {
        keys.remove("$ref");
    }
    if keys.get("required").is_some_and(|names| !names.is_array()) {
        keys.remove("required");
    }
    for key in NAMED_SCHEMAS {
        match keys.get_mut(key) {
            Some(Value::Object(schemas)) => {
                schemas.values_mut().for_each(|schema| repair_part(schema, root));
            }
            Some(_) => drop(keys.remove(key)),
            None => {}
        }
    }
    for key in SCHEMAS {
        match keys.get_mut(key) {
            Some(Value::Array(schemas)) => schemas.iter_mut().for_each(|schema| repair_part(schema, root)),
            Some(schema) => repair_part(schema, root),
            None => {}
        }
    }
    repair_type(keys);
}

/// Repairs the type of a schema, and what must agree with it.
fn repair_type(keys: &mut Map<String, Value>) {
    let is_type = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
    let types: Vec<String> = match keys.get("type") {
        Some(Value::Array(names)) => names.iter().filter(|name| is_type(name)).filter_map(text).collect(),
        Some(name) if is_type(name) => text(name).into_iter().collect(),
        _ => Vec::new(),
    };
    if types.is_empty() {
        keys.remove("type");
    } else if keys.get("type").is_some_and(Value::is_array) {
        keys.insert("type".to_owned(), json!(types));
    }
    if types.iter().any(|name| name == "array") {
        let items = keys.entry("items").or_insert_with(|| json!({}));
        // The list of an older version of JSON Schema: a schema for each position.
        if let Value::Array(schemas) = items {
            *items = json!({"anyOf": schemas});
        }
    }
    if let Some(values) = keys.get_mut("enum") {
        let fits = |value: &Value| types.is_empty() || types.iter().any(|name| fits_type(value, name));
        if let Value::Array(values) = values {
            values.retain(fits);
        }
        if values.as_array().is_none_or(Vec::is_empty) {
            keys.remove("enum");
        }
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn repaired(mut schema: Value) -> Value {
        repair(&mut schema);
        schema
    }

    /// The schema of an argument after the repair.
    fn argument(schema: &Value) -> Value {
        let whole =
            json!({"type": "object", "properties": {"a": schema}, "$defs": {"d": {"type": "string"}}});
        repaired(whole)["properties"]["a"].take()
    }

    // Fault A8: a model server refuses a request for one of these, and with it all tools.
    #[test]
    fn what_model_servers_refuse_is_repaired() {
        for (sent, expected) in [
            (json!({"type": "array"}), json!({"type": "array", "items": {}})),
            (json!({"type": ["array", "null"]}), json!({"type": ["array", "null"], "items": {}})),
            (
                json!({"type": "array", "items": [{"type": "string"}, {"type": "array"}]}),
                json!({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "array", "items": {}}]}}),
            ),
            (json!({"type": "string", "enum": null, "required": true}), json!({"type": "string"})),
            (json!({"type": "string", "enum": ["a", null]}), json!({"type": "string", "enum": ["a"]})),
            (json!({"type": "null", "enum": ["a"]}), json!({"type": "null"})),
            (json!({"enum": []}), json!({})),
            (json!({"type": "any", "description": "x"}), json!({"description": "x"})),
            (json!({"type": ["str", "string"]}), json!({"type": ["string"]})),
            (json!({"$ref": "https://example.org/s.json", "title": "t"}), json!({"title": "t"})),
            (json!({"$ref": "#/components/schemas/d"}), json!({})),
            (json!({"anyOf": [{"type": "array"}]}), json!({"anyOf": [{"type": "array", "items": {}}]})),
        ] {
            assert_eq!(argument(&sent), expected, "{sent}");
        }
    }

    #[test]
    fn a_schema_that_model_servers_accept_stays_as_it_is() {
        for schema in [
            json!({"$ref": "#/$defs/d"}),
            json!({"type": "string", "enum": ["a", "b"], "default": null}),
            json!({"type": "object", "properties": {"enum": {"type": "string"}, "items": {"const": null}}}),
            json!({"type": ["string", "null"], "enum": ["a", null]}),
            json!({"type": "object", "required": ["x"], "additionalProperties": false}),
        ] {
            assert_eq!(argument(&schema), schema);
        }
    }

    #[test]
    fn alternatives_at_the_top_become_arguments_of_one_object() {
        let sent = json!({"properties": {"a": {"type": "string"}}, "enum": [1],
            "oneOf": [{"properties": {"a": {"type": "integer"}, "b": {}}, "required": ["b"]}, {"required": ["a"]}]});
        let expected = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {}}});
        assert_eq!(repaired(sent), expected);
        assert_eq!(repaired(json!({"type": null})), json!({"type": "object", "properties": {}}));
    }

    proptest! {
        #[test]
        fn a_second_repair_changes_nothing(
            key in "(type|enum|items|required|properties|anyOf|\\$ref)",
            value in r#"(null|true|\[\]|\{\}|"array"|"any"|\["array"\]|\[\{"enum":null\}\]|"\#/x")"#,
        ) {
            let value: Value = serde_json::from_str(&value).unwrap();
            let once = repaired(json!({"properties": {"p": {key: value}}}));
            prop_assert_eq!(repaired(once.clone()), once);
        }
    }
}
