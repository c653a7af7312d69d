//! Converts arguments of a call to the types that the tool's schema requires, where nothing is lost: `"2"`, `2.0`, `"true"`, a list as JSON text.

use super::arguments::fits_type;
use agent_text::json_bounds;
use serde_json::{Number, Value};

/// Digits that a number with a fraction keeps in any case.
const EXACT_DIGITS: usize = 15;
/// Largest whole number below which each one is exact among the numbers with a fraction: 2^53.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;
/// Maximum length of a chain of references.
const MAX_REFERENCES: usize = 8;

/// Converts the parts of `args` that do not have the type that `schema` requires. What cannot be converted exactly stays as it is.
pub fn convert(args: &mut Value, schema: &Value) {
    convert_part(args, schema, schema);
}

fn convert_part(value: &mut Value, schema: &Value, root: &Value) {
    let variants = variants(schema, root);
    if !variants.iter().any(|variant| accepts(value, variant)) {
        let mut found: Vec<Value> = variants.iter().filter_map(|variant| converted(value, variant)).collect();
        found.dedup();
        let [only] = found.as_slice() else { return };
        *value = only.clone();
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let schema = variants.iter().find_map(|variant| {
                    let own = variant.get("properties").and_then(|properties| properties.get(name));
                    own.or_else(|| variant.get("additionalProperties"))
                });
                if let Some(schema) = schema {
                    convert_part(field, schema, root);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = variants.iter().find_map(|variant| variant.get("items")) {
                for item in items {
                    convert_part(item, schema, root);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the alternatives of a schema, or the schema itself.
fn variants<'a>(schema: &'a Value, root: &'a Value) -> Vec<&'a Value> {
    let schema = resolved(schema, root);
    match ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)?.as_array()) {
        Some(variants) => variants.iter().map(|variant| resolved(variant, root)).collect(),
        None => vec![schema],
    }
}

/// Follows the references of a schema to others in `root`.
fn resolved<'a>(mut schema: &'a Value, root: &'a Value) -> &'a Value {
    for _ in 0..MAX_REFERENCES {
        let path =
            schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
        match path.and_then(|path| root.pointer(path)) {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

/// Returns the names of the types that a schema permits; none if it permits all.
fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(name)) => vec![name],
        _ => Vec::new(),
    }
}

fn accepts(value: &Value, schema: &Value) -> bool {
    let types = types(schema);
    types.is_empty() || types.iter().any(|name| fits_type(value, name))
}

/// Returns the same value in a type that `schema` permits, if there is one.
fn converted(value: &Value, schema: &Value) -> Option<Value> {
    types(schema).into_iter().find_map(|name| match (name, value) {
        ("integer", Value::String(text)) => whole(&number(text)?),
        ("integer", Value::Number(number)) => whole(number),
        ("number", Value::String(text)) => number(text).map(Value::Number),
        ("boolean", Value::String(text)) if text.eq_ignore_ascii_case("true") => Some(Value::Bool(true)),
        ("boolean", Value::String(text)) if text.eq_ignore_ascii_case("false") => Some(Value::Bool(false)),
        ("array" | "object", Value::String(text)) => json(text).filter(|found| fits_type(found, name)),
        _ => None,
    })
}

/// Returns the number that `text` writes in JSON, if it can be represented exactly.
fn number(text: &str) -> Option<Number> {
    let number: Number = serde_json::from_str(text.trim()).ok()?;
    if !number.is_f64() {
        return Some(number);
    }
    let digits = text.split(['e', 'E']).next()?.chars().filter(char::is_ascii_digit);
    let significant = digits.skip_while(|digit| *digit == '0').count();
    let is_lost = number.as_f64() == Some(0.0) && significant > 0;
    (significant <= EXACT_DIGITS && !is_lost).then_some(number)
}

/// Returns `number` as one without a fraction.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn whole(number: &Number) -> Option<Value> {
    if !number.is_f64() {
        return Some(Value::Number(number.clone()));
    }
    let exact = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= LARGEST_EXACT)?;
    Some(Value::from(exact as i64))
}

/// Returns the list or object that `text` writes in JSON; none if it has a key twice, of which one would be lost.
fn json(text: &str) -> Option<Value> {
    json_bounds::check(text.as_bytes()).ok()?;
    let value: Value = serde_json::from_str(text).ok()?;
    (members(&value) == colons(text)).then_some(value)
}

/// Counts the members of all objects in `value`.
fn members(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(members).sum(),
        Value::Object(fields) => fields.values().map(|field| 1 + members(field)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Counts the colons outside of strings in a JSON text: one for each member.
fn colons(text: &str) -> usize {
    let (mut is_in_string, mut is_escaped) = (false, false);
    let mut is_colon = |byte: &u8| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_in_string,
            b'"' => is_in_string = !is_in_string,
            _ => {}
        }
        *byte == b':' && !is_in_string
    };
    text.as_bytes().iter().filter(|byte| is_colon(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({"type": "object", "$defs": {"count": {"type": "integer"}}, "properties": {
            "whole": {"type": "integer", "minimum": 0},
            "number": {"type": "number"},
            "flag": {"type": "boolean"},
            "list": {"type": "array", "items": {"type": "integer"}},
            "object": {"type": "object", "properties": {"x": {"$ref": "#/$defs/count"}}},
            "optional": {"anyOf": [{"$ref": "#/$defs/count"}, {"type": "null"}]},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "types": {"type": ["integer", "null"]},
            "any": {"description": "x"},
            "text": {"type": "string"},
        }})
    }

    fn value_of(name: &str, value: &Value) -> Value {
        let mut args = json!({name: value});
        convert(&mut args, &schema());
        args[name].take()
    }

    // Fault A15: such calls of weak models were refused, each at the price of a step.
    #[test]
    fn a_value_of_another_type_is_converted_where_nothing_is_lost() {
        for (name, sent, expected) in [
            ("whole", json!("2"), json!(2)),
            ("whole", json!(" -7 "), json!(-7)),
            ("whole", json!("2.0"), json!(2)),
            ("whole", json!(2.0), json!(2)),
            ("number", json!("0.25"), json!(0.25)),
            ("number", json!("18446744073709551615"), json!(u64::MAX)),
            ("flag", json!("true"), json!(true)),
            ("flag", json!("False"), json!(false)),
            ("list", json!("[1, \"2\", 3.0]"), json!([1, 2, 3])),
            ("list", json!(["1"]), json!([1])),
            ("object", json!("{\"x\": \"1\", \"y\": \":\\\":\"}"), json!({"x": 1, "y": ":\":"})),
            ("optional", json!("3"), json!(3)),
            ("types", json!("3"), json!(3)),
        ] {
            assert_eq!(value_of(name, &sent), expected, "{name} {sent}");
        }
    }

    #[test]
    fn a_value_that_would_lose_something_or_fits_stays_as_it_is() {
        for (name, value) in [
            ("whole", json!("2.5")),
            ("whole", json!(2.5)),
            ("whole", json!("1e300")),
            ("whole", json!("02")),
            ("whole", json!("")),
            ("whole", json!("two")),
            ("whole", json!(true)),
            ("whole", json!("99999999999999999999")),
            ("number", json!("0.12345678901234567")),
            ("number", json!("1e-999")),
            ("number", json!("NaN")),
            ("flag", json!("yes")),
            ("flag", json!(1)),
            ("list", json!("1, 2")),
            ("list", json!("{}")),
            ("object", json!("{\"x\": 1, \"x\": 2}")),
            ("object", json!("[]")),
            ("optional", json!(null)),
            ("either", json!("3")),
            ("any", json!("3")),
            ("text", json!("3")),
            ("text", json!(3)),
            ("unknown", json!("3")),
        ] {
            assert_eq!(value_of(name, &value), value, "{name}");
        }
        let nested = "[".repeat(json_bounds::MAX_DEPTH + 1);
        assert_eq!(value_of("list", &json!(nested)), json!(nested));
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}});
        let mut args = json!({"a": "1"});
        convert(&mut args, &schema);
        assert_eq!(args, json!({"a": "1"}));
    }

    proptest! {
        #[test]
        fn a_converted_number_is_written_as_it_was(number: i64) {
            prop_assert_eq!(value_of("whole", &json!(number.to_string())).to_string(), number.to_string());
        }
    }
}
