//! Costs: what is counted, where it is told, and budgets that are never exceeded.

use crate::support::run::{Finished, Lab};
use crate::support::server::{Recorded, Server};
use serde_json::{Value, json};

/// A laboratory whose user has a price for the model `openai/mock`: a cent per million prompt tokens, forty dollars
/// per million generated ones; with more of the configuration.
fn priced(more: &str) -> Lab {
    let prices =
        "models:\n  openai/mock: {input: 0.01, output: 40, cached_read: 0.001, output_limit: 50000}\n";
    Lab::with_a_txt()
        .file("prices.yaml", prices)
        .config(&format!("costs: {{prices_file: prices.yaml}}\n{more}"))
}

/// `n` turns that read a file, each with `output` tokens, and then an answer of 100 tokens.
fn reads(n: usize, output: u64) -> Server {
    let read = format!(
        "  - calls: [{{name: read_file, arguments: {{path: a.txt}}}}]\n    usage: {{input: 0, output: {output}}}\n"
    );
    Server::start(&format!(
        "turns:\n{}  - {{text: summary, usage: {{input: 0, output: 100}}}}\n",
        read.repeat(n)
    ))
}

#[track_caller]
fn ended_over_budget(done: Finished, limit: &str) -> Value {
    let json = done.exits(2).json();
    assert_eq!((&json["stop_reason"], &json["status"]), (&json!("budget_exceeded"), &json!("partial")));
    assert_eq!(json["limit"], limit);
    json
}

#[test]
fn l12_what_was_spent_beyond_the_budget_ends_the_run_without_another_call() {
    let server = reads(5, 1_000_000);
    let done = priced("").run(&server, &["--json", "--budget", "1"]);
    let json = ended_over_budget(done, "usd");
    assert_eq!(server.requests().len(), 1);
    assert_eq!(json["cost"], json!({"total_usd": 40.0, "by_source": {"agent": 40.0}}));
    assert!(json["output"].as_str().unwrap().contains("budget_exceeded"));
}

#[test]
fn l12_a_budget_keeps_a_share_for_the_closing_summary() {
    let server = reads(2, 680);
    let lab = priced("llm: {max_output_tokens: 1000}\n");
    let json = ended_over_budget(lab.run(&server, &["--json", "--budget", "0.1"]), "usd");
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[2].body.get("tools").is_none());
    assert_eq!(json["output"], "summary");
    assert_eq!(json["cost"]["by_source"], json!({"agent": 0.0544, "closing": 0.004}));
}

#[test]
fn l13_a_call_that_could_exceed_the_budget_is_not_sent() {
    let server = reads(5, 1);
    let json = ended_over_budget(priced("").run(&server, &["--json", "--budget", "0.001"]), "usd");
    assert_eq!((server.requests().len(), &json["requests"]), (0, &json!(0)));
    assert_eq!(json["cost"]["total_usd"], 0.0);
}

#[test]
fn l13_what_a_hook_adds_to_the_prompt_is_counted_before_the_call() {
    let prices = "models: {openai/mock: {input: 100, output: 1, output_limit: 10}}";
    let run = |more: &str, budget: &str| {
        let server = Server::start("turns: [{text: hi}]");
        let done = priced(more).file("prices.yaml", prices).run(&server, &["--json", "--budget", budget]);
        (done, server.requests().len())
    };
    let budgets = (1..30).map(|step| format!("{:.1}", f64::from(step) * 0.4));
    let enough = budgets.into_iter().find(|budget| run("", budget).0.code == Some(0)).unwrap();
    let hook = "hooks: {pre_llm_call: [{command: 'printf %07000d 0'}]}\n";
    let (done, requests) = run(hook, &enough);
    ended_over_budget(done, "usd");
    assert_eq!(requests, 0);
}

#[test]
fn l13_what_is_no_amount_of_money_is_a_usage_error_and_not_a_run_without_a_budget() {
    let server = reads(0, 0);
    for wrong in ["nan", "inf", "-1", "much", "10000000"] {
        priced("").run(&server, &["--budget", wrong]).exits(3);
    }
    assert_eq!(server.requests().len(), 0);
    priced("").run(&server, &["--budget", "$5"]).exits(0);
}

#[test]
fn l13_a_prompt_that_costs_too_much_is_not_sent() {
    let server = Server::start("turns: [{text: hi}]");
    let lab =
        priced("").file("prices.yaml", "models: {openai/mock: {input: 100, output: 1, output_limit: 10}}");
    let prompt = "many words ".repeat(10_000);
    let url = server.url();
    let args = ["run", &prompt, "--model", "openai/mock", "--api-base", &url, "--api-key", "k", "--json"];
    ended_over_budget(lab.agent(&[&args[..], &["--budget", "5"]].concat()), "usd");
    assert_eq!(server.requests().len(), 0);
    lab.agent(&[&args[..], &["--budget", "50"]].concat()).exits(0);
}

#[test]
fn l13_a_budget_limits_the_length_of_answers() {
    let server = Server::start("turns: [{text: hi, repeat: 3}]");
    let lab = priced("");
    for more in [&["--budget", "1"][..], &["--budget", "1000"], &[]] {
        lab.run(&server, more).exits(0);
    }
    let sent: Vec<Value> =
        server.requests().iter().map(|request| request.body["max_completion_tokens"].clone()).collect();
    assert_eq!(sent, [json!(6250), json!(50_000), Value::Null]);
}

#[test]
fn l13_a_request_that_broke_off_counts_with_the_most_it_can_have_cost() {
    let server = Server::start("turns: [{error: {status: 500}, repeat: 3}, {text: hi}]");
    let lab = priced("llm: {max_output_tokens: 1000}\n");
    ended_over_budget(lab.run(&server, &["--json", "--budget", "0.07"]), "usd");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn l13_an_answer_that_its_server_broke_off_counts_so_too_whatever_the_server_calls_it() {
    let begun = json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": "grep"}}]}}]});
    for error in [json!({"code": 529, "message": "overloaded"}), json!({"code": 429, "message": "too many"})]
    {
        let body = format!("data: {begun}\n\ndata: {}\n\n", json!({ "error": error }));
        let fault = json!({"fault": {"http": {"status": 200, "body": body}}, "repeat": 3});
        let server = Server::turns(json!([fault, {"text": "hi"}]));
        let lab = priced("llm: {max_output_tokens: 1000}\n");
        ended_over_budget(lab.run(&server, &["--json", "--budget", "0.07"]), "usd");
        assert_eq!(server.requests().len(), 1, "{error}");
    }
}

#[test]
fn l12_tokens_and_tool_calls_have_caps_of_their_own() {
    let server = Server::start(
        "turns: [{calls: [{name: read_file, arguments: {path: a.txt}}], usage: {input: 190000, output: 5}, repeat: 3}]",
    );
    let lab = priced("").config("costs: {max_tokens: 200000}\n");
    let json = ended_over_budget(lab.run(&server, &["--json"]), "tokens");
    assert_eq!((server.requests().len(), &json["cost"]["total_usd"]), (1, &Value::Null));

    let write = |path: &str| format!("{{name: write_file, arguments: {{path: {path}, content: x}}}}");
    let calls = [write("one"), write("two"), write("three")].join(", ");
    let server = Server::start(&format!("turns: [{{calls: [{calls}]}}, {{text: summary}}]"));
    let lab = lab.config("costs: {max_tool_calls: 2}\n");
    let json = ended_over_budget(lab.run_yolo(&server, &["--json"]), "tool_calls");
    assert!(lab.exists("one") && lab.exists("two") && !lab.exists("three"));
    assert_eq!(json["output"], "summary");
    let told = server.requests()[1].body.to_string();
    assert!(told.contains("used up its tool calls"), "{told}");
}

#[test]
fn o25_costs_are_told_in_the_log_on_lines_of_their_own_and_in_the_document() {
    let lab = priced("");
    let done = lab.run(&reads(1, 100), &["--show-costs"]).exits(0);
    assert!(done.stderr.contains("| Cost: $0.0080 |"), "{}", done.stderr);
    assert!(
        done.stderr.contains("\nCost: $0.0080 (0 in / 200 out / 0 cached)\n   agent: $0.0080\n"),
        "{}",
        done.stderr
    );
    let quiet = lab.run(&reads(1, 100), &["--show-costs", "--quiet"]).exits(0);
    assert!(quiet.stderr.starts_with("Cost: $0.0080"), "{}", quiet.stderr);
    let silent = lab.run(&reads(1, 100), &["--quiet"]).exits(0);
    assert_eq!(silent.stderr, "");
    let closed = lab.run(&reads(1, 100), &["--max-steps", "1", "--json"]).exits(2);
    assert_eq!(
        closed.json()["cost"],
        json!({"total_usd": 0.008, "by_source": {"agent": 0.004, "closing": 0.004}})
    );
}

#[test]
fn o25_a_resumed_session_adds_to_its_costs_and_has_a_new_budget() {
    let lab = priced("");
    let first = lab.run(&reads(0, 0), &["--json"]).exits(0);
    assert_eq!(first.json()["cost"]["total_usd"], 0.004);
    let second = lab.resume(&reads(0, 0), &["more", "--json", "--budget", "0.1"]).exits(0);
    assert_eq!(second.json()["cost"]["total_usd"], 0.008);
}

#[test]
fn o25_an_answer_without_usage_makes_the_cost_unknown_never_zero() {
    let server = Server::start("turns: [{text: hi}]");
    assert_eq!(priced("").run(&server, &["--json"]).exits(0).json()["cost"]["total_usd"], Value::Null);
}

#[test]
fn o25_a_model_on_this_machine_costs_nothing_even_where_nobody_counts() {
    let lab = Lab::new().file("script.yaml", "turns: [{text: hi}]");
    let json = lab.agent(&["run", "task", "--json", "--model", "scripted:script.yaml"]).exits(0).json();
    assert_eq!(json["cost"], json!({"total_usd": 0.0, "by_source": {"agent": 0.0}}));
}

#[test]
fn o25_an_answer_that_broke_off_does_not_cost_nothing() {
    let server = Server::start("turns: [{text: half an answer, chunk: 4, fault: {cut: 2}}]");
    let cut = priced("llm: {retries: 0}\n").run(&server, &["--json"]).exits(1).json();
    assert_eq!(cut["cost"], json!({"total_usd": null, "by_source": {}}));
    let refused = Server::start("turns: [{error: {status: 400}}]");
    assert_eq!(priced("").run(&refused, &["--json"]).exits(1).json()["cost"]["total_usd"], 0.0);
}

#[test]
fn o25_an_answer_that_was_abandoned_does_not_cost_nothing() {
    let turn = "- {text: half an answer, chunk: 4, fault: {stall: 2}}\n";
    let stalled = Server::start(&format!("turns:\n{}", turn.repeat(5)));
    let stop = "loop: {on_limit: stop}\n";
    for limit in ["--timeout", "--step-timeout"] {
        let left = priced(stop).run(&stalled, &["--json", limit, "1"]).exits(5).json();
        assert_eq!(left["cost"], json!({"total_usd": null, "by_source": {}}), "{limit}");
        let told = priced(stop).run(&stalled, &["--show-costs", limit, "1"]).exits(5).stderr;
        assert!(told.contains("unknown") && !told.contains("$0.0000"), "{told}");
    }
    let lab = priced("");
    let run = lab.start_run(&stalled, &["--json"]);
    stalled.wait_for_request(5);
    run.signal(rustix::process::Signal::INT);
    assert_eq!(run.finish().exits(130).json()["cost"]["total_usd"], Value::Null);
}

#[test]
fn l13_a_budget_that_pays_for_no_call_is_not_said_to_be_used_up() {
    let server = reads(0, 0);
    let done = priced("").run(&server, &["--budget", "0.0001"]).exits(2);
    assert!(done.stderr.contains("budget is too small for another call"), "{}", done.stderr);
    assert!(!done.stderr.contains("used up") && server.requests().is_empty(), "{}", done.stderr);
}

#[test]
fn o26_a_model_without_a_price_has_an_unknown_cost_and_no_budget() {
    let server = reads(0, 0);
    let done = Lab::new().run(&server, &["--json"]).exits(0);
    assert_eq!(done.json()["cost"], json!({"total_usd": null, "by_source": {}}));
    let refused = Lab::new().run(&server, &["--json", "--budget", "5"]).exits(3);
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("`openai/mock`") && message.contains("costs.prices_file"), "{message}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn o26_models_are_listed_and_shown_with_the_users_own_prices() {
    let lab = priced("");
    let all = lab.agent(&["models"]).exits(0).stdout;
    assert!(all.contains("openai/mock") && all.contains("anthropic/") && all.contains("MIT"), "{all}");
    let some = lab.agent(&["models", "gpt-4o"]).exits(0).stdout;
    assert!(some.contains("openai/gpt-4o-mini") && !some.contains("anthropic/"), "{some}");
    let capitals = lab.agent(&["models", "GPT-4O"]).exits(0).stdout;
    assert_eq!(capitals, some);
    let own = lab.agent(&["models", "show", "mock"]).exits(3).stderr;
    assert!(own.contains("`mock` is not known"), "{own}");
    let own = lab.agent(&["models", "show", "openai/mock-2026-01-02"]).exits(0).stdout;
    assert!(own.contains("$0.01 in, $40 out") && own.contains("costs.prices_file"), "{own}");
}

#[test]
fn o26_a_file_of_prices_that_is_none_is_a_configuration_error() {
    let server = reads(0, 0);
    for (file, told) in
        [("models: {openai/mock: {input: -1, output: 1}}", "openai/mock"), ("[", "not a table")]
    {
        let done = priced("").file("prices.yaml", file).run(&server, &[]).exits(3);
        assert!(done.stderr.contains("costs.prices_file") && done.stderr.contains(told), "{}", done.stderr);
    }
    let done = Lab::new().config("costs: {prices_file: missing.yaml}").run(&server, &[]).exits(3);
    assert!(done.stderr.contains("does not exist"), "{}", done.stderr);
    let project =
        Lab::new().file(".agent/config.yaml", "costs: {prices_file: missing.yaml, budget_usd: 1}\n");
    project.run(&server, &[]).exits(0);
}

#[test]
fn o27_the_warning_comes_once_and_fires_its_hook() {
    let more = "hooks: {budget_warning: [{command: 'echo $AGENT_EVENT $AGENT_SPENT_USD >> warned'}]}\n";
    let lab = priced(more).config(&format!("costs: {{prices_file: prices.yaml, warn_at_usd: 0.01}}\n{more}"));
    let done = lab.run(&reads(4, 200), &[]).exits(0);
    assert_eq!(done.stderr.matches("costs.warn_at_usd").count(), 1, "{}", done.stderr);
    assert_eq!(lab.read("warned"), "budget_warning 0.016000\n");
}

// Fault B22: hooks at the end of a run did not know what it had cost.
#[test]
fn hooks_of_the_end_know_the_cost_of_the_session() {
    let hook = "[{command: 'echo $AGENT_EVENT $AGENT_TOTAL_COST $AGENT_COST >> costs; cat >> costs'}]";
    let lab = priced(&format!("hooks: {{agent_complete: {hook}, session_end: {hook}}}\n"));
    let total = lab.run(&reads(2, 200), &["--json"]).exits(0).json()["cost"]["total_usd"].as_f64().unwrap();
    let seen = lab.read("costs");
    for event in ["agent_complete", "session_end"] {
        assert!(seen.contains(&format!("{event} {total:.6} {total:.6}\n")), "{total}: {seen}");
    }
    assert!(total > 0.0 && seen.contains(&format!("\"total_cost_usd\":{total}")), "{total}: {seen}");
}

#[test]
fn l12_the_longest_answer_of_each_call_is_lowered_to_what_is_left() {
    let read = |output: u64| {
        let calls = "calls: [{name: read_file, arguments: {path: a.txt}}]";
        format!("{{{calls}, usage: {{input: 0, output: {output}}}}}")
    };
    let turns = [read(9_000), read(9_000), read(4_000)].join(", ");
    let server =
        Server::start(&format!("turns: [{turns}, {{text: summary, usage: {{input: 0, output: 2000}}}}]"));
    let lab = priced("llm: {max_output_tokens: 10000}\n");
    let json = ended_over_budget(lab.run(&server, &["--json", "--budget", "1"]), "usd");
    let limit = |request: &Recorded| request.body["max_completion_tokens"].as_u64().unwrap();
    let sent: Vec<u64> = server.requests().iter().map(limit).collect();
    let [first, second, third, closing] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!((first, second), (&10_000, &10_000));
    assert!((4_000..4_500).contains(third) && (2_000..3_000).contains(closing), "{sent:?}");
    assert_eq!((&json["output"], &json["cost"]["total_usd"]), (&json!("summary"), &json!(0.96)));
}
