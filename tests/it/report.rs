//! Reports: `--report` at the end of a run, `agent report` later.

use crate::support::kernel::without_warning;
use crate::support::run::{Finished, KEY, Lab, holding};
use crate::support::schema;
use crate::support::server::Server;
use html5gum::{Token, Tokenizer};
use serde_json::{Value, json};
use std::fs;

/// A file made, one modified, one made by a command; a call that fails, one that is refused, one whose output is hostile.
const EVENTFUL: &str = "turns:
  - error: {status: 503, retry_after: 0.01}
  - text: I look first.
    thinking: Hm.
    calls:
      - {name: read_file, arguments: {path: old.txt}}
      - {name: read_file, arguments: {path: nope.txt}}
    usage: {input: 100, cached_read: 40, output: 10}
  - calls:
      - {name: write_file, arguments: {path: new.txt, content: \"fresh\\n\"}}
      - {name: edit_file, arguments: {path: old.txt, old_str: before, new_str: after}}
      - {name: write_file, arguments: {path: locked.txt, content: x}}
      - {name: run_command, arguments: {command: 'cat hostile.txt; echo y > made.txt'}}
    usage: {input: 120, cached_read: 100, output: 20}
  - text: All is done.
    usage: {input: 150, output: 5}
";

const HOSTILE: &str =
    "</pre></details><script>alert(1)</script><img src=http://evil.example/x> `````\n| a | b |\n";

fn with_locked_file() -> Lab {
    let rules =
        "policy: {rules: [{action: deny, tool: write_file, path: locked.txt, reason: it is locked}]}\n";
    Lab::new().file("old.txt", "before\n").file("hostile.txt", HOSTILE).config(rules)
}

fn reported(lab: &Lab, more: &[&str]) -> Finished {
    lab.run_yolo(&Server::start(EVENTFUL), more).exits(0)
}

/// The newest session.
fn id_of(lab: &Lab) -> String {
    lab.journal().parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned()
}

/// Each piece of `text` that stands in `whole`, in this order.
#[track_caller]
fn in_order(whole: &str, pieces: &[&str]) {
    let mut rest = whole;
    for piece in pieces {
        let at = rest.find(piece).unwrap_or_else(|| panic!("no {piece} in what is left of\n{whole}"));
        rest = &rest[at + piece.len()..];
    }
}

#[test]
fn o19_a_report_tells_run_steps_and_calls_with_their_times_sizes_and_outcomes() {
    let lab = with_locked_file();
    reported(&lab, &["--report-file", "out/deep/r.json"]);
    let report: Value = serde_json::from_str(&lab.read("out/deep/r.json")).unwrap();
    schema::valid(&schema::of("report"), &report);
    assert_eq!((&report["status"], &report["stop_reason"]), (&json!("success"), &json!("llm_done")));
    assert_eq!((&report["task"], &report["output"]), (&json!("task"), &json!("All is done.")));
    assert_eq!((&report["step_count"], &report["request_count"]), (&json!(3), &json!(4)));
    assert_eq!(report["tool_call_count"], 6);
    assert_eq!((&report["usage"]["cached_read"], &report["usage"]["output"]), (&json!(140), &json!(35)));
    let steps = report["steps"].as_array().unwrap();
    assert_eq!(steps.iter().map(|step| &step["number"]).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!((&steps[0]["requests"], &steps[0]["finish_reason"]), (&json!(2), &json!("tool_calls")));
    assert_eq!(
        (&steps[0]["text"], &steps[0]["added_messages"][0]["text"]),
        (&json!("I look first."), &json!("task"))
    );
    let latencies = steps.iter().map(|step| step["latency_ms"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(report["model_time_ms"], latencies);
    let calls: Vec<&Value> = steps.iter().flat_map(|step| step["calls"].as_array().unwrap()).collect();
    let times = calls.iter().map(|call| call["latency_ms"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(report["tool_time_ms"], times);
    let outcomes: Vec<&str> = calls.iter().map(|call| call["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["ok", "failed", "ok", "ok", "refused", "ok"]);
    assert_eq!((&calls[4]["skipped"], &calls[5]["skipped"]), (&json!(true), &json!(false)));
    assert_eq!(calls[5]["result_bytes"], calls[5]["result"].as_str().unwrap().len());
    assert_eq!(calls[5]["changed"], json!([{"path": "made.txt", "action": "created"}]));
    let error = &report["errors"][0];
    assert_eq!((&error["step"], &error["tool"]), (&json!(1), &json!("read_file")));
    assert_eq!(report["permission_denials"][0]["step"], 2);
    let warnings = report["warnings"].as_array().unwrap().iter().map(|told| told["text"].as_str().unwrap());
    let first = warnings.map(without_warning).find(|text| !text.is_empty()).unwrap();
    assert!(first.contains("503"), "{}", report["warnings"]);
}

#[test]
fn o17_files_are_told_as_created_or_modified_with_their_diffs() {
    let lab = with_locked_file();
    reported(&lab, &["--report-file", "r.json"]);
    let report: Value = serde_json::from_str(&lab.read("r.json")).unwrap();
    let files = report["files_modified"].as_array().unwrap();
    let told = |name: &str| files.iter().find(|file| file["path"] == name).unwrap();
    assert_eq!(files.len(), 3);
    assert_eq!((&told("new.txt")["action"], &told("new.txt")["by"]), (&json!("created"), &json!("tool")));
    assert_eq!(told("old.txt")["action"], "modified");
    assert_eq!(
        (&told("made.txt")["action"], &told("made.txt")["by"]),
        (&json!("created"), &json!("command"))
    );
    assert!(told("old.txt")["diff"].as_str().unwrap().ends_with("@@ -1 +1 @@\n-before\n+after\n"));
    assert!(told("made.txt")["diff"].as_str().unwrap().ends_with("+y\n"));
    // Later it is still the diff of what the session did, where that can be known.
    let diff_of = |name: &str| {
        let report: Value = lab.agent(&["report", "--format", "json"]).exits(0).json();
        let files = report["files_modified"].as_array().unwrap();
        files.iter().find(|file| file["path"] == name).unwrap()["diff"].clone()
    };
    fs::write(lab.ws().join("old.txt"), "other").unwrap();
    assert_eq!(diff_of("old.txt"), told("old.txt")["diff"]);
    fs::remove_dir_all(lab.journal().ancestors().nth(3).unwrap().join("displaced")).unwrap();
    assert_eq!(diff_of("old.txt"), Value::Null);
    assert_eq!(diff_of("made.txt"), told("made.txt")["diff"]);
}

#[test]
fn o17_what_was_undone_is_no_longer_told_as_changed() {
    let lab = with_locked_file();
    reported(&lab, &[]);
    lab.agent(&["undo", "--file", "old.txt"]).exits(0);
    let report = lab.agent(&["report", "--format", "json"]).exits(0).json();
    let files = report["files_modified"].as_array().unwrap();
    assert_eq!(files.iter().map(|file| &file["path"]).collect::<Vec<_>>(), ["new.txt", "made.txt"]);
    assert!(report["warnings"].to_string().contains("undone: old.txt"), "{}", report["warnings"]);
}

#[test]
fn o17_a_fork_has_a_report_under_its_own_id() {
    let lab = with_locked_file();
    reported(&lab, &[]);
    let fork = lab.agent(&["sessions", "fork", &id_of(&lab)]).exits(0).stdout.trim().to_owned();
    let report = lab.agent(&["report", &fork, "--format", "json"]).exits(0).json();
    assert_eq!((&report["session_id"], &report["step_count"]), (&json!(fork), &json!(3)));
}

#[test]
fn o17_the_ending_of_the_file_says_the_form_unless_it_is_named() {
    let lab = with_locked_file();
    for (file, named, begins) in [
        ("r.md", "", "# Execution Report\n"),
        ("r.markdown", "", "# Execution Report\n"),
        ("r.unknown", "", "# Execution Report\n"),
        ("r.html", "", "<!doctype html>"),
        ("r.json", "", "{\"schema_version\":1,"),
        ("named.md", "html", "<!doctype html>"),
        ("github.md", "github", "## OK agent: `task`\n\n**success (llm_done): "),
    ] {
        let named = if named.is_empty() { vec![] } else { vec!["--report", named] };
        let done = reported(&lab, &[&["--report-file", file][..], &named].concat());
        assert!(lab.read(file).starts_with(begins), "{file}: {}", lab.read(file));
        assert_eq!(done.stdout, "All is done.\n");
    }
    let text = lab.read("r.md");
    in_order(
        &text,
        &[
            "| Status | OK: ",
            "| Steps | `3` |",
            "## Answer",
            "All is done.",
            "## Refused",
            "locked.txt",
            "## Errors",
        ],
    );
    in_order(
        &text,
        &["`Step 1, read_file: ", "## Warnings", "503", "## Files", "| `old.txt` | modified | tool |"],
    );
    in_order(
        &text,
        &[
            "-before\n+after\n",
            "## Timeline",
            "| 1 | model: 140 in (40 cached), 10 out, unknown | answered | ",
        ],
    );
    in_order(
        &text,
        &["| 2 | `write_file new.txt (1 line)` | ok | ", "`write_file locked.txt", "| refused | "],
    );
    let github = lab.read("github.md");
    in_order(
        &github,
        &[
            "<details open><summary>Answer</summary>",
            "<summary>Refused (1)</summary>",
            "<summary>Timeline (3 steps)",
        ],
    );
}

#[test]
fn o17_without_a_file_the_report_goes_to_standard_error_and_the_answer_stays_alone() {
    let done = reported(&with_locked_file(), &["--report", "markdown", "--quiet"]);
    assert_eq!(done.stdout, "All is done.\n");
    in_order(&done.stderr, &["# Execution Report\n", "## Timeline\n"]);
    let lab = with_locked_file();
    lab.agent(&["run", "x", "--report", "pdf"]).exits(3);
}

#[test]
fn o18_a_report_that_cannot_be_written_goes_to_this_directory_and_replaces_nothing_there() {
    let lab = with_locked_file();
    let done = reported(&lab, &["--report-file", "/proc/x.md"]);
    assert!(lab.read("x.md").starts_with("# Execution Report\n"));
    in_order(&done.stderr, &["the report could not be written to /proc/x.md (", "; it is in ", "/x.md"]);
    let first = lab.read("x.md");
    let done = reported(&lab, &["--report-file", "/proc/x.md"]);
    assert_eq!(lab.read("x.md"), first);
    in_order(
        &done.stderr,
        &["the report could not be written to /proc/x.md: ", "; create it with `agent report 2", " -o FILE`"],
    );
    let left: Vec<String> =
        fs::read_dir(lab.ws()).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!left.iter().any(|name| name.starts_with(".agent-report")), "{left:?}");
}

#[test]
fn o18_commands_cannot_lead_a_report_elsewhere() {
    let script = "turns:
  - calls: [{name: run_command, arguments: {command: 'ln -s ../mine.md r.md; rmdir out; ln -s .. out'}}]
  - text: done
";
    for file in ["r.md", "out/mine.md"] {
        let lab = Lab::new();
        fs::write(lab.outside().join("mine.md"), "mine").unwrap();
        lab.run_yolo(&Server::start(script), &["--report-file", file]).exits(0);
        assert_eq!(fs::read_to_string(lab.outside().join("mine.md")).unwrap(), "mine");
    }
}

#[test]
fn a_report_for_a_job_on_github_is_added_to_its_summary() {
    let lab = with_locked_file();
    let summary = lab.outside().join("summary");
    fs::write(&summary, "what another command said\n").unwrap();
    let lab = lab.env("GITHUB_STEP_SUMMARY", summary.to_str().unwrap());
    reported(&lab, &["--report", "github"]);
    reported(&lab, &["--report-file", summary.to_str().unwrap()]);
    let text = fs::read_to_string(&summary).unwrap();
    in_order(&text, &["what another command said\n## OK agent: `task`", "## OK agent: `task`"]);
    // Another form is not for that page.
    let done = reported(&lab, &["--report", "markdown"]);
    in_order(&done.stderr, &["# Execution Report"]);
    assert_eq!(fs::read_to_string(&summary).unwrap(), text);
}

#[test]
fn a_run_that_fails_or_never_begins_leaves_a_report_that_says_why() {
    let lab = with_locked_file();
    lab.run(
        &Server::start("turns: [{error: {status: 400, message: no such thing}}]"),
        &["--report-file", "r.md"],
    )
    .exits(1);
    in_order(
        &lab.read("r.md"),
        &["| Status | FAIL: `failed (llm_error): ", "## What went wrong", "no such thing"],
    );
    lab.agent(&["run", "x", "--model", "nowhere/x", "--report-file", "r.html"]).exits(3);
    in_order(&lab.read("r.html"), &["FAIL</b> failed: no run began", "nowhere"]);
}

#[test]
fn o17_an_earlier_session_gives_the_report_that_its_run_gave() {
    let lab = with_locked_file();
    let done = reported(&lab, &["--report-file", "r.html", "--json"]).json();
    let id = done["session_id"].as_str().unwrap();
    let first = lab.read("r.html");
    assert_eq!(lab.agent(&["report", id, "--format", "html"]).exits(0).stdout, first);
    lab.agent(&["report", "-o", "again.html"]).exits(0);
    assert_eq!(lab.read("again.html"), first);
    assert!(lab.agent(&["report"]).exits(0).stdout.starts_with("# Execution Report\n"));
    lab.agent(&["report", "20260101-000000-aaaaaa"]).exits(3);
    lab.agent(&["report", "-o", "/proc/x.md"]).exits(3);
    // Killed before its end: nobody knows how it would have ended.
    let journal = lab.journal();
    let text = fs::read_to_string(&journal).unwrap();
    let end = text.trim_end().rfind('\n').unwrap();
    fs::write(&journal, &text[..end + 10]).unwrap();
    let report = lab.agent(&["report", "--format", "json"]).exits(0).json();
    assert_eq!((&report["status"], &report["damaged_records"]), (&Value::Null, &json!(1)));
    assert_eq!(report["step_count"], 3);
}

#[test]
fn no_form_of_a_report_holds_a_key() {
    let script = format!(
        "turns:\n  - calls: [{{name: write_file, arguments: {{path: k.txt, content: 'k {KEY}'}}}}]\n  - text: it is {KEY}\n"
    );
    let lab = Lab::new();
    for form in ["json", "markdown", "github", "html"] {
        let done = lab
            .run_yolo(&Server::start(&script), &["--report-file", &format!("out/{form}"), "--report", form]);
        in_order(&done.exits(0).stdout, &["it is [redacted"]);
        fs::remove_file(lab.ws().join("k.txt")).unwrap();
    }
    assert_eq!(holding(&lab.ws().join("out"), KEY), [""; 0]);
    assert_eq!(fs::read_dir(lab.ws().join("out")).unwrap().count(), 4);
}

/// The elements that a page may be made of: none that loads, runs, embeds or sends anything.
const HARMLESS: [&str; 33] = [
    "a",
    "article",
    "b",
    "body",
    "code",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "figcaption",
    "figure",
    "footer",
    "h1",
    "h2",
    "h3",
    "h4",
    "head",
    "header",
    "html",
    "li",
    "main",
    "meta",
    "p",
    "pre",
    "rect",
    "section",
    "span",
    "style",
    "summary",
    "svg",
    "title",
    "ul",
];

/// The elements of a page that closes all that it opens, each with the names and values of its attributes.
#[track_caller]
fn elements(page: &str) -> Vec<(String, Vec<(String, String)>)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (mut elements, mut open) = (Vec::new(), Vec::new());
    for token in Tokenizer::new(page) {
        match token.unwrap() {
            Token::StartTag(tag) => {
                let name = text(&tag.name);
                if !tag.self_closing && name != "meta" {
                    open.push(name.clone());
                }
                let attributes = tag.attributes.iter().map(|(name, value)| (text(name), text(value)));
                elements.push((name, attributes.collect()));
            }
            Token::EndTag(tag) => assert_eq!(open.pop(), Some(text(&tag.name))),
            Token::Error(error) => panic!("{error:?}"),
            Token::String(_) | Token::Comment(_) | Token::Doctype(_) => {}
        }
    }
    assert_eq!(open, [""; 0]);
    elements
}

#[test]
fn o17_the_page_is_well_formed_and_needs_nothing_else_whatever_stands_in_it() {
    let lab = with_locked_file();
    reported(&lab, &["--report-file", "r.html"]);
    let page = lab.read("r.html");
    let elements = elements(&page);
    for (name, attributes) in &elements {
        assert!(HARMLESS.contains(&name.as_str()), "{name}");
        for (attribute, value) in attributes {
            let leads = ["href", "src", "srcset", "action", "style"].contains(&attribute.as_str());
            assert!(
                !attribute.starts_with("on") && (!leads || value.starts_with("#step-")),
                "{attribute}={value}"
            );
        }
    }
    let policy = "default-src 'none'; style-src 'sha256-";
    let is_policy = |(_, value): &(String, String)| value.starts_with(policy) && !value.contains("unsafe");
    assert!(elements.iter().any(|(name, attributes)| name == "meta" && attributes.iter().any(is_policy)));
    assert!(!page.contains("url(") && !page.contains("@import"));
    assert!(page.contains("prefers-color-scheme: dark") && page.contains("max-width: 40rem"));
}

#[test]
fn o17_the_page_shows_the_verdict_then_what_to_look_at_then_every_step() {
    let lab = with_locked_file();
    reported(&lab, &["--report-file", "r.html"]);
    let page = lab.read("r.html");
    for step in 1..=3 {
        assert!(page.contains(&format!("<article id=\"step-{step}\"><h3>Step {step}</h3>")), "{step}");
        // One bar in the chart of times, one in that of tokens.
        assert_eq!(page.matches(&format!("<a href=\"#step-{step}\">")).count(), 2, "{step}");
    }
    in_order(
        &page,
        &[
            "<b>OK</b> success (llm_done)",
            "<h1>task</h1>",
            "<h2>Answer</h2>",
            "<h2>Refused</h2>",
            "it is locked",
        ],
    );
    in_order(
        &page,
        &[
            "<h2>Refused</h2>",
            "<h2>Errors</h2>",
            "<h2>Warnings</h2>",
            "<h2>Timeline</h2>",
            "<h2>Files changed</h2>",
        ],
    );
    in_order(
        &page,
        &["<span class=\"cut\">-before", "<span class=\"add\">+after", "<h2>Steps</h2>", "I look first."],
    );
    in_order(
        &page,
        &["<b>run_command</b>", "&lt;/pre&gt;&lt;/details&gt;&lt;script&gt;alert(1)", "<h3>Step 3</h3>"],
    );
}

#[test]
fn o17_fences_of_markdown_are_longer_than_those_in_a_text() {
    let script = "turns: [{text: \"````\\n<script>\\n````\\n# not a heading\"}]";
    let lab = Lab::new();
    for form in ["markdown", "github"] {
        lab.run(&Server::start(script), &["--report", form, "--report-file", "r.md"]).exits(0);
        in_order(&lab.read("r.md"), &["\n`````\n````\n<script>\n````\n# not a heading\n`````\n"]);
    }
}
