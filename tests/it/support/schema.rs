//! The published schemas, held against what the binary writes.

use serde_json::{Value, json};
use std::error::Error;
use std::fs;
use std::path::Path;

/// The schema `config/schema/NAME.json`, ready to be held against values; it may refer to others.
pub fn of(name: &str) -> jsonschema::Validator {
    jsonschema::options().with_retriever(Neighbours).build(&read(name)).unwrap()
}

/// Finds the schemas that one refers to by their file names.
struct Neighbours;

impl jsonschema::Retrieve for Neighbours {
    fn retrieve(&self, uri: &jsonschema::Uri<String>) -> Result<Value, Box<dyn Error + Send + Sync>> {
        let name = uri.as_str().rsplit('/').next().and_then(|file| file.strip_suffix(".json"));
        Ok(read(name.ok_or("no file name")?))
    }
}

/// Checks a `--json` document, which has no keys that its schema does not name.
#[track_caller]
pub fn is_result(document: &Value) {
    let mut schema = read("result");
    close(&mut schema);
    valid(&jsonschema::validator_for(&schema).unwrap(), document);
}

/// Checks `value`.
#[track_caller]
pub fn valid(schema: &jsonschema::Validator, value: &Value) {
    let violations: Vec<String> =
        schema.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(violations.is_empty(), "{violations:?} in {value}");
}

/// Lets every object have no other keys than those that are described.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(keys) => {
            keys.values_mut().for_each(close);
            if keys.get("properties").is_some_and(Value::is_object) {
                keys.entry("unevaluatedProperties").or_insert(json!(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

fn read(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/schema").join(name).with_extension("json");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}
