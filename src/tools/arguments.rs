//! Builds JSON Schemas of tool arguments, and error messages that name the invalid argument.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Minimum Jaro–Winkler similarity (0 to 1) of a name suggested as "did you mean".
const MIN_SIMILARITY: f64 = 0.75;

/// Returns the JSON Schema of `A`, inline and without titles, formats and null variants, to save tokens.
pub fn schema<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    if let Some(root) = schema.as_object_mut() {
        root.remove("description");
    }
    shorten(&mut schema);
    schema
}

/// Returns the schema of `A` as a model receives it, without what it needs for our own error messages only.
pub fn model_schema<A: JsonSchema>() -> Value {
    let mut schema = schema::<A>();
    strip_defaults(&mut schema);
    schema
}

/// Removes keywords that state what a model assumes anyway: no other arguments, no negative numbers, flags that are off.
fn strip_defaults(value: &mut Value) {
    if let Value::Object(object) = value {
        for (keyword, usual) in
            [("additionalProperties", json!(false)), ("minimum", json!(0)), ("default", json!(false))]
        {
            if object.get(keyword) == Some(&usual) {
                object.remove(keyword);
            }
        }
        object.values_mut().for_each(strip_defaults);
    }
}

/// Parses the arguments of a call.
///
/// # Errors
/// A message for the model that names the invalid argument and lists the tool's arguments.
pub fn parse<A: DeserializeOwned + JsonSchema>(tool: &str, args: &Value) -> Result<A, String> {
    // The schema is built only when parsing fails.
    A::deserialize(args).map_err(|error| {
        let schema = schema::<A>();
        let reason = explain(&schema, args).unwrap_or_else(|| error.to_string());
        format!("Invalid arguments: {reason}. {}", usage(tool, &schema))
    })
}

/// Returns the known name most similar to `name`, if one is similar enough.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    known
        .map(|candidate| (strsim::jaro_winkler(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Removes schema keywords that a model does not need.
fn shorten(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for noise in ["$schema", "title", "format"] {
                // A property may be called "title"; only a string is the keyword.
                if object.get(noise).is_some_and(Value::is_string) {
                    object.remove(noise);
                }
            }
            unwrap_null(object);
            object.values_mut().for_each(shorten);
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        _ => {}
    }
}

/// Removes `null` from the types of an optional argument: the `required` list already shows that it is optional.
fn unwrap_null(object: &mut Map<String, Value>) {
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = object.get_mut("enum") {
        choices.retain(|choice| !choice.is_null());
    }
    let variants = object.get("anyOf").and_then(Value::as_array);
    let real: Vec<&Value> = variants
        .into_iter()
        .flatten()
        .filter(|variant| variant.get("type") != Some(&"null".into()))
        .collect();
    if let [Value::Object(only)] = real.as_slice() {
        let only = only.clone();
        object.remove("anyOf");
        for (key, value) in only {
            object.entry(key).or_insert(value);
        }
    }
}

/// Describes the first violation of `schema` in `args`, if it finds one.
fn explain(schema: &Value, args: &Value) -> Option<String> {
    let Some(object) = args.as_object() else {
        return Some(format!("they must be a JSON object, not {}", kind(args)));
    };
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    if let Some(unknown) = object.keys().find(|name| !properties.contains_key(*name)) {
        let hint = nearest(unknown, properties.keys().map(String::as_str))
            .map_or_else(String::new, |name| format!(" (did you mean '{name}'?)"));
        return Some(format!("unknown argument '{}'{hint}", unknown.escape_debug()));
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    if let Some(missing) = required.filter_map(Value::as_str).find(|name| !object.contains_key(*name)) {
        return Some(format!("missing argument '{missing}'"));
    }
    object.iter().find_map(|(name, value)| type_error(name, properties.get(name)?, value))
}

/// Describes how the argument `name` violates its schema, if it does.
fn type_error(name: &str, schema: &Value, value: &Value) -> Option<String> {
    if let Some(choices) = schema.get("enum").and_then(Value::as_array)
        && !choices.contains(value)
    {
        let choices: Vec<String> = choices.iter().map(ToString::to_string).collect();
        return Some(format!("argument '{name}' must be one of {}", choices.join(", ")));
    }
    let wanted = schema.get("type").and_then(Value::as_str)?;
    if !fits_type(value, wanted) {
        return Some(format!("argument '{name}' must be of type {wanted}, not {}", kind(value)));
    }
    let least = schema.get("minimum").and_then(Value::as_i64)?;
    (value.as_i64().is_some_and(|value| value < least))
        .then(|| format!("argument '{name}' must be at least {least}"))
}

/// Checks whether `value` has the type `name` of JSON Schema.
pub fn fits_type(value: &Value, name: &str) -> bool {
    match name {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Lists the tool's arguments on one line.
fn usage(tool: &str, schema: &Value) -> String {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let names: Vec<String> = properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| {
            let kind = schema.get("type").and_then(Value::as_str).unwrap_or("any");
            let optional = if required.contains(&name.as_str()) { "" } else { ", optional" };
            format!("{name} ({kind}{optional})")
        })
        .collect();
    if names.is_empty() {
        format!("{tool} takes no arguments.")
    } else {
        format!("{tool} takes: {}.", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the parsing is tested")]
    struct Args {
        /// Where.
        path: String,
        /// How many.
        limit: Option<u32>,
        mode: Option<Mode>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Mode {
        Overwrite,
        Append,
    }

    fn error(args: &Value) -> String {
        parse::<Args>("demo", args).unwrap_err()
    }

    #[test]
    fn the_schema_has_only_what_a_model_needs() {
        assert_eq!(
            schema::<Args>(),
            json!({
                "type": "object",
                "properties": {
                    "path": {"description": "Where.", "type": "string"},
                    "limit": {"description": "How many.", "type": "integer", "minimum": 0},
                    "mode": {"type": "string", "enum": ["overwrite", "append"]},
                },
                "additionalProperties": false,
                "required": ["path"],
            })
        );
    }

    #[test]
    fn the_schema_for_a_model_omits_what_it_assumes_anyway() {
        assert_eq!(
            model_schema::<Args>(),
            json!({
                "type": "object",
                "properties": {
                    "path": {"description": "Where.", "type": "string"},
                    "limit": {"description": "How many.", "type": "integer"},
                    "mode": {"type": "string", "enum": ["overwrite", "append"]},
                },
                "required": ["path"],
            })
        );
    }

    #[test]
    fn t22_an_unknown_argument_is_named_with_the_one_that_was_meant() {
        let text = error(&json!({"path": "a", "limt": 3}));
        assert!(
            text.starts_with("Invalid arguments: unknown argument 'limt' (did you mean 'limit'?)."),
            "{text}"
        );
        assert!(
            text.ends_with("demo takes: path (string), limit (integer, optional), mode (string, optional)."),
            "{text}"
        );
    }

    #[test]
    fn t22_missing_and_ill_typed_arguments_are_named() {
        assert!(error(&json!({})).contains("missing argument 'path'"));
        assert!(error(&json!({"path": 5})).contains("'path' must be of type string, not number"));
        assert!(error(&json!({"path": "a", "limit": -1})).contains("'limit' must be at least 0"));
        assert!(
            error(&json!({"path": "a", "mode": "x"})).contains(r#"must be one of "overwrite", "append""#)
        );
        assert!(error(&json!([1])).contains("must be a JSON object, not array"));
    }

    #[test]
    fn null_stands_for_an_absent_optional_argument() {
        assert!(parse::<Args>("demo", &json!({"path": "a", "limit": null, "mode": "append"})).is_ok());
    }
}
