//! Questions of a server during a call: a form with simple fields, described by a restricted JSON Schema.

use super::definition::harmless;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Maximum number of fields of a form.
pub const MAX_FIELDS: usize = 50;

/// One field of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its key in the answer.
    pub key: String,
    /// What the user reads: title and description.
    pub label: String,
    /// Its type.
    pub kind: FieldKind,
    /// The value of an empty answer.
    pub default: Option<Value>,
    /// Whether the answer needs it.
    pub required: bool,
}

/// The type of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldKind {
    /// Any text.
    Text,
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// Yes or no.
    Bool,
    /// One of these values.
    Choice(Vec<String>),
    /// Several of these values, separated by commas.
    Choices(Vec<String>),
}

/// Returns the fields of the form that `schema` describes.
pub fn fields(schema: &Value) -> Vec<Field> {
    let required: BTreeSet<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema["properties"].as_object();
    let field = |(key, about): (&String, &Value)| Field {
        key: key.clone(),
        label: label(key, about),
        kind: kind(about),
        default: about.get("default").filter(|default| !default.is_null()).cloned(),
        required: required.contains(key.as_str()),
    };
    properties.into_iter().flatten().take(MAX_FIELDS).map(field).collect()
}

fn label(key: &str, about: &Value) -> String {
    let title = about["title"].as_str().unwrap_or(key);
    let text = match about["description"].as_str() {
        Some(description) => format!("{title} ({description})"),
        None => title.to_owned(),
    };
    harmless(&text).replace('\n', " ")
}

fn kind(about: &Value) -> FieldKind {
    match about["type"].as_str() {
        Some("boolean") => FieldKind::Bool,
        Some("integer") => FieldKind::Integer,
        Some("number") => FieldKind::Number,
        Some("array") => FieldKind::Choices(values(&about["items"])),
        _ => match values(about) {
            values if values.is_empty() => FieldKind::Text,
            values => FieldKind::Choice(values),
        },
    }
}

/// Returns the values of an enumeration, as `enum` or as `const` of alternatives.
fn values(about: &Value) -> Vec<String> {
    let listed = about["enum"].as_array().into_iter().flatten();
    let alternatives = ["oneOf", "anyOf"].into_iter().filter_map(|key| about[key].as_array());
    let alternatives = alternatives.flatten().filter_map(|one| one.get("const"));
    listed.chain(alternatives).filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns the answer that consists of the defaults; `None` if a required field has none, or there is no field: such a question
/// asks for consent, which no default gives.
pub fn defaults(fields: &[Field]) -> Option<Value> {
    if fields.is_empty() {
        return None;
    }
    let mut answer = Map::new();
    for field in fields {
        match &field.default {
            Some(default) => drop(answer.insert(field.key.clone(), default.clone())),
            None if field.required => return None,
            None => {}
        }
    }
    Some(Value::Object(answer))
}

impl Field {
    /// Returns the value that the user has typed; `None` for an empty optional field.
    ///
    /// # Errors
    /// A description of what is expected.
    pub fn parse(&self, typed: &str) -> Result<Option<Value>, String> {
        let typed = typed.trim();
        if typed.is_empty() {
            return match &self.default {
                Some(default) => Ok(Some(default.clone())),
                None if self.required => Err("a value is needed".to_owned()),
                None => Ok(None),
            };
        }
        let value = match &self.kind {
            FieldKind::Text => Value::from(typed),
            FieldKind::Bool => match typed.to_lowercase().as_str() {
                "y" | "yes" | "true" | "s" | "si" | "sí" => Value::Bool(true),
                "n" | "no" | "false" => Value::Bool(false),
                _ => return Err("yes or no".to_owned()),
            },
            FieldKind::Integer => {
                typed.parse::<i64>().map(Value::from).map_err(|_| "a whole number".to_owned())?
            }
            FieldKind::Number => match typed.parse::<f64>() {
                Ok(number) if number.is_finite() => Value::from(number),
                _ => return Err("a number".to_owned()),
            },
            FieldKind::Choice(values) => one_of(values, typed)?,
            FieldKind::Choices(values) => {
                let each = typed.split(',').map(|word| one_of(values, word.trim()));
                Value::Array(each.collect::<Result<_, _>>()?)
            }
        };
        Ok(Some(value))
    }
}

fn one_of(values: &[String], typed: &str) -> Result<Value, String> {
    match values.iter().find(|value| *value == typed) {
        Some(value) => Ok(value.as_str().into()),
        None => Err(format!("one of {}", harmless(&values.join(", ")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_form_is_answered_with_its_defaults_unless_a_required_one_is_missing() {
        let schema = json!({"properties": {
            "name": {"type": "string", "default": "Ana"},
            "age": {"type": "integer"},
            "level": {"type": "string", "enum": ["low", "high"], "default": "low"},
        }});
        assert_eq!(defaults(&fields(&schema)), Some(json!({"name": "Ana", "level": "low"})));
        let needed = json!({"properties": {"age": {"type": "integer"}}, "required": ["age"]});
        assert_eq!(defaults(&fields(&needed)), None);
        assert_eq!(defaults(&fields(&json!({"properties": {}}))), None);
    }

    #[test]
    fn what_is_typed_becomes_a_value_of_the_type() {
        let field = |kind| Field { key: "k".into(), label: "k".into(), kind, default: None, required: true };
        let choice = FieldKind::Choice(vec!["low".into(), "high".into()]);
        assert_eq!(field(FieldKind::Bool).parse("yes"), Ok(Some(json!(true))));
        assert_eq!(field(FieldKind::Integer).parse(" 7 "), Ok(Some(json!(7))));
        assert_eq!(field(choice.clone()).parse("high"), Ok(Some(json!("high"))));
        assert!(field(choice).parse("other").is_err() && field(FieldKind::Number).parse("x").is_err());
        assert!(field(FieldKind::Text).parse("").is_err());
        let several = FieldKind::Choices(vec!["a".into(), "b".into()]);
        assert_eq!(field(several).parse("a, b"), Ok(Some(json!(["a", "b"]))));
    }
}
