//! Steps `parallel` and `consolidate` of `agent pipeline`.

use crate::support::run::{Lab, Running};
use crate::support::schema;
use crate::support::server::Server;
use crate::support::work::{debaters, has_data, names, on_server};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

fn document_of(lab: &Lab, more: &[&str], code: i32) -> Value {
    lab.agent(&[&["pipeline", "../p.yaml", "--json"], more].concat()).exits(code).json()
}

fn run_on(lab: &Lab, server: &Server, more: &[&str], code: i32) -> Value {
    let words = [&["pipeline", "../p.yaml", "--model", "openai/mock", "--json"], more].concat();
    lab.agent(&on_server(&words, &server.url())).exits(code).json()
}

fn start_on(lab: &Lab, server: &Server) -> Running {
    lab.start(&on_server(&["pipeline", "../p.yaml", "--model", "openai/mock"], &server.url()))
}

/// The document of the newest record.
fn newest(lab: &Lab) -> Value {
    let listed = lab.agent(&["work", "list"]).exits(0).stdout;
    lab.agent(&["work", "show", listed.split_whitespace().next().unwrap(), "--json"]).exits(0).json()
}

fn statuses(json: &Value) -> Vec<&str> {
    json["runs"].as_array().unwrap().iter().map(|run| run["status"].as_str().unwrap()).collect()
}

/// Two commands that wait for each other: the first one cannot end before the second one reads.
const PIPE: &str = "steps:
  - {name: prepare, run: mkfifo pipe}
  - name: both
    parallel:
      - {name: write, run: 'echo sent > pipe; echo wrote', output_var: wrote}
      - {name: read, run: cat pipe, output_var: got, checks: 'test -p pipe'}
    checks: 'test -p pipe'
    output_var: all
  - {name: after, if: \"steps.read.status == 'success' and steps.both.status == 'success'\",
     run: 'echo \"$AGENT_VAR_GOT, $AGENT_VAR_WROTE\"; echo \"$AGENT_VAR_ALL\"'}
";

#[test]
fn a09_steps_of_parallel_run_at_the_same_time_and_their_outputs_are_variables_after_it() {
    let json = document_of(&Lab::new().pipeline(PIPE), &[], 0);
    schema::valid(&schema::of("work"), &json);
    assert_eq!(names(&json), ["prepare", "write", "read", "both", "after"]);
    assert_eq!(json["output"], "sent, wrote\n## write\n\nwrote\n\n## read\n\nsent");
    assert_eq!(json["runs"][3]["checks"][0]["passed"], true);
}

#[test]
fn a09_no_more_steps_run_at_the_same_time_than_there_are_workers() {
    let lab = Lab::new()
        .pipeline(
            "steps:
  - parallel:
      - {name: a, run: 'touch a; for i in 1 2 3 4 5 6 7 8 9 10; do test ! -e b || exit 1; sleep 0.05; done'}
      - {name: b, run: touch b}
",
        )
        .config("parallel: {workers: 1}");
    assert_eq!(names(&document_of(&lab, &[], 0)), ["a", "b", "step-1"]);
}

#[test]
fn a09_agents_of_parallel_work_at_the_same_time_and_only_read() {
    let lab = Lab::new().pipeline(
        "variables: {what: b.txt}
steps:
  - name: looks
    parallel:
      - {name: a, prompt: 'Look at {{what}}', model: openai/a, output_var: a}
      - {name: b, prompt: Look, model: openai/b, agent: build, output_var: b}
  - {name: sum, prompt: '{{a}} and {{b}}'}
",
    );
    let calls = "turns: [{calls: [
      {name: write_file, arguments: {path: b.txt, content: x}},
      {name: run_command, arguments: {command: touch c.txt}}], delay_ms: 500}, {text: from a}]";
    let server =
        Server::by_model(&[("a", calls), ("b", "turns: [{text: from b}]"), ("mock", "turns: [{text: end}]")]);
    let json = run_on(&lab, &server, &["--mode", "yolo", "--allow-commands"], 0);
    assert_eq!(names(&json), ["a", "b", "looks", "sum"]);
    let requests = server.requests();
    let models: Vec<&Value> = requests[..2].iter().map(|request| &request.body["model"]).collect();
    assert!(models.contains(&&json!("a")) && models.contains(&&json!("b")), "{models:?}");
    for request in requests.iter().filter(|request| request.body["model"] != "mock") {
        let tools = request.body["tools"].to_string();
        assert!(tools.contains("read_file"), "{tools}");
        assert!(!tools.contains("write_file") && !tools.contains("run_command"), "{tools}");
    }
    assert!(!lab.exists("b.txt") && !lab.exists("c.txt"));
    let last = requests.last().unwrap().body.to_string();
    assert!(last.contains("from a and from b"), "{last}");
}

#[test]
fn a12_a_failing_step_of_parallel_stops_the_pipeline_after_the_others_have_ended() {
    for (step, code, reason, statuses_of_steps) in [
        ("run: exit 3", 1, "run_failed", ["failed", "success", "failed"]),
        ("run: 'true', checks: 'false'", 2, "step_failed", ["success", "success", "partial"]),
        ("run: sleep 60, timeout: 1", 5, "timeout", ["partial", "success", "partial"]),
        ("if: missing, run: 'true'", 1, "run_failed", ["failed", "success", "failed"]),
    ] {
        let lab = Lab::new().pipeline(format!(
            "steps: [{{name: p, parallel: [{{name: a, {step}}}, {{name: b, run: 'sleep 0.3; touch b'}}]}}, {{run: touch after}}]"
        ));
        let json = document_of(&lab, &[], code);
        assert_eq!((&json["stop_reason"], names(&json)), (&json!(reason), vec!["a", "b", "p"]), "{step}");
        assert_eq!(statuses(&json), statuses_of_steps, "{step}");
        assert!(lab.exists("b") && !lab.exists("after"), "{step}");
    }
    let lab = Lab::new().pipeline("steps: [{parallel: [{name: a, prompt: x}, {name: b, run: touch b}]}]");
    let server = Server::start("turns: [{fault: {http: {status: 401, body: no}}}]");
    let json = run_on(&lab, &server, &[], 4);
    assert_eq!((&json["stop_reason"], lab.exists("b")), (&json!("run_failed"), true));
}

#[test]
fn a12_a_run_of_parallel_that_cannot_start_is_in_the_document_and_the_others_end() {
    let lab = Lab::new()
        .pipeline("steps: [{parallel: [{name: a, prompt: x, budget: 1}, {name: b, run: touch b}]}]");
    let server = Server::start("turns: [{text: never}]");
    let json = run_on(&lab, &server, &[], 1);
    let message = json["runs"][0]["error"]["message"].as_str().unwrap();
    assert!(message.contains("the price of `openai/mock` is not known") && lab.exists("b"), "{json}");
}

#[test]
fn a12_continue_on_error_goes_on_after_parallel_but_is_no_success() {
    for pipeline in [
        "steps: [{name: p, parallel: [{name: a, run: exit 3, continue_on_error: true}, {run: 'true'}]}, {run: touch after}]",
        "steps: [{name: p, continue_on_error: true, parallel: [{name: a, run: exit 3}, {run: 'true'}]}, {run: touch after}]",
    ] {
        let lab = Lab::new().pipeline(pipeline);
        let json = document_of(&lab, &[], 2);
        assert_eq!((&json["stop_reason"], lab.exists("after")), (&json!("step_failed"), true), "{pipeline}");
    }
}

#[test]
fn a12_the_timeout_of_parallel_ends_all_of_its_steps() {
    let lab = Lab::new().pipeline(
        "steps: [{name: p, timeout: 1, parallel: [{name: a, run: sleep 60}, {name: b, prompt: x}]}]",
    );
    let json = run_on(&lab, &Server::start("turns: [{fault: hang}]"), &[], 5);
    assert_eq!((&json["stop_reason"], statuses(&json)), (&json!("timeout"), vec!["partial"; 3]));
}

#[test]
fn a11_steps_of_a_skipped_parallel_step_are_skipped() {
    let lab = Lab::new().pipeline("steps:
  - {name: p, condition: 'no', parallel: [{name: a, run: touch no}, {name: b, run: touch no}]}
  - {name: q, parallel: [{name: c, condition: '0', run: touch no}, {name: d, if: \"steps.a.status == 'skipped'\", run: touch yes}]}
");
    let json = document_of(&lab, &[], 0);
    let skipped: Vec<bool> =
        json["runs"].as_array().unwrap().iter().map(|run| run["skipped"].is_string()).collect();
    assert_eq!(
        (names(&json), skipped),
        (vec!["a", "b", "p", "c", "d", "q"], vec![true, true, true, true, false, false])
    );
    assert!(lab.exists("yes") && !lab.exists("no"));
}

#[test]
fn a13_the_plan_shows_the_steps_of_parallel_and_the_models_of_consolidate() {
    let lab = Lab::new().pipeline(
        "steps:
  - {name: p, parallel: [{name: a, run: touch no}, {prompt: 'Look {{x}}'}]}
  - {name: q, consolidate: {question: 'Which {{x}}?', models: [openai/a, openai/b], judge: openai/c}}
",
    );
    let done = lab.agent(&["pipeline", "../p.yaml", "--dry-run", "--var", "x=it"]).exits(0);
    assert_eq!(
        done.stdout,
        "1. p\n   parallel: 2 steps\n   1. a\n      run: touch no\n   2. step-1-2\n      agent: build\n      prompt: Look it\n\
         2. q\n   question: Which it?\n   models: openai/a, openai/b\n   judge: openai/c\n"
    );
}

#[test]
fn a10_steps_of_parallel_have_no_steps_of_their_own() {
    let lab = Lab::new().pipeline("steps:\n  - parallel:\n      - {name: a, parallel: [{run: touch no}]}\n");
    let done = lab.agent(&["pipeline", "../p.yaml"]).exits(3);
    assert!(
        done.stderr.contains("../p.yaml:3:19: a step of `parallel` cannot have `parallel`"),
        "{}",
        done.stderr
    );
    assert!(!lab.exists("no"));
}

#[test]
fn the_budget_is_one_for_the_steps_of_parallel() {
    let prices =
        "models:\n  openai/mock: {input: 0.01, output: 40, cached_read: 0.001, output_limit: 50000}\n";
    let lab = Lab::new()
        .pipeline("steps: [{parallel: [{prompt: a}, {prompt: b}, {prompt: c}]}, {prompt: d}]")
        .file("prices.yaml", prices)
        .config(
            "costs: {prices_file: prices.yaml}\nllm: {max_output_tokens: 10000}\nloop: {on_limit: stop}\n",
        );
    let server = Server::start("turns: [{text: more, usage: {input: 0, output: 10000}, repeat: 9}]");
    let json = run_on(&lab, &server, &["--budget", "0.81"], 2);
    assert_eq!((&json["stop_reason"], &json["cost_usd"]), (&json!("budget_exceeded"), &json!(0.8)), "{json}");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn an_interrupt_ends_all_steps_of_parallel_and_they_run_again_when_the_pipeline_is_resumed() {
    let lab = Lab::new().pipeline("steps: [{parallel: [{name: a, run: 'touch began; test -e go || sleep 60'}, {name: b, prompt: x}]}, {run: touch after}]");
    let server = Server::start("turns: [{fault: hang}]");
    let running = start_on(&lab, &server);
    server.wait_for_request(1);
    lab.wait_for_file("began");
    running.signal(Signal::INT);
    let done = running.finish().exits(130);
    // Only a step with a result has a line about its end: `a` has none.
    assert!(!done.stderr.lines().any(|line| line.trim_start().starts_with(": failed")), "{}", done.stderr);
    let json = newest(&lab);
    assert_eq!((&json["stop_reason"], lab.exists("after")), (&json!("user_interrupt"), false));
    fs::write(lab.ws().join("go"), "").unwrap();
    let again = Server::done();
    let words = ["pipeline", "resume", json["work_id"].as_str().unwrap()];
    lab.agent(&on_server(&words, &again.url())).exits(0);
    assert!(lab.exists("after") && again.requests().len() == 1);
}

#[test]
fn steps_of_parallel_that_ended_before_a_kill_are_not_repeated() {
    let lab = Lab::new().pipeline(
        "steps:
  - name: p
    parallel:
      - {name: a, run: 'echo a >> log.txt', output_var: a}
      - {name: b, prompt: x, output_var: b}
      - {name: c, run: 'echo c >> log.txt'}
  - {name: d, run: 'echo \"d $AGENT_VAR_B\" >> log.txt'}
",
    );
    let server = Server::start("turns: [{fault: hang}]");
    let running = start_on(&lab, &server);
    server.wait_for_request(1);
    for name in ["a", "c"] {
        running.wait_for_stderr(&format!("{name}: success"));
    }
    running.signal(Signal::KILL);
    running.finish();
    let id = newest(&lab)["work_id"].as_str().unwrap().to_owned();
    let again = Server::start("turns: [{text: from b}]");
    let done = lab.agent(&on_server(&["pipeline", "resume", &id], &again.url())).exits(0);
    assert!(!done.stderr.contains("a: success"), "{}", done.stderr);
    let mut lines: Vec<String> = lab.read("log.txt").lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!((lines, again.requests().len()), (vec!["a".into(), "c".into(), "d from b".into()], 1));
    assert_eq!(names(&newest(&lab)), ["a", "b", "c", "p", "d"]);
}

#[test]
fn the_commands_in_parallel_need_trust() {
    let pipeline = "steps: [{name: p, parallel: [{name: a, run: sh ./tool.sh}]}]";
    let lab = Lab::new().file("p.yaml", pipeline).file("tool.sh", "touch ran\n");
    lab.agent(&["pipeline", "p.yaml"]).exits(3);
    let shown = lab.agent(&["trust", "--show", "--pipeline", "p.yaml"]).exits(0).stdout;
    for part in [
        "step p: the next steps, at the same time",
        "step a: a command",
        "    sh ./tool.sh",
        "named by the pipeline",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    lab.agent(&["trust", "--yes", "--pipeline", "p.yaml"]).exits(0);
    lab.agent(&["pipeline", "p.yaml"]).exits(0);
    fs::write(lab.ws().join("tool.sh"), "touch other\n").unwrap();
    lab.agent(&["pipeline", "p.yaml"]).exits(3);
    assert!(lab.exists("ran") && !lab.exists("other"));
}

/// A debate between two steps.
const DEBATE: &str = "variables: {what: cache}
steps:
  - name: debate
    consolidate: {question: 'Is the {{what}} safe?', models: [openai/a, openai/b], judge: openai/judge, rounds: 2}
    output_var: verdict
  - {name: after, run: 'echo \"$AGENT_VAR_VERDICT\"'}
";
const YES: &str = r#"{text: '{"agreed": true, "reason": "both say x"}'}"#;

#[test]
fn a19_a_debate_is_a_step_and_its_summary_is_the_output() {
    let lab = Lab::new().pipeline(DEBATE);
    let server = debaters("{text: x}", "{text: y}", &format!("{YES}, {{text: it is x}}"));
    let json = run_on(&lab, &server, &[], 0);
    schema::valid(&schema::of("work"), &json);
    assert_eq!(
        names(&json),
        [
            "debate/round 1: openai/a",
            "debate/round 1: openai/b",
            "debate/round 1: judge openai/judge",
            "debate/summary",
            "debate",
            "after"
        ]
    );
    assert_eq!(json["output"], "it is x");
    let asked = server.requests()[0].body.to_string();
    assert!(asked.contains("Is the cache safe?"), "{asked}");
    has_data(&server, 2, "Answer of openai/b in round 1", "y");
}

#[test]
fn a19_a_debate_that_cannot_be_held_fails_its_step() {
    let lab = Lab::new().pipeline(DEBATE);
    let server = debaters("{text: x}", "{fault: {http: {status: 401, body: no}}}", YES);
    let json = run_on(&lab, &server, &[], 4);
    assert_eq!((&json["stop_reason"], names(&json).len()), (&json!("run_failed"), 2));
    let words = ["pipeline", "resume", json["work_id"].as_str().unwrap()];
    let again = debaters("{text: never}", "{text: y}", &format!("{YES}, {{text: it is x}}"));
    let json = lab.agent(&on_server(&words, &again.url())).exits(0).json();
    assert_eq!((&json["output"], again.requests().len()), (&json!("it is x"), 3));
    fs::write(
        lab.outside().join("p.yaml"),
        "steps: [{name: one, run: 'true'}, {name: two, consolidate: {question: q, models: [openai/a, ' openai/a'], judge: openai/b}}]",
    )
    .unwrap();
    let json = run_on(&lab, &server, &[], 1);
    let message = json["runs"][1]["error"]["message"].as_str().unwrap();
    assert!(message.contains("openai/a is named twice"), "{message}");
}

#[test]
fn a19_the_timeout_of_a_step_bounds_its_debate() {
    let lab = Lab::new().pipeline("steps: [{timeout: 1, consolidate: {question: q, models: [openai/a, openai/b], judge: openai/judge}}]");
    let json = run_on(&lab, &debaters("{text: x}", "{fault: hang}", YES), &[], 5);
    assert_eq!(json["stop_reason"], "timeout");
}

#[test]
fn a19_a_debate_whose_models_could_not_be_reached_is_held_when_the_pipeline_is_resumed() {
    let lab = Lab::new().pipeline("steps: [{name: one, run: 'true'}, {name: two, consolidate: {question: q, models: [openai/a, openai/b], judge: openai/judge}}]");
    let json = document_of(&lab, &[], 1);
    assert_eq!((names(&json), statuses(&json)), (vec!["one", "two"], vec!["success", "failed"]));
    let server = debaters("{text: x}", "{text: y}", &format!("{YES}, {{text: it is x}}"));
    let words = ["pipeline", "resume", json["work_id"].as_str().unwrap()];
    let json = lab.agent(&on_server(&words, &server.url())).exits(0).json();
    assert_eq!((statuses(&json), &json["output"]), (vec!["success"; 6], &json!("it is x")));
}
