//! Structured answers: `--output-schema`, from the file to standard output, over every wire format.

use crate::support::run::{Finished, KEY, Lab};
use crate::support::server::{Recorded, Server};
use serde_json::{Value, json};

/// A schema that every strict mode takes.
const SCHEMA: &str = r#"{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
    "properties": {"name": {"type": "string"}, "count": {"type": "integer", "minimum": 1}},
    "required": ["name", "count"], "additionalProperties": false}"#;

const GOOD: &str = r#"{"name": "a", "count": 2}"#;

fn with_schema(schema: &str) -> Lab {
    Lab::new().file("schema.json", schema).file("a.txt", "hello\n")
}

/// Runs the task with `model` and the schema of the lab.
fn play(model: &str, lab: &Lab, script: &str, more: &[&str]) -> (Finished, Vec<Recorded>) {
    let server = Server::start(script);
    let url = server.url();
    let args = ["run", "task", "--output-schema", "schema.json", "--model", model];
    let done = lab.agent(&[args.as_slice(), &["--api-base", &url, "--api-key", KEY], more].concat());
    (done, server.requests())
}

fn turns(texts: &[&str]) -> String {
    let turns: Vec<Value> = texts.iter().map(|text| json!({ "text": text })).collect();
    json!({ "turns": turns }).to_string()
}

/// What the last message of a request says, in any format.
fn last_words(request: &Recorded) -> String {
    let body = &request.body;
    let list = ["messages", "input", "contents"].iter().find_map(|key| body[*key].as_array());
    list.unwrap().last().unwrap().to_string()
}

#[test]
fn an_answer_that_fits_is_alone_on_standard_output() {
    for answer in [GOOD, "```json\n{\"name\": \"a\", \"count\": 2}\n```\n"] {
        for more in [[].as_slice(), &["--no-stream"], &["--quiet"], &["-vv"]] {
            let (done, requests) = play("openai/m", &with_schema(SCHEMA), &turns(&[answer]), more);
            assert_eq!(done.exits(0).stdout, "{\"name\":\"a\",\"count\":2}\n", "{more:?}");
            assert_eq!(requests.len(), 1);
            assert!(last_words(&requests[0]).contains("\\\"minimum\\\""), "the model is told the schema");
        }
    }
}

#[test]
fn the_output_in_json_is_the_structured_value() {
    let (done, _) = play("openai/m", &with_schema(SCHEMA), &turns(&[GOOD]), &["--json"]);
    let document = done.exits(0).json();
    assert_eq!(document["output"], json!({"name": "a", "count": 2}));
    assert_eq!((&document["output_valid"], &document["status"]), (&json!(true), &json!("success")));
}

#[test]
fn without_a_schema_the_document_says_nothing_of_one() {
    let server = Server::start(&turns(&[GOOD]));
    let document = Lab::new().run(&server, &["--json"]).exits(0).json();
    assert_eq!((document.get("output_valid"), &document["output"]), (None, &json!(GOOD)));
    assert!(server.requests()[0].body.get("response_format").is_none());
}

#[test]
fn an_answer_that_does_not_fit_is_repaired_without_tools() {
    let script = json!({"turns": [
        {"calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}], "expect": {"tools": true}},
        {"text": "{\"name\": \"a\", \"count\": 0}", "expect": {"tools": true, "last_contains": ["hello"]}},
        {"text": GOOD, "expect": {"tools": false, "last_role": "user", "last_contains": ["/count", "minimum"]}},
    ]});
    for model in ["openai/m", "anthropic/m", "ollama/m", "gemini/m", "openai-responses/m"] {
        for more in [[].as_slice(), &["--no-stream"]] {
            let (done, requests) = play(model, &with_schema(SCHEMA), &script.to_string(), more);
            assert_eq!(done.exits(0).stdout, "{\"name\":\"a\",\"count\":2}\n", "{model}");
            assert_eq!(requests.len(), 3, "{model}");
        }
    }
}

#[test]
fn an_answer_that_never_fits_fails_with_its_own_kind_and_is_not_lost() {
    let lab = with_schema(SCHEMA);
    let (done, requests) = play("openai/m", &lab, &turns(&["one", "two", "three"]), &[]);
    let done = done.exits(1);
    assert_eq!((done.stdout.as_str(), requests.len()), ("", 3));
    assert!(done.stderr.contains("--output-schema") && done.stderr.contains("three"), "{}", done.stderr);
    let (done, _) = play("openai/m", &lab, &turns(&["one", "two", "{\"name\": 7}"]), &["--json"]);
    let document = done.exits(1).json();
    assert_eq!(document["error"]["kind"], "output_schema");
    assert_eq!((&document["output"], &document["output_valid"]), (&json!("{\"name\": 7}"), &json!(false)));
    assert_eq!((&document["steps"], &document["stop_reason"]), (&json!(3), &json!("llm_error")));
}

#[test]
fn a_repair_may_not_call_tools() {
    let call =
        json!({"calls": [{"name": "write_file", "arguments": {"path": "x", "content": "x"}}], "text": "no"});
    let script = json!({"turns": [{"text": "no"}, call, {"text": GOOD}]});
    let lab = with_schema(SCHEMA);
    let (done, requests) = play("openai/m", &lab, &script.to_string(), &["--mode", "yolo"]);
    assert_eq!((done.exits(0).stdout.as_str(), requests.len()), ("{\"name\":\"a\",\"count\":2}\n", 3));
    assert!(!lab.exists("x"));
}

#[test]
fn a_cut_answer_is_joined_before_it_is_read() {
    let script =
        json!({"turns": [{"text": "{\"name\": \"a\", ", "finish": "length"}, {"text": "\"count\": 2}"}]});
    let (done, requests) = play("openai/m", &with_schema(SCHEMA), &script.to_string(), &[]);
    assert_eq!(done.exits(0).stdout, "{\"name\":\"a\",\"count\":2}\n");
    assert!(requests[0].body.get("response_format").is_some());
    assert!(requests[1].body.get("response_format").is_none(), "a strict mode would begin the answer anew");
}

#[test]
fn a_limit_keeps_its_own_reason_and_its_summary_off_standard_output() {
    let script = turns(&["no", "what I did"]);
    let (done, _) = play("openai/m", &with_schema(SCHEMA), &script, &["--max-steps", "1"]);
    let done = done.exits(2);
    assert!(done.stdout.is_empty() && done.stderr.contains("what I did"), "{}", done.stderr);
    let (done, requests) = play("openai/m", &with_schema(SCHEMA), &script, &["--max-steps", "1", "--json"]);
    let document = done.exits(2).json();
    assert_eq!((&document["stop_reason"], &document["output"]), (&json!("max_steps"), &json!("what I did")));
    assert_eq!(document["output_valid"], false);
    assert!(requests[1].body.get("response_format").is_none(), "a summary is prose");
}

/// The strict form in the body of a request, by format.
fn strict_form(model: &str, body: &Value) -> Option<(Value, Option<bool>)> {
    let named = |named: &Value| Some((named.get("schema")?.clone(), named["strict"].as_bool()));
    match model.split('/').next().unwrap() {
        "openai-responses" => named(body.pointer("/text/format")?),
        "anthropic" => named(body.pointer("/output_config/format")?),
        "gemini" => {
            let config = &body["generationConfig"];
            let schema = config.get("responseJsonSchema")?;
            assert_eq!(config["responseMimeType"], "application/json");
            Some((schema.clone(), None))
        }
        "ollama" => Some((body.get("format")?.clone(), None)),
        _ => named(body.pointer("/response_format/json_schema")?),
    }
}

#[test]
fn every_format_sends_its_strict_form_where_the_server_takes_it() {
    let mut sent: Value = serde_json::from_str(SCHEMA).unwrap();
    sent.as_object_mut().unwrap().remove("$schema");
    for (model, beside_tools, strict) in [
        ("openai/m", true, Some(true)),
        ("xai/m", true, Some(true)),
        ("openai-responses/m", true, Some(true)),
        ("anthropic/m", true, None),
        ("gemini/m", false, None),
        ("ollama/m", false, None),
        ("llamacpp/m", false, Some(true)),
        ("vllm/m", false, Some(true)),
    ] {
        let (done, requests) = play(model, &with_schema(SCHEMA), &turns(&["no", GOOD]), &[]);
        done.exits(0);
        let form = Some((sent.clone(), strict));
        assert_eq!(strict_form(model, &requests[0].body), form.clone().filter(|_| beside_tools), "{model}");
        assert_eq!(strict_form(model, &requests[1].body), form, "{model}");
    }
    let (done, requests) = play("deepseek/m", &with_schema(SCHEMA), &turns(&["no", GOOD]), &[]);
    done.exits(0);
    assert!(requests.iter().all(|request| strict_form("deepseek/m", &request.body).is_none()));
}

#[test]
fn a_schema_that_no_strict_mode_takes_is_sent_as_what_it_is_or_not_at_all() {
    let open = r#"{"type": "object", "properties": {"name": {"type": "string"}}}"#;
    for (model, strict) in
        [("openai/m", Some(Some(false))), ("openai-responses/m", Some(Some(false))), ("anthropic/m", None)]
    {
        let (done, requests) = play(model, &with_schema(open), &turns(&["{}"]), &[]);
        assert_eq!(done.exits(0).stdout, "{}\n");
        assert_eq!(strict_form(model, &requests[0].body).map(|form| form.1), strict, "{model}");
    }
    let list = r#"{"type": "array", "items": {"type": "integer"}}"#;
    let (done, requests) = play("openai/m", &with_schema(list), &turns(&["[1, 2]"]), &[]);
    assert_eq!(done.exits(0).stdout, "[1,2]\n");
    assert_eq!(strict_form("openai/m", &requests[0].body), None);
}

#[test]
fn a_server_that_refuses_the_schema_is_asked_without_it() {
    let script = json!({"turns": [
        {"error": {"status": 400, "message": "response_format is not supported"}},
        {"calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]},
        {"text": GOOD},
    ]});
    let (done, requests) = play("openai/m", &with_schema(SCHEMA), &script.to_string(), &["--json"]);
    let document = done.exits(0).json();
    assert_eq!((&document["requests"], &document["output_valid"]), (&json!(3), &json!(true)));
    let sent: Vec<_> = requests.iter().map(|request| request.body.get("response_format").is_some()).collect();
    assert_eq!(sent, [true, false, false]);
}

#[test]
fn a_repair_is_asked_for_without_the_schema_where_any_format_refuses_it() {
    let refused = json!({"error": {"status": 400, "message": "unsupported schema"}});
    let script = json!({"turns": [{"text": "no"}, refused, {"text": "no"}, {"text": GOOD}]}).to_string();
    for model in ["openai/m", "anthropic/m", "ollama/m", "gemini/m", "openai-responses/m", "vllm/m"] {
        let (done, requests) = play(model, &with_schema(SCHEMA), &script, &[]);
        assert_eq!(done.exits(0).stdout, "{\"name\":\"a\",\"count\":2}\n", "{model}");
        let sent: Vec<_> =
            requests.iter().skip(1).map(|request| strict_form(model, &request.body).is_some()).collect();
        assert_eq!(sent, [true, false, false], "{model}");
    }
}

#[test]
fn a_schema_that_a_local_server_refuses_as_its_own_error_is_left_out() {
    for (model, said) in [
        ("ollama/m", "invalid JSON schema in format"),
        ("llamacpp/m", "JSON schema conversion failed: Error resolving ref"),
        ("llamacpp/m", "failed to parse grammar"),
    ] {
        let refused = json!({"error": {"status": 500, "message": said}});
        let script = json!({"turns": [{"text": "no"}, refused, {"text": GOOD}]}).to_string();
        let (done, requests) = play(model, &with_schema(SCHEMA), &script, &[]);
        assert_eq!(done.exits(0).stdout, "{\"name\":\"a\",\"count\":2}\n", "{said}");
        let sent: Vec<_> =
            requests.iter().skip(1).map(|request| strict_form(model, &request.body).is_some()).collect();
        assert_eq!(sent, [true, false], "{said}");
    }
}

#[test]
fn a_repair_is_told_with_its_reason_at_the_usual_level() {
    for more in [[].as_slice(), &["--json"]] {
        let (done, _) = play("openai/m", &with_schema(SCHEMA), &turns(&["{\"name\": \"a\"}", GOOD]), more);
        let done = done.exits(0);
        assert!(done.stderr.contains("count") && done.stderr.contains("requested again"), "{}", done.stderr);
    }
    let (done, _) = play("openai/m", &with_schema(SCHEMA), &turns(&["no", GOOD]), &["--quiet"]);
    assert_eq!(done.exits(0).stderr, "");
}

#[test]
fn a_request_that_is_wrong_in_another_way_is_refused_once() {
    let script =
        json!({"turns": [{"error": {"status": 400, "message": "no such parameter"}}, {"text": GOOD}]});
    let (done, requests) = play("vllm/m", &with_schema(SCHEMA), &script.to_string(), &[]);
    assert!(done.exits(1).stderr.contains("no such parameter"));
    assert_eq!(requests.len(), 1, "the schema was not sent beside tools");
}

#[test]
fn a_wrong_schema_ends_with_3_before_anything_is_asked() {
    let deep = format!("{}true{}", "{\"not\":".repeat(5000), "}".repeat(5000));
    let large = format!("{{\"description\": \"{}\"}}", "x".repeat(1024 * 1024));
    for (schema, said) in [
        ("{\"type\": \"object\"", "line 1"),
        (r#"{"properties": {"a": {"type": "strng"}}}"#, "/properties/a/type"),
        (r#"{"$ref": "http://127.0.0.1:1/schema.json"}"#, "http://127.0.0.1:1/schema.json"),
        (r#"{"$ref": "file:///etc/hostname"}"#, "/etc/hostname"),
        (r#"{"$ref": "a.txt"}"#, "a.txt"),
        (r#"{"pattern": "(?=x)y"}"#, "/pattern"),
        (deep.as_str(), "recursion limit"),
        (large.as_str(), "262144 bytes"),
    ] {
        let (done, requests) = play("openai/m", &with_schema(schema), &turns(&[GOOD]), &["--json"]);
        let done = done.exits(3);
        let error = &done.json()["error"];
        assert!(error["kind"] == "config" && error["message"].as_str().unwrap().contains(said), "{error}");
        assert!(requests.is_empty() && !done.stderr.is_empty());
    }
    let server = Server::start(&turns(&[GOOD]));
    let done = with_schema(SCHEMA).run(&server, &["--output-schema", "missing.json"]).exits(3);
    assert!(done.stderr.contains("missing.json does not exist"), "{}", done.stderr);
}

#[test]
fn alternatives_that_multiply_do_not_hold_a_run() {
    let mut levels = serde_json::Map::new();
    for level in 0..40 {
        let below = json!({"$ref": format!("#/$defs/a{}", level + 1)});
        levels.insert(format!("a{level}"), json!({"anyOf": [below, below]}));
    }
    levels.insert("a40".into(), json!({"type": "integer"}));
    let branched = json!({"$defs": levels, "$ref": "#/$defs/a0"}).to_string();
    let (done, _) = play("openai/m", &with_schema(&branched), &turns(&["true", "7"]), &[]);
    assert_eq!(done.exits(0).stdout, "7\n");
}

#[test]
fn repairs_share_the_budget_of_the_run() {
    let prices = "models: {openai/m: {input: 1, output: 1, output_limit: 1000}}";
    let lab = with_schema(SCHEMA)
        .file("p.yaml", prices)
        .config("costs: {prices_file: p.yaml, max_tokens: 60000}\n");
    let wrong = json!({"text": "no", "usage": {"input": 50000, "output": 1}});
    let script = json!({"turns": [wrong, {"text": "what I did"}]}).to_string();
    let (done, _) = play("openai/m", &lab, &script, &["--json"]);
    let document = done.exits(2).json();
    assert_eq!((&document["stop_reason"], &document["limit"]), (&json!("budget_exceeded"), &json!("tokens")));
    assert_eq!(document["output_valid"], false);
}

#[test]
fn a_schema_of_an_older_draft_that_refers_to_itself_works() {
    let tree = r##"{"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"node": {"type": "object",
        "properties": {"when": {"type": "string", "format": "date"}, "below": {"type": "array", "items": {"$ref": "#/definitions/node"}}}}},
        "$ref": "#/definitions/node"}"##;
    let answers = ["{\"below\": [{\"below\": [{\"when\": 1}]}]}", "{\"below\": [{\"when\": \"tomorrow\"}]}"];
    let (done, requests) = play("openai/m", &with_schema(tree), &turns(&answers), &[]);
    assert_eq!(done.exits(0).stdout, "{\"below\":[{\"when\":\"tomorrow\"}]}\n");
    assert!(last_words(&requests[1]).contains("/below/0/below/0/when"));
}

#[test]
fn hidden_characters_of_the_value_are_escaped_and_the_data_is_the_same() {
    let lab = with_schema(r#"{"type": "string"}"#);
    let (done, _) = play("openai/m", &lab, &turns(&["\"a\\u001b[31m\\u202e\""]), &[]);
    let done = done.exits(0);
    assert_eq!(done.stdout, "\"a\\u001b[31m\\u202e\"\n");
    assert_eq!(done.json(), json!("a\u{1b}[31m\u{202e}"));
    lab.agent(&["replay"]).exits(0);
}

#[test]
fn a_value_in_the_shape_of_a_call_is_the_answer_where_it_fits() {
    let schema = r#"{"type": "object", "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
        "required": ["name", "arguments"]}"#;
    let value = r#"{"name":"list_files","arguments":{}}"#;
    for model in ["openai/m", "ollama/m", "anthropic/m"] {
        let (done, requests) = play(model, &with_schema(schema), &turns(&[value]), &[]);
        assert_eq!(done.exits(0).stdout, format!("{value}\n"), "{model}");
        assert_eq!(requests.len(), 1, "{model}");
        let (begin, end) = value.split_at(15);
        let cut = json!({"turns": [{"text": begin, "finish": "length"}, {"text": end}]}).to_string();
        let (done, requests) = play(model, &with_schema(schema), &cut, &[]);
        assert_eq!((done.exits(0).stdout, requests.len()), (format!("{value}\n"), 2), "{model}");
        let (done, requests) = play(model, &with_schema(SCHEMA), &turns(&[value, GOOD]), &[]);
        assert_eq!((done.exits(0).code, requests.len()), (Some(0), 2), "{model}");
        assert!(last_words(&requests[1]).contains("a.txt"), "a call where it does not fit: {model}");
    }
}

#[test]
fn resume_takes_a_schema_and_tells_it_once() {
    let lab = with_schema(SCHEMA).file("list.json", r#"{"type": "array"}"#);
    let server = Server::start(&turns(&["Done.", GOOD, GOOD, "[]"]));
    lab.run(&server, &[]).exits(0);
    let with = |schema| lab.resume(&server, &["again", "--output-schema", schema]).exits(0).stdout;
    assert_eq!(with("schema.json"), "{\"name\":\"a\",\"count\":2}\n");
    assert_eq!(with("schema.json"), "{\"name\":\"a\",\"count\":2}\n");
    assert_eq!(with("list.json"), "[]\n");
    let told = |request: &Recorded| String::from_utf8_lossy(&request.bytes).matches("JSON Schema").count();
    let requests = server.requests();
    assert_eq!(requests.iter().map(told).collect::<Vec<_>>(), [0, 1, 1, 2]);
    for pair in requests.windows(2) {
        let [before, after] = [&pair[0], &pair[1]].map(Recorded::messages);
        assert_eq!(after[..before.len()], before[..], "what was sent before stays as it is");
    }
}

#[test]
fn a_scripted_model_gives_structured_answers_too() {
    let lab = with_schema(SCHEMA).file("script.yaml", turns(&["no", GOOD]));
    let done =
        lab.agent(&["run", "task", "--model", "scripted:script.yaml", "--output-schema", "schema.json"]);
    assert_eq!(done.exits(0).stdout, "{\"name\":\"a\",\"count\":2}\n");
}
