//! `agent consolidate`: rounds of answers, the judge, the summary, and what the models may not do.

use crate::support::run::{Finished, Lab};
use crate::support::schema;
use crate::support::server::Server;
use crate::support::work::{debaters, example, has_data, names, on_server, resume_newest, sent};
use rustix::process::Signal;
use serde_json::{Value, json};

const TWO: [&str; 6] = ["consolidate", "which?", "--models", "openai/a,openai/b", "--judge", "openai/judge"];
const YES: &str = r#"{text: '{"agreed": true, "reason": "both say x"}'}"#;
const NO: &str = r#"{text: '{"agreed": false, "reason": "x is not y"}'}"#;

fn consolidate(lab: &Lab, server: &Server, more: &[&str]) -> Finished {
    lab.agent(&on_server(&[&TWO, more].concat(), &server.url()))
}

/// The numbers of the requests to `model`, in order of arrival.
fn requests_of(server: &Server, model: &str) -> Vec<usize> {
    let requests = server.requests().into_iter().enumerate();
    requests.filter(|(_, request)| request.body["model"] == model).map(|(number, _)| number).collect()
}

#[test]
fn a19_models_answer_in_rounds_until_the_judge_says_that_they_agree() {
    let judge = format!("{NO}, {YES}, {{text: it is x}}");
    let server = debaters("{text: x}, {text: x because}", "{text: y}, {text: now x}", &judge);
    let json = consolidate(&Lab::new(), &server, &["--rounds", "3", "--json"]).exits(0).json();
    schema::valid(&schema::of("work"), &json);
    assert_eq!(requests_of(&server, "judge"), [2, 5, 6]);
    assert_eq!(json["consolidation"], json!({"summary": "it is x", "rounds": 2, "agreed_at": 2}));
    assert_eq!((&json["stop_reason"], &json["output"]), (&json!("done"), &json!("it is x")));
    assert_eq!(
        names(&json),
        [
            "round 1: openai/a",
            "round 1: openai/b",
            "round 1: judge openai/judge",
            "round 2: openai/a",
            "round 2: openai/b",
            "round 2: judge openai/judge",
            "summary"
        ]
    );
    for request in [0, 1] {
        assert!(!sent(&server, request).contains("## Answer of"), "an answer of the same round was sent");
    }
    has_data(&server, 2, "Answer of openai/a in round 1", "x");
    for request in [3, 4] {
        has_data(&server, request, "Answer of openai/a in round 1", "x");
        has_data(&server, request, "Answer of openai/b in round 1", "y");
    }
    for request in [5, 6] {
        has_data(&server, request, "Answer of openai/a in round 2", "x because");
        has_data(&server, request, "Answer of openai/b in round 2", "now x");
    }
}

#[test]
fn a19_models_that_never_agree_are_summed_up_after_the_last_round() {
    let judge = format!("{NO}, {NO}, {{text: a says x and b says y}}");
    let server = debaters("{text: x, repeat: 2}", "{text: y, repeat: 2}", &judge);
    let done = consolidate(&Lab::new(), &server, &["--rounds", "2"]).exits(0);
    assert_eq!((done.stdout.trim(), server.requests().len()), ("a says x and b says y", 7));
    assert!(done.stderr.contains("not agreed: x is not y"), "{}", done.stderr);
}

#[test]
fn a19_a_reply_of_the_judge_that_is_no_json_means_not_agreed() {
    let server = Server::start(
        "turns: [{text: x}, {text: x}, {text: They agree.}, {text: Yes.}, {text: agreed}, {text: x for both}]",
    );
    let json = consolidate(&Lab::new(), &server, &["--rounds", "1", "--json"]).exits(0).json();
    assert_eq!(json["consolidation"], json!({"summary": "x for both", "rounds": 1, "agreed_at": null}));
    assert_eq!(json["runs"][2]["error"]["kind"], "output_schema");
    assert_eq!(server.requests().len(), 6);
}

#[test]
fn a19_the_command_line_of_the_manual_holds_a_debate() {
    let server = Server::start(&format!("turns: [{{text: x}}, {{text: x}}, {YES}, {{text: it is x}}]"));
    let words = example("consolidate");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = Lab::new().agent(&on_server(&words, &server.url())).exits(0);
    assert_eq!((done.stdout.trim(), server.requests().len()), ("it is x", 4));
    for line in ["Round 1/3: judge ", "agreed: both say x", "agent consolidate: success, done | 4 runs"] {
        assert!(done.stderr.contains(line), "{line}: {}", done.stderr);
    }
}

#[test]
fn a19_a_debate_needs_two_models_and_a_judge_that_takes_no_part() {
    let (lab, server) = (Lab::new(), Server::start("turns: [{text: never}]"));
    for (options, why) in [
        (&["--models", "openai/a,openai/b", "--judge", "openai/b"][..], "openai/b is named twice"),
        (&["--models", "openai/a,openai/b", "--judge", " openai/b"], "is named twice"),
        (&["--models", "openai/a,openai/a", "--judge", "openai/b"], "openai/a is named twice"),
        (&["--models", "openai/a", "--judge", "openai/b"], "name 2 to 8 models"),
        (&["--models", "openai/a,openai/b"], "another one that judges"),
        (&["--judge", "openai/b"], "name 2 to 8 models"),
        (&["--models", "openai/a,openai/b,", "--judge", "openai/c"], "name 2 to 8 models"),
        (
            &["--models", "openai/a,openai/b", "--judge", "openai/c", "--model", "openai/d"],
            "this command has no --model",
        ),
        (
            &["--models", "openai/a,openai/b", "--judge", "openai/c", "--fallback-model", "openai/d"],
            "this command has no --fallback-model",
        ),
        (&["--models", "openai/a,openai/b", "--judge", "openai/c", "--rounds", "0"], "--rounds"),
    ] {
        let words = [&["consolidate", "which?"], options].concat();
        let done = lab.agent(&on_server(&words, &server.url())).exits(3);
        assert!(done.stderr.contains(why), "{options:?}: {}", done.stderr);
    }
    for option in [["--models", "openai/a"], ["--judge", "openai/a"]] {
        let words = [&["consolidate", "resume", "ID"], &option[..]].concat();
        let done = lab.agent(&on_server(&words, &server.url())).exits(3);
        assert!(done.stderr.contains("cannot change"), "{}", done.stderr);
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a19_a_model_that_cannot_be_used_is_found_before_the_first_one_answers() {
    let lab = Lab::new().file("a.yaml", "turns: [{text: x}]");
    let words = ["consolidate", "which?", "--models", "scripted:a.yaml,openai/b", "--judge", "openai/c"];
    lab.agent(&words).exits(4);
    assert_eq!(lab.journals(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a19_a_configured_fallback_model_does_not_take_the_part_of_another_one() {
    let lab = Lab::new().config("llm: {fallback: [openai/judge]}");
    let server = Server::start("turns: [{fault: {http: {status: 404, body: no}}, repeat: 9}]");
    let json = consolidate(&lab, &server, &["--json"]).exits(1).json();
    assert_eq!(json["stop_reason"], "run_failed");
    assert_eq!(requests_of(&server, "judge"), Vec::<usize>::new());
    assert_eq!(json["consolidation"], Value::Null);
}

#[test]
fn a19_the_models_of_a_debate_can_change_nothing_whatever_their_agent_may_do() {
    let lab = Lab::new().file("a.txt", "first\n");
    let calls = "{calls: [
      {name: write_file, arguments: {path: b.txt, content: x}},
      {name: run_command, arguments: {command: touch c.txt}},
      {name: read_file, arguments: {path: a.txt}}]}, {text: x}";
    let server = debaters(calls, "{text: x}", &format!("{YES}, {{text: it is x}}"));
    let more = ["--agent", "build", "--mode", "yolo", "--allow-commands", "--json"];
    let json = consolidate(&lab, &server, &more).exits(0).json();
    for request in server.requests() {
        let tools = request.body["tools"].to_string();
        assert!(tools.contains("read_file"), "{tools}");
        assert!(!tools.contains("write_file") && !tools.contains("run_command"), "{tools}");
    }
    assert!(!lab.exists("b.txt") && !lab.exists("c.txt"));
    let tools = json["runs"][0]["tools_used"].as_array().unwrap();
    let succeeded: Vec<&Value> = tools.iter().map(|tool| &tool["success"]).collect();
    assert_eq!(succeeded, [false, false, true], "{json}");
}

#[test]
fn a19_the_budget_of_a_debate_is_one_for_all_its_runs() {
    let price = "{input: 0.01, output: 40, cached_read: 0.001, output_limit: 50000}";
    let prices = format!("models:\n  openai/a: {price}\n  openai/b: {price}\n  openai/judge: {price}\n");
    let lab = Lab::new().file("prices.yaml", prices).config("costs: {prices_file: prices.yaml}");
    let server = Server::start("turns: [{text: more, usage: {input: 0, output: 10000}, repeat: 9}]");
    let json = consolidate(&lab, &server, &["--budget", "0.8", "--json"]).exits(2).json();
    assert_eq!((&json["stop_reason"], &json["status"]), (&json!("budget_exceeded"), &json!("partial")));
    assert_eq!((&json["cost_usd"], server.requests().len()), (&json!(0.8), 2));
}

#[test]
fn a19_the_models_of_a_round_answer_at_the_same_time_and_in_their_order() {
    let (lab, server) = (Lab::new(), debaters("{text: x, delay_ms: 1000}", "{text: y}", YES));
    let running = lab.start(&on_server(&[&TWO[..], &["--rounds", "1", "--json"]].concat(), &server.url()));
    server.wait_for_request(2);
    let asked: Vec<usize> = ["a", "b"].iter().flat_map(|model| requests_of(&server, model)).collect();
    assert_eq!((asked.len(), requests_of(&server, "judge").len()), (2, 0));
    let json = running.finish().json();
    assert_eq!(names(&json)[..2], ["round 1: openai/a", "round 1: openai/b"]);
    let judged = sent(&server, 2);
    let place = |model: &str| judged.find(&format!("Answer of openai/{model} in round 1")).unwrap();
    assert!(place("a") < place("b"), "{judged}");
}

#[test]
fn a19_an_interrupt_ends_all_models_of_a_round() {
    let (lab, server) = (Lab::new(), debaters("{fault: hang}", "{fault: hang}", YES));
    let running = lab.start(&on_server(&[&TWO[..], &["--json"]].concat(), &server.url()));
    server.wait_for_request(2);
    running.signal(Signal::INT);
    let json = running.finish().exits(130).json();
    assert_eq!(json["stop_reason"], "user_interrupt");
    let reasons: Vec<&Value> =
        json["runs"].as_array().unwrap().iter().map(|run| &run["stop_reason"]).collect();
    assert_eq!(reasons, ["user_interrupt", "user_interrupt"]);
}

#[test]
fn a19_a_model_that_fails_stops_the_debate_after_the_others_have_answered() {
    let lab = Lab::new();
    let failing = debaters("{fault: {http: {status: 401, body: no}}}", "{text: y, delay_ms: 300}", YES);
    let json = consolidate(&lab, &failing, &["--json"]).exits(4).json();
    assert_eq!((&json["stop_reason"], &json["runs"][1]["output"]), (&json!("run_failed"), &json!("y")));
    assert_eq!(requests_of(&failing, "judge").len(), 0);
    let again = debaters("{text: x}", "{text: never}", &format!("{YES}, {{text: it is x}}"));
    let json = resume_newest(&lab, &again, "consolidate").exits(0).json();
    assert_eq!((requests_of(&again, "a").len(), requests_of(&again, "b").len()), (1, 0));
    assert_eq!(names(&json)[..2], ["round 1: openai/a", "round 1: openai/b"]);
}

#[test]
fn a19_a_debate_that_was_killed_goes_on_where_it_was_and_asks_nobody_twice() {
    let lab = Lab::new();
    let prose = "{text: prose, repeat: 3}";
    let server = debaters("{text: x}, {text: x two}", "{text: y}, {fault: hang}", prose);
    let running = lab.start(&on_server(&TWO, &server.url()));
    server.wait_for_request(7);
    running.wait_for_stderr("round 2: openai/a: success");
    running.signal(Signal::KILL);
    running.finish();
    let again = debaters("{text: never}", "{text: now x}", &format!("{YES}, {{text: it is x}}"));
    resume_newest(&lab, &again, "consolidate").exits(0);
    let listed = lab.agent(&["work", "list"]).exits(0).stdout;
    let json =
        lab.agent(&["work", "show", listed.split_whitespace().next().unwrap(), "--json"]).exits(0).json();
    assert_eq!(
        (requests_of(&again, "a").len(), requests_of(&again, "b"), requests_of(&again, "judge")),
        (0, vec![0], vec![1, 2])
    );
    assert_eq!(json["consolidation"], json!({"summary": "it is x", "rounds": 2, "agreed_at": 2}));
    has_data(&again, 0, "Answer of openai/b in round 1", "y");
    has_data(&again, 1, "Answer of openai/a in round 2", "x two");
    has_data(&again, 1, "Answer of openai/b in round 2", "now x");
    assert_eq!(names(&json)[3..5], ["round 2: openai/a", "round 2: openai/b"]);
    assert_eq!(json["runs"].as_array().unwrap().len(), 7);
}
