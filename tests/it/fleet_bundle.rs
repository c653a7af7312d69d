//! `agent submit --bundle` and `agent tasks fetch`: tasks for workers that do not have the repository.

use crate::nats_server::NatsServer;
use crate::support::run::KEY;
use crate::support::run::Lab;
use crate::support::server::Server;
use rustix::process::Signal;
use serde_json::json;
use std::fs;

const APPENDS: &str = "turns: [{calls: [{name: run_command, arguments: {command: 'cat ../a.txt; echo line >> log.txt'}}]}, {text: done, repeat: 9}]";

/// A repository with the directory `sub`, and a home with a queue in `queue`.
fn repository(queue: &str) -> Lab {
    Lab::new()
        .file("a.txt", "first\n")
        .file("sub/b.txt", "second\n")
        .config(&format!("fleet: {{queue: '{queue}', lease_seconds: 3}}\n"))
        .committed()
}

fn worker_words(url: &str) -> Vec<String> {
    let words = ["worker", "--drain", "--mode", "yolo", "--model", "openai/mock", "--api-base", url];
    words.into_iter().chain(["--api-key", KEY]).map(str::to_owned).collect()
}

/// A worker that has neither the repository nor the state of the submitter.
fn other_machine(queue: &str) -> Lab {
    Lab::new().config(&format!("fleet: {{queue: '{queue}', lease_seconds: 3}}\n"))
}

/// Directories that attempts have left.
fn left(lab: &Lab) -> usize {
    let sessions =
        fs::read_dir(lab.home().join("state/workspaces")).unwrap().map(|entry| entry.unwrap().path());
    let worktrees: Vec<_> =
        sessions.map(|path| path.join("worktrees")).filter(|path| path.is_dir()).collect();
    assert_eq!(worktrees.len(), 1, "where attempts work");
    fs::read_dir(&worktrees[0]).unwrap().count()
}

fn is_done_elsewhere(queue: &str) {
    let (lab, other) = (repository(queue), other_machine(queue));
    let sub = lab.ws().join("sub");
    let submit = ["submit", "x", "--id", "a", "--bundle", "HEAD", "--dir", sub.to_str().unwrap()];
    lab.agent(&submit).exits(0);
    // The same task is the same task, also if git packs the commits in another way.
    lab.git(&["gc", "--quiet", "--aggressive"]);
    lab.agent(&submit).exits(0);
    assert!(
        lab.agent(&["tasks", "fetch", "a"]).exits(3).stderr.contains("the task a is not done, but queued")
    );
    let server = Server::following(APPENDS);
    let words = worker_words(&server.url());
    other.agent(&words.iter().map(String::as_str).collect::<Vec<_>>()).exits(0);
    let answer = server.requests()[1].body.to_string();
    assert!(answer.contains("first"), "it works in the directory of the repository: {answer}");
    let task = &lab.agent(&["tasks", "show", "a", "--json"]).exits(0).json()["tasks"][0];
    assert_eq!((&task["state"], &task["dir"], &task["branch"]), (&json!("done"), &json!(""), &json!(null)));
    assert_eq!(lab.git(&["branch", "--format=%(refname:short)"]), "main\n");
    let exported = lab.agent(&["tasks", "export"]).exits(0);
    assert!(exported.stdout.trim().is_empty() && exported.stderr.contains("a is left out"), "{exported:?}");
    assert_eq!(lab.agent(&["tasks", "fetch", "a"]).exits(0).stdout, "agent/task/a\n");
    lab.agent(&["tasks", "fetch", "a"]).exits(0);
    assert_eq!(lab.git(&["show", "agent/task/a:sub/log.txt"]), "line\n");
    assert_eq!(lab.git(&["rev-parse", "agent/task/a~1"]), lab.git(&["rev-parse", "main"]));
    assert_eq!(left(&other), 0);
    let elsewhere = Lab::new().file("c.txt", "x").config(&format!("fleet: {{queue: '{queue}'}}\n"));
    let elsewhere = elsewhere.committed();
    let refused = elsewhere.agent(&["tasks", "fetch", "a"]).exits(3);
    assert!(refused.stderr.contains("lacks these prerequisite commits"), "{}", refused.stderr);
}

#[test]
fn a_bundle_in_a_database_is_worked_on_elsewhere_and_its_commits_are_fetched() {
    let directory = tempfile::tempdir().unwrap();
    is_done_elsewhere(&format!("sqlite:{}/tasks.sqlite", directory.path().display()));
}

#[test]
fn a_bundle_on_a_server_is_worked_on_elsewhere_and_its_commits_are_fetched() {
    if let Some(nats) = NatsServer::start() {
        is_done_elsewhere(&nats.url());
    }
}

#[test]
fn b08_a_task_with_a_bundle_whose_worker_was_killed_goes_on_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let queue = format!("sqlite:{}/tasks.sqlite", directory.path().display());
    let (lab, other) = (repository(&queue), other_machine(&queue));
    lab.agent(&["submit", "x", "--id", "a", "--bundle", "main"]).exits(0);
    let server = Server::start(
        "turns: [{calls: [{name: run_command, arguments: {command: echo killed >> log.txt}}]}, {fault: hang}, {text: done, repeat: 9}]",
    );
    let words = worker_words(&server.url());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let killed = other.start(&words);
    server.wait_for_request(2);
    killed.signal(Signal::KILL);
    killed.finish();
    other.agent(&words).exits(0);
    lab.agent(&["tasks", "fetch", "a"]).exits(0);
    assert_eq!(lab.git(&["show", "agent/task/a:log.txt"]), "killed\n");
    assert_eq!(left(&other), 0);
}

#[test]
fn what_a_killed_worker_has_left_is_removed_after_another_machine_has_done_the_task() {
    let directory = tempfile::tempdir().unwrap();
    let queue = format!("sqlite:{}/tasks.sqlite", directory.path().display());
    let lab = repository(&queue);
    lab.agent(&["submit", "x", "--id", "clone", "--bundle", "main"]).exits(0);
    lab.agent(&["submit", "x", "--id", "worktree"]).exits(0);
    let killed = other_machine(&queue);
    let hangs = Server::start("turns: [{fault: hang}, {fault: hang}]");
    let (hanging, server) = (worker_words(&hangs.url()), Server::start("turns: [{text: done, repeat: 9}]"));
    let hanging: Vec<&str> = hanging.iter().map(String::as_str).chain(["--jobs", "2"]).collect();
    let running = killed.start(&hanging);
    hangs.wait_for_request(2);
    running.signal(Signal::KILL);
    running.finish();
    let words = worker_words(&server.url());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    other_machine(&queue).agent(&words).exits(0);
    assert_eq!(lab.git(&["worktree", "list"]).lines().count(), 2);
    let stays: Vec<&str> = words.iter().copied().filter(|word| *word != "--drain").collect();
    let running = killed.start(&stays);
    running.wait_for_stderr("-1-1\n");
    running.wait_for_stderr("-2-1\n");
    running.signal(Signal::TERM);
    running.finish().exits(0);
    assert_eq!(lab.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_record_that_names_a_directory_elsewhere_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tasks.sqlite");
    let queue = format!("sqlite:{}", file.display());
    let (lab, other) = (repository(&queue), other_machine(&queue));
    let elsewhere = other.outside();
    for (number, prefix) in [elsewhere.to_str().unwrap(), "../..", "link"].into_iter().enumerate() {
        std::os::unix::fs::symlink(&elsewhere, lab.ws().join("link")).ok();
        lab.git(&["add", "-A"]);
        lab.git(&["commit", "-qm", "more", "--allow-empty"]);
        let id = format!("a{number}");
        lab.agent(&["submit", "x", "--id", &id, "--bundle", "HEAD"]).exits(0);
        let change = "UPDATE task SET record = json_set(record, '$.bundle.prefix', ?1) WHERE id = ?2";
        rusqlite::Connection::open(&file).unwrap().execute(change, [prefix, &id]).unwrap();
        let server = Server::start(APPENDS);
        let words = worker_words(&server.url());
        other.agent(&words.iter().map(String::as_str).collect::<Vec<_>>()).exits(0);
        let task = &lab.agent(&["tasks", "show", &id, "--json"]).exits(0).json()["tasks"][0];
        assert!(task["cause"].as_str().unwrap().contains("it is not in the repository"), "{task}");
        assert_eq!((server.requests().len(), elsewhere.join("log.txt").exists()), (0, false));
    }
    assert_eq!(left(&other), 0);
}

#[test]
fn a_prompt_that_is_too_long_for_a_record_is_an_object() {
    let directory = tempfile::tempdir().unwrap();
    let nats = NatsServer::start();
    let database = format!("sqlite:{}/tasks.sqlite", directory.path().display());
    for queue in [Some(database), nats.as_ref().map(NatsServer::url)].into_iter().flatten() {
        let lab = repository(&queue);
        let prompt = format!("{}the end", "a word ".repeat(50_000));
        let lab = lab.stdin(&prompt);
        lab.agent(&["submit", "-", "--id", "a"]).exits(0);
        let task = &lab.agent(&["tasks", "show", "a", "--json"]).exits(0).json()["tasks"][0];
        assert!(task["prompt"].as_str().unwrap().len() < 1_100, "{task}");
        assert!(lab.agent(&["tasks", "export"]).exits(0).stdout.contains("the end"));
        let server = Server::start("turns: [{text: done, repeat: 9}]");
        let words = worker_words(&server.url());
        lab.agent(&words.iter().map(String::as_str).collect::<Vec<_>>()).exits(0);
        assert!(server.requests()[0].body.to_string().contains("a word the end"));
    }
}

#[test]
fn what_is_no_branch_or_has_a_directory_of_its_own_is_no_bundle() {
    let lab = repository("sqlite:/tmp/never-used.sqlite");
    let directory = tempfile::tempdir().unwrap();
    let queue = format!("sqlite:{}/tasks.sqlite", directory.path().display());
    let commit = lab.git(&["rev-parse", "HEAD"]);
    for reference in ["nothing", commit.trim(), "--all"] {
        let bundle = format!("--bundle={reference}");
        let refused = lab.agent(&["submit", "x", "--queue", &queue, &bundle]).exits(3);
        assert!(refused.stderr.contains(&format!("--bundle {reference}: ")), "{}", refused.stderr);
    }
    let file = lab.outside().join("tasks.yaml");
    fs::write(&file, "[{prompt: a, dir: /tmp}]").unwrap();
    let refused =
        lab.agent(&["submit", "-f", file.to_str().unwrap(), "--queue", &queue, "--bundle", "HEAD"]).exits(3);
    assert!(refused.stderr.contains("has no directory of its own: /tmp"), "{}", refused.stderr);
    assert!(lab.agent(&["tasks", "list", "--queue", &queue]).stdout.starts_with("no tasks"));
}
