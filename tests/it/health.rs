//! `agent health` and `agent run --health`: the figures, the comparison, and what is left out.

use crate::support::run::{Finished, Lab};
use crate::support::schema;
use crate::support::server::Server;
use serde_json::{Value, json};
use std::fs;

/// A function in one line, and one with 60 lines, in each language.
const FILES: [(&str, &str, &str, &str); 7] = [
    ("a.py", "def long(x):\n", "    y = 1 if x else 2\n", "\n"),
    ("a.js", "function long(x) {\n", "  y = x ? 1 : 2;\n", "}\n"),
    ("a.ts", "function long(x: number) {\n", "  y = x ? 1 : 2;\n", "}\n"),
    ("a.go", "package a\nfunc long(x bool) {\n", "\tif x { }\n", "}\n"),
    ("a.rs", "fn long(x: bool) {\n", "    if x {}\n", "}\n"),
    ("A.java", "class A { void long_(boolean x) {\n", "    if (x) {}\n", "} }\n"),
    ("a.c", "void long_(int x) {\n", "    if (x) {}\n", "}\n"),
];

fn measure(lab: &Lab, more: &[&str]) -> Finished {
    lab.agent(&[&["health"], more].concat())
}

fn document(lab: &Lab, more: &[&str], code: i32) -> Value {
    let document = measure(lab, &[&["--json"], more].concat()).exits(code).json();
    schema::valid(&schema::of("health"), &document);
    document
}

/// A function of Go with this complexity, in as many lines and one more.
fn go_function(name: &str, complexity: usize) -> String {
    let conditions = (1..complexity).map(|at| format!("\tif x > {at} {{ }}\n")).collect::<Vec<_>>().concat();
    format!("func {name}(x int) {{\n{conditions}}}\n")
}

#[test]
fn o29_functions_of_seven_languages_are_measured_and_other_files_counted() {
    let lab = FILES.iter().fold(Lab::new().file("README.md", "# R\n"), |lab, (path, head, line, end)| {
        lab.file(path, format!("{head}{}{end}", line.repeat(55)))
    });
    let document = document(&lab, &[], 0);
    let figures = &document["after"];
    assert_eq!(figures["files"], 7, "{document}");
    assert_eq!((&figures["other_files"], &figures["files_with_errors"]), (&json!(1), &json!(0)));
    assert_eq!((&figures["long_functions"], &figures["complex_functions"]), (&json!(7), &json!(7)));
    assert_eq!((&figures["max_complexity"], &figures["average_complexity"]), (&json!(56), &json!(56.0)));
    assert_eq!((&document["before"], &document["new_functions"]), (&Value::Null, &Value::Null));
    let text = measure(&lab, &[]).exits(0).stdout;
    assert!(text.starts_with("Code health (files measured: 7, other files: 1)\nFunctions"), "{text}");
    assert!(text.contains("a.py:1: long: complexity 56, 56 lines\n"), "{text}");
    let one = self::document(&lab, &["a.c"], 0);
    assert_eq!((&one["after"]["files"], &one["after"]["other_files"]), (&json!(1), &json!(0)));
}

#[test]
fn o29_the_comparison_with_a_commit_is_the_one_of_the_manual() {
    let body = (1..8).map(|at| format!("    x{at} = {at}\n")).collect::<Vec<_>>().concat();
    let lab = Lab::new().file("base.py", format!("def f():\n{body}")).file("notes.txt", "");
    lab.commit_all();
    let repeated = body.replace("    ", "\t");
    let lab = lab.file("new.go", format!("package p\n\n{}\nvar (\n{repeated})\n", go_function("check", 12)));
    let text = measure(&lab, &["--base", "HEAD"]).exits(0).stdout;
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/config/help/health.md")).unwrap();
    let example = page.split("<!-- example of tests/it/health.rs -->\n").nth(1).unwrap();
    let example = example.split("<!-- end of example -->").next().unwrap();
    let (_, example) = example.split_once('\n').unwrap();
    let (title, table) = text.split_once('\n').unwrap();
    let example: Vec<&str> = example.lines().map(|line| &line[4..]).collect();
    assert_eq!(table.lines().collect::<Vec<_>>(), example);
    assert!(
        title.starts_with("Code health since commit ")
            && title.ends_with(" (files measured: 2, other files: 1)")
    );
}

#[test]
fn o29_before_are_the_versions_of_the_commit_also_of_deleted_large_and_oddly_named_files() {
    let large = |complexity| format!("{}// {}\n", go_function("f", complexity), "x".repeat(200_000));
    let names = ["a b\n.go", "dir/é\".go", "-x.go"];
    let lab = names.iter().fold(Lab::new(), |lab, name| lab.file(name, large(3)));
    let lab = lab.file("gone.py", "def g(): pass\n").file("same.py", "def s(): pass\n");
    lab.commit_all();
    lab.git(&["config", "filter.x.clean", "touch filtered"]);
    lab.git(&["config", "diff.external", "touch external"]);
    let lab = names.iter().fold(lab, |lab, name| lab.file(name, large(12)));
    let lab = lab.file(".gitattributes", "* filter=x\n").file("untracked.py", "def u(): pass\n");
    fs::remove_file(lab.ws().join("gone.py")).unwrap();
    let document = document(&lab, &["--base", "HEAD"], 0);
    let (before, after) = (&document["before"], &document["after"]);
    assert_eq!((&before["functions"], &after["functions"]), (&json!(5), &json!(5)), "{document}");
    assert_eq!((&before["max_complexity"], &after["complex_functions"]), (&json!(3), &json!(3)));
    assert_eq!((&document["new_functions"], &document["removed_functions"]), (&json!(1), &json!(1)));
    assert!(!lab.exists("filtered") && !lab.exists("external"));
    let below = self::document(&lab, &["dir", "--base", "HEAD"], 0);
    assert_eq!((&below["before"]["functions"], &below["after"]["files"]), (&json!(1), &json!(1)), "{below}");
    let unknown = measure(&lab, &["--base", "nowhere"]).exits(3);
    assert!(unknown.stderr.contains("cannot measure the code: no commit nowhere"), "{}", unknown.stderr);
}

#[test]
fn o29_what_is_left_out_is_counted_and_hostile_files_do_no_harm() {
    let lab = Lab::new()
        .file("huge.py", "x".repeat(10_000_000))
        .file("binary.c", b"int x;\0")
        .file("deep.js", "(".repeat(50_000))
        .file("bytes.rs", [0xff_u8, 0xfe, b'{', 0x80].repeat(1_000))
        .file("key.pem.py", "def k(): pass\n")
        .file("node_modules/m.js", "function m() {}\n")
        .file("ignored/i.py", "def i(): pass\n")
        .file("generated/g.py", "def g(): pass\n")
        .file(".gitignore", "ignored/\n")
        .file("a\u{1b}[31m.py", format!("def {}():\n{}", "n".repeat(500), "    x = 1\n".repeat(60)))
        .config("health: {exclude_dirs: [gen*]}\nguardrails: {sensitive_files: ['*.pem.py']}\n");
    std::os::unix::fs::symlink("/etc", lab.ws().join("etc.py")).unwrap();
    std::os::unix::fs::symlink("bytes.rs", lab.ws().join("link.rs")).unwrap();
    let document = document(&lab, &[], 0);
    let figures = &document["after"];
    assert_eq!(figures["left_out"]["too_large"], 1, "{document}");
    assert_eq!(figures["left_out"]["sensitive"], 1, "{document}");
    assert_eq!(figures["left_out"]["unreadable"], 2, "{document}");
    assert_eq!(figures["files_with_errors"], 2, "{document}");
    assert_eq!((&figures["functions"], &figures["complete"]), (&json!(1), &json!(true)), "{document}");
    let text = measure(&lab, &[]).exits(0).stdout;
    assert!(
        text.contains("Not measured: 1 larger than 1 MiB, 2 unreadable or not text, 1 sensitive\n"),
        "{text}"
    );
    assert!(text.contains("Syntax errors in 2 files, whose figures are uncertain\n"), "{text}");
    assert!(!text.contains('\u{1b}') && text.lines().all(|line| line.chars().count() < 500), "{text}");
    measure(&lab, &["../"]).exits(3);
    measure(&lab, &["absent"]).exits(3);
}

#[test]
fn o29_only_matching_patterns_are_measured_and_a_project_needs_trust_to_measure_runs() {
    let lab = Lab::new().file("src/a.py", "def a(): pass\n").file("b.go", "package b\n");
    let lab = lab.file(".agent/config.yaml", "health: {enabled: true, include_patterns: ['src/**']}\n");
    let done = measure(&lab, &["--json"]).exits(0);
    assert!(done.stderr.contains("health.enabled"), "{}", done.stderr);
    let figures = done.json()["after"].clone();
    assert_eq!((&figures["files"], &figures["other_files"]), (&json!(1), &json!(1)));
    let server = Server::start(r#"{"turns": [{"text": "Done."}]}"#);
    let result = lab.run(&server, &["--json"]).exits(0).json();
    assert_eq!(result.get("health"), None);
}

#[test]
fn o29_a_run_with_health_shows_the_table_and_has_it_in_document_and_reports() {
    let lab = Lab::new().file("a.py", "def a():\n    return 1\n");
    let complex = go_function("check", 12);
    let call = json!({"name": "write_file", "arguments": {"path": "b.go", "content": format!("package b\n{complex}")}});
    let script = || Server::turns(json!([{"calls": [call]}, {"text": "Done."}]));
    let done = lab.run_yolo(&script(), &["--health", "--report-file", "../report.md"]).exits(0);
    let lines: Vec<&str> = done.stderr.lines().map(str::trim).collect();
    for line in [
        "Code health before and after the run (files measured: 2, other files: 0)",
        "Complex functions (over 10)           0        1       +1",
        "b.go:2: check: complexity 12, 13 lines",
    ] {
        assert!(lines.contains(&line), "{line} in {}", done.stderr);
    }
    assert!(lab.read("../report.md").contains("## Code health"), "{}", lab.read("../report.md"));
    lab.agent(&["replay"]).exits(0);
    fs::remove_file(lab.ws().join("b.go")).unwrap();
    let result = lab.run_yolo(&script(), &["--health", "--json"]).exits(0).json();
    schema::is_result(&result);
    assert_eq!(result["health"]["new_functions"], 1, "{result}");
    assert_eq!(result["health"]["before"]["functions"], 1);
    assert_eq!(result["health"]["functions"][0]["name"], "check");
    let without = lab.run_yolo(&script(), &["--json"]);
    assert_eq!(without.json().get("health"), None);
}

#[test]
fn o29_the_table_is_in_the_language_of_the_user() {
    let lab = Lab::new().file("a.py", "def a(): pass\n").env("AGENT_LANGUAGE", "es");
    let text = measure(&lab, &[]).exits(0).stdout;
    assert!(text.starts_with("Salud del código (archivos medidos: 1, otros: 0)\n"), "{text}");
}
