//! What a run is given besides its task: a plan of another agent, and what has changed in the repository.

use crate::support::run::Lab;
use crate::support::server::{Recorded, Server};
use serde_json::{Value, json};

fn contents(request: &Recorded) -> Vec<&str> {
    let messages = request.messages();
    messages.iter().map(|message| message["content"].as_str().unwrap_or_default()).collect()
}

#[test]
fn l39_mixed_plans_with_reading_tools_and_then_does_the_work_with_the_plan() {
    let server = Server::start("turns: [{text: 'first a, then b'}, {text: done}]");
    let lab = Lab::new();
    let done = lab.run(&server, &["--mixed", "--json"]).exits(0);
    let requests = server.requests();
    assert_eq!(requests[0].tools(), ["find_files", "grep", "list_files", "read_file", "search_code"]);
    let planner = contents(&requests[0]);
    assert!(planner[0].starts_with("You are `plan`.") && planner[1] == "task", "{planner:?}");
    assert!(requests[1].tools().contains(&"write_file".into()));
    let [system, task, plan] = contents(&requests[1])[..] else { panic!("{:?}", requests[1].body) };
    assert!(system.starts_with("You are `build`") && task == "task", "{system}");
    assert!(plan.contains("first a, then b") && plan.contains("`plan`"), "{plan}");
    let bytes = String::from_utf8_lossy(&requests[1].bytes);
    assert!(bytes.contains(">\\nfirst a, then b\\n</data "), "what the planner says is data: {bytes}");
    let json = done.json();
    assert_eq!((&json["output"], &json["subagents"][0]["agent"]), (&"done".into(), &"plan".into()));
    lab.agent(&["replay"]).exits(0);
}

// Fault B16
#[test]
fn a_plan_is_not_streamed_and_the_work_is() {
    let server = Server::start("turns: [{text: 'first a, then b'}, {text: done}]");
    Lab::new().run(&server, &["--mixed"]).exits(0);
    let streamed: Vec<bool> =
        server.requests().iter().map(|request| request.body["stream"] == true).collect();
    assert_eq!(streamed, [false, true]);
}

#[test]
fn l39_a_plan_that_cannot_be_made_is_told_and_an_empty_one_says_so() {
    let server = Server::start("turns: [{text: ''}, {text: ''}, {text: done}]");
    let done = Lab::new().run(&server, &["--mixed"]).exits(0);
    assert!(done.stderr.contains("planning failed"), "{}", done.stderr);
    let server = Server::start("turns: [{error: {status: 401}}, {error: {status: 401}}]");
    let json = Lab::new().run(&server, &["--mixed", "--json"]).exits(4).json();
    assert_eq!(json["stop_reason"], "auth_error");
}

#[test]
fn l39_hooks_of_the_beginning_come_before_the_plan_and_may_end_the_run() {
    let says = "echo '{\"continue\": false, \"stopReason\": \"not today\"}'";
    let stop = json!({"hooks": {"session_start": [{"command": says}]}}).to_string();
    let server = Server::start("turns: [{text: never}]");
    let lab = Lab::new().config(&stop);
    let json = lab.run(&server, &["--mixed", "--json"]).exits(2).json();
    assert_eq!((&json["stop_reason"], server.requests().len()), (&"guardrail".into(), 0), "{json}");
    let server = Server::start("turns: [{text: 'first a, then b'}, {text: done}]");
    let lab = Lab::new().config("hooks: {session_start: [{command: echo be careful}]}\n");
    lab.run(&server, &["--mixed"]).exits(0);
    let requests = server.requests();
    let order = ["be careful", "first a"]
        .map(|text| contents(&requests[1]).iter().position(|said| said.contains(text)));
    assert!(order[0].is_some() && order[0] < order[1], "{order:?}");
    lab.agent(&["replay"]).exits(0);
}

#[test]
fn l39_the_log_says_that_it_plans_and_an_interrupt_then_ends_the_run() {
    let server = Server::start("turns: [{text: late, delay_ms: 600000}]");
    let lab = Lab::new();
    let running = lab.start_run(&server, &["--mixed"]);
    running.wait_for_stderr("[plan] starts (openai/mock)");
    server.wait_for_request(1);
    running.signal(rustix::process::Signal::INT);
    let log = running.finish().exits(130).stderr;
    assert!(log.contains("Stopped (user_interrupt"), "{log}");
    lab.agent(&["replay"]).exits(0);
}

fn repository() -> Lab {
    Lab::new()
        .config("guardrails: {enabled: true, sensitive_files: [.env]}\n")
        .file("a.txt", "one\n")
        .file(".env", "PASSWORD=old\n")
        .committed()
}

fn shown(lab: &Lab, reference: &str) -> (Vec<String>, String) {
    let server = Server::done();
    let done = lab.run(&server, &[&format!("--context-git-diff={reference}"), "-v"]).exits(0);
    let requests = server.requests();
    (contents(&requests[0]).into_iter().map(str::to_owned).collect(), done.stderr)
}

#[test]
fn k13_the_model_is_shown_what_the_working_tree_changes() {
    let lab = repository().file("a.txt", "two\n").file(".env", "PASSWORD=new\n");
    let (messages, _) = shown(&lab, "HEAD");
    let [_, task, changes] = &messages[..] else { panic!("{messages:?}") };
    assert_eq!(task, "task");
    assert!(changes.starts_with("## Changes in this branch (vs HEAD)\n"), "{changes}");
    assert!(changes.contains(" a.txt | 2 +-") && changes.contains("-one\n+two"), "{changes}");
    assert!(!changes.contains("PASSWORD") && !changes.contains(".env"), "{changes}");
    lab.agent(&["replay"]).exits(0);
}

#[test]
fn k13_what_is_shown_is_bounded_and_nothing_is_shown_where_nothing_differs() {
    let lab = repository();
    let (messages, log) = shown(&lab, "HEAD");
    assert_eq!(messages.len(), 2);
    assert!(log.contains("nothing differs from HEAD"), "{log}");
    let (messages, log) = shown(&lab, "nowhere");
    assert_eq!(messages.len(), 2);
    assert!(log.contains("cannot determine the changes since nowhere"), "{log}");
    let (messages, log) = shown(&lab, "--output=made");
    assert_eq!((messages.len(), lab.exists("made")), (2, false), "{log}");
    let (messages, log) = shown(&Lab::new(), "HEAD");
    assert_eq!(messages.len(), 2, "{log}");
    let lab = lab.file("a.txt", "a long line of text\n".repeat(10_000));
    let (messages, _) = shown(&lab, "HEAD");
    assert!((50_000..51_000).contains(&messages[2].chars().count()), "{}", messages[2].len());
}

#[test]
fn k13_nothing_runs_that_the_repository_names() {
    let lab = repository().file(".gitattributes", "*.txt filter=f diff=d\n").file("a.txt", "two\n");
    let ws = lab.ws();
    let touch = |name: &str| format!("sh -c 'touch {}/{name}; cat'", ws.display());
    lab.git(&["config", "filter.a=b.clean", &touch("named")]);
    let lab = lab.file("b.md", "first\n").file(".gitattributes", "*.txt filter=f diff=d\n*.md filter=a=b\n");
    lab.git(&["-c", "filter.a=b.clean=", "add", "b.md"]);
    std::fs::remove_file(lab.ws().join("named")).ok();
    let lab = lab.file("b.md", "second\n");
    lab.git(&["config", "filter.f.clean", &touch("clean")]);
    lab.git(&["config", "filter.f.required", "true"]);
    lab.git(&["config", "diff.d.textconv", &touch("textconv")]);
    lab.git(&["config", "diff.external", &touch("external")]);
    let (messages, log) = shown(&lab, "HEAD");
    assert!(messages[2].contains("-one\n+two"), "{log}");
    assert!(["clean", "textconv", "external", "named"].iter().all(|name| !lab.exists(name)), "{log}");
}

/// What the model was told when little was left, in the last request.
fn told_of_little(server: &Server) -> Vec<String> {
    let requests = server.requests();
    let messages: &[Value] = requests.last().unwrap().messages();
    let told = messages.iter().filter_map(|message| message["content"].as_str());
    told.filter(|text| text.contains("Little is left")).map(str::to_owned).collect()
}

#[test]
fn l09_the_model_is_told_once_when_little_is_left() {
    let look = "{calls: [{name: list_files, arguments: {}}], usage: {input: 3000, output: 100}}";
    let turns = format!("turns: [{}, {{text: done}}]", [look; 10].join(", "));
    let config = "costs: {max_tokens: 40000}\nllm: {max_output_tokens: 1500}\nloop: {max_repeated_calls: 0";
    let server = Server::start(&turns);
    let lab = Lab::new().config(&format!("{config}}}\n"));
    lab.run(&server, &[]).exits(0);
    let told = told_of_little(&server);
    assert!(told.len() == 1 && told[0].contains("of 36,000 tokens"), "{told:?}");
    lab.agent(&["replay"]).exits(0);
    let server = Server::start(&turns);
    Lab::new().config(&format!("{config}, warn_when_low: false}}\n")).run(&server, &[]).exits(0);
    assert_eq!(told_of_little(&server), [""; 0]);
}

#[test]
fn l09_the_model_is_told_when_little_time_is_left() {
    // Of the nine seconds for the work, little is less than 1.8.
    let slow = "{calls: [{name: list_files, arguments: {}}], delay_ms: 7300}";
    let server = Server::start(&format!("turns: [{slow}, {{text: done}}]"));
    Lab::new().run(&server, &["--timeout", "10"]).exits(0);
    assert!(told_of_little(&server)[0].contains(" of 9.0 s"), "{:?}", told_of_little(&server));
}

#[test]
fn t24_a_call_is_ended_when_its_time_is_up_and_the_run_goes_on() {
    let call = "{calls: [{name: run_command, arguments: {command: 'echo begun; sleep 600', timeout: 600}}]}";
    let server = Server::start(&format!("turns: [{call}, {{text: done}}]"));
    let done = Lab::new().run_yolo(&server, &["--tool-timeout", "1", "--json"]).exits(0);
    let requests = server.requests();
    let told = contents(&requests[1]).pop().unwrap().to_owned();
    assert!(told.starts_with("Error: The call was ended: it took longer than the 1"), "{told}");
    assert!(told.contains("begun"), "{told}");
    assert_eq!(done.json()["tools_used"][0]["success"], false);
}
