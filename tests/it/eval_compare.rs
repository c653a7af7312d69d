//! `agent eval compare`: paired tasks, runs of one task, documents and records; and the report with its charts.

use crate::support::run::{Finished, Lab};
use crate::support::schema;
use crate::support::work::newest_id;
use serde_json::{Value, json};
use std::path::Path;

/// A document of `agent eval` with the runs of each name and task: whether they passed.
fn document(scores: &[(&str, &str, &[bool])]) -> String {
    let run = |passed: &bool| {
        let checks = if *passed { 40.0 } else { 0.0 };
        json!({
            "run": "r", "passed": passed, "score": checks, "steps": 1, "cost_usd": 0.01, "seconds": 1.0,
            "parts": {"checks": checks, "status": 0.0, "efficiency": 0.0, "cost": null},
        })
    };
    let score = |(name, task, runs): &(&str, &str, &[bool])| json!({"task": task, "name": name, "runs": runs.iter().map(run).collect::<Vec<_>>()});
    let median = json!({"value": 1.0, "interval": null});
    let ranked = |name: &str| {
        json!({
            "name": name, "runs": 1, "passed": 1, "pass_rate_interval": [0.0, 1.0], "score": 1.0,
            "parts": {"checks": 0.0, "status": 0.0, "efficiency": 0.0, "cost": null}, "median_score": median,
            "median_steps": median, "median_cost_usd": null, "median_seconds": median,
        })
    };
    let mut names: Vec<&str> = scores.iter().map(|(name, _, _)| *name).collect();
    names.dedup();
    json!({
        "schema_version": 1, "command": "eval", "work_id": "x", "status": "success", "stop_reason": "done", "output": "",
        "runs": [], "ranking": names.into_iter().map(ranked).collect::<Vec<_>>(), "steps": 1, "requests": 1, "tool_calls": 0,
        "usage": {"input": 0, "output": 0, "cached_read": 0, "cached_write": 0, "reasoning": 0}, "cost_usd": null,
        "duration_seconds": 1.0, "task_scores": scores.iter().map(score).collect::<Vec<_>>(),
    })
    .to_string()
}

fn compare(lab: &Lab, documents: &[String], more: &[&str]) -> Finished {
    let paths: Vec<_> = (0..documents.len()).map(|at| lab.outside().join(format!("{at}.json"))).collect();
    for (path, text) in paths.iter().zip(documents) {
        std::fs::write(path, text).unwrap();
    }
    let paths = paths.iter().map(|path| path.to_str().unwrap());
    lab.agent(&["eval", "compare"].into_iter().chain(paths).chain(more.iter().copied()).collect::<Vec<_>>())
}

const TASKS: [&str; 8] = ["1", "2", "3", "4", "5", "6", "7", "8"];

fn tasks<'a>(name: &'a str, runs: &'a [bool]) -> Vec<(&'a str, &'a str, &'a [bool])> {
    TASKS.iter().map(|task| (name, *task, runs)).collect()
}

#[test]
fn a18_compare_pairs_the_tasks_of_two_documents_and_tells_a_difference_from_noise() {
    let lab = Lab::new();
    let (worse, better) = (document(&tasks("m", &[false])), document(&tasks("m", &[true])));
    let done = compare(&lab, &[worse.clone(), better.clone()], &[]).exits(0);
    assert!(done.stdout.contains("8 tasks: B passes more often."), "{}", done.stdout);
    let json = compare(&lab, &[worse.clone(), better], &["--json"]).exits(0).json();
    schema::valid(&schema::of("comparison"), &json);
    let one = &json["comparisons"][0];
    assert_eq!(
        (&one["tasks"], &one["test"], &one["can_differ"]),
        (&json!(8), &json!("paired_tasks"), &json!(true))
    );
    assert_eq!(
        one["pass_rate"],
        json!({"first": 0.0, "second": 1.0, "p_value": 2.0 / 256.0, "differs": true})
    );
    assert_eq!((&one["points"]["second"], &one["cost_usd"]["differs"]), (&json!(40.0), &json!(false)));
    let mut almost = tasks("m", &[false]);
    almost[0].2 = &[true];
    let done = compare(&lab, &[worse, document(&almost)], &[]).exits(0);
    assert!(
        done.stdout.contains("the difference in passed runs may be chance")
            && done.stdout.contains("100.0 %"),
        "{}",
        done.stdout
    );
}

#[test]
fn a18_compare_counts_what_is_in_one_measurement_only_and_needs_something_in_both() {
    let lab = Lab::new();
    let (mut first, mut second) = (tasks("m", &[true]), tasks("m", &[true]));
    first.push(("other", "1", &[true]));
    second.truncate(7);
    let done = compare(&lab, &[document(&first), document(&second)], &[]).exits(0);
    assert!(done.stdout.contains("7 tasks in both (1 in one only)"), "{}", done.stdout);
    assert!(done.stdout.contains("Only in one of the measurements: other"), "{}", done.stdout);
    let done = compare(&lab, &[document(&tasks("a", &[true])), document(&tasks("b", &[true]))], &[]).exits(3);
    assert!(done.stderr.contains("there is nothing to compare"), "{}", done.stderr);
}

#[test]
fn a18_compare_of_one_measurement_sets_the_best_against_the_others() {
    let lab = Lab::new();
    let both = [("a", "t", &[true; 4][..]), ("b", "t", &[false; 4][..])];
    let json = compare(&lab, &[document(&both)], &["--json"]).exits(0).json();
    let one = &json["comparisons"][0];
    assert_eq!((&one["first"], &one["second"], &one["test"]), (&json!("a"), &json!("b"), &json!("runs")));
    assert_eq!(one["pass_rate"]["differs"], json!(true));
    let few = [("a", "t", &[true][..]), ("b", "t", &[false][..])];
    let done = compare(&lab, &[document(&few)], &[]).exits(0);
    assert!(done.stdout.contains("too few to tell any difference from chance"), "{}", done.stdout);
}

#[test]
fn a18_compare_of_input_that_cannot_be_read_is_exit_3() {
    let lab = Lab::new();
    let good = document(&tasks("m", &[true]));
    let no_runs = document(&[("m", "t", &[])]);
    let twice = document(&[("m", "t", &[true]), ("m", "t", &[true])]);
    let other = good.replace("\"command\":\"eval\"", "\"command\":\"loop\"");
    for (text, why) in [
        ("not JSON".to_owned(), "cannot be compared: expected ident"),
        ("{}".to_owned(), "missing field"),
        (no_runs, "has no scores of `agent eval`"),
        (twice, "has no scores of `agent eval`"),
        (other, "has no scores of `agent eval`"),
        ("[".repeat(100_000), "cannot be compared"),
    ] {
        let done = compare(&lab, &[good.clone(), text], &[]).exits(3);
        assert!(done.stderr.contains(why), "{why}: {}", done.stderr);
    }
    let done = lab.agent(&["eval", "compare", "missing.json"]).exits(3);
    assert!(done.stderr.contains("there is no such file, and no record with this id"), "{}", done.stderr);
}

/// Measures two scripted models six times each; returns the report and the id of the record.
fn measured(lab: &Lab, report: &Path) -> String {
    lab.git(&["init", "-q"]);
    lab.git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    let script = |name: &str, text: &str| {
        let file = lab.outside().join(name);
        std::fs::write(&file, text).unwrap();
        format!("scripted:{}", file.display())
    };
    let models =
        format!("{},{}", script("a&<b>.yaml", "turns: [{text: a}]"), script("b.yaml", "turns: [{text: b}]"));
    let words = ["eval", "look", "--mode", "yolo", "--models", &models, "--repeat", "6", "--check", "true"];
    let done = lab.agent(&[&words[..], &["--report-file", report.to_str().unwrap()]].concat()).exits(0);
    assert!(done.stdout.contains("6/6 (61-100 %) | 99.6 (99.6-99.6) | 1.0 (1.0-1.0)"), "{}", done.stdout);
    newest_id(lab)
}

#[test]
fn a18_repetitions_have_intervals_and_a_record_is_compared_with_its_report() {
    let lab = Lab::new();
    let report = lab.outside().join("report.json");
    let id = measured(&lab, &report);
    let json: Value = serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap();
    assert_eq!(json["ranking"][0]["median_steps"], json!({"value": 1.0, "interval": [1.0, 1.0]}));
    let done = lab.agent(&["eval", "compare", &id, report.to_str().unwrap()]).exits(0);
    assert_eq!(
        done.stdout.matches("The runs of one task: both pass equally often.").count(),
        2,
        "{}",
        done.stdout
    );
}

#[test]
fn a18_the_html_report_shows_the_ranking_as_charts_and_escapes_names() {
    let lab = Lab::new();
    let report = lab.outside().join("report.html");
    measured(&lab, &report);
    let page = std::fs::read_to_string(&report).unwrap();
    assert_eq!(page.matches("<svg class=\"bar\"").count(), 4);
    assert!(page.contains("a&amp;&lt;b&gt;.yaml") && !page.contains("<b>.yaml") && !page.contains("<script"));
    assert!(page.contains("default-src 'none'") && !page.contains("http://") && !page.contains("https://"));
}
