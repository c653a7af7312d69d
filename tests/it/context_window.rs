//! The model's window: what does not fit is not sent, and what is put into it is measured by it.

use crate::support::run::{KEY, Lab};
use crate::support::server::Server;
use serde_json::{Value, json};

fn read(path: &str, usage: &str) -> String {
    format!("{{calls: [{{name: read_file, arguments: {{path: {path}}}}}]{usage}}}")
}

#[track_caller]
fn is_full(json: &Value) {
    let found = (&json["stop_reason"], &json["status"], &json["limit"], &json["error"]["kind"]);
    assert_eq!(
        found,
        (&json!("context_full"), &json!("partial"), &json!("window"), &json!("context_overflow"))
    );
    let output = json["output"].as_str().unwrap();
    assert!(output.contains("Completed work is kept") && output.contains("agent resume"), "{output}");
}

#[test]
fn l14_a_prompt_that_does_not_fit_into_the_window_is_not_sent() {
    let server = Server::start("turns: [{text: never}]");
    let lab = Lab::new().config("llm: {context_window: 300}\n");
    let json = lab.run(&server, &["--json"]).exits(2).json();
    is_full(&json);
    assert_eq!((server.requests().len(), &json["requests"]), (0, &json!(0)));
    let message = json["error"]["message"].as_str().unwrap();
    assert!(message.contains("window of 300 (llm.context_window)"), "{message}");
}

#[test]
fn l14_the_providers_count_decides_when_the_window_is_full_and_no_summary_is_asked_for() {
    let turn = read("a.txt", ", usage: {input: 63000, output: 50}");
    let server = Server::start(&format!("turns: [{turn}, {{text: never}}]"));
    let lab = Lab::with_a_txt().config("llm: {context_window: 60000}\n");
    let done = lab.run(&server, &["--json"]).exits(2);
    is_full(&done.json());
    assert_eq!(server.requests().len(), 1);
    let server = Server::start("turns: [{text: it goes on}]");
    let done = lab.config("llm: {context_window: 120000}\n").resume(&server, &[]).exits(0);
    assert_eq!(done.stdout, "it goes on\n");
}

#[test]
fn l14_a_server_that_says_that_the_prompt_is_too_long_ends_the_run_so_too() {
    let error = "{error: {status: 400, code: context_length_exceeded}}";
    let server = Server::start(&format!("turns: [{}, {error}, {{text: never}}]", read("a.txt", "")));
    let lab = Lab::with_a_txt();
    let done = lab.run(&server, &["--json"]).exits(2);
    is_full(&done.json());
    assert_eq!(done.json()["error"]["retryable"], false);
    assert_eq!(server.requests().len(), 2);
    let human = Lab::new().run(&Server::start(&format!("turns: [{error}]")), &[]).exits(2);
    assert!(human.stderr.contains("no longer fits"), "{}", human.stderr);
}

#[test]
fn t33_a_result_fills_no_more_than_a_share_of_a_small_window() {
    let lines = "a line of a long file\n".repeat(1000);
    let sent = |config: &str| {
        let server = Server::start(&format!("turns: [{}, {{text: done}}]", read("long.txt", "")));
        Lab::new().file("long.txt", &lines).config(config).run(&server, &[]).exits(0);
        let messages = server.requests()[1].messages().to_vec();
        messages.last().unwrap()["content"].as_str().unwrap().len()
    };
    let (small, usual) = (sent("llm: {context_window: 16000}\n"), sent("{}"));
    assert!(small < 16_000 / 8 * 4 && usual > lines.len(), "{small} {usual}");
}

#[test]
fn l12_an_answer_that_was_asked_for_is_lowered_to_what_the_window_leaves() {
    let server = Server::start("turns: [{text: hi}]");
    let lab = Lab::new().config("llm: {context_window: 16000, max_output_tokens: 16000}\n");
    lab.run(&server, &[]).exits(0);
    let sent = server.requests()[0].body["max_completion_tokens"].as_u64().unwrap();
    assert!((8_000..15_500).contains(&sent), "{sent}");
}

#[test]
fn l14_doctor_shows_the_window_of_each_model_and_who_says_so() {
    let lab = Lab::new()
        .env("OPENAI_API_KEY", KEY)
        .env("ANTHROPIC_API_KEY", KEY)
        .env("AGENT_MODEL", "openai/gpt-4o");
    let shown = |config: &str| {
        let lab_config = lab.home().join("config.yaml");
        std::fs::write(lab_config, config).unwrap();
        lab.agent(&["doctor"]).stdout
    };
    let usual = shown("llm: {fallback: [anthropic/claude-haiku-4-5, openai/unknown]}\n");
    let lines: Vec<&str> = usual.lines().map(str::trim).collect();
    let windows: Vec<&str> =
        lines.iter().filter_map(|line| line.strip_prefix("window")).map(str::trim).collect();
    let table = |tokens: &str| format!("{tokens} tokens, from the model table");
    assert_eq!(windows, [table("128,000").as_str(), table("200,000").as_str(), "not known"], "{usual}");
    for line in ["fallback       ok: anthropic/claude-haiku-4-5", "fallback       ok: openai/unknown"] {
        assert!(lines.contains(&line), "{usual}");
    }
    let own = shown("llm: {context_window: 50000}\n");
    assert!(own.contains("50,000 tokens, from llm.context_window"), "{own}");
    let missing = shown("llm: {fallback: [groq/x]}\n");
    assert!(
        missing.contains("fallback       not ready: groq/x") && missing.contains("GROQ_API_KEY"),
        "{missing}"
    );
}

#[test]
fn l14_the_users_window_is_asked_of_ollama_and_its_own_is_used_otherwise() {
    let turn = read("a.txt", ", usage: {input: 23000, output: 50}");
    let script = format!("turns: [{turn}, {{text: done}}]");
    let run = |config: &str| {
        let server = Server::start(&script);
        let lab = Lab::with_a_txt().config(config);
        let args = ["run", "task", "--model", "ollama/m", "--api-base", &server.url(), "--json"];
        let done = lab.agent(&args);
        (done, server.requests())
    };
    let (done, requests) = run("{}");
    let json = done.exits(2).json();
    is_full(&json);
    assert_eq!(requests.len(), 1);
    let message = json["error"]["message"].as_str().unwrap();
    assert!(message.contains("20,000 (the server)"), "{message}");
    let (done, requests) = run("llm: {context_window: 32000}\n");
    done.exits(0);
    assert_eq!(requests[1].body["options"]["num_ctx"], 32_000);
}

#[test]
fn l14_an_answer_that_ended_where_the_window_does_is_reported_as_that() {
    let server = Server::start("turns: [{text: as far as this, finish: model_context_window_exceeded}]");
    let lab = Lab::new();
    let args = ["run", "task", "--json", "--model", "anthropic/claude-m", "--api-key", KEY, "--api-base"];
    let json = lab.agent(&[&args[..], &[&server.url()]].concat()).exits(2).json();
    let found = (&json["stop_reason"], &json["limit"], &json["error"]["kind"], &json["output"]);
    let expected =
        (json!("context_full"), json!("window"), json!("context_overflow"), json!("as far as this"));
    assert_eq!(found, (&expected.0, &expected.1, &expected.2, &expected.3));
}

#[test]
fn l12_the_longest_answer_that_a_format_demands_is_lowered_to_what_the_window_leaves_too() {
    let sent = |config: &str| {
        let server = Server::start("turns: [{text: hi}]");
        let args = ["run", "task", "--model", "anthropic/claude-m", "--api-key", KEY, "--api-base"];
        Lab::new().config(config).agent(&[&args[..], &[&server.url()]].concat()).exits(0);
        server.requests()[0].body["max_tokens"].as_u64().unwrap()
    };
    assert_eq!(sent("{}"), 32_000);
    let lowered = sent("llm: {context_window: 16000}\n");
    assert!((8_000..15_500).contains(&lowered), "{lowered}");
}

#[test]
fn l14_a_server_that_refuses_the_length_of_the_answer_names_the_setting_for_it() {
    let said = "'max_tokens' or 'max_completion_tokens' is too large: 32768. This model's maximum context length is 8192 tokens \
                and your request has 300 input tokens (32768 > 8192 - 300).";
    let body = json!({"error": {"message": said, "type": "BadRequestError", "code": 400}}).to_string();
    let turn = json!({"fault": {"http": {"status": 400, "headers": {"content-type": "application/json"}, "body": body}}});
    let server = Server::turns(json!([turn]));
    let json = Lab::new().run(&server, &["--json"]).exits(1).json();
    assert_eq!((&json["stop_reason"], &json["error"]["kind"]), (&json!("llm_error"), &json!("request")));
    let message = json["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("llm.max_output_tokens") && !message.contains("the conversation is longer"),
        "{message}"
    );
}
