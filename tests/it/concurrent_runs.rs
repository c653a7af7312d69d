//! Several processes at once in one workspace, with one state directory and one cache: nobody loses anything.

use crate::support::run::Lab;
use crate::support::server::Server;
use serde_json::Value;
use std::fs;

/// Processes of each kind at once.
const EACH: usize = 5;

/// A run with commands and an edit of a file that all of them change.
const SCRIPT: &str = "turns:
- calls: [{name: run_command, arguments: {command: 'seq 1 40000'}}]
- calls: [{name: write_file, arguments: {path: shared.txt, content: \"a whole line\\n\", mode: append}}]
- text: done
";

#[test]
fn class_65_runs_at_once_in_one_workspace_lose_and_spoil_nothing() {
    // The overview of the project tells of the file that changes: no two requests would be the same.
    let lab = Lab::new()
        .config("indexer: {enabled: false}\n")
        .file("script.yaml", SCRIPT)
        .file("shared.txt", "")
        .file(".agent/config.yaml", "commands: {env: {A: b}}\n");
    let server = Server::start("turns: [{text: an answer, repeat: 50}]");
    let log = lab.outside().join("shared.log");
    let log = log.to_str().unwrap();
    let working = ["run", "task", "--mode", "yolo", "--model", "scripted:script.yaml", "--log-file", log];
    let mut all = Vec::new();
    for _ in 0..EACH {
        all.push(lab.start_run(&server, &["--cache"]));
        all.push(lab.start(&working));
        all.push(lab.start(&["trust", "--yes"]));
        all.push(lab.start(&["sessions", "list"]));
        all.push(lab.start(&["models", "gpt"]));
    }
    for one in all {
        one.finish().exits(0);
    }
    let list = lab.agent(&["sessions", "list"]).exits(0).stdout;
    let ids: Vec<&str> = list.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(ids.len(), 2 * EACH, "{list}");
    assert_eq!(list.matches("success (llm_done)").count(), 2 * EACH, "{list}");
    for id in ids {
        let shown = lab.agent(&["sessions", "show", id]).exits(0).stdout;
        assert!(!shown.contains("damaged"), "{shown}");
    }
    let lines = lab.read("shared.txt");
    assert!(lines.ends_with('\n') && lines.lines().all(|line| line == "a whole line"), "{lines:?}");
    let log = fs::read_to_string(log).unwrap();
    assert!(log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "a line of the log is torn");
    assert!(lab.agent(&["trust", "--show"]).exits(0).stdout.contains("trusted"));
    let tier = fs::read(lab.home().join("state/sandbox.json")).unwrap();
    assert!(serde_json::from_slice::<Value>(&tier).unwrap()["tier"].is_string());
    let asked = server.requests().len();
    lab.start_run(&server, &["--cache"]).finish().exits(0);
    assert_eq!(server.requests().len(), asked, "the answer that all of them kept is whole");
    let names = |place: &str| -> Vec<String> {
        let entries = fs::read_dir(lab.home().join(place)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert_eq!(names("cache/answers").len(), 1, "{:?}", names("cache/answers"));
    assert!(names("../ws").iter().all(|name| !name.starts_with(".agent-tmp")), "{:?}", names("../ws"));
}
