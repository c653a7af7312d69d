//! The queue on a NATS server: `agent submit`, `agent tasks` and `agent worker` on several machines.

use crate::hub::{ask, free_port};
use crate::nats_server::NatsServer;
use crate::support::run::{Finished, KEY, Lab, Running, holding};
use crate::support::server::Server;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// A repository with one commit, and a queue on a server.
struct Fleet {
    lab: Lab,
    nats: NatsServer,
}

impl Fleet {
    fn start() -> Option<Self> {
        NatsServer::start().map(Self::on)
    }

    fn on(nats: NatsServer) -> Self {
        let config = format!("fleet: {{queue: {}, lease_seconds: 3, metrics_prefix: my_}}", nats.url());
        let lab = Lab::new().file("a.txt", "first\n").config(&config);
        let lab = lab.committed();
        Self { lab, nats }
    }

    fn submit(&self, more: &[&str]) -> Finished {
        self.lab.agent(&[&["submit"], more].concat())
    }

    /// A worker that asks `server`.
    fn start_worker(&self, server: &Server, more: &[&str]) -> Running {
        self.lab.start_on(server, &[&["worker", "--mode", "yolo"], more].concat())
    }

    fn task(&self, id: &str) -> Value {
        self.lab.agent(&["tasks", "show", id, "--json"]).exits(0).json()["tasks"][0].clone()
    }

    fn branches(&self) -> Vec<String> {
        self.lab.git(&["branch", "--format=%(refname:short)"]).lines().map(str::to_owned).collect()
    }
}

/// A model that appends a line to `log.txt` in each run.
fn appends() -> Server {
    Server::following(
        "turns:
  - calls: [{name: run_command, arguments: {command: echo line >> log.txt}}]
  - {text: done, repeat: 3}
",
    )
}

#[test]
fn tasks_on_a_server_are_done_by_several_workers_each_once() {
    let Some(fleet) = Fleet::start() else { return };
    let file = fleet.lab.outside().join("tasks.jsonl");
    let lines = (0..12).map(|number| format!("{{\"prompt\": \"x\", \"id\": \"t{number}\"}}\n"));
    fs::write(&file, lines.collect::<String>()).unwrap();
    fleet.submit(&["-f", file.to_str().unwrap()]).exits(0);
    let server = appends();
    let workers = [(); 2].map(|()| fleet.start_worker(&server, &["--drain", "--jobs", "3"]));
    let told = workers.map(|worker| worker.finish().exits(0).stderr).concat();
    let listed = fleet.lab.agent(&["tasks", "list", "--json"]).exits(0).json();
    for task in listed["tasks"].as_array().unwrap() {
        assert_eq!((&task["state"], &task["attempt"]), (&json!("done"), &json!(1)), "{task} {told}");
        assert_eq!(task["result"]["output"], "done");
        let branch = task["branch"].as_str().unwrap();
        assert_eq!(fleet.lab.git(&["show", &format!("{branch}:log.txt")]), "line\n");
    }
    assert_eq!((listed["tasks"].as_array().unwrap().len(), fleet.branches().len()), (12, 13));
    let worktrees = fleet.lab.git(&["worktree", "list"]);
    assert_eq!(worktrees.lines().count(), 1, "{worktrees}");
}

#[test]
fn several_processes_may_be_the_first_on_a_server() {
    for _ in 0..3 {
        let Some(fleet) = Fleet::start() else { return };
        let first = [(); 8].map(|()| fleet.lab.start(&["tasks"]));
        for process in first {
            process.finish().exits(0);
        }
    }
}

#[test]
fn the_session_of_a_task_on_a_server_can_be_read_on_another_machine() {
    let Some(fleet) = Fleet::start() else { return };
    fleet.submit(&["x", "--id", "a"]).exits(0);
    assert!(fleet.lab.agent(&["tasks", "session", "a"]).exits(3).stderr.contains("has no session"));
    fleet.start_worker(&appends(), &["--drain"]).finish().exits(0);
    let session = fleet.lab.agent(&["tasks", "session", "a"]).exits(0).stdout;
    let other = Lab::new().stdin(&session);
    let id = other.agent(&["sessions", "import", "-"]).exits(0).stdout;
    let shown = other.agent(&["sessions", "show", id.trim()]).exits(0).stdout;
    assert!(shown.contains("echo line >> log.txt") && shown.contains("done"), "{shown}");
    assert!(!session.contains(KEY));
}

#[test]
fn b08_a_task_on_a_server_whose_worker_was_killed_is_done_once_by_one_of_another_machine() {
    let Some(fleet) = Fleet::start() else { return };
    fleet.submit(&["x", "--id", "a"]).exits(0);
    let hangs = Server::start(
        "turns: [{calls: [{name: run_command, arguments: {command: echo killed >> log.txt}}]}, {fault: hang}]",
    );
    let running = fleet.start_worker(&hangs, &["--drain"]);
    hangs.wait_for_request(2);
    running.signal(Signal::KILL);
    running.finish();
    fs::remove_dir_all(fleet.lab.home().join("state/fleet/workers")).unwrap();
    fleet.start_worker(&appends(), &["--drain"]).finish().exits(0);
    let task = fleet.task("a");
    assert_eq!(
        (&task["state"], &task["attempt"], &task["failed_attempts"]),
        (&json!("done"), &json!(2), &json!(1))
    );
    assert_eq!(fleet.lab.git(&["show", "agent/task/a:log.txt"]), "line\n");
    assert_eq!(fleet.branches(), ["agent/task/a", "main"]);
}

#[test]
fn b08_the_next_worker_of_the_machine_resumes_the_session_of_a_killed_one_on_a_server() {
    let Some(fleet) = Fleet::start() else { return };
    fleet.submit(&["x", "--id", "a"]).exits(0);
    let hangs = Server::start(
        "turns: [{calls: [{name: run_command, arguments: {command: echo killed >> log.txt}}]}, {fault: hang}]",
    );
    let running = fleet.start_worker(&hangs, &["--drain"]);
    hangs.wait_for_request(2);
    running.signal(Signal::KILL);
    running.finish();
    let again = Server::start("turns: [{text: the rest is done}]");
    fleet.start_worker(&again, &["--drain"]).finish().exits(0);
    let task = fleet.task("a");
    assert_eq!((&task["state"], &task["attempt"]), (&json!("done"), &json!(1)));
    assert_eq!((&task["result"]["output"], again.requests().len()), (&json!("the rest is done"), 1));
    assert_eq!(fleet.lab.git(&["show", "agent/task/a:log.txt"]), "killed\n");
}

#[test]
fn a_server_that_is_killed_and_started_again_loses_no_task_and_no_result() {
    let Some(mut fleet) = Fleet::start() else { return };
    for id in ["a", "b"] {
        fleet.submit(&["x", "--id", id]).exits(0);
    }
    let model = Server::start("turns: [{text: done, delay_ms: 500, repeat: 9}]");
    let running = fleet.start_worker(&model, &["--drain"]);
    model.wait_for_request(1);
    fleet.nats.kill();
    running.wait_for_stderr("cannot be used now");
    fleet.nats.restart();
    running.finish().exits(0);
    for id in ["a", "b"] {
        assert_eq!(fleet.task(id)["state"], "done");
    }
}

#[test]
fn a_task_whose_worker_is_ended_while_the_server_is_away_has_not_failed() {
    let Some(mut fleet) = Fleet::start() else { return };
    fleet.submit(&["x", "--id", "a"]).exits(0);
    let hangs = Server::start("turns: [{fault: hang}]");
    let running = fleet.start_worker(&hangs, &["--grace", "0"]);
    hangs.wait_for_request(1);
    fleet.nats.kill();
    running.signal(Signal::TERM);
    running.finish();
    fleet.nats.restart();
    fleet.start_worker(&appends(), &["--drain"]).finish().exits(0);
    assert_eq!(fleet.task("a")["state"], "done");
}

#[test]
fn a_result_that_an_ended_worker_could_not_record_is_recorded_by_the_next_one_of_its_machine() {
    let Some(mut fleet) = Fleet::start() else { return };
    fleet.submit(&["x", "--id", "a", "--max-attempts", "1"]).exits(0);
    let model = Server::start("turns: [{text: done, delay_ms: 1000}]");
    let running = fleet.start_worker(&model, &["--grace", "4"]);
    model.wait_for_request(1);
    fleet.nats.kill();
    running.signal(Signal::TERM);
    running.finish().exits(1);
    fleet.nats.restart();
    fleet.start_worker(&model, &["--drain"]).finish().exits(0);
    let task = fleet.task("a");
    assert_eq!(
        (&task["state"], &task["attempt"], &task["failed_attempts"]),
        (&json!("done"), &json!(1), &json!(0))
    );
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn waiting_for_a_task_outlasts_the_server() {
    let Some(mut fleet) = Fleet::start() else { return };
    fleet.submit(&["x", "--id", "a"]).exits(0);
    let waiting = fleet.lab.start(&["tasks", "wait", "a"]);
    let hangs = Server::start("turns: [{fault: hang}]");
    let running = fleet.start_worker(&hangs, &[]);
    // The other command has been connected for longer.
    hangs.wait_for_request(1);
    fleet.nats.kill();
    waiting.wait_for_stderr("cannot be used now");
    fleet.nats.restart();
    running.signal(Signal::KILL);
    running.finish();
    fleet.start_worker(&appends(), &["--drain"]).finish().exits(0);
    let waited = waiting.finish().exits(0);
    assert!(waited.stdout.starts_with("a  done"), "{}", waited.stdout);
}

#[test]
fn a_submission_without_a_server_fails_and_says_what_is_stored() {
    let Some(mut fleet) = Fleet::start() else { return };
    fleet.nats.kill();
    let done = fleet.submit(&["x"]).exits(1);
    for text in ["this command stored no task", "the queue cannot be used now"] {
        assert!(done.stderr.contains(text), "{}", done.stderr);
    }
    assert_eq!(done.stdout, "");
}

#[test]
fn a_server_with_tls_is_used_with_its_authority_and_credentials_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (authority, authority_key) = (path("authority.pem"), path("authority.key"));
    let (certificate, key) = (path("certificate.pem"), path("key.pem"));
    let openssl = |words: &str, files: &[&str]| {
        let begin = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2";
        let mut command = Command::new("openssl");
        assert!(
            command
                .args(begin.split(' '))
                .args(words.split(' '))
                .args(files)
                .output()
                .unwrap()
                .status
                .success()
        );
    };
    openssl("-subj /CN=authority", &["-keyout", &authority_key, "-out", &authority]);
    openssl(
        "-subj /CN=server -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE",
        &["-keyout", &key, "-out", &certificate, "-CA", &authority, "-CAkey", &authority_key],
    );
    let arguments = ["--tls", "--tlscert", &certificate, "--tlskey", &key, "--auth", "queue-token-1234567"];
    let Some(server) = NatsServer::start_in(&std::env::temp_dir(), &arguments) else { return };
    let url = server.url().replace("nats://", "tls://");
    let lab = |nats: &str| {
        let config = format!("fleet: {{queue: '{url}', nats: {{{nats}}}}}");
        Lab::new().env("QUEUE_TOKEN", "queue-token-1234567").config(&config)
    };
    let known = lab(&format!("token_env: QUEUE_TOKEN, ca_file: {authority}"));
    known.agent(&["submit", "x", "--id", "a"]).exits(0);
    assert!(known.agent(&["tasks"]).exits(0).stdout.contains("a  queued"));
    let unknown = lab("token_env: QUEUE_TOKEN").agent(&["tasks"]).exits(1);
    assert!(unknown.stderr.to_lowercase().contains("certificate"), "{}", unknown.stderr);
    let refused = lab(&format!("ca_file: {authority}")).agent(&["tasks"]).exits(4);
    assert!(refused.stderr.contains("authorization"), "{}", refused.stderr);
}

#[test]
fn a_server_of_another_machine_needs_tls_and_credentials_are_in_variables() {
    let lab = Lab::new();
    let refused = |url: &str, text: &str| {
        let done = lab.agent(&["submit", "x", "--queue", url]).exits(3);
        assert!(done.stderr.contains(text), "{url}: {}", done.stderr);
    };
    refused("nats://queue.example:4222", "`tls://`");
    refused("nats://user:word@127.0.0.1:4222", "`fleet.nats.user_env`");
    refused("redis://127.0.0.1", "is no queue");
    let lab = Lab::new().config("fleet: {queue: 'nats:', nats: {token_env: QUEUE_TOKEN}}");
    let done = lab.agent(&["tasks"]).exits(3);
    assert!(done.stderr.contains("QUEUE_TOKEN is not set"), "{}", done.stderr);
}

#[test]
fn b16_figures_are_served_without_those_of_the_queue_while_its_server_is_away() {
    let Some(mut fleet) = Fleet::start() else { return };
    let port = free_port();
    let server = appends();
    let worker = fleet.start_worker(&server, &["--listen", &format!("127.0.0.1:{port}")]);
    fleet.submit(&["x", "--id", "a"]).exits(0);
    worker.wait_for_stderr("a: done");
    assert!(ask(port, "GET /metrics", "").1.contains("my_queue_depth"));
    fleet.nats.kill();
    let (status, figures) = ask(port, "GET /metrics", "");
    assert!(status.contains("200") && figures.contains("my_runner_heartbeat_timestamp_seconds"));
    assert!(!figures.contains("queue_depth"), "{figures}");
    assert!(ask(port, "GET /ready", "").0.contains("503"));
    worker.signal(Signal::TERM);
    worker.finish();
}

#[test]
fn no_key_is_in_the_records_and_objects_of_a_server() {
    let stored = tempfile::tempdir().unwrap();
    let Some(fleet) = NatsServer::start_in(stored.path(), &[]).map(Fleet::on) else { return };
    let reads = format!("calls: [{{name: run_command, arguments: {{command: echo the key {KEY}}}}}]");
    let server = Server::start(&format!("turns: [{{{reads}}}, {{text: it is {KEY}}}]"));
    fleet.submit(&["x", "--id", "a"]).exits(0);
    fleet.start_worker(&server, &["--drain"]).finish().exits(0);
    let task = fleet.task("a");
    assert_eq!(task["state"], "done");
    let session = fleet.lab.agent(&["tasks", "session", "a"]).exits(0).stdout;
    assert!(session.contains("echo the key") && !session.contains(KEY), "{session}");
    assert!(!holding(stored.path(), "echo the key").is_empty(), "what is stored can be searched");
    assert_eq!(holding(stored.path(), KEY), Vec::<String>::new());
}
