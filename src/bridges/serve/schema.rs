//! Generates the JSON Schema of the protocol, `config/schema/rpc.json`, and compares the file and the manual with it.

use super::protocol::{Begun, Done, Notification, Request, Sessions, Subscribed, Undone};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use strum::VariantNames;

/// Returns the schema of a line in either direction.
fn rpc() -> Value {
    let mut input = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    let mut output = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let request = input.subschema_for::<Request>();
    let notification = output.subschema_for::<Notification<'_>>();
    let results = [
        reference::<Begun>(&mut output),
        reference::<Done>(&mut output),
        reference::<Sessions>(&mut output),
        reference::<Subscribed>(&mut output),
        reference::<Undone>(&mut output),
    ];
    let mut definitions: Map<String, Value> = input.take_definitions(true);
    definitions.extend(output.take_definitions(true));
    let id = json!({"type": ["string", "integer"], "description": "Chosen by the client; the response repeats it."});
    let version = json!({"const": "2.0"});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of `agent serve`",
        "description": "JSON-RPC 2.0: a request of the client, or a response or notification to it. `events.json` is the schema of `agent schema events`, `result.json` that of `agent schema result`.",
        "anyOf": [
            {"title": "request", "$ref": request.get("$ref"), "required": ["jsonrpc", "id"],
                "properties": {"jsonrpc": version, "id": id}, "unevaluatedProperties": false},
            {"title": "result", "type": "object", "required": ["jsonrpc", "id", "result"],
                "properties": {"jsonrpc": version, "id": id, "result": {"anyOf": results}}},
            {"title": "error", "type": "object", "required": ["jsonrpc", "id", "error"],
                "properties": {"jsonrpc": version, "id": {"type": ["string", "integer", "null"]}, "error": {
                    "type": "object", "required": ["code", "message"],
                    "properties": {"code": {"type": "integer"}, "message": {"type": "string"}, "data": true}}}},
            {"title": "notification", "$ref": notification.get("$ref"), "required": ["jsonrpc"],
                "properties": {"jsonrpc": version}},
        ],
        "$defs": definitions,
    })
}

fn reference<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test compares with a file, and writes it when asked to")]
fn the_schema_of_the_protocol_is_the_one_of_the_types() {
    let (path, generated) =
        (concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/schema/rpc.json"), format!("{:#}\n", rpc()));
    if std::env::var_os("AGENT_UPDATE_SCHEMA").is_some() {
        std::fs::write(path, &generated).unwrap();
    }
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(stored, generated, "rpc.json has drifted: AGENT_UPDATE_SCHEMA=1 cargo test --lib schema");
}

#[test]
fn the_help_page_names_each_method() {
    let page = include_str!("../../../config/help/serve.md");
    for method in Request::VARIANTS {
        assert!(page.contains(&format!("| `{method} ")), "{method}");
    }
}
