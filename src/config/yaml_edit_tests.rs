//! Tests of changes to the text of a YAML file.

use super::*;
use proptest::prelude::*;
use serde_json::json;

fn set_to(text: &str, key: &str, value: &Value) -> String {
    set(text, key, value).unwrap_or_else(|error| panic!("{text}: {error}")).text
}

const FILE: &str = "# mine\nllm:   # the model\n  model: 'openai/a'   # good\n\n  retries: 3\n# the end of llm\nmode: confirm-all\n";

#[test]
fn u18_a_value_is_replaced_and_comments_order_and_quotes_stay() {
    let edit = set(FILE, "llm.model", &json!("it's")).unwrap();
    assert_eq!(edit.text, FILE.replace("'openai/a'", "'it''s'"));
    assert_eq!((edit.line, edit.old), (3, Some(json!("openai/a"))));
    assert_eq!(set_to(FILE, "llm.retries", &json!(5)), FILE.replace('3', "5"));
    for (old, value, new) in [
        ("a: \"x\" # c\n", json!("y z"), "a: \"y z\" # c\n"),
        ("a: x # c\n", json!("y: z"), "a: \"y: z\" # c\n"),
        ("a: x", json!("true"), "a: \"true\""),
        ("a: x\r\nb: 1\r\n", json!("y"), "a: y\r\nb: 1\r\n"),
        ("a:\n", json!("y"), "a: y\n"),
        ("a: # c\n", json!("y"), "a: y # c\n"),
        ("a: [x, 'b]', c]  # c\n", json!(["y", "z w"]), "a: [y, \"z w\"]  # c\n"),
        ("{a: x, b: 1}\n", json!("y"), "{a: y, b: 1}\n"),
        ("\"a\" : don't # c\n", json!(1), "\"a\" : 1 # c\n"),
        ("é: ü\na: 'ö' # ä\n", json!("ß"), "é: ü\na: 'ß' # ä\n"),
        ("a: null\n", json!(2), "a: 2\n"),
        ("a: http://x/y#z\n", json!("http://[::1]:80/"), "a: \"http://[::1]:80/\"\n"),
    ] {
        assert_eq!(set_to(old, "a", &value), new);
    }
}

#[test]
fn u18_a_new_key_is_added_at_the_end_of_its_group() {
    for (old, key, new) in [
        ("", "a.b", "a:\n  b: 1\n"),
        ("# only a comment", "a", "# only a comment\na: 1\n"),
        ("x: 1", "a", "x: 1\na: 1\n"),
        ("x: 1\r\n", "a.b", "x: 1\r\na:\r\n  b: 1\r\n"),
        ("a:\n    x: 1\n    # c\n\nz: 2\n", "a.b", "a:\n    x: 1\n    b: 1\n    # c\n\nz: 2\n"),
        (
            "a:\n  x: |\n    text\n\n    more\nz: 2\n",
            "a.b",
            "a:\n  x: |\n    text\n\n    more\n  b: 1\nz: 2\n",
        ),
        ("a:\n  x:\n  - 1\n  - 2\nz: 2\n", "a.b", "a:\n  x:\n  - 1\n  - 2\n  b: 1\nz: 2\n"),
        ("a: # c\nz: 2\n", "a.b.c", "a: # c\n  b:\n    c: 1\nz: 2\n"),
        ("a:\n  # b: 2\nz: 2\n", "a.b", "a:\n  b: 1\n  # b: 2\nz: 2\n"),
        ("a: {x: 1}\n", "a.b", "a: {x: 1, b: 1}\n"),
        ("a: { x: 'q}' } # c\n", "a.b.c", "a: { x: 'q}', b: {c: 1} } # c\n"),
        ("a: {}\n", "a.b", "a: {b: 1}\n"),
        ("a: [\n  1,\n]\n", "b", "a: [\n  1,\n]\nb: 1\n"),
    ] {
        assert_eq!(set_to(old, key, &json!(1)), new, "{old}");
    }
}

#[test]
fn u09_an_item_is_added_at_the_end_of_its_list_and_comments_and_order_stay() {
    let item = json!({"action": "allow", "command": "npm test"});
    let new = "{action: allow, command: \"npm test\"}";
    for (old, expected, line) in [
        ("", "a:\n  b:\n    - NEW\n", 3),
        ("# mine\nz: 1", "# mine\nz: 1\na:\n  b:\n    - NEW\n", 5),
        ("a: # c\nz: 2\n", "a: # c\n  b:\n    - NEW\nz: 2\n", 3),
        ("a:\n  x: 1\nz: 2\n", "a:\n  x: 1\n  b:\n    - NEW\nz: 2\n", 4),
        ("a:\n  b:\n", "a:\n  b: [NEW]\n", 2),
        ("a: {x: 1}\n", "a: {x: 1, b: [NEW]}\n", 1),
        ("a:\n  b: []  # c\n", "a:\n  b: [NEW]  # c\n", 2),
        ("a: {b: [{c: d, }, ]}\n", "a: {b: [{c: d, }, NEW ]}\n", 1),
        ("a:\n  b: [\n    {c: d},\n  ]\n", "a:\n  b: [\n    {c: d}, NEW\n  ]\n", 3),
        (
            "a:\n  b:  # rules\n    - {c: d}  # one\n    - c: e\n      f: g\n    # end\n\n  x: 1\n",
            "a:\n  b:  # rules\n    - {c: d}  # one\n    - c: e\n      f: g\n    - NEW\n    # end\n\n  x: 1\n",
            6,
        ),
        ("a:\n  b:\n  - c: d\n  x: 1\n", "a:\n  b:\n  - c: d\n  - NEW\n  x: 1\n", 4),
        ("a:\r\n  b:\r\n    - c: d", "a:\r\n  b:\r\n    - c: d\r\n    - NEW\r\n", 4),
    ] {
        let edit = append(old, "a.b", &item).unwrap_or_else(|error| panic!("{old}: {error}"));
        assert_eq!((edit.text, edit.line), (expected.replace("NEW", new), line), "{old}");
    }
    for text in ["a:\n  b: 1\n  c: [\n", "a:\n  b: [x, # ]\n  y]\n", "a: 1\n"] {
        assert!(append(text, "a.b", &item).is_err(), "{text}");
    }
}

#[test]
fn u18_a_key_that_cannot_be_placed_safely_is_refused_with_its_line() {
    for (text, key, line) in [
        ("x: 1\na: |\n  text\n", "a", 2),
        ("x: 1\na:\n  - 1\n", "a", 2),
        ("a:\n  b: 1\n", "a", 1),
        ("a: plain\n  text\n", "a", 1),
        ("a: \"x\n  y\"\n", "a", 1),
        ("x: 1\na: 5\n", "a.b", 2),
        ("a: [1]\n", "a.b", 1),
        ("a: ~\n", "a.b", 1),
        ("a: {x: 1,\n  y: 2}\n", "a.b", 1),
        ("- 1\n", "a", 1),
    ] {
        let error = set(text, key, &json!(1)).unwrap_err();
        assert_eq!((error.line, error.key.as_deref()), (Some(line), Some(key)), "{text}");
    }
    assert!(set("a: [", "b", &json!(1)).is_err());
}

#[test]
fn u18_a_removed_key_takes_only_its_own_lines() {
    for (old, key, new) in [
        (
            FILE,
            "llm.retries",
            "# mine\nllm:   # the model\n  model: 'openai/a'   # good\n\n# the end of llm\nmode: confirm-all\n",
        ),
        ("x: 1\na:\n  b:\n    c: 1\nz: 2\n", "a.b.c", "x: 1\nz: 2\n"),
        ("a:\n  # about b\n  b: 1\n", "a.b", "a:\n  # about b\n"),
        ("a:\n  b: |\n    text\n\n    more\n  c: 1\n", "a.b", "a:\n  c: 1\n"),
        ("a:\n  b:\n  - 1\n  - 2\n  c: 1\n", "a.b", "a:\n  c: 1\n"),
        ("a:\n- 1\nc: 1\n", "a", "c: 1\n"),
        ("a: {b: 1, c: 2}\n", "a.b", "a: {c: 2}\n"),
        ("a: {b: 1, c: [2, 3]}\n", "a.c", "a: {b: 1}\n"),
        ("x: 1\na: {c: 2}\n", "a.c", "x: 1\n"),
        ("{a: 1}\n", "a", "{}\n"),
        ("a: 1", "a", ""),
    ] {
        let edit = unset(old, key).unwrap().unwrap();
        assert_eq!(edit.text, new, "{old}");
    }
    let edit = unset(FILE, "llm.model").unwrap().unwrap();
    assert_eq!((edit.line, edit.old), (3, Some(json!("openai/a"))));
    assert_eq!(unset(FILE, "llm.temperature").unwrap(), None);
    assert_eq!(unset("a: 1\n", "a.b").unwrap(), None);
}

/// Generates text that resembles a configuration more often than random text does.
fn almost_yaml() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "a", "b", "c", ": ", ":", "\n", "\n  ", "\n    ", "- ", "[", "]", "{", "}", ", ", "'", "\"", "\\",
        "1", "~", "|", ">-", "# x", " #", "&a ", "!t ", "? ", "---\n", "é", "\t", "\r\n",
    ]);
    prop::collection::vec(token, 0..24).prop_map(|tokens| tokens.concat())
}

proptest! {
    #[test]
    fn a_change_of_any_text_changes_this_key_alone_or_is_refused(text in almost_yaml(), is_deep in any::<bool>(), new in ".{0,6}") {
        let key = if is_deep { "a.b" } else { "a" };
        let comments = |text: &str| text.lines().filter(|line| line.trim_start().starts_with('#')).count();
        if let Ok(edit) = set(&text, key, &new.clone().into()) {
            let names: Vec<&str> = key.split('.').collect();
            let root = yaml::parse(&edit.text).unwrap();
            let entries = entries_of(&root, &names);
            prop_assert_eq!(entries.last().unwrap().node.to_json(), Value::from(new.clone()));
            prop_assert!(comments(&edit.text) >= comments(&text), "{}", edit.text);
        }
        if let Ok(edit) = append(&text, key, &new.clone().into()) {
            prop_assert!(comments(&edit.text) >= comments(&text), "{}", edit.text);
        }
        drop(unset(&text, key));
    }
}
