use super::*;
use proptest::prelude::*;
use serde_json::json;

fn schema(schema: &Value) -> OutputSchema {
    OutputSchema::parse(&schema.to_string()).unwrap()
}

fn refused(text: &str) -> String {
    OutputSchema::parse(text).unwrap_err().to_string()
}

fn person() -> OutputSchema {
    schema(&json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
        "required": ["name"],
        "additionalProperties": false,
    }))
}

#[test]
fn an_answer_is_bare_json_or_one_fenced_block() {
    let person = person();
    for answer in [
        r#"{"name":"a"}"#,
        " \n{\"name\": \"a\"}\n\n",
        "```json\n{\"name\": \"a\"}\n```",
        "```\n{\"name\": \"a\"}\n```\n",
        "``` JSON\r\n{\"name\": \"a\"}\r\n```",
    ] {
        assert_eq!(person.parse_answer(answer), Ok(json!({"name": "a"})), "{answer}");
    }
    for answer in [
        "",
        "Here it is: {\"name\":\"a\"}",
        "{\"name\":\"a\"} {\"name\":\"b\"}",
        "Sure!\n```json\n{\"name\":\"a\"}\n```",
        "```json\n{\"name\":\"a\"}\n```\nThat was it.",
        "```json\n{\"name\":\"a\"}\n```\n```json\n{\"name\":\"b\"}\n```",
        "```python\n{\"name\":\"a\"}\n```",
        "{\"name\":",
    ] {
        let problems = person.parse_answer(answer).unwrap_err();
        assert!(problems.lines[0].contains("not one JSON value"), "{answer}: {problems:?}");
    }
}

#[test]
fn an_integer_that_would_lose_digits_is_a_violation() {
    let any = schema(&json!({}));
    let most = r#"[18446744073709551615, -9223372036854775808, 1e300, 0.1, "99999999999999999999"]"#;
    assert!(any.parse_answer(most).is_ok());
    for digits in ["18446744073709551616", "-9223372036854775809", "123456789012345678901234567890"] {
        let problems = any.parse_answer(&format!(r#"{{"a\"9": [1, {digits}]}}"#)).unwrap_err();
        let line = &problems.lines[0];
        assert!(line.contains(digits) && line.contains("as a string"), "{problems:?}");
    }
    let problems = any.parse_answer(&"9".repeat(200)).unwrap_err();
    assert!(problems.lines[0].chars().count() <= MAX_PROBLEM_CHARS + 100, "{problems:?}");
}

#[test]
fn a_violation_contains_location_and_keyword_but_not_the_value() {
    let problems = person().parse_answer(r#"{"name": "secret value", "age": -1, "x": 1}"#).unwrap_err();
    let all = problems.lines.join("\n");
    assert!(all.contains("`/age`") && all.contains("`minimum`"), "{all}");
    assert!(all.contains("`/`") && all.contains("additionalProperties") && all.contains('x'), "{all}");
    let problems = person().parse_answer(r#"{"name": {"secret": "value"}}"#).unwrap_err();
    assert!(!problems.lines[0].contains("secret") && problems.lines[0].contains("`/name`"), "{problems:?}");
}

#[test]
fn violations_are_few_and_short() {
    let many = schema(&json!({"type": "array", "items": {"type": "string"}}));
    let problems = many.parse_answer(&json!(vec![1; 10_000]).to_string()).unwrap_err();
    assert!(problems.lines.len() == MAX_PROBLEMS && problems.more);
    let long = "x".repeat(100_000);
    let problems = person().parse_answer(&json!({"name": "a", long: 1}).to_string()).unwrap_err();
    assert!(problems.lines[0].chars().count() < 600, "{problems:?}");
}

#[test]
fn schema_errors_contain_their_location() {
    assert!(refused("{\"type\": ").contains("line 1"));
    let wrong = refused(r#"{"type": "object", "properties": {"a": {"type": "strng"}}}"#);
    assert!(wrong.contains("/properties/a/type"), "{wrong}");
    assert!(refused("[]").contains("not a usable JSON Schema"));
}

#[test]
fn a_reference_never_leaves_the_document() {
    for reference in [
        "https://example.com/s.json",
        "http://127.0.0.1:1/x",
        "file:///etc/passwd",
        "other.json",
        "#/$defs/missing",
    ] {
        let wrong = refused(&json!({"properties": {"a": {"$ref": reference}}}).to_string());
        assert!(wrong.contains(reference.trim_start_matches('#')), "{wrong}");
    }
    refused(r#"{"$schema": "https://example.com/meta"}"#);
    refused(r#"{"$id": "https://example.com/s", "$ref": "sibling"}"#);
    let inside = json!({"$defs": {"n": {"type": "integer"}}, "items": {"$ref": "#/$defs/n"}});
    assert!(schema(&inside).parse_answer("[1]").is_ok() && schema(&inside).parse_answer("[\"1\"]").is_err());
}

#[test]
fn a_schema_may_refer_to_itself() {
    let tree = schema(
        &json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": false}),
    );
    assert!(tree.parse_answer(r#"{"next": {"next": {}}}"#).is_ok());
    assert!(tree.parse_answer(r#"{"next": {"nxt": {}}}"#).is_err());
    // A reference to itself accepts any value, and its check ends.
    if let Ok(endless) = OutputSchema::parse(r##"{"$ref": "#"}"##) {
        let _ = endless.parse_answer("1");
    }
    if let Ok(endless) = OutputSchema::parse(
        r##"{"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"}"##,
    ) {
        let _ = endless.parse_answer("1");
    }
}

#[test]
fn depth_is_refused_not_overflowed() {
    let deep = |open: &str, close: &str| format!("{}true{}", open.repeat(100_000), close.repeat(100_000));
    assert!(refused(&deep("{\"not\":", "}")).contains("recursion"));
    let any = schema(&json!(true));
    assert!(any.parse_answer(&deep("[", "]")).unwrap_err().lines[0].contains("recursion"));
    let most = format!("{}1{}", "[".repeat(120), "]".repeat(120));
    let nested = schema(&json!({"items": {"$ref": "#"}}));
    assert!(nested.parse_answer(&most).is_ok());
}

#[test]
fn references_take_no_more_stack_than_there_is() {
    let chain = |length: usize| {
        let mut definitions = serde_json::Map::new();
        for at in 1..length - 1 {
            definitions.insert(format!("a{at}"), json!({"$ref": format!("#/$defs/a{}", at + 1)}));
        }
        let end = json!({"type": "array", "items": {"$ref": "#"}});
        definitions.insert(format!("a{}", length - 1), end);
        json!({"$defs": definitions, "$ref": "#/$defs/a1"})
    };
    let deep = format!("{}1{}", "[".repeat(120), "]".repeat(120));
    assert!(schema(&chain(500)).parse_answer(&deep).unwrap_err().lines[0].contains("array"));
    assert!(refused(&chain(501).to_string()).contains("501 references"));
}

#[test]
fn patterns_take_no_more_time_than_there_is() {
    let pattern = |digits: usize| json!({"pattern": "\\d".repeat(digits)});
    schema(&json!({"anyOf": vec![pattern(500); 16]}));
    assert!(refused(&pattern(501).to_string()).contains("a pattern has 1002 bytes"));
    assert!(refused(&json!({"anyOf": vec![pattern(500); 17]}).to_string()).contains("17000 bytes together"));
    let keys = json!({"patternProperties": {"x".repeat(1_001): true}});
    assert!(refused(&keys.to_string()).contains("a pattern has 1001 bytes"));
}

#[test]
fn alternatives_that_multiply_end_in_time() {
    let name = |level: usize| format!("#/$defs/a{level}");
    let mut levels = serde_json::Map::new();
    for level in 0..40 {
        let twice = [json!({"$ref": name(level + 1)}), json!({"$ref": name(level + 1)})];
        levels.insert(format!("a{level}"), json!({"anyOf": twice}));
    }
    levels.insert("a40".into(), json!({"type": "integer"}));
    let branched = schema(&json!({"$defs": levels, "$ref": name(0)}));
    assert_eq!(branched.parse_answer("1"), Ok(json!(1)));
    let problems = branched.parse_answer("true").unwrap_err();
    assert!(problems.lines[0].contains("too many alternatives"), "{problems:?}");
}

#[test]
fn patterns_run_in_linear_time_or_are_refused() {
    let evil = schema(&json!({"type": "string", "pattern": "^(a+)+$"}));
    assert!(evil.parse_answer(&json!(format!("{}!", "a".repeat(100_000))).to_string()).is_err());
    for pattern in ["(?=a)b", "(a)\\1", "(", "(((x{1000}){1000}){1000})"] {
        let wrong = refused(&json!({"properties": {"p": {"pattern": pattern}}}).to_string());
        assert!(wrong.contains("pattern"), "{wrong}");
    }
}

#[test]
fn a_format_is_an_annotation() {
    for draft in ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"] {
        let date = schema(&json!({"$schema": draft, "type": "string", "format": "date"}));
        assert!(date.parse_answer("\"tomorrow\"").is_ok() && date.parse_answer("1").is_err());
    }
}

#[test]
fn the_schema_selects_the_draft() {
    let tuple = json!({"items": [{"type": "integer"}], "additionalItems": false});
    assert!(OutputSchema::parse(&tuple.to_string()).is_err(), "in 2020-12 `items` is one schema");
    let mut old = tuple;
    old["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    assert!(schema(&old).parse_answer("[1]").is_ok() && schema(&old).parse_answer("[1,2]").is_err());
}

#[test]
fn numbers_keep_their_digits() {
    let any = schema(&json!(true));
    for number in
        ["0.1", "5e-324", "18446744073709551615", "9007199254740993", "2.2250738585072014e-308", "64.56"]
    {
        assert_eq!(any.parse_answer(number).unwrap().to_string(), number);
    }
}

proptest! {
    #[test]
    fn any_value_is_parsed_bare_and_fenced(text in any::<String>(), number in any::<f64>()) {
        let any = schema(&json!(true));
        let value = json!({"t": text, "n": number, "l": [text, null]});
        prop_assert_eq!(any.parse_answer(&value.to_string()).unwrap(), value.clone());
        prop_assert_eq!(any.parse_answer(&format!("```json\n{value:#}\n```")).unwrap(), value);
    }

    #[test]
    fn no_text_is_a_panic(answer in any::<String>()) {
        let _ = person().parse_answer(&answer);
        let _ = OutputSchema::parse(&answer);
    }
}
