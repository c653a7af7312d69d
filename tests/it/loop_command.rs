//! `agent loop` and `agent work`: iterations with clean conversations, checks, limits, resuming.

use crate::support::run::{Finished, KEY, Lab, Running};
use crate::support::schema;
use crate::support::server::Server;
use crate::support::work::{newest_id, resume};
use rustix::process::Signal;
use serde_json::{Value, json};

fn start_loop(lab: &Lab, server: &Server, more: &[&str]) -> Running {
    lab.start_on(server, &[&["loop", "--mode", "yolo"], more].concat())
}

fn run_loop(lab: &Lab, server: &Server, more: &[&str]) -> Finished {
    start_loop(lab, server, more).finish()
}

/// A script in which the first iteration writes `b.txt`, and the second one says that it is done.
const TWO: &str = "turns:
  - calls: [{name: write_file, arguments: {path: b.txt, content: \"new line\\n\"}}]
  - text: Half is done.
  - calls: [{name: write_file, arguments: {path: done.txt, content: \"x\\n\"}}]
  - text: \"All done.\\nCOMPLETE\"
";

fn messages(server: &Server, request: usize) -> Vec<Value> {
    server.requests()[request].messages().to_vec()
}

fn text(messages: &[Value]) -> String {
    messages.iter().filter_map(|message| message["content"].as_str()).collect::<Vec<_>>().join("\n---\n")
}

#[test]
fn a01_all_checks_pass_and_the_tag_stands_in_the_answer() {
    let server = Server::start("turns: [{text: no tag}, {text: \"ok\\nCOMPLETE\"}]");
    let json = run_loop(&Lab::repository(), &server, &["task", "--check", "true", "--json"]).exits(0).json();
    assert_eq!(
        (&json["command"], &json["status"], &json["stop_reason"]),
        (&json!("loop"), &json!("success"), &json!("done"))
    );
    schema::valid(&schema::of("work"), &json);
    assert_eq!(json["runs"].as_array().unwrap().len(), 2);
    assert_eq!(json["runs"][1]["checks"][0]["passed"], true);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a01_a_tag_without_passing_checks_is_no_success() {
    let server = Server::start("turns: [{text: INCOMPLETE}, {text: COMPLETE}, {text: COMPLETE}]");
    let done = run_loop(
        &Lab::repository(),
        &server,
        &["task", "--check", "test -e no.txt", "--max-iterations", "2", "--json"],
    );
    let json = done.exits(2).json();
    assert_eq!((&json["status"], &json["stop_reason"]), (&json!("partial"), &json!("max_iterations")));
}

#[test]
fn a02_each_iteration_begins_with_a_clean_conversation_and_is_told_what_was_done() {
    let server = Server::start(TWO);
    let lab = Lab::repository();
    run_loop(&lab, &server, &["make it", "--check", "test -e done.txt"]).exits(0);
    let second = messages(&server, 2);
    let all = text(&second);
    assert!(second.iter().all(|message| message["role"] != "assistant"), "{all}");
    for part in [
        "make it\n\n[SYSTEM] This is iteration 2 of at most 25.",
        "- test -e done.txt",
        "## Changes since the first iteration began",
        "+new line",
        "## Failed check: test -e done.txt",
        "Command failed with exit_code: 1",
        "## Progress of the iterations before",
        "Half is done.",
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
    assert!(!text(&messages(&server, 0)).contains("Changes since"));
}

#[test]
fn a02_a_workspace_without_a_repository_is_told_and_works() {
    let server = Server::start(TWO);
    let done = run_loop(&Lab::new(), &server, &["task", "--check", "test -e done.txt"]).exits(0);
    assert!(
        done.stderr.contains("the model is not shown the changes of earlier iterations"),
        "{}",
        done.stderr
    );
}

#[test]
fn a03_a_loop_ends_at_its_cost() {
    let prices =
        "models:\n  openai/mock: {input: 0.01, output: 40, cached_read: 0.001, output_limit: 50000}\n";
    let lab = Lab::repository().file("prices.yaml", prices).config("costs: {prices_file: prices.yaml}");
    let server = Server::start("turns: [{text: more, usage: {input: 0, output: 10000}, repeat: 9}]");
    let done = run_loop(&lab, &server, &["task", "--check", "false", "--max-cost", "0.8", "--json"]);
    let json = done.exits(2).json();
    assert_eq!(json["stop_reason"], "budget_exceeded", "{json}");
    assert_eq!((&json["cost_usd"], server.requests().len()), (&json!(0.8), 2));
}

#[test]
fn a03_a_loop_ends_at_its_time() {
    let server = Server::start("turns: [{fault: hang}]");
    let json =
        run_loop(&Lab::repository(), &server, &["task", "--check", "false", "--max-time", "1", "--json"])
            .exits(5)
            .json();
    assert_eq!(
        (&json["stop_reason"], &json["runs"][0]["stop_reason"]),
        (&json!("timeout"), &json!("timeout"))
    );
}

#[test]
fn a03_the_same_failures_for_the_same_files_end_a_loop_the_third_time() {
    let server = Server::start("turns: [{text: nothing, repeat: 9}]");
    let json = run_loop(&Lab::repository(), &server, &["task", "--check", "false", "--json"]).exits(2).json();
    assert_eq!((&json["stop_reason"], server.requests().len()), (&json!("no_progress"), 3));
}

#[test]
fn a04_in_a_worktree_the_users_files_and_branch_stay_and_the_changes_are_on_a_branch() {
    let server = Server::start(TWO);
    let lab = Lab::repository();
    let git = |args: &[&str]| {
        let done = std::process::Command::new("git").args(args).current_dir(lab.ws()).output().unwrap();
        String::from_utf8(done.stdout).unwrap().trim_end().to_owned()
    };
    let head = git(&["rev-parse", "HEAD"]);
    let more = ["task", "--check", "test -e done.txt", "--worktree", "--json"];
    let json = run_loop(&lab, &server, &more).exits(0).json();
    schema::valid(&schema::of("work"), &json);
    let branch = json["worktree"]["branch"].as_str().unwrap();
    assert_eq!(git(&["show", "--format=", "--name-only", branch]), "b.txt\ndone.txt");
    assert_eq!((git(&["rev-parse", "HEAD"]), git(&["status", "--porcelain"])), (head, String::new()));
    assert!(text(&messages(&server, 2)).contains("+new line"));
    let id = json["work_id"].as_str().unwrap();
    let cleaned = lab.agent(&["parallel-cleanup", id]).exits(0).stdout;
    assert!(cleaned.contains(&format!("refs/agent/kept/{id}-1")), "{cleaned}");
}

#[test]
fn a04_a_loop_in_a_worktree_that_was_killed_goes_on_there() {
    let lab = Lab::repository();
    let server = Server::start(
        "turns: [{calls: [{name: write_file, arguments: {path: b.txt, content: x}}]}, {fault: hang}]",
    );
    let running = start_loop(&lab, &server, &["task", "--check", "test -e b.txt", "--worktree"]);
    server.wait_for_request(2);
    running.signal(Signal::KILL);
    running.finish();
    let id = newest_id(&lab);
    let again = Server::start("turns: [{text: COMPLETE}]");
    let done = resume(&lab, &again, "loop", &id).exits(0);
    assert!(done.stderr.contains(&format!("git merge agent/{id}-1")), "{}", done.stderr);
    assert!(!lab.exists("b.txt"));
    lab.git(&["merge", "-q", &format!("agent/{id}-1")]);
    assert_eq!(lab.read("b.txt"), "x");
}

#[test]
fn a05_report_and_progress_file_tell_each_iteration() {
    let server = Server::start(TWO);
    let lab = Lab::repository();
    let more =
        ["task", "--check", "test -e done.txt", "--report-file", "r.md", "--progress-file", "progress.md"];
    let done = run_loop(&lab, &server, &more).exits(0);
    assert!(done.stderr.contains("agent loop: success, done | 2 runs"), "{}", done.stderr);
    let report = lab.read("r.md");
    assert!(report.contains("# agent loop: success (done)"), "{report}");
    assert!(report.contains("| iteration 1 | success | llm_done | 2 |"), "{report}");
    let progress = lab.read("progress.md");
    assert!(
        progress
            .contains("## iteration 1\n\nResult: llm_done\n- `test -e done.txt`: failed\n\nHalf is done."),
        "{progress}"
    );
    assert!(progress.contains("## iteration 2"), "{progress}");
}

#[test]
fn f06_the_section_ralph_holds_when_no_flag_is_given() {
    let server = Server::start("turns: [{text: READY, repeat: 9}]");
    let lab = Lab::repository().config("ralph: {max_iterations: 1, completion_tag: READY}");
    run_loop(&lab, &server, &["task", "--check", "true"]).exits(0);
    let json = run_loop(&lab, &server, &["task", "--check", "false", "--json"]).exits(2).json();
    assert_eq!(json["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn a_loop_without_a_check_or_a_task_is_a_usage_error() {
    let server = Server::start("turns: [{text: never}]");
    let lab = Lab::repository().file("spec.md", "the spec\n");
    for (more, why) in [
        (&["task"][..], "a loop needs at least one `--check CMD`"),
        (&["task", "--spec", "spec.md", "--check", "true"], "give either a task or `--spec FILE`"),
        (&["--spec", "no.md", "--check", "true"], "there is no such file"),
        (&["task", "--check", "true", "--dry-run"], "it has no `--dry-run`"),
    ] {
        let done = run_loop(&lab, &server, more).exits(3);
        assert!(done.stderr.contains(why), "{}", done.stderr);
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_failed_run_ends_the_loop_with_its_exit_code() {
    let server = Server::start("turns: [{fault: {http: {status: 401, body: no}}}]");
    let json = run_loop(&Lab::repository(), &server, &["task", "--check", "true", "--json"]).exits(4).json();
    assert_eq!((&json["status"], &json["stop_reason"]), (&json!("failed"), &json!("run_failed")));
}

#[test]
fn a_loop_whose_run_was_interrupted_is_resumed() {
    let (lab, server) = (Lab::repository(), Server::start("turns: [{fault: hang}]"));
    let running = start_loop(&lab, &server, &["task", "--check", "true", "--json"]);
    server.wait_for_request(1);
    running.signal(Signal::INT);
    let json = running.finish().exits(130).json();
    assert_eq!(json["stop_reason"], "user_interrupt");
    let id = json["work_id"].as_str().unwrap();
    let again = Server::start("turns: [{text: COMPLETE}]");
    let json = resume(&lab, &again, "loop", id).exits(0).json();
    assert_eq!((&json["stop_reason"], json["runs"].as_array().unwrap().len()), (&json!("done"), 1));
}

#[test]
fn a_loop_waits_for_an_approval_and_goes_on_with_the_approved_call() {
    let lab = Lab::repository().unprivileged();
    let server =
        Server::start("turns: [{calls: [{name: write_file, arguments: {path: b.txt, content: x}}]}]");
    let args = ["loop", "task", "--check", "test -e b.txt", "--approvals", "pause", "--json"];
    let json = lab.agent_on(&server, &args).exits(2).json();
    assert_eq!(json["stop_reason"], "awaiting_approval", "{json}");
    let call = json["runs"][0]["awaiting_approval"][0]["id"].as_str().unwrap();
    lab.agent(&["approve", call]).exits(0);
    let again = Server::start("turns: [{text: COMPLETE}]");
    let id = json["work_id"].as_str().unwrap();
    let json = resume(&lab, &again, "loop", id).exits(0).json();
    assert_eq!((&json["stop_reason"], lab.read("b.txt")), (&json!("done"), "x".to_owned()));
}

#[test]
fn a_check_that_was_interrupted_is_not_a_failed_one() {
    let (lab, server) = (Lab::repository(), Server::start("turns: [{text: COMPLETE}]"));
    let running = start_loop(&lab, &server, &["task", "--check", "touch began; sleep 60", "--json"]);
    lab.wait_for_file("began");
    running.signal(Signal::INT);
    let json = running.finish().exits(130).json();
    assert_eq!((&json["stop_reason"], &json["runs"][0]["checks"]), (&json!("user_interrupt"), &Value::Null));
}

#[test]
fn a_loop_that_was_killed_goes_on_where_it_was_and_repeats_nothing() {
    let lab = Lab::repository();
    let server = Server::start(
        "turns:
  - calls: [{name: run_command, arguments: {command: echo one >> log.txt}}]
  - text: Half is done.
  - calls: [{name: run_command, arguments: {command: echo two >> log.txt}}]
  - fault: hang
",
    );
    let running = start_loop(&lab, &server, &["task", "--check", "test -e done.txt", "--json"]);
    server.wait_for_request(4);
    running.signal(Signal::KILL);
    running.finish();
    let listed = lab.agent(&["work", "list"]).exits(0).stdout;
    assert!(listed.contains("loop  not ended  1 runs  task"), "{listed}");
    let id = listed.split_whitespace().next().unwrap().to_owned();
    let server = Server::start(
        "turns: [{calls: [{name: write_file, arguments: {path: done.txt, content: x}}]}, {text: COMPLETE}]",
    );
    let json = resume(&lab, &server, "loop", &id).exits(0).json();
    assert_eq!((&json["status"], json["runs"].as_array().unwrap().len()), (&json!("success"), 2), "{json}");
    assert_eq!(lab.read("log.txt"), "one\ntwo\n");
    assert_eq!(json["work_id"], id.as_str());
    let words = lab.agent(&["work", "show", &id, "--json"]).exits(0).json();
    assert_eq!(words["stop_reason"], "done");
    let done = lab.agent(&["loop", "resume", &id]).exits(3);
    assert!(done.stderr.contains("ended with success"), "{}", done.stderr);
    lab.agent(&["work", "rm", &id]).exits(0);
    assert!(lab.agent(&["work"]).exits(0).stdout.contains("no records"));
}

#[test]
fn a_key_of_the_command_line_is_not_in_the_record() {
    let (lab, server) = (Lab::repository(), Server::start("turns: [{text: COMPLETE}]"));
    run_loop(&lab, &server, &["task", "--check", "true"]).exits(0);
    assert_eq!(crate::support::run::holding(&lab.home(), KEY), Vec::<String>::new());
}

#[test]
fn the_stream_has_the_events_of_all_runs_and_one_document_at_its_end() {
    let server = Server::start("turns: [{text: no tag}, {text: COMPLETE}]");
    let done =
        run_loop(&Lab::repository(), &server, &["task", "--check", "true", "--output-format", "stream-json"])
            .exits(0);
    let lines: Vec<Value> = done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| lines.iter().filter(|line| line["type"] == kind).count();
    assert_eq!((of("session_start"), of("result"), of("work_result")), (2, 0, 1));
    let last = lines.last().unwrap();
    assert_eq!((&last["type"], &last["stop_reason"]), (&json!("work_result"), &json!("done")));
    let parent = lines.iter().find(|line| line["type"] == "session_start").unwrap();
    assert_eq!(parent["work_id"], last["work_id"]);
}
