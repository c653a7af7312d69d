//! `agent pipeline`: order, variables, conditions, failures, checkpoints, trust, resuming.

use crate::support::run::{Finished, KEY, Lab};
use crate::support::schema;
use crate::support::server::Server;
use crate::support::work::{names, newest_id, resume};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

fn args<'a>(url: &'a str, words: &[&'a str]) -> Vec<&'a str> {
    let model = ["--model", "openai/mock", "--api-base", url, "--api-key", KEY, "--mode", "yolo"];
    [&["pipeline"], words, &model[..]].concat()
}

fn run_pipeline(lab: &Lab, server: &Server, more: &[&str]) -> Finished {
    lab.agent(&args(&server.url(), &[&["../p.yaml"], more].concat()))
}

fn prompt(server: &Server, request: usize) -> String {
    let body = &server.requests()[request].body;
    let messages = body["messages"].as_array().unwrap();
    let texts = messages.iter().filter(|message| message["role"] == "user");
    texts.filter_map(|message| message["content"].as_str()).collect::<Vec<_>>().join("\n---\n")
}

/// A server that answers every request with the same text.
fn answers(text: &str) -> Server {
    Server::turns(json!([{"text": text, "repeat": 20}]))
}

#[test]
fn a09_steps_run_in_order_and_an_output_is_a_variable_of_the_steps_after_it() {
    let lab = Lab::repository().pipeline(
        "name: demo
variables: {branch: main, level: low}
steps:
  - {name: plan, prompt: 'Plan {{branch}} {{ level }} {{unknown}}', output_var: plan}
  - {name: show, run: 'printf \"%s on %s\\n\" \"$AGENT_VAR_PLAN\" \"$AGENT_VAR_BRANCH\"', output_var: shown}
  - {name: do, prompt: 'Do: {{shown}}.'}
",
    );
    let server = Server::start("turns: [{text: the plan}, {text: the end}]");
    let json = run_pipeline(&lab, &server, &["--var", "level=high", "--json"]).exits(0).json();
    assert_eq!(prompt(&server, 0), "Plan main high {{unknown}}");
    assert_eq!(prompt(&server, 1), "Do: the plan on main.");
    assert_eq!(
        (&json["command"], &json["status"], &json["output"]),
        (&json!("pipeline"), &json!("success"), &json!("the end"))
    );
    assert_eq!(names(&json), ["plan", "show", "do"]);
    assert_eq!(json["runs"][1]["output"], "the plan on main");
    assert_eq!(json["steps"], 2);
    schema::valid(&schema::of("work"), &json);
}

#[test]
fn a09_the_agents_of_a_chain_receive_the_answer_of_the_one_before() {
    let lab = Lab::repository().pipeline("steps: [{name: c, prompt: 'The task', chain: [plan, review], output_var: x}, {prompt: 'x is {{x}}'}]");
    let server = Server::start("turns: [{text: a plan}, {text: a review}, {text: end}]");
    let json = run_pipeline(&lab, &server, &["--json"]).exits(0).json();
    assert_eq!(names(&json), ["c/1", "c/2", "step-2"]);
    let second = prompt(&server, 1);
    assert!(
        second.starts_with("The task")
            && second.contains("## Answer of the agent before")
            && second.contains("a plan"),
        "{second}"
    );
    assert_eq!(prompt(&server, 2), "x is a review");
}

#[test]
fn a10_all_errors_are_reported_at_once_with_their_positions() {
    let lab = Lab::repository().pipeline(
        "steps:
  - task: do it
  - {name: x, run: 'echo {{y}}', agnt: build}
  - {prompt: '', agent: nobody, if: 'a =='}
",
    );
    let server = answers("never");
    for words in [&["pipeline", "../p.yaml"][..], &["pipeline", "validate", "../p.yaml"]] {
        let done = lab.agent(words).exits(3);
        for part in [
            "../p.yaml is no pipeline: 6 errors",
            "../p.yaml:2:5: unknown key `task` (did you mean `prompt`?)",
            "../p.yaml:3:20: `{{y}}` in a command: a variable never becomes part of a command, write \"$AGENT_VAR_Y\"",
            "../p.yaml:3:34: unknown key `agnt` (did you mean `agent`?)",
            "../p.yaml:4:14: `prompt` is empty",
            "no agent is called `nobody`",
            "`if` is no expression",
        ] {
            assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
        }
    }
    let json = run_pipeline(&lab, &server, &["--json"]).exits(3).json();
    assert!(json["error"]["message"].as_str().unwrap().contains("did you mean `prompt`?"), "{json}");
    assert_eq!((&json["stop_reason"], server.requests().len()), (&Value::Null, 0));
    let done = lab.agent(&["pipeline", "validate", "../none.yaml"]).exits(3);
    assert!(done.stderr.contains("../none.yaml does not exist"), "{}", done.stderr);
    let lab = lab.pipeline("steps: [{run: 'true'}]");
    let done = lab.agent(&["pipeline", "validate", "../p.yaml"]).exits(0);
    assert_eq!(done.stdout, "../p.yaml: valid, 1 steps\n");
}

#[test]
fn a11_a_step_whose_condition_is_false_is_skipped() {
    let lab = Lab::repository().pipeline("variables: {run: 'no', level: '3'}
steps:
  - {name: truth, condition: '{{run}}', run: touch no1}
  - {name: expression, if: 'level|number > 3', run: touch no2}
  - {name: command, if_command: 'test \"$AGENT_VAR_LEVEL\" = 4', run: touch no3}
  - {name: after, if: \"steps.truth.status == 'skipped' and steps.command.output == ''\", run: touch yes1}
  - {name: all, condition: '1', if: \"steps['after'].status == 'success'\", if_command: test -e yes1, run: touch yes2}
");
    let json = lab.agent(&["pipeline", "../p.yaml", "--json"]).exits(0).json();
    let skipped: Vec<&str> =
        json["runs"].as_array().unwrap().iter().filter_map(|run| run["skipped"].as_str()).collect();
    assert_eq!(
        skipped,
        [
            "condition is `no`",
            "if: `level|number > 3` is false",
            "if_command: `test \"$AGENT_VAR_LEVEL\" = 4` exited with 1"
        ]
    );
    assert!(lab.exists("yes1") && lab.exists("yes2"));
    assert!(!lab.exists("no1") && !lab.exists("no2") && !lab.exists("no3"));
    let report = lab.agent(&["pipeline", "../p.yaml", "--report", "markdown"]).exits(0).stderr;
    assert!(report.contains("| truth | skipped | condition is `no` |"), "{report}");
}

#[test]
fn a11_a_condition_that_cannot_be_decided_is_a_failure() {
    for (condition, why, code, reason) in [
        ("if: misspelt == 'x'", "if: `misspelt == 'x'`: undefined value", 1, "run_failed"),
        ("if_command: sleep 60", "It took longer than its 1 s and was ended", 5, "timeout"),
    ] {
        let lab = Lab::repository().pipeline(format!("steps: [{{name: a, {condition}, run: touch no}}]"));
        let done = lab.agent(&["pipeline", "../p.yaml", "--json", "--timeout", "1"]).exits(code);
        let json = done.json();
        let message = json["runs"][0]["error"]["message"].as_str().unwrap();
        assert!(message.contains(why), "{message}");
        assert_eq!((&json["stop_reason"], lab.exists("no")), (&json!(reason), false));
    }
}

#[test]
fn a12_a_failing_step_stops_the_pipeline() {
    for (step, code, reason) in [
        ("run: exit 3", 1, "run_failed"),
        ("run: 'true', checks: ['true', 'false']", 2, "step_failed"),
        ("run: sleep 60, timeout: 1", 5, "timeout"),
        ("prompt: hang, timeout: 1", 5, "timeout"),
    ] {
        let lab = Lab::repository().pipeline(format!("steps: [{{name: a, {step}}}, {{run: touch after}}]"));
        let server = Server::start("turns: [{fault: hang}]");
        let json = run_pipeline(&lab, &server, &["--json"]).exits(code).json();
        assert_eq!((&json["stop_reason"], lab.exists("after")), (&json!(reason), false), "{step}");
        assert_eq!(names(&json), ["a"], "{step}");
    }
    let lab = Lab::repository().pipeline("steps: [{prompt: x}, {run: touch after}]");
    let server = Server::start("turns: [{fault: {http: {status: 401, body: no}}}]");
    let json = run_pipeline(&lab, &server, &["--json"]).exits(4).json();
    assert_eq!((&json["stop_reason"], lab.exists("after")), (&json!("run_failed"), false));
    let server = Server::start("turns: [{calls: [{name: list_files, arguments: {}}], repeat: 9}]");
    let json = run_pipeline(&lab, &server, &["--json", "--max-steps", "1"]).exits(2).json();
    assert_eq!((&json["stop_reason"], lab.exists("after")), (&json!("step_failed"), false));
}

#[test]
fn a12_continue_on_error_goes_on_but_is_no_success() {
    let lab = Lab::repository().pipeline("steps:
  - {name: a, run: 'exit 3', continue_on_error: true}
  - {name: b, run: 'true', checks: 'false', continue_on_error: true}
  - {name: c, if: no_such, run: 'true', continue_on_error: true}
  - {name: d, if: \"steps.a.status == 'failed' and steps.b.status == 'partial' and steps.c.status == 'failed'\", run: touch after}
");
    let done = lab.agent(&["pipeline", "../p.yaml", "--json"]).exits(2);
    let json = done.json();
    assert_eq!((&json["status"], &json["stop_reason"]), (&json!("partial"), &json!("step_failed")));
    assert!(lab.exists("after"));
    assert_eq!(names(&json), ["a", "b", "c", "d"]);
    let told = lab.agent(&["pipeline", "../p.yaml"]).exits(2).stderr;
    assert!(
        told.contains("Command failed with exit_code: 3") && told.contains("partial, a step failed"),
        "{told}"
    );
}

#[test]
fn a12_wrong_arguments_are_exit_3() {
    let lab = Lab::repository().pipeline("steps: [{name: a, run: touch no}, {name: b, run: touch no}]");
    for (more, why) in [
        (&["--from-step", "c"][..], "--from-step: no step is called `c`; the steps are a, b"),
        (&["--var", "x"], "--var x: write NAME=VALUE"),
        (&["--var", "1=x"], "the name of a variable"),
        (&["more"], "give one FILE"),
    ] {
        let done = lab.agent(&[&["pipeline", "../p.yaml"], more].concat()).exits(3);
        assert!(done.stderr.contains(why), "{}", done.stderr);
    }
    assert!(!lab.exists("no"));
}

#[test]
fn a13_a_commit_has_what_the_step_changed_and_nothing_that_was_there_before() {
    let lab = Lab::repository().pipeline(
        "steps:
  - {name: write, prompt: write, checkpoint: commit}
  - {name: rest, run: 'echo x >> log.txt; git rm -q --cached d.txt; rm d.txt', checkpoint: commit}
  - {name: nothing, run: 'true', checkpoint: commit}
",
    );
    fs::write(lab.ws().join("d.txt"), "d\n").unwrap();
    lab.git(&["add", "d.txt"]);
    lab.git(&["commit", "-q", "-m", "second"]);
    fs::write(lab.ws().join(".git/hooks/post-commit"), "#!/bin/sh\ntouch hooked\n").unwrap();
    fs::write(lab.ws().join("staged.txt"), "staged\n").unwrap();
    fs::write(lab.ws().join("a.txt"), "changed by the user\n").unwrap();
    lab.git(&["add", "staged.txt"]);
    let server = Server::start(
        "turns:
  - calls: [{name: write_file, arguments: {path: b.txt, content: \"new\\n\"}}, {name: run_command, arguments: {command: echo more >> a.txt}}]
  - text: done
",
    );
    let done = run_pipeline(&lab, &server, &[]).exits(0);
    assert!(
        done.stderr.contains("not in the checkpoint") && done.stderr.contains("a.txt, staged.txt"),
        "{}",
        done.stderr
    );
    let git = |words: &[&str]| lab.git(words);
    assert_eq!(
        git(&["log", "--format=%s"]).trim(),
        "agent pipeline: rest\nagent pipeline: write\nsecond\nfirst"
    );
    assert_eq!(git(&["show", "--format=", "--name-status", "HEAD~1"]).trim(), "A\tb.txt");
    assert_eq!(git(&["show", "--format=", "--name-status", "HEAD"]).trim(), "D\td.txt\nA\tlog.txt");
    assert_eq!(git(&["status", "--porcelain"]), " M a.txt\nA  staged.txt\n");
    assert!(!lab.exists("hooked"));
    assert_eq!(git(&["fsck"]).trim(), "");
}

// Fault A4
#[test]
fn a_checkpoint_of_a_step_is_committed_in_a_linked_worktree() {
    let lab = Lab::repository().pipeline("steps: [{name: a, run: echo x > new.txt, checkpoint: commit}]");
    lab.git(&["worktree", "add", "-q", "-b", "side", "../linked"]);
    lab.agent(&["pipeline", "../p.yaml", "--workspace", "../linked"]).exits(0);
    assert_eq!(lab.git(&["log", "--format=%s", "side"]).trim(), "agent pipeline: a\nfirst");
}

// Fault A5
#[test]
fn a_checkpoint_is_the_first_commit_of_a_repository_without_one() {
    for (checkpoint, commits) in [("commit", 1), ("true", 0)] {
        let lab = Lab::new().file("a.txt", "a\n");
        lab.git(&["init", "-q"]);
        let steps = format!("steps: [{{name: a, run: echo x > new.txt, checkpoint: {checkpoint}}}]");
        let lab = lab.pipeline(steps);
        let json = lab.agent(&["pipeline", "../p.yaml", "--json"]).exits(0).json();
        let reference = format!("refs/agent/{}/1", json["work_id"].as_str().unwrap());
        let named = lab.git(&["ls-tree", "-r", "--name-only", &reference]);
        assert_eq!(lab.git(&["rev-list", "--parents", &reference]).split_whitespace().count(), 1);
        assert!(named.contains("new.txt"), "{named}");
        assert_eq!(lab.git(&["rev-list", "--branches"]).lines().count(), commits, "{checkpoint}");
    }
}

#[test]
fn a13_a_dry_run_prints_the_plan_without_a_request_or_a_process() {
    let lab = Lab::repository().pipeline(
        "steps:
  - {name: a, prompt: 'Plan {{x}}', if_command: touch no, output_var: y, checks: touch no}
  - {name: b, run: touch no, checkpoint: commit}
",
    );
    let server = answers("never");
    let done = run_pipeline(&lab, &server, &["--dry-run", "--var", "x=it", "--from-step", "b"]).exits(0);
    assert_eq!(
        done.stdout,
        "1. a\n   skipped: it is before --from-step\n2. b\n   run: touch no\n   checkpoint: commit\n"
    );
    let done = run_pipeline(&lab, &server, &["--dry-run", "--var", "x=it", "--json"]).exits(0);
    assert!(
        done.json()["output"].as_str().unwrap().contains("   prompt: Plan it\n   check: touch no\n"),
        "{}",
        done.stdout
    );
    assert_eq!((server.requests().len(), lab.exists("no")), (0, false));
    assert!(lab.journals().is_empty());
}

#[test]
fn a13_a_pipeline_begins_with_the_step_that_is_named() {
    let lab = Lab::repository()
        .pipeline("steps: [{name: a, run: touch a}, {name: b, run: touch b}, {name: c, run: touch c}]");
    let json = lab.agent(&["pipeline", "../p.yaml", "--from-step", "b", "--json"]).exits(0).json();
    assert!(!lab.exists("a") && lab.exists("b") && lab.exists("c"));
    assert_eq!(json["runs"][0]["skipped"], "it is before --from-step");
}

#[test]
fn a14_a_checkpoint_is_a_reference_with_the_whole_work_that_is_not_committed() {
    let lab = Lab::repository().pipeline("steps: [{name: a, run: echo x > new.txt, checkpoint: true}]");
    fs::write(lab.ws().join("a.txt"), "changed by the user\n").unwrap();
    let json = lab.agent(&["pipeline", "../p.yaml", "--json"]).exits(0).json();
    let reference = format!("refs/agent/{}/1", json["work_id"].as_str().unwrap());
    assert_eq!(lab.git(&["show", "--format=", "--name-status", &reference]).trim(), "M\ta.txt\nA\tnew.txt");
    assert_eq!(lab.git(&["log", "--format=%s"]).trim(), "first");
    assert_eq!(lab.git(&["status", "--porcelain"]), " M a.txt\n?? new.txt\n");
    assert_eq!(json["runs"][0]["checks"][1]["name"], "checkpoint");
    let bare = Lab::new();
    let bare = bare.pipeline("steps: [{run: touch no, checkpoint: true}]");
    let json = bare.agent(&["pipeline", "../p.yaml", "--json"]).exits(1).json();
    let message = json["runs"][0]["error"]["message"].as_str().unwrap();
    assert!(message.contains("not a git repository") && !bare.exists("no"), "{message}");
}

#[test]
fn hostile_values_never_run_and_never_expand() {
    let hostile = "$(touch x) `touch x` {{y}} \"; touch x; ' \n touch x; \\";
    let lab = Lab::repository().pipeline("variables: {y: SECOND}
steps:
  - {name: ask, prompt: ask, output_var: answer}
  - {name: show, run: 'printf %s \"$AGENT_VAR_ANSWER\" > out.txt; printf %s \"$AGENT_VAR_GIVEN\" > given.txt', if: 'answer == given', checks: 'test -n \"$AGENT_VAR_ANSWER\"'}
  - {name: tell, prompt: '[{{answer}}][{{given}}]', condition: '{{answer}}', if_command: 'test -n \"$AGENT_VAR_ANSWER\"'}
");
    let server = answers(hostile);
    let given = format!("given={hostile}");
    let json = run_pipeline(&lab, &server, &["--var", &given, "--json"]).exits(0).json();
    assert_eq!((lab.read("out.txt").as_str(), lab.read("given.txt").as_str()), (hostile, hostile));
    assert_eq!(prompt(&server, 1), format!("[{hostile}][{hostile}]"));
    assert!(!lab.exists("x") && json["status"] == "success", "{json}");
}

#[test]
fn a_long_output_is_cut_for_its_variable_and_that_is_said() {
    let lab = Lab::repository().pipeline("steps: [{name: a, run: 'head -c 70000 /dev/zero | tr \"\\\\0\" x', output_var: x}, {run: 'printf %s \"$AGENT_VAR_X\" | wc -c'}]");
    let done = lab.agent(&["pipeline", "../p.yaml"]).exits(0);
    assert_eq!(done.stdout.trim(), "65536");
    assert!(
        done.stderr.contains("the output of step a has 70000 bytes; its variable has the first 65536"),
        "{}",
        done.stderr
    );
}

#[test]
fn a_pipeline_of_the_workspace_runs_nothing_until_it_is_trusted() {
    let pipeline = "steps: [{prompt: x, if_command: touch no}, {run: sh ./tool.sh}]";
    let lab = Lab::repository().pipeline("").file("ci/p.yaml", pipeline).file("tool.sh", "touch ran\n");
    let server = answers("hi");
    let run = |more: &[&str]| lab.agent(&args(&server.url(), &[&["ci/p.yaml"], more].concat()));
    let done = run(&[]).exits(3);
    assert!(done.stderr.contains("run `agent trust --pipeline ci/p.yaml`"), "{}", done.stderr);
    std::os::unix::fs::symlink(lab.ws().join("ci/p.yaml"), lab.outside().join("link.yaml")).unwrap();
    lab.agent(&args(&server.url(), &["../link.yaml"])).exits(3);
    std::os::unix::fs::symlink(lab.outside().join("p.yaml"), lab.ws().join("out.yaml")).unwrap();
    fs::write(lab.outside().join("p.yaml"), pipeline).unwrap();
    lab.agent(&args(&server.url(), &["out.yaml"])).exits(3);
    assert_eq!((server.requests().len(), lab.exists("no"), lab.exists("ran")), (0, false, false));
    let shown = lab.agent(&["trust", "--show", "--pipeline", "ci/p.yaml"]).exits(0).stdout;
    assert!(shown.contains("    sh ./tool.sh") && shown.contains("named by the pipeline"), "{shown}");
    let hash = shown.lines().find_map(|line| line.strip_prefix("hash    ")).unwrap();
    run(&["--trust-workspace=00"]).exits(3);
    run(&[&format!("--trust-workspace={hash}")]).exits(0);
    assert!(lab.exists("ran"));
    run(&[]).exits(3);
    lab.agent(&["trust", "--yes", "--pipeline", "ci/p.yaml"]).exits(0);
    run(&[]).exits(0);
    lab.agent_on(&server, &["run", "hi"]).exits(0);
    fs::write(lab.ws().join("tool.sh"), "touch other\n").unwrap();
    run(&[]).exits(3);
    run(&[&format!("--trust-workspace={hash}")]).exits(3);
    assert!(!lab.exists("other"));
    lab.agent(&["trust", "--yes", "--pipeline", "ci/p.yaml"]).exits(0);
    run(&["--trust-workspace"]).exits(0);
    lab.agent(&["trust", "--revoke"]).exits(0);
    run(&[]).exits(3);
}

// Fault E8: below the root of a repository, its pipelines counted as the user's own.
#[test]
fn a_pipeline_of_the_repository_around_the_workspace_runs_nothing_until_it_is_trusted() {
    let lab = Lab::repository()
        .pipeline("")
        .file("pl.yaml", "steps: [{run: sh ../tool.sh}]")
        .file("tool.sh", "touch ran\n")
        .file("sub/deep/x", "x");
    lab.git(&["init", "-q"]);
    let server = answers("hi");
    let agent = |words: &[&str]| {
        let mut command = lab.command(words);
        let output = command.current_dir(lab.ws().join("sub")).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let url = server.url();
    let run = args(&url, &["../pl.yaml"]);
    let (code, said) = agent(&run);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("run `agent trust --pipeline ../pl.yaml`") && !lab.exists("sub/ran"), "{said}");
    let (_, shown) = agent(&["trust", "--show", "--pipeline", "../pl.yaml"]);
    assert!(shown.contains("\n../tool.sh\n  named by the pipeline"), "{shown}");
    let hash = shown.lines().find_map(|line| line.strip_prefix("hash    ")).unwrap();
    let exactly = format!("--trust-workspace={hash}");
    let with_hash = args(&url, &["../pl.yaml", &exactly]);
    assert_eq!(agent(&with_hash).0, Some(0));
    assert!(lab.exists("sub/ran"));
    assert_eq!(agent(&["trust", "--yes", "--pipeline", "../pl.yaml"]).0, Some(0));
    assert_eq!(agent(&run).0, Some(0));
    fs::write(lab.ws().join("tool.sh"), "touch other\n").unwrap();
    assert_eq!((agent(&run).0, agent(&with_hash).0), (Some(3), Some(3)));
    assert!(!lab.exists("sub/other"));
    fs::write(lab.outside().join("own.yaml"), "steps: [{run: 'true'}]").unwrap();
    assert_eq!(
        agent(&args(&url, &["../../own.yaml"])).0,
        Some(0),
        "outside of the repository it is the user's"
    );
}

/// A pipeline whose steps append a line each.
const LINES: &str = "steps:
  - {name: one, prompt: one, output_var: first}
  - {name: two, run: 'echo two >> log.txt; echo \"$AGENT_VAR_FIRST\"', output_var: second}
  - {name: three, prompt: 'three after {{second}}', checkpoint: commit}
  - {name: four, run: echo four >> log.txt}
";

fn append(line: &str) -> Value {
    json!({"calls": [{"name": "run_command", "arguments": {"command": format!("echo {line} >> log.txt")}}]})
}

#[test]
fn a_pipeline_that_was_killed_goes_on_where_it_was_and_repeats_nothing() {
    let lab = Lab::repository().pipeline(LINES);
    let turns = [append("one"), json!({"text": "the first"}), append("three"), json!({"fault": "hang"})];
    let server = Server::turns(turns);
    let running = lab.start(&args(&server.url(), &["../p.yaml", "--json"]));
    server.wait_for_request(4);
    running.signal(Signal::KILL);
    running.finish();
    let listed = lab.agent(&["work", "list"]).exits(0).stdout;
    assert!(listed.contains("pipeline  not ended  2 runs  ../p.yaml"), "{listed}");
    let id = listed.split_whitespace().next().unwrap();
    let again = Server::start("turns: [{text: the third}]");
    let json = resume(&lab, &again, "pipeline", id).exits(0).json();
    assert_eq!(lab.read("log.txt"), "one\ntwo\nthree\nfour\n");
    assert_eq!((names(&json), again.requests().len()), (vec!["one", "two", "three", "four"], 1));
    assert!(prompt(&again, 0).contains("three after the first"), "{}", prompt(&again, 0));
    let done = lab.agent(&["pipeline", "resume", id]).exits(3);
    assert!(done.stderr.contains("ended with success"), "{}", done.stderr);
}

#[test]
fn a_step_that_failed_is_tried_again_when_the_pipeline_is_resumed() {
    let lab = Lab::repository().pipeline(
        "steps:
  - {name: a, run: echo a >> log.txt, checks: 'test -e fixed'}
  - {name: b, run: 'echo b >> log.txt; test -e mended'}
  - {name: c, prompt: work}
",
    );
    let server = Server::start("turns: [{calls: [{name: list_files, arguments: {}}]}, {text: not done}]");
    let json = run_pipeline(&lab, &server, &["--json", "--max-steps", "1"]).exits(2).json();
    let id = json["work_id"].as_str().unwrap();
    let resumed = |more: &[&str], code| {
        let url = server.url();
        let words = [&["pipeline", "resume", id, "--api-base", &url, "--api-key", KEY], more].concat();
        lab.agent(&words).exits(code).json()
    };
    fs::write(lab.ws().join("fixed"), "").unwrap();
    assert_eq!(resumed(&[], 1)["stop_reason"], "run_failed");
    fs::write(lab.ws().join("mended"), "").unwrap();
    assert_eq!(resumed(&[], 2)["stop_reason"], "step_failed");
    assert_eq!(lab.read("log.txt"), "a\nb\nb\n");
    let end = answers("done");
    let json = resume(&lab, &end, "pipeline", id).exits(0).json();
    assert_eq!((names(&json).len(), end.requests().len()), (3, 1));
}

#[test]
fn a_run_that_cannot_start_after_others_is_in_the_document_and_starts_when_the_pipeline_is_resumed() {
    let lab = Lab::repository()
        .pipeline("steps: [{name: a, run: echo a >> log.txt}, {name: b, prompt: x, budget: 1}]");
    let server = answers("done");
    let json = run_pipeline(&lab, &server, &["--json"]).exits(1).json();
    assert_eq!((names(&json), &json["stop_reason"]), (vec!["a", "b"], &json!("run_failed")));
    let message = json["runs"][1]["error"]["message"].as_str().unwrap();
    assert!(message.contains("the price of `openai/mock` is not known"), "{message}");
    let (id, url) = (json["work_id"].as_str().unwrap(), server.url());
    let words =
        ["pipeline", "resume", id, "--model", "openai/gpt-4.1-mini", "--api-base", &url, "--api-key", KEY];
    lab.agent(&words).exits(0);
    assert_eq!((lab.read("log.txt").as_str(), server.requests().len()), ("a\n", 1));
}

#[test]
fn a_changed_file_is_not_resumed_and_the_changed_steps_are_named() {
    let lab = Lab::repository().pipeline("steps: [{name: a, run: 'true'}, {name: b, run: 'false'}]");
    let json = lab.agent(&["pipeline", "../p.yaml", "--json"]).exits(1).json();
    let id = json["work_id"].as_str().unwrap();
    fs::write(
        lab.outside().join("p.yaml"),
        "steps: [{name: a, run: 'true'}, {name: b, run: 'true'}, {name: c, run: 'true'}]",
    )
    .unwrap();
    let done = lab.agent(&["pipeline", "resume", id]).exits(3);
    assert!(done.stderr.contains("has changed since the pipeline began: step b, step c"), "{}", done.stderr);
    fs::write(
        lab.outside().join("p.yaml"),
        "# a comment\nsteps: [{name: a, run: 'true'}, {name: b, run: 'false'}]",
    )
    .unwrap();
    lab.agent(&["pipeline", "resume", id]).exits(1);
}

#[test]
fn a_command_that_is_interrupted_ends_the_pipeline_and_runs_again_when_it_is_resumed() {
    let lab = Lab::repository()
        .pipeline("steps: [{name: a, run: 'touch began; test -e go || sleep 60'}, {run: touch after}]");
    let running = lab.start(&["pipeline", "../p.yaml", "--json"]);
    lab.wait_for_file("began");
    running.signal(Signal::INT);
    let json = running.finish().exits(130).json();
    assert_eq!((&json["stop_reason"], lab.exists("after")), (&json!("user_interrupt"), false));
    fs::write(lab.ws().join("go"), "").unwrap();
    lab.agent(&["pipeline", "resume", json["work_id"].as_str().unwrap()]).exits(0);
    assert!(lab.exists("after"));
}

#[test]
fn what_a_command_had_changed_when_it_was_killed_is_undone_before_it_runs_again() {
    let command = "echo line >> log.txt; echo new > a.txt; rm gone.txt; mkdir dir; touch dir/new; test -e go || { touch ready; sleep 60; }";
    let lab = Lab::repository()
        .pipeline(format!("steps: [{{name: a, run: '{command}'}}]"))
        .file("a.txt", "old")
        .file("gone.txt", "gone")
        .file(".gitignore", "go\n");
    let running = lab.start(&["pipeline", "../p.yaml"]);
    lab.wait_for_file("ready");
    running.signal(Signal::KILL);
    running.finish();
    fs::write(lab.ws().join("go"), "").unwrap();
    let id = newest_id(&lab);
    let done = lab.agent(&["pipeline", "resume", &id]).exits(0);
    assert_eq!(
        (lab.read("log.txt"), lab.read("a.txt"), lab.exists("ready")),
        ("line\n".into(), "new\n".into(), false)
    );
    assert!(done.stderr.contains("was interrupted") && done.stderr.contains("gone.txt"), "{}", done.stderr);
    let copies =
        done.stderr.split("Copies of the replaced files: ").nth(1).and_then(|text| text.lines().next());
    assert_eq!(fs::read_to_string(Path::new(copies.unwrap()).join("a.txt")).unwrap(), "new\n");
}

#[test]
fn files_that_were_changed_after_a_command_was_killed_are_not_undone() {
    let lab = Lab::repository()
        .pipeline("steps: [{name: a, run: 'touch ready; test -e go || sleep 60'}]")
        .file("mine.txt", "old")
        .file("deleted.txt", "old");
    let running = lab.start(&["pipeline", "../p.yaml"]);
    lab.wait_for_file("ready");
    running.signal(Signal::KILL);
    running.finish();
    // These files tell when the command ran: here, two hours to one hour ago.
    for (file, hours) in [("before-1", 2), ("running-1", 1)] {
        let time = SystemTime::now() - Duration::from_hours(hours);
        fs::File::open(lab.journal().with_file_name(file)).unwrap().set_modified(time).unwrap();
    }
    fs::remove_file(lab.ws().join("deleted.txt")).unwrap();
    for (file, text) in [("mine.txt", "mine"), ("go", "")] {
        fs::write(lab.ws().join(file), text).unwrap();
    }
    let id = newest_id(&lab);
    let done = lab.agent(&["pipeline", "resume", &id]).exits(0);
    assert_eq!((lab.read("mine.txt"), lab.exists("deleted.txt")), ("mine".to_owned(), false));
    assert!(done.stderr.contains("were not undone") && done.stderr.contains("mine.txt"), "{}", done.stderr);
}

#[test]
fn files_that_an_interrupted_command_only_made_visible_stay() {
    let command = "rm .gitignore; mv built moved; touch ready; test -e keep/go || sleep 60";
    let lab = Lab::repository()
        .pipeline(format!("steps: [{{name: a, run: '{command}'}}]"))
        .file(".gitignore", "secret.txt\nbuilt/\n")
        .file("secret.txt", "mine")
        .file("built/a.bin", "slow to build")
        .file("keep/.gitignore", "go\n");
    let running = lab.start(&["pipeline", "../p.yaml"]);
    lab.wait_for_file("ready");
    running.signal(Signal::KILL);
    running.finish();
    fs::write(lab.ws().join("keep/go"), "").unwrap();
    let id = newest_id(&lab);
    lab.agent(&["pipeline", "resume", &id]).exits(0);
    assert_eq!((lab.read("secret.txt"), lab.read("moved/a.bin")), ("mine".into(), "slow to build".into()));
}

#[test]
fn budget_and_time_are_those_of_all_steps_together() {
    let prices =
        "models:\n  openai/mock: {input: 0.01, output: 40, cached_read: 0.001, output_limit: 50000}\n";
    let lab = Lab::repository()
        .pipeline("steps: [{prompt: a}, {prompt: b}, {prompt: c}, {prompt: d}]")
        .file("prices.yaml", prices)
        .config("costs: {prices_file: prices.yaml}");
    let server = Server::start("turns: [{text: more, usage: {input: 0, output: 10000}, repeat: 9}]");
    let json = run_pipeline(&lab, &server, &["--budget", "0.8", "--json"]).exits(2).json();
    assert_eq!(
        (&json["stop_reason"], &json["cost_usd"], server.requests().len()),
        (&json!("budget_exceeded"), &json!(0.8), 2)
    );
    let lab = lab_of_sleepers();
    let json = lab.agent(&["pipeline", "../p.yaml", "--timeout", "1", "--json"]).exits(5).json();
    assert_eq!(json["stop_reason"], "timeout");
    let lab = lab.pipeline("steps: [{run: 'true', checks: sleep 60}]");
    let json = lab.agent(&["pipeline", "../p.yaml", "--timeout", "1", "--json"]).exits(5).json();
    assert_eq!(
        (&json["stop_reason"], &json["runs"][0]["checks"][1]["passed"]),
        (&json!("timeout"), &json!(false))
    );
    fs::write(
        lab.outside().join("p.yaml"),
        "steps: [{run: 'true', checks: sleep 60, continue_on_error: true}]",
    )
    .unwrap();
    lab.agent(&["pipeline", "../p.yaml", "--timeout", "1", "--json"]).exits(2);
}

fn lab_of_sleepers() -> Lab {
    Lab::repository().pipeline("steps: [{run: sleep 60}, {run: sleep 60}]")
}

#[test]
fn an_answer_fits_the_schema_of_its_step() {
    let lab = Lab::repository().pipeline("steps:
  - {name: a, prompt: x, output_schema: {type: object, required: [n], properties: {n: {type: integer}}}, output_var: v}
  - {name: b, run: 'printf %s \"$AGENT_VAR_V\"'}
");
    let server = Server::start("turns: [{text: '{\"n\": 1}'}]");
    let json = run_pipeline(&lab, &server, &["--json"]).exits(0).json();
    assert_eq!((&json["runs"][0]["output"], &json["output"]), (&json!({"n": 1}), &json!("{\"n\":1}")));
    let lab = lab.pipeline("steps: [{prompt: x, output_schema: none.json}]");
    run_pipeline(&lab, &server, &[]).exits(3);
}

/// The examples of the manual: blocks that begin with `name:`.
fn examples(page: &str) -> Vec<String> {
    let mut examples: Vec<String> = Vec::new();
    for line in page.lines() {
        let Some(line) = line.strip_prefix("    ").or_else(|| line.is_empty().then_some("")) else {
            examples.push(String::new());
            continue;
        };
        if line.starts_with("name: ") {
            examples.push(String::new());
        }
        if let Some(last) = examples.last_mut() {
            *last += line;
            last.push('\n');
        }
    }
    examples.into_iter().filter(|example| example.starts_with("name: ")).collect()
}

#[test]
fn the_examples_of_the_manual_are_pipelines_and_the_one_for_ci_runs() {
    let page = Lab::new().agent(&["help", "pipeline"]).exits(0).stdout;
    let examples = examples(&page);
    assert_eq!(examples.len(), 3, "{page}");
    let mut lab = Lab::repository();
    for example in &examples {
        lab = lab.pipeline(example);
        lab.agent(&["pipeline", "validate", "../p.yaml"]).exits(0);
    }
    let ci = examples.iter().find(|example| example.starts_with("name: ci")).unwrap();
    fs::create_dir_all(lab.ws().join("ci")).unwrap();
    fs::write(lab.ws().join("ci/pipeline.yaml"), ci).unwrap();
    fs::write(lab.ws().join("ci/test.sh"), "test -e fixed.txt\n").unwrap();
    let shown = lab.agent(&["trust", "--show", "--pipeline", "ci/pipeline.yaml"]).exits(0).stdout;
    let hash = shown.lines().find_map(|line| line.strip_prefix("hash    ")).unwrap();
    let line = page.lines().find(|line| line.contains("--trust-workspace=HASH")).unwrap();
    let flags: Vec<String> = line.split_whitespace().skip(2).map(|word| word.replace("HASH", hash)).collect();
    let server = Server::start(
        "turns: [{calls: [{name: write_file, arguments: {path: fixed.txt, content: x}}]}, {text: repaired}, {text: explained}]",
    );
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let url = server.url();
    let priced = ["--model", "openai/gpt-4.1-mini"];
    let json = lab.agent(&[&args(&url, &flags)[..], &priced].concat()).exits(0).json();
    assert_eq!(names(&json), ["repair", "test", "explain"]);
    assert_eq!((&json["output"], server.requests().len()), (&json!("explained"), 3));
    assert!(prompt(&server, 0).contains("The tests of main fail"), "{}", prompt(&server, 0));
}
