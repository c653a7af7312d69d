//! Caches and thinking, through the binary: what providers are told so that they keep prompts, how hard models are told
//! to think, what is said when a prefix changes, and the answers that are kept for development.

use crate::support::run::{Finished, KEY, Lab};
use crate::support::server::{Recorded, Server};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

/// Two steps, the first of which reads a file.
const READ_AND_ANSWER: &str = "turns:
- calls: [{name: read_file, arguments: {path: a.txt}}]
  usage: {input: 100, output: 5}
- text: done
  usage: {input: 20, cached_read: 100, output: 5}
";

/// Runs the task with `model` against the turns of `script`.
fn play(lab: &Lab, model: &str, script: &str, more: &[&str]) -> (Finished, Vec<Recorded>) {
    let server = Server::start(script);
    let done = against(lab, &server, model, more);
    (done, server.requests())
}

fn against(lab: &Lab, server: &Server, model: &str, more: &[&str]) -> Finished {
    lab.run_model(model, &server.url(), more)
}

/// The one request of a run that is answered at once.
fn request(model: &str, more: &[&str]) -> (Finished, Value) {
    let (done, requests) = play(&Lab::with_a_txt(), model, "turns: [{text: done}]", more);
    assert_eq!(requests.len(), 1, "{}", done.stderr);
    (done.exits(0), requests[0].body.clone())
}

fn events(lab: &Lab, kind: &str) -> Vec<Value> {
    let journal = std::fs::read_to_string(lab.journal()).unwrap();
    let records = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.map(|line| line["record"]["event"].clone()).filter(|event| event["type"] == kind).collect()
}

#[test]
fn k14_anthropic_is_told_up_to_where_prompts_are_to_be_kept() {
    let (done, requests) =
        play(&Lab::with_a_txt(), "anthropic/claude-sonnet-4-5", READ_AND_ANSWER, &["--json"]);
    let mark = json!({"type": "ephemeral"});
    for (at, request) in requests.iter().enumerate() {
        let body = &request.body;
        assert_eq!(body["system"][0]["cache_control"], mark);
        assert_eq!(body["messages"][0]["content"][0]["cache_control"], mark);
        let text = String::from_utf8(request.bytes.clone()).unwrap();
        assert_eq!(text.matches("cache_control").count(), 2 + at, "at most four, and they move");
    }
    assert_eq!(requests[1].body["messages"][2]["content"][0]["cache_control"], mark);
    let json = done.exits(0).json();
    assert_eq!(
        json["cache"],
        json!({"read_tokens": 100, "write_tokens": 0, "answers": 0, "prefix_changes": []})
    );
    let dollars = json["cost"]["total_usd"].as_f64().unwrap();
    let expected = (120.0 * 3.0 + 100.0 * 0.3 + 10.0 * 15.0) / 1e6;
    assert!((dollars - expected).abs() < 1e-9, "{dollars} {expected}");
}

#[test]
fn k14_openai_is_told_the_session_which_stays_when_it_is_resumed() {
    for model in ["openai/mock", "openai-responses/mock"] {
        let lab = Lab::with_a_txt();
        let (done, requests) = play(&lab, model, READ_AND_ANSWER, &["--json"]);
        let session = done.exits(0).json()["session_id"].clone();
        let server = Server::start("turns: [{text: again}]");
        let url = server.url();
        let args = ["resume", "--last", "more", "--model", model, "--api-base", &url, "--api-key", KEY];
        lab.agent(&args).exits(0);
        for request in requests.iter().chain(&server.requests()) {
            assert_eq!(request.body["prompt_cache_key"], session, "{model}");
        }
    }
}

#[test]
fn k14_openrouter_keeps_the_prompts_of_anthropics_models() {
    let (_, body) = request("openrouter/anthropic/claude-sonnet-4.5", &[]);
    assert_eq!(body["cache_control"], json!({"type": "ephemeral"}));
    let (_, body) = request("openrouter/qwen/qwen3", &[]);
    assert_eq!(body.get("cache_control"), None);
}

#[test]
fn k14_nothing_of_it_is_sent_when_it_is_switched_off_or_the_server_is_not_known() {
    let config = |lab: Lab| lab.config("llm: {prompt_caching: false}");
    for model in ["anthropic/claude-sonnet-4-5", "openai/mock", "openrouter/anthropic/claude-opus-5"] {
        let (_, requests) = play(&config(Lab::with_a_txt()), model, "turns: [{text: done}]", &[]);
        let text = String::from_utf8(requests[0].bytes.clone()).unwrap();
        assert!(!text.contains("cache_"), "{model}: {text}");
    }
    let (_, body) = request("some-model", &[]);
    assert_eq!((body.get("prompt_cache_key"), body.get("cache_control")), (None, None));
}

#[test]
fn an_effort_is_told_to_each_model_in_its_own_words() {
    let cases = [
        ("openai/gpt-5.2", "xhigh", "/reasoning_effort", json!("xhigh")),
        ("openai-responses/gpt-5.2", "low", "/reasoning", json!({"effort": "low", "summary": "auto"})),
        ("anthropic/claude-opus-4-7", "high", "/output_config", json!({"effort": "high"})),
        ("anthropic/claude-haiku-4-5", "low", "/thinking", json!({"type": "enabled", "budget_tokens": 2048})),
        (
            "gemini/gemini-3.8-flash",
            "medium",
            "/generationConfig/thinkingConfig",
            json!({"thinkingLevel": "medium", "includeThoughts": true}),
        ),
        (
            "gemini/gemini-2.5-flash",
            "none",
            "/generationConfig/thinkingConfig",
            json!({"thinkingBudget": 0, "includeThoughts": false}),
        ),
        ("ollama/gpt-oss:20b", "high", "/think", json!("high")),
        ("ollama/qwen3:8b", "none", "/think", json!(false)),
        ("openrouter/z-ai/glm-5", "high", "/reasoning", json!({"effort": "high"})),
        ("deepseek/deepseek-v4-pro", "none", "/thinking", json!({"type": "disabled"})),
        ("llamacpp/qwen3", "high", "/chat_template_kwargs", json!({"enable_thinking": true})),
        ("groq/openai/gpt-oss-120b", "low", "/reasoning_effort", json!("low")),
    ];
    for (model, effort, pointer, expected) in cases {
        let (done, body) = request(model, &["--effort", effort]);
        assert_eq!(body.pointer(pointer), Some(&expected), "{model}: {body}");
        assert!(!done.stderr.contains("llm.effort"), "{model}: {}", done.stderr);
    }
}

#[test]
fn openais_models_that_demand_it_are_asked_in_the_responses_format() {
    for (model, target) in
        [("openai/gpt-5.6", "POST /v1/responses"), ("openai/gpt-5.2", "POST /v1/chat/completions")]
    {
        let (done, requests) =
            play(&Lab::with_a_txt(), model, READ_AND_ANSWER, &["--effort", "low", "--json"]);
        assert_eq!(done.exits(0).json()["model"], model);
        assert!(requests.iter().all(|request| request.target == target), "{}", requests[0].target);
    }
}

#[test]
fn a_wish_that_a_model_does_not_take_is_left_out_and_said_once() {
    let (done, body) = request("openai/gpt-4o", &["--effort", "high"]);
    assert_eq!(body.get("reasoning_effort"), None);
    assert_eq!(done.stderr.matches("llm.effort is not sent").count(), 1, "{}", done.stderr);

    let (done, body) = request("openai/gpt-5", &["--effort", "max"]);
    assert_eq!(body["reasoning_effort"], "high");
    assert!(done.stderr.contains("so `high` is sent"), "{}", done.stderr);

    let lab = Lab::with_a_txt().config("llm: {temperature: 0.3}");
    let (done, requests) = play(&lab, "anthropic/claude-opus-4-7", "turns: [{text: done}]", &[]);
    assert_eq!(requests[0].body.get("temperature"), None);
    assert!(done.exits(0).stderr.contains("llm.temperature is not sent"));

    let wrong = lab.agent(&["run", "task", "--effort", "extreme"]);
    assert!(wrong.exits(3).stderr.contains("the levels are none, minimal"));
}

#[test]
fn what_the_model_thinks_is_shown_with_v_and_is_no_part_of_the_document() {
    let script = "turns: [{thinking: I weigh it., text: done}]";
    for model in ["anthropic/claude-opus-4-7", "openai-responses/gpt-5.2", "gemini/gemini-3.8-flash"] {
        let (done, _) = play(&Lab::with_a_txt(), model, script, &["--effort", "high", "-v"]);
        assert!(done.stderr.contains("I weigh it."), "{model}: {}", done.stderr);
        let (done, _) = play(&Lab::with_a_txt(), model, script, &["--effort", "high"]);
        assert!(!done.stderr.contains("I weigh it."), "{model}: {}", done.stderr);
        let (done, _) = play(&Lab::with_a_txt(), model, script, &["--effort", "high", "--no-stream", "-v"]);
        assert_eq!(done.stderr.matches("I weigh it.").count(), 1, "{model}: {}", done.stderr);
        let (done, _) = play(&Lab::with_a_txt(), model, script, &["--effort", "high", "--json", "-v"]);
        assert!(!done.stdout.contains("I weigh it."), "{model}");
        assert_eq!(done.json()["output"], "done", "{model}");
    }
}

#[test]
fn k12_a_prefix_that_changes_between_runs_is_named_in_log_journal_and_result() {
    let lab = Lab::with_a_txt();
    let (done, _) = play(&lab, "openai/mock", READ_AND_ANSWER, &["-v"]);
    assert!(!done.exits(0).stderr.contains("prefix of the requests changed"));
    let told = events(&lab, "request_prefix");
    assert!(
        told.len() == 1 && told[0]["changed"] == json!([]),
        "once in a run that changes nothing: {told:?}"
    );

    let resume = |more: &[&str]| {
        let server = Server::start("turns: [{text: again}]");
        lab.resume(&server, more).exits(0)
    };
    let server_is_another = resume(&["more", "-v"]);
    assert!(server_is_another.stderr.contains("prefix of the requests changed (parameters)"));

    let server = Server::start("turns: [{text: one}, {text: two}]");
    lab.resume(&server, &["more"]).exits(0);
    let done = lab.resume(&server, &["more", "-v", "--json", "--no-commands"]).exits(0);
    assert!(done.stderr.contains("prefix of the requests changed (tools)"), "{}", done.stderr);
    assert_eq!(done.json()["cache"]["prefix_changes"], json!(["parameters", "parameters", "tools"]));
    assert_eq!(events(&lab, "request_prefix").last().unwrap()["changed"], json!(["tools"]));
}

#[test]
fn a_cache_that_the_provider_lost_is_noticed() {
    let read = |cached| {
        let usage = format!("{{input: 20, cached_read: {cached}, output: 5}}");
        format!("- {{calls: [{{name: read_file, arguments: {{path: a.txt}}}}], usage: {usage}}}\n")
    };
    let script =
        format!("turns:\n{}{}- {{text: done, usage: {{input: 400, output: 5}}}}\n", read(100), read(200));
    let (done, _) = play(&Lab::with_a_txt(), "openai/mock", &script, &["-v"]);
    let done = done.exits(0);
    assert!(
        done.stderr.contains("returned 200 tokens of the last prompt and none of this one"),
        "{}",
        done.stderr
    );
}

#[test]
fn lc_the_same_run_again_asks_nothing_and_costs_nothing() {
    let lab = Lab::with_a_txt();
    let server = Server::start(READ_AND_ANSWER);
    let run = |more: &[&str]| {
        let args = [&["--json", "-v"], more].concat();
        against(&lab, &server, "anthropic/claude-sonnet-4-5", &args)
    };
    let first = run(&["--cache"]).exits(0).json();
    let second = run(&["--cache"]).exits(0);
    assert_eq!(server.requests().len(), 2);
    assert!(second.stderr.contains("cached answer: no request was made"), "{}", second.stderr);
    let second = second.json();
    assert_eq!((&second["requests"], &second["steps"]), (&json!(0), &json!(2)));
    assert_eq!((&second["output"], &second["cache"]["answers"]), (&first["output"], &json!(2)));
    assert_eq!(second["cost"], json!({"total_usd": 0.0, "by_source": {"agent": 0.0}}));
    assert_eq!(second["usage"]["output"], 0);
    assert_eq!(events(&lab, "model_response").len(), 2, "the journal is whole");
    assert_eq!(events(&lab, "cached_answer").len(), 2);
    let kept = lab.home().join("cache/answers");
    assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    for file in kept.read_dir().unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!std::fs::read_to_string(file.path()).unwrap().contains(KEY));
    }
}

#[test]
fn lc_another_model_or_parameter_no_cache_and_a_cleared_one_ask_again() {
    let lab = Lab::with_a_txt().config("llm: {cache: {enabled: true}}");
    let server = Server::start("turns: [{text: done, repeat: 20}]");
    let asked = |model: &str, more: &[&str]| {
        let before = server.requests().len();
        against(&lab, &server, model, more).exits(0);
        server.requests().len() - before
    };
    let asks = |more: &[&str]| asked("openai/mock", more);
    assert_eq!((asks(&[]), asks(&[])), (1, 0));
    assert_eq!((asks(&["--no-cache"]), asks(&["--cache", "--no-cache"])), (1, 1));
    assert_eq!(asked("openai/other", &[]), 1);
    assert_eq!((asks(&["--no-commands"]), asks(&["--no-stream"])), (1, 1));
    assert_eq!((asks(&["--cache-clear"]), asks(&[])), (1, 0));
}

#[test]
fn lc_errors_and_cut_answers_are_not_kept() {
    let lab = Lab::with_a_txt();
    let script = "turns: [{error: {status: 400}}, {text: 'one ', finish: length}, {text: two}, {text: 'one ', finish: length}]";
    let server = Server::start(script);
    let run = || against(&lab, &server, "openai/mock", &["--cache"]);
    run().exits(1);
    assert_eq!(run().exits(0).stdout.trim(), "one two");
    assert_eq!(run().exits(0).stdout.trim(), "one two");
    assert_eq!(server.requests().len(), 4, "the continuation alone was kept");
}

#[test]
fn lc_a_project_can_neither_switch_it_on_nor_place_answers() {
    let project = "llm: {cache: {enabled: true, dir: kept}}\n";
    let lab = Lab::with_a_txt().file(".agent/config.yaml", project);
    let server = Server::start("turns: [{text: done, repeat: 9}]");
    for _ in 0..2 {
        let done = against(&lab, &server, "openai/mock", &[]).exits(0);
        assert!(done.stderr.contains("llm.cache"), "it is said: {}", done.stderr);
    }
    assert_eq!(server.requests().len(), 2);
    assert!(!lab.exists("kept"));
    let lab = lab.config("llm: {cache: {enabled: true, dir: ../ws/kept}}");
    let refused = against(&lab, &server, "openai/mock", &[]).exits(3);
    assert!(refused.stderr.contains("llm.cache.dir is inside the workspace"), "{}", refused.stderr);
    assert!(!lab.exists("kept"));
}
