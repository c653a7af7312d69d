//! Fallback: another model takes over when the one before cannot be used.

use crate::support::run::{Finished, KEY, Lab};
use crate::support::server::{Recorded, Server};
use serde_json::{Value, json};

/// One fallback on the same server, no repetition of a failed request.
fn with_fallback(models: &str) -> Lab {
    Lab::with_a_txt().config(&format!("llm: {{retries: 0, fallback: [{models}]}}\n"))
}

fn asked(server: &Server) -> Vec<String> {
    let model = |request: &Recorded| request.body["model"].as_str().unwrap().to_owned();
    server.requests().iter().map(model).collect()
}

/// The events of this type in the newest session.
fn of_type(lab: &Lab, kind: &str) -> Vec<Value> {
    let journal = std::fs::read_to_string(lab.journal()).unwrap();
    let events = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["record"].take());
    events.filter(|record| record["event"]["type"] == kind).collect()
}

const DOWN: &str = "error: {status: 503}";

#[test]
fn lr6_a_model_that_stays_overloaded_is_replaced_for_the_rest_of_the_run() {
    let script = format!(
        "turns: [{{{DOWN}, repeat: 2}}, {{calls: [{{name: read_file, arguments: {{path: a.txt}}}}]}}, {{text: done}}]"
    );
    let server = Server::start(&script);
    let lab = Lab::with_a_txt().config("llm: {retries: 1, fallback: [openai/second]}\n");
    let done = lab.run(&server, &[]).exits(0);
    assert_eq!(done.stdout, "done\n");
    assert_eq!(asked(&server), ["mock", "mock", "second", "second"]);
    let told = "openai/mock cannot be used; openai/second replaces it for the rest of the run";
    assert!(done.stderr.contains(told), "{}", done.stderr);
    let switched = of_type(&lab, "model_switched");
    let [record] = switched.as_slice() else { panic!("{switched:?}") };
    assert_eq!(
        (&record["event"]["from"], &record["event"]["to"]),
        (&"openai/mock".into(), &"openai/second".into())
    );
    assert_eq!(record["event"]["failure"]["kind"], "overloaded");
    let steps: Vec<Value> = of_type(&lab, "step_start").iter().map(|record| record["step"].clone()).collect();
    assert_eq!(steps, [1, 1, 2]);
    let result = of_type(&lab, "run_end")[0]["event"]["result"].clone();
    assert_eq!((&result["model"], &result["steps"]), (&"openai/second".into(), &2.into()));
}

#[test]
fn lr6_the_flag_names_models_in_order_and_the_error_names_them_all() {
    let server =
        Server::start("turns: [{error: {status: 503}}, {error: {status: 402}}, {error: {status: 500}}]");
    let lab = Lab::with_a_txt().config("llm: {retries: 0, fallback: [openai/never]}\n");
    let more = ["--fallback-model", "openai/second", "--fallback-model", "openai/third", "--json"];
    let json = lab.run(&server, &more).exits(1).json();
    assert_eq!(asked(&server), ["mock", "second", "third"]);
    let message = json["error"]["message"].as_str().unwrap();
    for named in ["openai/third: ", "before that, openai/mock: ", "; openai/second: "] {
        assert!(message.contains(named), "{named}: {message}");
    }
    assert_eq!((&json["error"]["kind"], &json["model"]), (&"server".into(), &"openai/third".into()));
}

#[test]
fn lr6_a_refused_key_a_wrong_request_and_a_full_window_do_not_switch() {
    for (error, code) in
        [("status: 401", 4), ("status: 400", 1), ("status: 400, code: context_length_exceeded", 2)]
    {
        let server = Server::start(&format!("turns: [{{error: {{{error}}}}}, {{text: never}}]"));
        with_fallback("openai/second").run(&server, &[]).exits(code);
        assert_eq!(asked(&server), ["mock"], "{error}");
    }
}

#[test]
fn lr6_a_stream_that_breaks_off_in_sight_is_begun_again_by_the_next_model() {
    let server = Server::start("turns: [{text: half an answer, chunk: 4, fault: {cut: 2}}, {text: whole}]");
    let lab = with_fallback("openai/second");
    let done = lab.run(&server, &[]).exits(0);
    assert_eq!(done.stdout, "whole\n");
    assert_eq!(of_type(&lab, "model_switched")[0]["event"]["failure"]["kind"], "cut_stream");
}

#[test]
fn lr6_no_model_takes_over_when_the_time_is_up() {
    let server = Server::start("turns: [{fault: hang}, {text: never}]");
    with_fallback("openai/second").run(&server, &["--timeout", "1"]).exits(5);
    let models = asked(&server);
    assert!(!models.contains(&"second".to_owned()), "{models:?}");
}

#[test]
fn lr6_each_call_costs_what_its_model_costs() {
    let prices = "models:\n  openai/mock: {input: 1, output: 10}\n  openai/second: {input: 2, output: 30}\n";
    let script = "turns:
  - {calls: [{name: read_file, arguments: {path: a.txt}}], usage: {input: 1000000, output: 100000}}
  - error: {status: 503}
  - {text: done, usage: {input: 1000000, output: 100000}}
";
    let config = "costs: {prices_file: prices.yaml}\nllm: {retries: 0, fallback: [openai/second]}\n";
    let lab = Lab::with_a_txt().file("prices.yaml", prices).config(config);
    let json = lab.run(&Server::start(script), &["--json"]).exits(0).json();
    assert_eq!(json["cost"]["total_usd"], 2.0 + 5.0);
}

#[test]
fn lr6_a_fallback_that_could_not_be_used_is_found_before_the_run() {
    let server = Server::start("turns: [{text: never}]");
    let refused = |lab: &Lab, more: &[&str]| -> Finished {
        let done = lab.run(&server, more).exits(3);
        assert!(done.stderr.contains("llm.fallback: "), "{}", done.stderr);
        done
    };
    let done = refused(&with_fallback("anthropic/claude-m"), &[]);
    assert!(done.stderr.contains("ANTHROPIC_API_KEY"), "{}", done.stderr);
    refused(&with_fallback("nobody/claude-m"), &[]);
    refused(&with_fallback("'scripted:missing.yaml'"), &[]);
    let prices = "models: {openai/mock: {input: 1, output: 10}}";
    let config = "costs: {prices_file: prices.yaml}\nllm: {fallback: [openai/second]}\n";
    let lab = Lab::with_a_txt().file("prices.yaml", prices).config(config);
    let done = refused(&lab, &["--budget", "1"]);
    assert!(done.stderr.contains("`openai/second`"), "{}", done.stderr);
    refused(&with_fallback(&["openai/x"; 9].join(", ")), &[]);
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn lr6_the_key_given_for_one_provider_is_not_sent_to_another() {
    let server = Server::start("turns: [{error: {status: 503}}]");
    let lab = with_fallback("'scripted:second.yaml'").file("second.yaml", "turns: [{text: from the script}]");
    let done = lab.run(&server, &["--json"]).exits(0);
    assert_eq!(done.json()["output"], "from the script");
    assert_eq!(done.json()["model"], "scripted:second.yaml");
    assert!(!done.stdout.contains(KEY) && !done.stderr.contains(KEY));
}

#[test]
fn lr6_the_key_given_for_a_server_whose_address_is_a_variable_is_not_sent_to_another() {
    let down = Server::start("turns: [{error: {status: 503}}]");
    let second = Server::done();
    let config = "llm:
  retries: 0
  fallback: [second/m]
  providers: {first: {base_keys: [FIRST_URL]}, second: {base_keys: [SECOND_URL]}}
";
    let lab = Lab::with_a_txt().config(config).env("FIRST_URL", &down.url()).env("SECOND_URL", &second.url());
    lab.agent(&["run", "task", "--model", "first/m", "--api-key", KEY]).exits(0);
    assert_eq!(down.requests()[0].headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(second.requests()[0].headers.get("authorization"), None);
}

#[test]
fn lr6_the_key_given_for_one_server_of_ones_own_is_not_sent_to_another() {
    let (first, second) = (Server::start("turns: [{error: {status: 503}}]"), Server::done());
    let config = "llm: {retries: 0, fallback: [other/m], providers: {other: {base_keys: [OTHER_BASE], keys: [OTHER_KEY]}}}";
    let lab = Lab::with_a_txt()
        .config(config)
        .env("AZURE_OPENAI_ENDPOINT", &first.url())
        .env("OTHER_BASE", &second.url())
        .env("OTHER_KEY", "sk-of-the-other");
    lab.agent(&["run", "task", "--model", "azure/m", "--api-key", KEY]).exits(0);
    assert_eq!(first.requests()[0].headers["api-key"], KEY);
    assert_eq!(second.requests()[0].headers["authorization"], "Bearer sk-of-the-other");
}

#[test]
fn lr6_a_conversation_goes_on_in_another_format_with_its_calls_and_without_foreign_reasoning() {
    let calls = "{thinking: I look., text: one moment, calls: [{name: read_file, arguments: {path: a.txt}}]}";
    let script = format!("turns: [{calls}, {{{DOWN}}}, {calls}, {{{DOWN}}}, {{text: done}}]");
    for (first, second) in [("openai/m", "openai-responses/m"), ("openai-responses/m", "openai/m")] {
        let server = Server::start(&script);
        let lab = Lab::with_a_txt().config(&format!("llm: {{retries: 0, fallback: [{second}, {first}]}}\n"));
        assert_eq!(lab.run_model(first, &server.url(), &[]).exits(0).stdout, "done\n", "{first}");
        let requests = server.requests();
        let paths: Vec<bool> = requests.iter().map(|request| request.target.contains("/responses")).collect();
        let responses = first.contains("responses");
        assert_eq!(paths, [responses, responses, !responses, !responses, responses], "{first}");
        for request in &requests[2..] {
            let sent = request.body.to_string();
            assert!(sent.contains("alpha") && sent.contains("read_file"), "{sent}");
        }
        let foreign = requests[2].body.to_string();
        assert!(!foreign.contains("encrypted_content\":\""), "{foreign}");
    }
}

#[test]
fn lr6_a_resumed_session_begins_with_the_chosen_model_again() {
    let server = Server::start("turns: [{error: {status: 503}}, {text: one}, {text: two}]");
    let lab = with_fallback("openai/second");
    lab.run(&server, &[]).exits(0);
    let json = lab.resume(&server, &["more", "--json"]).exits(0).json();
    assert_eq!(asked(&server), ["mock", "second", "mock"]);
    assert_eq!((&json["model"], &json["output"]), (&json!("openai/mock"), &json!("two")));
}

#[test]
fn lr6_each_model_has_its_own_longest_answer() {
    let prices = "models:\n  openai/mock: {input: 1, output: 10, output_limit: 50000}\n  \
                  openai/second: {input: 2, output: 30, output_limit: 4000}\n";
    for (config, more, limits) in
        [("max_output_tokens: 9000, ", &[][..], [9_000, 4_000]), ("", &["--budget", "1"], [25_000, 4_000])]
    {
        let server = Server::start("turns: [{error: {status: 503}}, {text: done}]");
        let config = format!(
            "costs: {{prices_file: prices.yaml}}\nllm: {{{config}retries: 0, fallback: [openai/second]}}\n"
        );
        Lab::with_a_txt().file("prices.yaml", prices).config(&config).run(&server, more).exits(0);
        let sent = server
            .requests()
            .iter()
            .map(|sent| sent.body["max_completion_tokens"].clone())
            .collect::<Vec<_>>();
        assert_eq!(sent, limits, "{config}");
    }
}
