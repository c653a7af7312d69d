//! Faults of models, checks and disks in commands of several runs: none looks like a success, and the other runs go on.

use crate::stream_faults::{Answer, FAULTS};
use crate::support::run::{KEY, Lab};
use crate::support::server::Server;
use crate::support::wire_server::WireServer;
use crate::truncated_answers::turn;
use agent_llm::wire_format::WireFormat;
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, Instant};

/// Each command whose runs ask a model.
const COMMANDS: [&[&str]; 7] = [
    &["loop", "task", "--check", "true", "--max-iterations", "1", "--model", "openai/mock"],
    &["parallel", "--task", "a", "--task", "b", "--model", "openai/mock"],
    &["pipeline", "../p.yaml", "--model", "openai/mock"],
    &["chain", "task", "--agents", "plan,build", "--model", "openai/mock"],
    &["run", "task", "--review", "--model", "openai/mock"],
    &["consolidate", "question", "--models", "openai/a,openai/b", "--judge", "openai/c"],
    &["eval", "task", "--models", "openai/a,openai/b"],
];

fn repository() -> Lab {
    Lab::new().file("a.txt", "a").pipeline("steps: [{name: one, prompt: x}]\n").committed()
}

#[test]
fn no_fault_of_a_connection_looks_like_a_success_in_any_command() {
    let check = |words: &[&str]| {
        let answer = Answer::new(WireFormat::ChatCompletions, &turn("{text: alpha beta gamma}"), false);
        for fault in FAULTS {
            let broken = answer.clone();
            let server = WireServer::start(move |stream, _| broken.broken(stream, fault));
            let lab = repository().config("llm: {retries: 0, timeouts: {silence_seconds: 1}}");
            let url = server.url();
            let args = [words, &["--json", "--no-stream", "--api-base", &url, "--api-key", KEY]].concat();
            let done = lab.agent(&args);
            let what = format!("{words:?} {fault:?}: {}", done.stderr);
            assert!(done.code.is_some_and(|code| (1..=5).contains(&code)), "{what}");
            assert!(done.json()["status"] != "success", "{what}");
            assert!(!done.stderr.contains("panicked"), "{what}");
        }
    };
    std::thread::scope(|scope| {
        for words in COMMANDS {
            scope.spawn(move || check(words));
        }
    });
}

/// Three tasks at the same time, of which the second has `turns`; returns the document.
fn three_tasks(turns: &str, more: &[&str]) -> Value {
    let (lab, server) = (repository(), Server::following("turns: [{text: done}]"));
    fs::write(lab.outside().join("other.yaml"), turns).unwrap();
    let other = format!("scripted:{}", lab.outside().join("other.yaml").display());
    let tasks = [
        json!({"task": "a", "model": "openai/mock"}),
        json!({"task": "b", "model": other}),
        json!({"task": "c", "model": "openai/mock"}),
    ];
    let file = lab.outside().join("tasks.jsonl");
    fs::write(&file, tasks.map(|task| task.to_string()).join("\n")).unwrap();
    let url = server.url();
    let words = ["parallel", "--tasks-file", file.to_str().unwrap(), "--mode", "yolo", "--json"];
    lab.agent(&[&words, more, &["--api-base", &url, "--api-key", KEY]].concat()).json()
}

fn ends(document: &Value) -> Vec<(&Value, &Value)> {
    let runs = document["runs"].as_array().unwrap();
    runs.iter().map(|run| (&run["status"], &run["stop_reason"])).collect()
}

#[test]
fn a07_a_run_that_hangs_ends_at_its_timeout_and_two_succeed() {
    let begun = Instant::now();
    let hangs = "turns: [{calls: [{name: run_command, arguments: {command: sleep 60}}]}, {text: done}]";
    let document = three_tasks(hangs, &["--timeout-per-worker", "2"]);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let done = (&json!("success"), &json!("llm_done"));
    assert_eq!(ends(&document), [done, (&json!("partial"), &json!("timeout")), done]);
    let seconds = document["runs"][1]["duration_seconds"].as_f64().unwrap();
    assert!((1.0..4.0).contains(&seconds), "{seconds}");
}

#[test]
fn a_panic_in_a_run_is_its_internal_error_and_two_succeed() {
    let document = three_tasks("turns: [{fault: panic}]", &[]);
    let done = (&json!("success"), &json!("llm_done"));
    assert_eq!(ends(&document), [done, (&json!("failed"), &json!("internal_error")), done]);
    assert_eq!((&document["status"], &document["stop_reason"]), (&json!("failed"), &json!("run_failed")));
}

#[test]
fn a_state_directory_that_cannot_be_written_is_an_error_before_anything_runs() {
    let server = Server::following("turns: [{text: done}]");
    let url = server.url();
    for words in COMMANDS {
        let lab = repository();
        let state = lab.home().join("state");
        fs::write(&state, "a file where the directory would be").unwrap();
        let done = lab.agent(&[words, &["--api-base", &url, "--api-key", KEY]].concat());
        assert!(done.code.is_some_and(|code| (1..=4).contains(&code)), "{words:?}: {:?}", done.code);
        assert!(done.stderr.contains("state"), "{words:?}: {}", done.stderr);
        assert_eq!(lab.git(&["for-each-ref", "refs/heads/agent", "refs/agent"]), "", "{words:?}");
    }
    assert_eq!(server.requests().len(), 0);
}
