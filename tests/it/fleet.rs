//! `agent submit`, `agent tasks` and `agent worker`: the queue of tasks on one machine.

use crate::support::run::{Finished, KEY, Lab, Running, program};
use crate::support::schema;
use crate::support::server::Server;
use crate::support::sleepers::{survivors, unique_seconds, wait_for_sleepers};
use rusqlite::{Connection, TransactionBehavior};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

fn model(lab: &Lab, name: &str, turns: &str) -> String {
    let path = lab.outside().join(format!("{name}.yaml"));
    fs::write(&path, format!("turns:\n{turns}  - text: {name} is done\n")).unwrap();
    format!("scripted:{}", path.display())
}

/// A model that appends a line to `log.txt`.
fn appends(lab: &Lab) -> String {
    model(lab, "line", "  - calls: [{name: run_command, arguments: {command: \"echo line >> log.txt\"}}]\n")
}

fn submit(lab: &Lab, more: &[&str]) -> Finished {
    lab.agent(&[&["submit"], more].concat())
}

fn worker(lab: &Lab, model: &str, more: &[&str]) -> Finished {
    lab.agent(&[&["worker", "--mode", "yolo", "--model", model], more].concat())
}

/// A worker that asks `server`.
fn start_worker(lab: &Lab, server: &Server, more: &[&str]) -> Running {
    lab.start_on(server, &[&["worker", "--mode", "yolo"], more].concat())
}

fn tasks(lab: &Lab) -> Vec<Value> {
    let json = lab.agent(&["tasks", "list", "--json"]).exits(0).json();
    schema::valid(&schema::of("tasks"), &json);
    json["tasks"].as_array().unwrap().clone()
}

fn task(lab: &Lab, id: &str) -> Value {
    tasks(lab).into_iter().find(|task| task["id"] == id).unwrap()
}

fn states(lab: &Lab) -> Vec<(String, String)> {
    let text = |task: &Value, key: &str| task[key].as_str().unwrap().to_owned();
    tasks(lab).iter().map(|task| (text(task, "id"), text(task, "state"))).collect()
}

fn state(lab: &Lab, id: &str) -> String {
    states(lab).into_iter().find(|(known, _)| known == id).unwrap().1
}

fn branches(lab: &Lab) -> Vec<String> {
    lab.git(&["branch", "--format=%(refname:short)"]).lines().map(str::to_owned).collect()
}

#[test]
fn tasks_of_a_file_are_done_each_on_its_branch_and_the_users_files_stay() {
    let lab = Lab::repository();
    let file = lab.outside().join("tasks.yaml");
    fs::write(&file, "- {prompt: first, id: one}\n- {prompt: second, id: two, checks: [test -f log.txt]}\n")
        .unwrap();
    let ids = submit(&lab, &["-f", file.to_str().unwrap()]).exits(0).stdout;
    assert_eq!(ids, "one\ntwo\n");
    let done = worker(&lab, &appends(&lab), &["--drain", "--jobs", "2"]).exits(0);
    assert!(done.stderr.contains("task one: done, agent/task/one"), "{}", done.stderr);
    for id in ["one", "two"] {
        let task = task(&lab, id);
        assert_eq!((&task["state"], &task["attempt"]), (&json!("done"), &json!(1)));
        assert_eq!(task["result"]["output"], "line is done");
        assert_eq!(lab.git(&["show", &format!("agent/task/{id}:log.txt")]), "line\n");
    }
    assert_eq!(branches(&lab), ["agent/task/one", "agent/task/two", "main"]);
    assert_eq!((lab.git(&["status", "--short"]), lab.exists("log.txt")), (String::new(), false));
    assert_eq!(lab.git(&["worktree", "list"]).lines().count(), 1);
    let shown = lab.agent(&["tasks", "show", "two"]).exits(0).stdout;
    assert!(shown.contains("branch: agent/task/two") && shown.contains("line is done"), "{shown}");
}

#[test]
fn b10_the_priority_then_the_order_decide() {
    let lab = Lab::repository();
    for (id, priority) in [("late", "low"), ("a", "normal"), ("b", "normal"), ("first", "high")] {
        submit(&lab, &["x", "--id", id, "--priority", priority]).exits(0);
    }
    let done = worker(&lab, &appends(&lab), &["--drain"]).exits(0);
    let starts: Vec<&str> = done
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix("task ")?.split_once(", attempt"))
        .map(|(id, _)| id)
        .collect();
    assert_eq!(starts, ["first", "a", "b", "late"]);
}

#[test]
fn all_tasks_of_a_file_are_added_or_none_and_errors_have_their_lines() {
    let lab = Lab::repository();
    let file = lab.outside().join("tasks.jsonl");
    let path = file.to_str().unwrap();
    fs::write(&file, "{\"prompt\": \"x\"}\n{\"promt\": \"y\"}\n{\"prompt\": \"\"}\n").unwrap();
    let done = submit(&lab, &["-f", path]).exits(3);
    for part in ["tasks.jsonl:2:2: unknown key `promt` (did you mean `prompt`?)", "tasks.jsonl:3:"] {
        assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
    }
    let lab = lab.env("SOME_API_KEY", KEY);
    let wrong = [
        json!({"prompt": "x", "id": "a"}),
        json!({"prompt": "y", "dir": "missing"}),
        json!({"prompt": "x", "id": "a"}),
        json!({"prompt": format!("say {KEY}")}),
    ];
    fs::write(&file, wrong.map(|task| task.to_string()).join("\n")).unwrap();
    let done = submit(&lab, &["-f", path]).exits(3);
    for part in [
        "tasks.jsonl:2: the directory missing",
        "tasks.jsonl:3: the task in line 1 has the same id",
        "tasks.jsonl:4: the task contains a secret",
    ] {
        assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
    }
    let long = json!({"prompt": "x", "checks": ["x".repeat(300 << 10)]});
    fs::write(&file, format!("{}\n{long}", json!({"prompt": "x"}))).unwrap();
    let done = submit(&lab, &["-f", path]).exits(3);
    assert!(
        done.stderr.contains("tasks.jsonl:2: the task ") && done.stderr.contains("256 KiB"),
        "{}",
        done.stderr
    );
    assert_eq!(tasks(&lab), Vec::<Value>::new());
    let lines = format!("{}\n", json!({"prompt": "x", "id": "a"}));
    let lab = lab.stdin(lines);
    submit(&lab, &["-f", "-"]).exits(0);
    submit(&lab, &["x", "--id", "a"]).exits(0);
    assert!(submit(&lab, &["y", "--id", "a"]).exits(3).stderr.contains("a task a with another prompt"));
    assert!(submit(&lab, &["y", "--id", "../a"]).exits(3).stderr.contains("an id has 1 to 64 letters"));
    assert_eq!(states(&lab), [("a".to_owned(), "queued".to_owned())]);
}

/// A queue with the task `a`, whose worker was killed after a command of its run.
fn with_killed_worker() -> Lab {
    let lab = Lab::repository().config("fleet: {lease_seconds: 3}");
    submit(&lab, &["x", "--id", "a"]).exits(0);
    let server = Server::start(
        "turns: [{calls: [{name: run_command, arguments: {command: echo killed >> log.txt}}]}, {fault: hang}]",
    );
    let running = start_worker(&lab, &server, &["--drain"]);
    server.wait_for_request(2);
    running.signal(Signal::KILL);
    running.finish();
    assert_eq!(state(&lab, "a"), "claimed");
    lab
}

// Fault C1: the script of a killed worker began again, and its calls ran twice.
#[test]
fn a_scripted_model_goes_on_with_its_script_when_its_worker_was_killed() {
    let (lab, seconds) = (Lab::repository(), unique_seconds());
    let turns = format!(
        "  - calls: [{{name: run_command, arguments: {{command: echo line >> log.txt}}}}]
  - calls: [{{name: run_command, arguments: {{command: sleep {seconds}}}}}]\n"
    );
    let model = model(&lab, "script", &turns);
    submit(&lab, &["x", "--id", "a"]).exits(0);
    let running = lab.start(&["worker", "--mode", "yolo", "--model", &model, "--drain"]);
    wait_for_sleepers(&seconds, 1);
    running.signal(Signal::KILL);
    running.finish();
    worker(&lab, &model, &["--drain"]).exits(0);
    let task = task(&lab, "a");
    assert_eq!((&task["state"], &task["attempt"]), (&json!("done"), &json!(1)));
    assert_eq!((lab.git(&["show", "agent/task/a:log.txt"]), survivors(&seconds)), ("line\n".into(), 0));
}

// Fault C1: nobody knew whether the first command of a killed worker had done its work, and a script cannot check.
#[test]
fn a_task_whose_worker_was_killed_in_its_first_command_begins_anew() {
    let (lab, seconds) = (Lab::repository(), unique_seconds());
    let waits = |command: &str| {
        let call = format!("  - calls: [{{name: run_command, arguments: {{command: '{command}'}}}}]\n");
        model(&lab, "script", &call)
    };
    submit(&lab, &["x", "--id", "a"]).exits(0);
    let model = waits(&format!("echo line >> log.txt; sleep {seconds}"));
    let running = lab.start(&["worker", "--mode", "yolo", "--model", &model, "--drain"]);
    wait_for_sleepers(&seconds, 1);
    running.signal(Signal::KILL);
    running.finish();
    let done = worker(&lab, &waits("echo line >> log.txt"), &["--once"]).exits(0);
    assert!(done.stderr.contains("task a: its worker was killed in the first command"), "{}", done.stderr);
    let task = task(&lab, "a");
    assert_eq!((&task["attempt"], &task["failed_attempts"]), (&json!(2), &json!(1)));
    assert_eq!((lab.git(&["show", "agent/task/a:log.txt"]), survivors(&seconds)), ("line\n".into(), 0));
    assert_eq!(lab.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn b08_a_task_whose_worker_was_killed_is_done_once_by_one_of_another_machine() {
    let lab = with_killed_worker();
    // A worker of another machine finds no lock of the killed one.
    fs::remove_dir_all(lab.home().join("state/fleet/workers")).unwrap();
    worker(&lab, &appends(&lab), &["--drain"]).exits(0);
    let task = task(&lab, "a");
    assert_eq!(
        (&task["state"], &task["attempt"], &task["failed_attempts"]),
        (&json!("done"), &json!(2), &json!(1))
    );
    assert_eq!(lab.git(&["show", "agent/task/a:log.txt"]), "line\n");
    assert_eq!(branches(&lab), ["agent/task/a", "main"]);
    assert_eq!(lab.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn b08_the_next_worker_of_the_machine_resumes_the_session_of_a_killed_one() {
    let lab = with_killed_worker();
    let session = task(&lab, "a")["session_id"].clone();
    let again = Server::start("turns: [{text: the rest is done}]");
    start_worker(&lab, &again, &["--drain"]).finish().exits(0);
    let task = task(&lab, "a");
    assert_eq!(
        (&task["state"], &task["attempt"], &task["failed_attempts"]),
        (&json!("done"), &json!(1), &json!(1))
    );
    assert_eq!((&task["session_id"], &task["result"]["output"]), (&session, &json!("the rest is done")));
    assert_eq!(again.requests().len(), 1);
    assert!(again.requests()[0].body.to_string().contains("echo killed"), "the session goes on");
    assert_eq!(lab.git(&["show", "agent/task/a:log.txt"]), "killed\n");
    assert_eq!(branches(&lab), ["agent/task/a", "main"]);
    assert_eq!((lab.git(&["worktree", "list"]).lines().count(), lab.journals().len()), (1, 1));
    let of_queue =
        fs::read_dir(lab.home().join("state/fleet/workers")).unwrap().next().unwrap().unwrap().path();
    let files = || fs::read_dir(&of_queue).unwrap().count();
    assert_eq!(files(), 1);
    worker(&lab, &appends(&lab), &["--drain"]).exits(0);
    assert_eq!(files(), 0);
}

#[test]
fn a_worker_that_was_stopped_for_longer_than_its_claim_changes_nothing() {
    let lab = Lab::repository().config("fleet: {lease_seconds: 3}");
    submit(&lab, &["x", "--id", "a"]).exits(0);
    let server = Server::start("turns: [{fault: hang}]");
    let stopped = start_worker(&lab, &server, &["--once"]);
    server.wait_for_request(1);
    stopped.signal(Signal::STOP);
    worker(&lab, &appends(&lab), &["--drain"]).exits(0);
    stopped.signal(Signal::CONT);
    stopped.finish().exits(0);
    assert_eq!((state(&lab, "a"), task(&lab, "a")["attempt"].clone()), ("done".to_owned(), json!(2)));
    assert_eq!(lab.git(&["show", "agent/task/a:log.txt"]), "line\n");
    assert_eq!(branches(&lab), ["agent/task/a", "main"]);
}

#[test]
fn a_signal_lets_tasks_end_or_gives_them_back_after_the_grace() {
    let lab = Lab::repository();
    submit(&lab, &["x", "--id", "a"]).exits(0);
    let server = Server::start("turns: [{fault: hang}]");
    let running = start_worker(&lab, &server, &["--grace", "1"]);
    server.wait_for_request(1);
    running.signal(Signal::TERM);
    running.finish().exits(0);
    let task = task(&lab, "a");
    assert_eq!((&task["state"], &task["failed_attempts"]), (&json!("queued"), &json!(0)));
    assert_eq!(branches(&lab), ["main"]);
    let server = Server::start(
        "turns: [{calls: [{name: write_file, arguments: {path: b.txt, content: b}}]}, {text: done}]",
    );
    let running = start_worker(&lab, &server, &["--grace", "60"]);
    server.wait_for_request(1);
    running.signal(Signal::TERM);
    running.finish().exits(0);
    assert_eq!(state(&lab, "a"), "done");
}

#[test]
fn failures_of_a_server_are_retried_until_the_task_is_dead_and_others_are_not() {
    let lab = Lab::repository().config("llm: {retries: 0}");
    submit(&lab, &["x", "--id", "a", "--max-attempts", "2"]).exits(0);
    let server = Server::start("turns: [{fault: {http: {status: 500}}}, {fault: {http: {status: 500}}}]");
    start_worker(&lab, &server, &["--drain"]).finish().exits(0);
    let dead = task(&lab, "a");
    assert_eq!((&dead["state"], &dead["attempt"]), (&json!("dead"), &json!(2)));
    assert!(dead["cause"].as_str().unwrap().contains("500"), "{dead}");
    submit(&lab, &["x", "--id", "b", "--model", "scripted:missing.yaml"]).exits(0);
    submit(&lab, &["x", "--id", "c", "--check", "false"]).exits(0);
    worker(&lab, &appends(&lab), &["--drain"]).exits(0);
    for id in ["b", "c"] {
        assert_eq!((state(&lab, id), &task(&lab, id)["attempt"]), ("failed".to_owned(), &json!(1)), "{id}");
    }
    lab.agent(&["tasks", "retry", "a"]).exits(0);
    worker(&lab, &appends(&lab), &["--once"]).exits(0);
    assert_eq!(state(&lab, "a"), "done");
    assert!(lab.agent(&["tasks", "retry", "a"]).exits(3).stderr.contains("only after it failed"));
}

#[test]
fn a_task_never_allows_more_than_its_worker() {
    let lab = Lab::repository();
    submit(&lab, &["x", "--id", "a", "--mode", "yolo"]).exits(0);
    lab.agent(&["worker", "--drain", "--mode", "confirm-all", "--model", &appends(&lab)]).exits(0);
    assert_eq!(task(&lab, "a")["commit"], Value::Null);
    submit(&lab, &["x", "--id", "b", "--mode", "confirm-all"]).exits(0);
    worker(&lab, &appends(&lab), &["--drain"]).exits(0);
    assert_eq!(task(&lab, "b")["commit"], Value::Null);
    let lab = lab.config("max_steps: 1");
    submit(&lab, &["x", "--id", "c", "--max-steps", "9"]).exits(0);
    worker(&lab, &appends(&lab), &["--drain"]).exits(0);
    assert_eq!(task(&lab, "c")["cause"], "max_steps");
    submit(&lab, &["x", "--id", "d", "--agent", "build"]).exits(0);
    worker(&lab, &appends(&lab), &["--drain", "--agent", "plan"]).exits(0);
    assert!(task(&lab, "d")["cause"].as_str().unwrap().contains("`--agent plan`, which no task replaces"));
}

#[test]
fn a_database_that_is_locked_for_long_ends_no_worker_and_stores_no_part_of_a_submission() {
    let lab = Lab::repository();
    submit(&lab, &["x", "--id", "a"]).exits(0);
    let model = Server::start("turns: [{text: done, delay_ms: 500}]");
    let running = start_worker(&lab, &model, &["--drain"]);
    model.wait_for_request(1);
    let mut database = Connection::open(lab.home().join("state/fleet/tasks.sqlite")).unwrap();
    let locked = database.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let refused = submit(&lab, &["y", "--id", "b"]).exits(1);
    assert!(
        refused.stderr.contains("the queue cannot be used now: database is locked"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("this command stored no task"), "{}", refused.stderr);
    running.wait_for_stderr("the queue cannot be used now");
    drop(locked);
    running.finish().exits(0);
    assert_eq!((task(&lab, "a")["state"].clone(), tasks(&lab).len()), (json!("done"), 1));
}

#[test]
fn a_result_that_an_ended_worker_could_not_record_in_a_locked_database_is_recorded_by_the_next_one() {
    let lab = Lab::repository();
    submit(&lab, &["x", "--id", "a", "--max-attempts", "1"]).exits(0);
    let model = Server::start("turns: [{text: done, delay_ms: 500}]");
    let running = start_worker(&lab, &model, &["--grace", "0"]);
    model.wait_for_request(1);
    let mut database = Connection::open(lab.home().join("state/fleet/tasks.sqlite")).unwrap();
    let locked = database.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    running.wait_for_stderr("the queue cannot be used now");
    running.signal(Signal::TERM);
    running.finish().exits(1);
    let once = start_worker(&lab, &model, &["--once"]).finish();
    assert!(once.code == Some(1) && once.stderr.contains("database is locked"), "{}", once.stderr);
    drop(locked);
    start_worker(&lab, &model, &["--drain"]).finish().exits(0);
    let task = task(&lab, "a");
    assert_eq!(
        (&task["state"], &task["attempt"], &task["failed_attempts"]),
        (&json!("done"), &json!(1), &json!(0))
    );
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn a_second_signal_ends_a_worker_at_once() {
    let lab = Lab::repository();
    submit(&lab, &["x", "--id", "a"]).exits(0);
    let hangs = Server::start("turns: [{fault: hang}]");
    let running = start_worker(&lab, &hangs, &["--grace", "600"]);
    hangs.wait_for_request(1);
    running.signal(Signal::TERM);
    running.wait_for_stderr("600");
    running.signal(Signal::TERM);
    running.finish().exits(130);
}

const REFUSES_KEY: &str = "turns: [{fault: {http: {status: 401, body: no}}, repeat: 9}]";

#[test]
fn a_key_that_is_refused_for_the_model_of_a_task_fails_the_task_without_another_attempt() {
    let lab = Lab::repository();
    submit(&lab, &["x", "--id", "a", "--model", "mistral/other"]).exits(0);
    let server = Server::start(REFUSES_KEY);
    start_worker(&lab, &server, &["--drain"]).finish().exits(0);
    let task = task(&lab, "a");
    assert_eq!((&task["state"], &task["attempt"], server.requests().len()), (&json!("failed"), &json!(1), 1));
}

// Each task of the queue failed in turn.
#[test]
fn a_worker_with_a_wrong_key_or_configuration_gives_its_task_back_and_ends() {
    let lab = Lab::repository();
    for id in ["a", "b"] {
        submit(&lab, &["x", "--id", id]).exits(0);
    }
    let queued = [("a".to_owned(), "queued".to_owned()), ("b".to_owned(), "queued".to_owned())];
    let server = Server::start(REFUSES_KEY);
    let done = start_worker(&lab, &server, &["--drain"]).finish().exits(4);
    assert!(done.stderr.contains("key"), "{}", done.stderr);
    assert_eq!((states(&lab), server.requests().len()), (queued.to_vec(), 1));
    for (model, code, why) in [
        ("openai/mock", 4, "OPENAI_API_KEY"),
        ("unknown/mock", 3, "the provider `unknown` is not known"),
        ("scripted:/missing.yaml", 3, "/missing.yaml"),
    ] {
        let done = worker(&lab, model, &["--drain"]).exits(code);
        assert!(done.stderr.contains(why), "{}", done.stderr);
        assert_eq!(states(&lab), queued, "{model}");
    }
    assert_eq!(task(&lab, "a")["failed_attempts"], 0);
    assert_eq!(lab.git(&["worktree", "list"]).lines().count(), 1);
    // What is wrong in a task fails that task alone.
    submit(&lab, &["x", "--id", "c", "--model", "unknown/mock", "--priority", "high"]).exits(0);
    worker(&lab, &appends(&lab), &["--drain"]).exits(0);
    assert_eq!(["a", "b", "c"].map(|id| state(&lab, id)), ["done", "done", "failed"]);
}

#[test]
fn a_check_of_a_task_runs_only_if_its_worker_would_let_a_model_run_it() {
    let lab = Lab::repository().config("commands: {blocked_patterns: ['^secret']}");
    let refused = |id: &str, check: &str, worker: &[&str]| {
        submit(&lab, &["x", "--id", id, "--check", check]).exits(0);
        lab.agent(&[&["worker", "--drain", "--model", &appends(&lab)], worker].concat()).exits(0);
        let task = task(&lab, id);
        assert_eq!((&task["state"], &task["result"]), (&json!("failed"), &Value::Null));
        let cause = task["cause"].as_str().unwrap().to_owned();
        assert!(cause.contains(&format!("does not run the check `{check}`")), "{cause}");
        cause
    };
    assert!(refused("a", "touch x", &["--mode", "confirm-all"]).contains("needs approval"));
    assert!(refused("b", "touch x", &["--mode", "yolo", "--no-commands"]).contains("not enabled"));
    assert!(refused("c", "secret x", &["--mode", "yolo"]).contains("^secret"));
    let outside = lab.outside().join("outside.txt");
    fs::write(&outside, "x").unwrap();
    std::os::unix::fs::symlink(&outside, lab.ws().join("link.txt")).unwrap();
    lab.commit_all();
    assert!(refused("d", "cat link.txt", &["--mode", "confirm-sensitive"]).contains("approval"));
    submit(&lab, &["x", "--id", "e", "--check", "cat a.txt"]).exits(0);
    let model = Server::done();
    lab.agent_on(&model, &["worker", "--drain"]).exits(0);
    assert_eq!(task(&lab, "e")["state"], "done");
}

#[test]
fn money_that_is_used_up_is_no_failure_of_the_tasks_that_wait() {
    let lab = Lab::repository();
    for id in ["a", "b"] {
        submit(&lab, &["x", "--id", id]).exits(0);
    }
    lab.agent(&["worker", "--drain", "--mode", "yolo", "--model", &appends(&lab), "--budget-total", "0"])
        .exits(0);
    assert!(states(&lab).iter().all(|(_, state)| state == "queued"), "{:?}", states(&lab));
}

#[test]
fn a_branch_of_the_user_with_the_name_of_a_task_is_left_alone_and_nothing_is_spent() {
    let lab = Lab::repository();
    submit(&lab, &["x", "--id", "a"]).exits(0);
    lab.git(&["branch", "agent/task/a"]);
    let before = lab.git(&["rev-parse", "agent/task/a"]);
    worker(&lab, &appends(&lab), &["--drain"]).exits(0);
    let task = task(&lab, "a");
    assert_eq!((&task["state"], &task["result"]), (&json!("failed"), &Value::Null));
    assert!(task["cause"].as_str().unwrap().contains("the branch agent/task/a exists"), "{task}");
    assert_eq!(lab.git(&["rev-parse", "agent/task/a"]), before);
}

#[test]
fn a_secret_is_in_no_record() {
    let lab = Lab::repository().env("OPENAI_API_KEY", KEY);
    let done = submit(&lab, &[&format!("use {KEY}")]).exits(3);
    assert!(done.stderr.contains("contains a secret") && !done.stderr.contains(KEY), "{}", done.stderr);
    submit(&lab, &["x", "--id", "a", "--max-attempts", "1"]).exits(0);
    let server =
        Server::start(&format!("turns: [{{fault: {{http: {{status: 400, body: \"bad {KEY}\"}}}}}}]"));
    let url = server.url();
    lab.agent(&["worker", "--drain", "--model", "openai/mock", "--api-base", &url]).exits(0);
    assert_eq!(state(&lab, "a"), "failed");
    for file in fs::read_dir(lab.home().join("state/fleet")).unwrap() {
        let file = file.unwrap();
        let bytes = if file.path().is_dir() { Vec::new() } else { fs::read(file.path()).unwrap() };
        assert!(!bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes()));
    }
}

#[test]
fn wait_has_the_exit_codes_of_the_manual_and_a_cancelled_run_ends() {
    let lab = Lab::repository().config("fleet: {lease_seconds: 3}");
    submit(&lab, &["x", "--id", "a"]).exits(0);
    lab.agent(&["tasks", "wait", "a", "--timeout", "0"]).exits(5);
    lab.agent(&["tasks", "wait", "missing"]).exits(3);
    let server = Server::start("turns: [{fault: hang}]");
    let running = start_worker(&lab, &server, &["--drain"]);
    server.wait_for_request(1);
    assert!(lab.agent(&["tasks", "rm", "a"]).exits(3).stderr.contains("has not ended"));
    lab.agent(&["tasks", "cancel", "a"]).exits(0);
    running.finish().exits(0);
    assert_eq!(
        lab.agent(&["tasks", "wait", "a"]).exits(2).stdout.split_whitespace().nth(1),
        Some("cancelled")
    );
    submit(&lab, &["x", "--id", "b"]).exits(0);
    worker(&lab, &appends(&lab), &["--drain"]).exits(0);
    lab.agent(&["tasks", "wait", "b", "--json"]).exits(0);
    lab.agent(&["tasks", "wait", "a", "b"]).exits(2);
    lab.agent(&["tasks", "rm", "a", "b"]).exits(0);
    assert!(lab.agent(&["tasks"]).exits(0).stdout.contains("no tasks"));
}

#[test]
fn a_branch_that_a_killed_worker_could_not_create_is_created_by_the_next_one() {
    let lab = Lab::repository();
    submit(&lab, &["x", "--id", "a"]).exits(0);
    worker(&lab, &appends(&lab), &["--drain"]).exits(0);
    let commit = task(&lab, "a")["commit"].as_str().unwrap().to_owned();
    lab.git(&["branch", "agent/task/other", &commit]);
    lab.git(&["branch", "-D", "agent/task/a"]);
    let database = Connection::open(lab.home().join("state/fleet/tasks.sqlite")).unwrap();
    database.execute("UPDATE task SET is_settled = 0", []).unwrap();
    worker(&lab, &appends(&lab), &["--drain"]).exits(0);
    assert_eq!(lab.git(&["rev-parse", "agent/task/a"]).trim(), commit);
    // Also by one that has nothing to do at the moment.
    let idle = lab.start(&["worker", "--grace", "0"]);
    lab.git(&["branch", "-D", "agent/task/a"]);
    database.execute("UPDATE task SET is_settled = 0, changed_at = 0", []).unwrap();
    lab.wait_for_file(".git/refs/heads/agent/task/a");
    idle.signal(Signal::TERM);
    idle.finish().exits(0);
}

#[test]
fn a_record_whose_commit_is_an_option_of_git_changes_no_branch() {
    let lab = Lab::repository();
    submit(&lab, &["x", "--id", "a"]).exits(0);
    worker(&lab, &appends(&lab), &["--drain"]).exits(0);
    let database = Connection::open(lab.home().join("state/fleet/tasks.sqlite")).unwrap();
    let change = "UPDATE task SET is_settled = 0, record = json_set(record, '$.commit', '-d')";
    database.execute(change, []).unwrap();
    let done = worker(&lab, &appends(&lab), &["--drain"]).exits(0);
    assert!(done.stderr.contains("the record has no id of a commit"), "{}", done.stderr);
    assert_eq!(branches(&lab), ["agent/task/a", "main"]);
}

#[test]
fn a_lock_that_a_killed_git_has_left_on_the_branch_of_a_task_is_removed() {
    let lab = Lab::repository();
    submit(&lab, &["x", "--id", "a"]).exits(0);
    let directory = lab.ws().join(".git/refs/heads/agent/task");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("a.lock"), "").unwrap();
    worker(&lab, &appends(&lab), &["--drain"]).exits(0);
    assert_eq!(lab.git(&["show", "agent/task/a:log.txt"]), "line\n");
}

#[test]
fn a_worktree_whose_creation_was_interrupted_is_removed() {
    let lab = with_killed_worker();
    fs::remove_dir_all(lab.home().join("state/fleet/workers")).unwrap();
    let made = fs::read_dir(lab.ws().join(".git/worktrees")).unwrap().next().unwrap().unwrap().path();
    let place = fs::read_to_string(made.join("gitdir")).unwrap();
    fs::remove_dir_all(place.trim().trim_end_matches("/.git")).unwrap();
    fs::write(made.join("locked"), "initializing").unwrap();
    worker(&lab, &appends(&lab), &["--drain"]).exits(0);
    assert_eq!(lab.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn an_export_can_be_submitted_elsewhere_and_a_queue_has_a_file_of_its_own() {
    let lab = Lab::repository();
    submit(&lab, &["x\u{2028}\u{7f}\u{feff}", "--id", "a", "--check", "true", "--budget", "0.5"]).exits(0);
    let file = lab.outside().join("export.jsonl");
    fs::write(&file, lab.agent(&["tasks", "export"]).exits(0).stdout).unwrap();
    let url = format!("sqlite:{}", lab.outside().join("other/queue.sqlite").display());
    submit(&lab, &["-f", file.to_str().unwrap(), "--queue", &url]).exits(0);
    let other = lab.agent(&["tasks", "show", "a", "--json", "--queue", &url]).exits(0).json();
    let (own, other) = (task(&lab, "a"), other["tasks"][0].clone());
    assert_eq!(own["prompt"], "x\u{2028}\u{7f}\u{feff}");
    for key in ["prompt", "dir", "checks", "budget", "max_attempts"] {
        assert_eq!(own[key], other[key], "{key}");
    }
    let done = submit(&lab, &["x", "--queue", "redis://localhost"]).exits(3);
    assert!(done.stderr.contains("is no queue"), "{}", done.stderr);
}

#[test]
fn a_queue_in_the_workspace_is_refused() {
    let lab = Lab::repository();
    let link = lab.outside().join("link");
    std::os::unix::fs::symlink(lab.ws(), &link).unwrap();
    for directory in [lab.ws(), link, lab.ws().join("../ws")] {
        let queue = format!("sqlite:{}/tasks.sqlite", directory.display());
        let refused = submit(&lab, &["x", "--queue", &queue]).exits(3);
        assert!(
            refused.stderr.contains("is in the workspace, where commands could change it"),
            "{}",
            refused.stderr
        );
    }
    assert!(!lab.exists("tasks.sqlite"));
}

#[test]
fn a_run_opens_no_queue() {
    let lab = Lab::repository();
    lab.agent(&["run", "--mode", "yolo", "--model", &appends(&lab), "x"]).exits(0);
    assert!(!lab.home().join("state/fleet").exists());
}

#[test]
fn tasks_top_shows_how_many_tasks_are_in_each_state_and_what_workers_do() {
    let lab = Lab::repository();
    assert!(!lab.agent(&["doctor"]).stdout.contains("queue"), "there is none yet");
    let hangs = Server::start("turns: [{fault: hang}]");
    for id in ["a", "b"] {
        submit(&lab, &["fix it", "--id", id]).exits(0);
    }
    let running = start_worker(&lab, &hangs, &["--drain"]);
    hangs.wait_for_request(1);
    let shown = lab.agent(&["tasks", "top"]).exits(0).stdout;
    assert!(shown.starts_with("1 queued, 1 claimed, 0 done, 0 failed"), "{shown}");
    let line: Vec<&str> = shown.lines().nth(2).unwrap().split_whitespace().collect();
    assert_eq!((line[0], line[1], line[4..].join(" ").as_str()), ("a", "1", "fix it"));
    let doctor = lab.agent(&["doctor"]).stdout;
    assert!(doctor.contains("queue          ok: 1 queued, 1 claimed in /"), "{doctor}");
    running.signal(Signal::KILL);
    running.finish();
}

#[test]
fn all_workers_together_stay_within_the_money_of_a_day() {
    let lab =
        Lab::new().file("prices.yaml", "models: {openai/mock: {input: 1, output: 1, output_limit: 10}}");
    let prices = lab.ws().join("prices.yaml");
    let lab =
        lab.config(&format!("fleet: {{budget_usd: 0.05}}\ncosts: {{prices_file: {}}}", prices.display()));
    let lab = lab.committed();
    for id in ["a", "b", "c"] {
        submit(&lab, &["x", "--id", id]).exits(0);
    }
    let missing = worker(&lab, &appends(&lab), &["--drain"]).exits(3);
    assert!(missing.stderr.contains("fleet.budget_usd needs a limit for each run"), "{}", missing.stderr);
    // The model reports no usage: what a run has cost is not known, and all of its budget counts.
    let server = Server::start("turns: [{text: done, repeat: 9}]");
    let words = ["--drain", "--jobs", "2", "--budget", "0.02"];
    let done = start_worker(&lab, &server, &words).finish().exits(0);
    assert!(done.stderr.contains("no task is claimed: the 0.05 US dollars of a day"), "{}", done.stderr);
    let mut states: Vec<String> = states(&lab).into_iter().map(|(_, state)| state).collect();
    states.sort();
    assert_eq!(states, ["done", "done", "queued"], "{}", done.stderr);
}

#[test]
fn what_a_task_changed_is_on_its_branch_and_cannot_be_undone() {
    let lab = Lab::repository();
    submit(&lab, &["x", "--id", "a"]).exits(0);
    let refused = worker(&lab, &appends(&lab), &["--drain", "--dry-run"]).exits(3);
    assert!(refused.stderr.contains("`--dry-run` would end them"), "{}", refused.stderr);
    worker(&lab, &appends(&lab), &["--drain"]).exits(0);
    let task = task(&lab, "a");
    assert_eq!(task["state"], "done");
    let refused = lab.agent(&["undo", task["session_id"].as_str().unwrap()]);
    assert!(
        refused.stderr.contains("which no longer exists: there is nothing to restore"),
        "{}",
        refused.stderr
    );
    assert_eq!(lab.git(&["show", "agent/task/a:log.txt"]), "line\n");
}

#[test]
fn submit_waits_for_its_tasks_and_prints_a_document() {
    let lab = Lab::repository();
    let submitted = submit(&lab, &["x", "--id", "a", "--json"]).exits(0).json();
    assert_eq!(
        (&submitted["tasks"][0]["id"], &submitted["tasks"][0]["state"]),
        (&json!("a"), &json!("queued"))
    );
    let (done, fails) = (appends(&lab), model(&lab, "fails", "  - fault: {http: {status: 401, body: no}}\n"));
    for (id, model, code, state) in [("b", &done, 0, "done"), ("c", &fails, 2, "failed")] {
        let waiting = lab.start(&["submit", "x", "--id", id, "--model", model, "--wait", "--json"]);
        let worker = lab.start(&["worker", "--mode", "yolo", "--model", &done]);
        let waited = waiting.finish().exits(code).json();
        assert_eq!(waited["tasks"][0]["state"], state);
        worker.signal(Signal::TERM);
        worker.finish();
    }
}

#[test]
fn without_its_program_a_command_of_the_queue_names_it_and_what_is_on_path_performs_it() {
    let dir = tempfile::tempdir().unwrap();
    let [alone, on_path] = ["alone", "bin"].map(|name| dir.path().join(name));
    fs::create_dir_all(&alone).unwrap();
    fs::create_dir_all(&on_path).unwrap();
    let agent = alone.join("agent");
    fs::copy(program(), &agent).unwrap();
    let list = |arguments: &[&str]| {
        let mut command = Command::new(&agent);
        command.args(arguments).current_dir(&alone).env_clear();
        command.env("HOME", dir.path()).env("PATH", &on_path).output().unwrap()
    };
    let output = list(&["tasks", "list"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("`agent tasks` needs the program agent-fleet"), "{told}");
    assert!(told.contains("`agent help fleet` says how to install it"), "{told}");
    std::os::unix::fs::symlink(format!("{}-fleet", program()), on_path.join("agent-fleet")).unwrap();
    let output = list(&["tasks", "list"]);
    assert_eq!(output.status.code(), Some(0));
    let help = String::from_utf8(list(&["tasks", "list", "--help"]).stdout).unwrap();
    assert!(help.contains("Usage: agent tasks list"), "{help}");
}
