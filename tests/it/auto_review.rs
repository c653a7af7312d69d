//! `agent run --review`: an answer counts as done when another agent, which sees only task and changes, approves them.

use crate::support::run::{Finished, Lab, Running};
use crate::support::schema;
use crate::support::server::Server;
use rustix::process::Signal;
use serde_json::{Value, json};

const WRITE: &str = "{calls: [{name: write_file, arguments: {path: new.rs, content: \"fn bug() {}\\n\"}}]}";
const FIX: &str = "{calls: [{name: edit_file, arguments: {path: new.rs, old_str: bug, new_str: fixed}}]}";
const APPROVED: &str = "{text: '{\"approved\": true, \"findings\": []}'}";
const FOUND: &str = "{text: '{\"approved\": false, \"findings\": [{\"file\": \"new.rs\", \"line\": 1, \
    \"problem\": \"it has a bug\", \"fix\": \"rename it\"}]}'}";

fn run_reviewed(lab: &Lab, server: &Server, more: &[&str]) -> Finished {
    start_reviewed(lab, server, more).finish()
}

fn start_reviewed(lab: &Lab, server: &Server, more: &[&str]) -> Running {
    lab.start_run(server, &[&["--review", "--mode", "yolo"], more].concat())
}

/// The messages of a request, system message first.
fn messages(server: &Server, request: usize) -> Vec<Value> {
    server.requests()[request].messages().to_vec()
}

fn message(server: &Server, request: usize, message: usize) -> String {
    messages(server, request)[message]["content"].as_str().unwrap_or_default().to_owned()
}

/// Status, stop reason, and whether the review approved.
fn verdict(json: &Value) -> (&str, &str, Option<bool>) {
    let approved = json["review"]["approved"].as_bool();
    (json["status"].as_str().unwrap(), json["stop_reason"].as_str().unwrap(), approved)
}

#[test]
fn a15_approved_changes_are_a_success_and_the_reviewer_sees_only_task_and_diff() {
    let server = Server::yaml(&[WRITE, "{text: secret plan}", APPROVED]);
    let lab = Lab::new().file("old.rs", "fn old() {}\n");
    let done = run_reviewed(&lab, &server, &[]).exits(0);
    assert_eq!(done.stdout, "secret plan\n");
    assert!(done.stderr.contains("review: approved"), "{}", done.stderr);
    let shown = messages(&server, 2);
    let roles: Vec<&str> = shown.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user"]);
    assert!(message(&server, 2, 0).contains("You are `review`"));
    let asked = message(&server, 2, 1);
    for part in [">\ntask\n</data ", "+++ b/new.rs", "+fn bug() {}"] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    assert!(!asked.contains("secret plan") && !asked.contains("old.rs"), "{asked}");
    assert_eq!(
        server.requests()[2].tools(),
        ["find_files", "grep", "list_files", "read_file", "search_code"]
    );
    lab.assert_replays();
}

#[test]
fn a15_findings_go_to_the_working_agent_and_its_fix_is_reviewed_again() {
    let server = Server::yaml(&[WRITE, "{text: first}", FOUND, FIX, "{text: second}", APPROVED]);
    let lab = Lab::new();
    let done = run_reviewed(&lab, &server, &["--json"]).exits(0);
    let json = done.json();
    schema::is_result(&json);
    assert_eq!(verdict(&json), ("success", "llm_done", Some(true)));
    assert_eq!(json["output"], "second");
    assert_eq!(json["review"], json!({"approved": true, "findings": [], "passes": 1, "parts": 1}));
    assert_eq!((&json["steps"], &json["requests"]), (&json!(4), &json!(6)));
    let told = messages(&server, 3).last().unwrap()["content"].as_str().unwrap().to_owned();
    assert!(told.starts_with("[SYSTEM]") && told.contains("did not approve"), "{told}");
    assert!(told.contains(">\n- new.rs:1: it has a bug Fix: rename it\n</data "), "{told}");
    // The second review is as clean as the first one, and has the whole change.
    let again = message(&server, 5, 1);
    assert_eq!(messages(&server, 5).len(), 2);
    assert!(again.contains("+fn fixed() {}") && !again.contains("it has a bug"), "{again}");
    lab.assert_replays();
}

#[test]
fn a15_findings_that_remain_make_the_run_partial_and_are_said_everywhere() {
    for (passes, requests) in [(0, 3), (1, 5), (2, 7)] {
        let again = ["{text: still done}", FOUND];
        let server = Server::yaml(&[&[WRITE, "{text: done}", FOUND][..], &again, &again].concat());
        let lab = Lab::new().config(&format!("auto_review: {{enabled: true, max_fix_passes: {passes}}}\n"));
        let done = lab.run_yolo(&server, &["--json", "--report-file", "r.json"]).exits(2);
        let json = done.json();
        assert_eq!(verdict(&json), ("partial", "llm_done", Some(false)));
        assert_eq!((&json["review"]["passes"], server.requests().len()), (&json!(passes), requests));
        assert_eq!(json["review"]["findings"][0]["problem"], "it has a bug");
        let report: Value = serde_json::from_str(&lab.read("r.json")).unwrap();
        schema::valid(&schema::of("report"), &report);
        assert_eq!(report["change_review"], json["review"]);
        lab.assert_replays();
    }
    let lab = Lab::new().config("auto_review: {max_fix_passes: 0}\n");
    let text =
        run_reviewed(&lab, &Server::yaml(&[WRITE, "{text: done}", FOUND]), &["--report-file", "r.xml"])
            .exits(2);
    assert!(
        text.stderr.contains("review: not approved: 1 finding; new.rs:1: it has a bug"),
        "{}",
        text.stderr
    );
    let markdown = lab.agent(&["report", "--format", "markdown"]).exits(0).stdout;
    assert!(markdown.contains("Step 2: new.rs:1: it has a bug Fix: rename it"), "{markdown}");
    assert!(lab.read("r.xml").contains("classname=\"agent.review\""), "{}", lab.read("r.xml"));
    let stream =
        run_reviewed(&lab, &Server::yaml(&[FIX, "{text: done}", FOUND]), &["--output-format", "stream-json"])
            .exits(2);
    let lines: Vec<Value> = stream.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let event = lines.iter().find(|line| line["type"] == "change_review").unwrap();
    assert_eq!((&event["approved"], &event["findings"][0]["line"]), (&json!(false), &json!(1)));
    Lab::new()
        .config("auto_review: {max_fix_passes: 4}\n")
        .run(&Server::yaml(&["{text: unused}"]), &[])
        .exits(3);
}

#[test]
fn a15_a_reviewer_that_gives_no_verdict_approves_nothing_and_starts_no_fix() {
    for (reply, why) in [
        ("{text: 'Looks good to me. No issues found.'}", "neither the requested JSON"),
        ("{text: '{\"approved\": \"yes\", \"findings\": []}'}", "neither the requested JSON"),
        ("{error: {status: 400, message: not today}}", "not today"),
        ("{text: 'No issues found.', finish: length, repeat: 9}", "no verdict: truncated"),
    ] {
        let server = Server::yaml(&[WRITE, "{text: done}", reply]);
        let lab = Lab::new();
        let json = run_reviewed(&lab, &server, &["--json"]).exits(2).json();
        assert_eq!(verdict(&json), ("partial", "llm_done", Some(false)), "{json}");
        assert_eq!(json["output"], "done");
        let problem = json["review"]["problem"].as_str().unwrap();
        assert!(problem.contains(why), "{problem}");
        lab.assert_replays();
    }
}

#[test]
fn a15_the_sentence_that_nothing_was_found_approves_in_both_languages() {
    for (language, sentence, line) in [
        ("en", "No issues found.", "review: approved"),
        ("es", "No se encontraron problemas.", "revisión: aprobada"),
    ] {
        let server = Server::yaml(&[WRITE, "{text: done}", &format!("{{text: '{sentence}'}}")]);
        let lab = Lab::new().config(&format!("language: {language}\n"));
        let done = run_reviewed(&lab, &server, &[]).exits(0);
        assert!(done.stderr.contains(line), "{}", done.stderr);
        assert!(message(&server, 2, 1).contains(&format!("the sentence `{sentence}` alone")));
    }
}

#[test]
fn a15_without_changes_the_review_is_skipped() {
    let undone = "{calls: [{name: run_command, arguments: {command: rm new.rs}}]}";
    for turns in [&["{text: done}"][..], &[WRITE, undone, "{text: done}"]] {
        let (server, lab) = (Server::yaml(turns), Lab::new());
        let done = run_reviewed(&lab, &server, &["--json"]).exits(0);
        assert_eq!(
            done.json()["review"],
            json!({"approved": false, "skipped": true, "findings": [], "passes": 0, "parts": 0})
        );
        assert_eq!(server.requests().len(), turns.len());
        lab.assert_replays();
    }
    let done = run_reviewed(&Lab::new(), &Server::yaml(&["{text: done}"]), &[]).exits(0);
    assert!(done.stderr.contains("review: skipped: the run changed no files"), "{}", done.stderr);
    for more in [&["--dry-run"][..], &[]] {
        let server = Server::yaml(&[WRITE, "{text: done}"]);
        let flags = if more.is_empty() { &[][..] } else { &["--review"][..] };
        let json =
            Lab::new().run(&server, &[flags, more, &["--mode", "yolo", "--json"]].concat()).exits(0).json();
        assert_eq!((&json["review"], server.requests().len()), (&Value::Null, 2));
    }
}

#[test]
fn a15_the_diff_has_what_the_run_changed_by_any_way_and_nothing_that_was_changed_before() {
    let lab = Lab::new().file("a.txt", "one\n").file("b.txt", "committed\n");
    lab.git(&["init", "-q"]);
    lab.git(&["add", "a.txt", "b.txt"]);
    lab.git(&["commit", "-q", "-m", "first"]);
    let lab = lab.file("a.txt", "one\nby the user\n").file("b.txt", "changed by the user\n");
    let calls = "{calls: [
        {name: run_command, arguments: {command: 'echo by the run >> a.txt'}},
        {name: run_command, arguments: {command: 'echo untracked > c.txt; printf \"\\\\0\" > d.bin'}}]}";
    let server = Server::yaml(&[calls, "{text: done}", APPROVED]);
    run_reviewed(&lab, &server, &[]).exits(0);
    let asked = message(&server, 2, 1);
    for part in ["\n by the user\n+by the run\n", "+++ b/c.txt", "+untracked", "# d.bin changed; no diff"] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    for part in ["b.txt", "+by the user"] {
        assert!(!asked.contains(part), "{part}: {asked}");
    }
}

#[test]
fn a15_a_long_diff_is_reviewed_in_parts_and_one_refused_part_is_enough() {
    let write = |name: &str| {
        let content = format!("{name}\\n").repeat(8_000);
        format!("{{calls: [{{name: write_file, arguments: {{path: {name}.txt, content: \"{content}\"}}}}]}}")
    };
    let (a, b) = (write("a"), write("b"));
    for (replies, code) in [([APPROVED, APPROVED], 0), ([APPROVED, FOUND], 2), ([FOUND, APPROVED], 2)] {
        let server = Server::yaml(&[&a, &b, "{text: done}", replies[0], replies[1]]);
        let lab = Lab::new().config("auto_review: {max_fix_passes: 0}\n");
        let json = run_reviewed(&lab, &server, &["--json"]).exits(code).json();
        assert_eq!((&json["review"]["parts"], &json["review"]["approved"]), (&json!(2), &json!(code == 0)));
        let (first, second) = (message(&server, 3, 1), message(&server, 4, 1));
        assert!(first.contains("part 1 of 2") && first.contains("b/a.txt") && !first.contains("b/b.txt"));
        assert!(second.contains("part 2 of 2") && second.contains("b/b.txt") && !second.contains("b/a.txt"));
        lab.assert_replays();
    }
    let server = Server::yaml(&[&a, &b, "{text: done}", APPROVED, "{error: {status: 400, message: no}}"]);
    let json = run_reviewed(&Lab::new(), &server, &["--json"]).exits(2).json();
    assert_eq!((verdict(&json), server.requests().len()), (("partial", "llm_done", Some(false)), 5));
}

/// A workspace in which each request costs one dollar for 1,000 tokens.
fn paid(more: &str) -> Lab {
    let prices =
        "models:\n  openai/mock: {input: 1000, output: 1000}\n  openai/other: {input: 1000, output: 1000}\n";
    Lab::new()
        .file("prices.yaml", prices)
        .config(&format!("llm: {{max_output_tokens: 500}}\ncosts: {{prices_file: prices.yaml}}\n{more}"))
}

#[test]
fn a15_one_budget_bounds_the_work_and_the_review() {
    let run_with = |budget: &str, input: u32| {
        let usage = format!("usage: {{input: {input}, output: 10}}}}");
        let turns = [WRITE, "{text: done}", APPROVED]
            .map(|turn| format!("{}, {usage}", turn.strip_suffix('}').unwrap()));
        let server = Server::yaml(&turns.each_ref().map(String::as_str));
        let done = run_reviewed(&paid(""), &server, &["--json", "--budget", budget]);
        (done, server.requests().len())
    };
    let (done, requests) = run_with("60", 1_000);
    let json = done.exits(0).json();
    assert_eq!((requests, &json["cost"]["total_usd"]), (3, &json!(3.03)), "{json}");
    assert_eq!(json["cost"]["by_source"], json!({"agent": 2.02, "subagent": 1.01}));
    let budgets = (2..60).map(|budget| budget.to_string());
    let mut runs = budgets.map(|budget| run_with(&budget, 4_000));
    let reaches_review = |(done, _): &(Finished, usize)| done.json()["stop_reason"] == "llm_done";
    let (done, requests) = runs.find(reaches_review).unwrap();
    assert_eq!(requests, 2);
    let json = done.exits(2).json();
    assert_eq!(verdict(&json), ("partial", "llm_done", Some(false)), "{json}");
    assert!(json["review"]["problem"].as_str().unwrap().contains("budget_exceeded"), "{json}");
}

#[test]
fn a15_the_reviewer_has_its_own_model_when_it_is_set() {
    let server = Server::yaml(&[WRITE, "{text: done}", APPROVED]);
    let lab = paid("auto_review: {review_model: openai/other}\n");
    let json = run_reviewed(&lab, &server, &["--json", "--budget", "60"]).exits(0).json();
    let models: Vec<Value> = server.requests().iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(models, ["mock", "mock", "other"]);
    assert_eq!(json["subagents"][0]["model"], "openai/other");
    let lab = Lab::new().config("auto_review: {review_model: nobody/none}\n");
    let server = Server::start("turns: [{text: unused}]");
    let done = run_reviewed(&lab, &server, &[]).exits(3);
    assert!(done.stderr.contains("auto_review.review_model: nobody/none"), "{}", done.stderr);
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a15_an_interrupt_in_the_review_ends_the_run() {
    let server = Server::yaml(&[WRITE, "{text: done}", "{fault: hang}"]);
    let lab = Lab::new();
    let running = start_reviewed(&lab, &server, &["--json"]);
    server.wait_for_request(3);
    running.signal(Signal::INT);
    let json = running.finish().exits(130).json();
    assert_eq!(verdict(&json), ("partial", "user_interrupt", None));
    assert_eq!(json["output"], "done");
    lab.assert_replays();
}

#[test]
fn a15_the_time_of_the_run_bounds_the_review() {
    let server = Server::yaml(&[WRITE, "{text: done}", "{fault: hang}"]);
    let json = run_reviewed(&Lab::new(), &server, &["--json", "--timeout", "2"]).exits(2).json();
    assert_eq!(verdict(&json), ("partial", "llm_done", Some(false)), "{json}");
    assert!(json["review"]["problem"].as_str().unwrap().contains("timeout"), "{json}");
}

#[test]
fn a15_changes_whose_review_was_killed_are_reviewed_when_the_session_goes_on() {
    for prompt in [&[][..], &["go on"]] {
        let first = Server::yaml(&[WRITE, "{text: done}", "{fault: hang}"]);
        let lab = Lab::new();
        let running = start_reviewed(&lab, &first, &[]);
        first.wait_for_request(3);
        running.signal(Signal::KILL);
        running.finish();
        let again = Server::yaml(&["{text: nothing to do}", APPROVED, "{text: more}", "{text: unused}"]);
        let resume = |prompt: &[&str]| lab.resume(&again, &[prompt, &["--review", "--json"]].concat());
        let json = resume(prompt).exits(0).json();
        assert_eq!((verdict(&json).2, &json["review"]["parts"]), (Some(true), &json!(1)));
        assert!(message(&again, 1, 1).contains("+fn bug() {}"));
        lab.assert_replays();
        // What was approved is not reviewed again.
        assert_eq!(resume(&["and now?"]).exits(0).json()["review"]["skipped"], true);
    }
}

#[test]
fn a15_an_agent_of_the_user_reviews_and_has_only_tools_that_read() {
    let agents = "agents: {review: {allowed_tools: [write_file, read_file, run_command]}}\n";
    let server = Server::yaml(&[WRITE, "{text: done}", WRITE, APPROVED]);
    run_reviewed(&Lab::new().config(agents), &server, &[]).exits(0);
    let tools = server.requests()[2].body["tools"].as_array().unwrap().clone();
    assert_eq!((tools.len(), &tools[0]["function"]["name"]), (1, &json!("read_file")));
    let server = Server::start(&format!("turns: [{WRITE}, {{text: done}}]"));
    let lab = Lab::new().config("agents: {review: {allowed_tools: [write_file]}}\n");
    let json = run_reviewed(&lab, &server, &["--json"]).exits(2).json();
    assert!(json["review"]["problem"].as_str().unwrap().contains("has no tool"), "{json}");
}

#[test]
fn a15_an_untrusted_project_may_ask_for_reviews_and_not_choose_their_model_or_forbid_them() {
    let on = "auto_review: {enabled: true, review_model: openai/other}\n";
    let server_of = || Server::yaml(&[WRITE, "{text: done}", APPROVED]);
    let (asked, lab) = (server_of(), Lab::new().file(".agent/config.yaml", on));
    lab.run_yolo(&asked, &[]).exits(0);
    let models: Vec<Value> = asked.requests().iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(models, ["mock", "mock", "mock"]);
    let lab = Lab::new().config("auto_review: {enabled: true}\n");
    let (asked, lab) = (server_of(), lab.file(".agent/config.yaml", "auto_review: {enabled: false}\n"));
    lab.run_yolo(&asked, &[]).exits(0);
    assert_eq!(asked.requests().len(), 3);
}

#[test]
fn a15_a_loop_is_done_when_its_checks_pass_and_the_review_approves_all_it_changed() {
    let more = "{calls: [{name: write_file, arguments: {path: more.rs, content: \"fn more() {}\\n\"}}]}";
    let server = Server::yaml(&[WRITE, "{text: COMPLETE}", FOUND, more, "{text: COMPLETE}", APPROVED]);
    let lab = Lab::new().config("auto_review: {max_fix_passes: 0}\n");
    let args = ["loop", "task", "--check", "true", "--review", "--json"];
    let json = lab.agent_on(&server, &[&args[..], &["--mode", "yolo"]].concat()).exits(0).json();
    assert_eq!((&json["stop_reason"], server.requests().len()), (&json!("done"), 6));
    assert_eq!(json["runs"][0]["review"]["approved"], false);
    assert_eq!(json["runs"][1]["review"]["approved"], true);
    let told = messages(&server, 3).iter().map(ToString::to_string).collect::<String>();
    assert!(told.contains("not approved by a review") && told.contains("it has a bug"), "{told}");
    let asked = message(&server, 5, 1);
    assert!(asked.contains("+fn bug() {}") && asked.contains("+fn more() {}"), "{asked}");
}

#[test]
fn a15_the_findings_of_a_review_are_results_of_sarif_and_cases_of_junit() {
    let found = r#"{text: '{"approved": false, "findings": [
      {"file": "new.rs", "line": 1, "problem": "it has a bug", "fix": "mend it"},
      {"file": "../other.rs", "line": null, "problem": "is <not> here", "fix": null}]}'}"#;
    let report = |answer: &str, format: &str, code: i32| {
        let (lab, server) = (
            Lab::new().config("auto_review: {max_fix_passes: 0}\n"),
            Server::yaml(&[WRITE, "{text: done}", answer]),
        );
        run_reviewed(&lab, &server, &["--report", format]).exits(code);
        lab.agent(&["report", "--format", format]).exits(0).stdout
    };
    let sarif = |answer: &str, code| -> Value {
        serde_json::from_str::<Value>(&report(answer, "sarif", code)).unwrap()["runs"][0].take()
    };
    let log = sarif(found, 2);
    let results = log["results"].as_array().unwrap();
    assert_eq!(results.len(), 2, "{log}");
    assert_eq!((&results[0]["ruleId"], &results[0]["level"]), (&json!("change-review"), &json!("error")));
    let rule = usize::try_from(results[0]["ruleIndex"].as_u64().unwrap()).unwrap();
    assert_eq!(log["tool"]["driver"]["rules"][rule]["id"], "change-review");
    assert_eq!(results[0]["message"]["text"], "it has a bug\n\nSuggestion: mend it");
    let place = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!(
        (&place["artifactLocation"]["uri"], &place["region"]["startLine"]),
        (&json!("new.rs"), &json!(1))
    );
    assert_eq!(results[1]["locations"], Value::Null);
    assert!(results[1]["message"]["text"].as_str().unwrap().contains("[not in the workspace: ../other.rs]"));
    assert_eq!(log["invocations"][0]["executionSuccessful"], false);
    let approved = sarif(APPROVED, 0);
    assert_eq!(
        (&approved["results"], &approved["invocations"][0]["executionSuccessful"]),
        (&json!([]), &json!(true))
    );
    let failed = sarif("{text: no verdict, repeat: 9}", 2);
    assert_eq!(failed["results"], Value::Null);
    assert!(failed["invocations"][0].to_string().contains("review: failed"), "{failed}");
    let junit = report(found, "junit", 2);
    for part in [
        "name=\"review of the changes\"",
        "name=\"new.rs:1: it has a bug\"",
        "Suggestion: mend it",
        "name=\"../other.rs: is &lt;not&gt; here\"",
        "failures=\"4\"",
    ] {
        assert!(junit.contains(part), "{part}: {junit}");
    }
}

#[test]
fn a15_the_preset_paranoid_has_the_changes_reviewed() {
    let lab = Lab::new();
    // A second fix pass costs more than the default, so an untrusted project cannot ask for it.
    lab.agent(&["init", "--preset", "paranoid", "--trust"]).exits(0);
    let shown = lab.agent(&["config", "show"]).exits(0).stdout;
    for line in ["auto_review.enabled = true", "auto_review.max_fix_passes = 2"] {
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
}
