//! Small inputs that ask for much: patterns, documents and numbers made to cost time, memory or a wrong sum (class 63).

use crate::support::calls::{call, results, script, told};
use crate::support::run::{Lab, NO_BREAKERS};
use crate::support::server::Server;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// How long one answer may take, however it was asked for: several times what the slowest takes on a busy machine.
const SOON: Duration = Duration::from_secs(20);

/// What the model is told about each of `calls`, one to an answer; none takes long.
#[track_caller]
fn told_soon(lab: &Lab, calls: &[Value]) -> Vec<String> {
    let turns: Vec<Vec<Value>> = calls.iter().map(|call| vec![call.clone()]).collect();
    let server = Server::start(&script(&turns));
    lab.run_yolo(&server, &["--max-steps", "1000"]).exits(0);
    for (pair, call) in server.requests().windows(2).zip(calls) {
        let took = pair[1].arrived - pair[0].arrived;
        let shown: String = call.to_string().chars().take(200).collect();
        assert!(took < SOON, "{took:?}: {shown}");
    }
    results(&server)
}

#[test]
fn class_63_no_pattern_costs_more_than_its_text_is_long() {
    let lab = Lab::new().started().file("a.txt", format!("{}!\n", "a".repeat(200_000)));
    let patterns = [
        "(a+)+$".to_owned(),
        "(a|a)*b".to_owned(),
        "(a|aa)+$".to_owned(),
        "(.*)*x".to_owned(),
        "^(([a-z])+.)+[A-Z]([a-z])+$".to_owned(),
        format!("{}{}b", "a?".repeat(200), "a".repeat(200)),
        "(?i)(ſ|k|K)*$".to_owned(),
    ];
    let too_large = [
        "a{1000}{1000}{1000}".to_owned(),
        r"\w{1000}{1000}".to_owned(),
        "(".repeat(10_000) + &")".repeat(10_000),
        "x|".repeat(40_000) + "(",
    ];
    let search = |pattern: &String| call("search_code", &json!({"pattern": pattern}));
    let calls: Vec<Value> = patterns.iter().chain(&too_large).map(search).collect();
    let said = told_soon(&lab, &calls);
    let (found, refused) = said.split_at(patterns.len());
    for (pattern, said) in patterns.iter().zip(found) {
        assert!(!said.starts_with("Error"), "{pattern}: {said}");
    }
    for said in refused {
        assert!(said.starts_with("Error: Invalid regex pattern: "), "{said}");
        assert!(said.contains("To search for plain text use grep") && said.len() < 2000, "{said}");
    }
    let text = call("grep", &json!({"text": "(a+)+$".repeat(10_000)}));
    assert!(told_soon(&lab, &[text])[0].starts_with("No results"));
}

#[test]
fn class_63_no_glob_costs_more_than_the_names_are_long() {
    let lab = Lab::new().started().file(&format!("{}!", "a".repeat(250)), "x\n").file("d/e/f/g/a.txt", "x\n");
    let lab = lab.config(NO_BREAKERS);
    let globs = [
        format!("{}b", "*a".repeat(60)),
        format!("{}b", "**/".repeat(200)),
        "{a,b}".repeat(40),
        format!("{}a{}", "{".repeat(50), "}".repeat(50)),
        "[a-z]*".repeat(200),
        "?".repeat(20_000),
        format!("{{{}}}", "a,".repeat(20_000)),
        "{".repeat(20_000),
        "[".repeat(20_000),
    ];
    let calls: Vec<Value> = globs
        .iter()
        .flat_map(|glob| {
            [
                call("find_files", &json!({"pattern": glob})),
                call("list_files", &json!({"pattern": glob, "recursive": true})),
                call("grep", &json!({"text": "x", "file_pattern": glob})),
            ]
        })
        .collect();
    for (call, said) in calls.iter().zip(told_soon(&lab, &calls)) {
        let shown: String = call.to_string().chars().take(100).collect();
        assert!(said.len() < 2000, "{shown}: {said}");
    }
}

/// Small YAML documents that are large once they are read, each with a word of what is wrong with it.
fn yaml_bombs() -> Vec<(String, &'static str)> {
    let mut doubling = String::from("a0: &a0 [x, x]\n");
    for level in 1..60 {
        let _infallible = writeln!(doubling, "a{level}: &a{level} [*a{0}, *a{0}]", level - 1);
    }
    vec![
        (doubling, "aliases (`*name`) are not followed"),
        ("a: &a [*a]\n".to_owned(), "aliases (`*name`) are not followed"),
        ("base: &b {mode: yolo}\n<<: *b\n".to_owned(), "merge keys"),
        (format!("a: {}{}\n", "[".repeat(50), "]".repeat(50)), "nested deeper than 16 levels"),
        (format!("a: {}{}\n", "[".repeat(5000), "]".repeat(5000)), "recursion limit exceeded"),
        (format!("a: {}1{}\n", "{a: ".repeat(500), "}".repeat(500)), "nested deeper than 16 levels"),
    ]
}

#[test]
fn class_63_a_small_document_that_grows_when_it_is_read_is_no_configuration() {
    for (bomb, word) in yaml_bombs() {
        let began = Instant::now();
        let lab = Lab::new().started().config(&bomb);
        let of_a_user = lab.agent(&["config", "validate"]).exits(3).stderr;
        let lab = Lab::new().started().file(".agent/config.yaml", &bomb);
        let of_a_project = lab.agent(&["config", "validate"]).exits(3).stderr;
        let lab =
            Lab::new().started().file(".agent/agents/odd.md", format!("---\n{bomb}---\nYou are odd.\n"));
        let of_an_agent = lab.agent(&["agents"]).exits(3).stderr;
        for (said, file) in
            [(of_a_user, "config.yaml:"), (of_a_project, ".agent/config.yaml:"), (of_an_agent, "odd.md:")]
        {
            assert!(said.contains(file) && said.contains("not valid YAML: "), "{said}");
            assert!(said.contains(word) && said.len() < 1000, "{word}: {said}");
        }
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    }
}

#[test]
fn class_63_a_configuration_that_is_only_large_is_refused_before_it_costs_much() {
    for (text, word) in [
        (format!("a: [{}]\n", "1,".repeat(200_000)), "more than 20000 values"),
        ("a: 1\n---\n".repeat(5000), "more than one document"),
        (format!("a: '{}'\n", "x".repeat(2_000_000)), "is larger than"),
        (format!("a:\n{}", "b: 1\n".repeat(300_000)), "is larger than"),
    ] {
        let began = Instant::now();
        let said = Lab::new().started().config(&text).agent(&["config", "validate"]).exits(3).stderr;
        assert!(said.contains(word) && said.len() < 1000, "{word}: {said}");
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    }
}

#[test]
fn class_63_arguments_are_neither_too_deep_nor_too_many_nor_too_large() {
    let raw = |name: &str, text: String| json!({"name": name, "arguments": text});
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(20_000), close.repeat(20_000));
    let calls = [
        raw("read_file", deep("[", "]")),
        raw("read_file", deep("{\"path\":", "}")),
        raw("read_file", format!("{{\"path\": {}}}", deep("[", "]"))),
        raw("read_file", format!("{{\"path\": [{}1]}}", "1,".repeat(200_000))),
        raw("read_file", format!("{{\"path\": \"a\", \"limit\": 1{}}}", "0".repeat(5000))),
        raw("read_file", "{\"path\": \"a\", \"limit\": 1e999}".to_owned()),
        raw("run_command", format!("{{\"command\": \"true\", \"env\": {}}}", deep("{\"A\":", "}"))),
    ];
    let words = ["deeper", "deeper", "deeper", "more than", "number", "number", "deeper"];
    for (call, word) in calls.into_iter().zip(words) {
        // A run of their own each, because a model that goes on like this is ended.
        let said = told_soon(&Lab::new().started().file("a", "x\n"), &[call]).remove(0);
        assert!(said.starts_with("Error: Invalid arguments: ") && said.contains(word), "{word}: {said}");
        assert!(said.len() < 1000, "{} characters", said.len());
    }
}

#[test]
fn class_63_no_number_overflows_a_sum() {
    const MOST: u64 = u64::MAX;
    let lab = Lab::new().started().file("a.txt", "one\ntwo\nthree\n");
    let read = |arguments: Value| call("read_file", &arguments);
    let calls = [
        read(json!({"path": "a.txt", "start_line": MOST})),
        read(json!({"path": "a.txt", "start_line": MOST, "limit": MOST})),
        read(json!({"path": "a.txt", "start_line": 2, "limit": MOST})),
        read(json!({"path": "a.txt", "start_line": -1})),
        read(json!({"path": "a.txt", "limit": i64::MIN})),
        read(json!({"path": "a.txt", "limit": 1.5})),
        read(json!({"path": "a.txt", "limit": 0})),
        call("grep", &json!({"text": "two", "max_results": MOST})),
        call("grep", &json!({"text": "two", "max_results": 0})),
        call("search_code", &json!({"pattern": "two", "max_results": MOST, "context_lines": MOST})),
        call("search_code", &json!({"pattern": "two", "context_lines": -1})),
        call("run_command", &json!({"command": "echo ran", "timeout": MOST})),
        call("run_command", &json!({"command": "echo ran", "timeout": i64::MAX})),
        call("run_command", &json!({"command": "echo ran", "timeout": -1})),
    ];
    let said = told(&lab, calls.to_vec());
    let begins = [
        "Error: start_line 18446744073709551615 is past the end: a.txt has 3 lines.",
        "Error: start_line 18446744073709551615 is past the end: a.txt has 3 lines.",
        "Contents of a.txt (lines 2-3 of 3):\ntwo\nthree\n",
        "Error: Invalid arguments: argument 'start_line' must be at least 0",
        "Error: Invalid arguments: argument 'limit' must be at least 0",
        "Error: Invalid arguments: argument 'limit' must be of type integer, not number",
        "Error: Invalid arguments: start_line and limit count from 1.",
        "a.txt:2: two",
        "a.txt:2: two",
        "📄 a.txt:2\n  1 | one\n> 2 | two\n  3 | three",
        "Error: Invalid arguments: argument 'context_lines' must be at least 0",
        "stdout:\nran\n",
        "stdout:\nran\n",
        "Error: Invalid arguments: argument 'timeout' must be at least 0",
    ];
    for ((said, begin), call) in said.iter().zip(begins).zip(&calls) {
        assert!(said.starts_with(begin), "{call}: {said}");
    }
}

#[test]
fn class_63_no_number_in_a_patch_leads_beyond_the_file() {
    const MOST: u64 = u64::MAX;
    let lab = Lab::new().started().file("a.txt", "one\ntwo\n");
    let heads = [
        format!("@@ -{MOST},{MOST} +{MOST},{MOST} @@\n-one\n+1\n"),
        format!("@@ -{MOST} +1 @@\n-zero\n+1\n"),
        format!("@@ -1,{MOST} +1,{MOST} @@\n-one\n+1\n"),
        format!("@@ -{MOST}{MOST} +1 @@\n-one\n+1\n"),
        format!("@@ -{MOST},0 +{MOST} @@\n+last\n"),
        "@@ -0,5 +0,5 @@\n-one\n+1\n".to_owned(),
        "@@ --1 +1 @@\n-one\n+1\n".to_owned(),
    ];
    let calls = heads.map(|patch| call("apply_patch", &json!({"path": "a.txt", "patch": patch})));
    for (call, said) in calls.iter().zip(told(&lab, calls.to_vec())) {
        assert!(
            said.starts_with("Error: Patch not applied") || said.starts_with("Patch applied"),
            "{call}: {said}"
        );
    }
    let left = lab.read("a.txt");
    assert!(left.lines().count() <= 3 && left.contains("two"), "{left}");
}

#[test]
fn class_63_no_number_of_a_person_overflows_either() {
    for (flag, value) in [
        ("--max-steps", "18446744073709551616"),
        ("--max-steps", "-1"),
        ("--timeout", "99999999999999999999s"),
        ("--max-budget-usd", "1e400"),
    ] {
        let said = Lab::new().started().agent(&["run", "task", "--model", "scripted:none", flag, value]);
        assert!(matches!(said.code, Some(2 | 3)), "{flag} {value}: {said:?}");
        assert!(said.stderr.contains(value) || said.stderr.contains(flag), "{flag} {value}: {said:?}");
    }
    for line in ["max_steps: 18446744073709551616", "max_steps: -1", "commands: {timeout: 1e400}"] {
        let said =
            Lab::new().started().config(&format!("{line}\n")).agent(&["config", "validate"]).exits(3).stderr;
        assert!(said.contains("config.yaml:1"), "{line}: {said}");
    }
}
