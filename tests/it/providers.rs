//! Each row of the provider table, as its user meets it: one variable, the right request, and what is missing by name.

use crate::support::run::{Finished, KEY, Lab};
use crate::support::server::{Recorded, Server, WINDOW};
use crate::support::terminal::AtTerminal;
use agent_llm::connect::connect;
use agent_llm::endpoint_overrides::KeyHeader;
use agent_llm::model_options::ModelOptions;
use agent_llm::provider_table::{self, Provider};
use agent_llm::quirks::{CallIdFormat, MaxTokensField, ReasoningReplayField};
use agent_llm::wire_format::WireFormat;
use agent_runtime::clock::Clock;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::rc::Rc;

const TASK: &str = "turns:
- thinking: I read it first.
  calls: [{name: read_file, arguments: {path: a.txt}, id: call_0123456789_0123456789_0123456789_0123456789}]
- {text: done, expect: {last_role: tool, last_contains: [alpha]}}";

fn rows() -> Vec<Provider> {
    provider_table::built_in_providers().unwrap()
}

/// A lab in which the first key variable of `row` is set.
fn keyed(row: &Provider) -> Lab {
    let lab = Lab::with_a_txt().config("llm: {max_output_tokens: 777}");
    row.keys.first().into_iter().fold(lab, |lab, name| lab.env(name, KEY))
}

fn run_without_key(lab: &Lab, model: &str, base: &str, more: &[&str]) -> Finished {
    let args = ["run", "task", "--mode", "yolo", "--model", model, "--api-base", base];
    lab.agent(&[&args, more].concat())
}

/// Runs the task with a model of `row` on the scripted server; what was asked.
fn play(row: &Provider, more: &[&str]) -> Vec<Recorded> {
    let server = Server::start(TASK);
    let done = run_without_key(&keyed(row), &format!("{}/m", row.name), &server.url(), more).exits(0);
    assert!(done.stdout.contains("done"), "{}: {}", row.name, done.stdout);
    server.requests()
}

fn path(row: &Provider) -> &'static str {
    match (row.name.as_str(), row.format) {
        ("azure", _) => "/v1/openai/deployments/m/chat/completions?api-version=2024-10-21",
        // The server's base ends as that of this API does.
        ("azure-v1", _) => "/v1/openai/v1/chat/completions",
        (_, WireFormat::ChatCompletions) => "/v1/chat/completions",
        (_, WireFormat::Messages) => "/v1/messages",
        (_, WireFormat::Ollama) => "/api/chat",
        (_, WireFormat::Gemini) => "/v1/models/m:streamGenerateContent?alt=sse",
        (_, WireFormat::Responses) => "/v1/responses",
    }
}

fn key_header(row: &Provider) -> (&'static str, String) {
    match (row.key_header, row.format) {
        (Some(KeyHeader::ApiKey), _) => ("api-key", KEY.to_owned()),
        (_, WireFormat::Messages) => ("x-api-key", KEY.to_owned()),
        (_, WireFormat::Gemini) => ("x-goog-api-key", KEY.to_owned()),
        _ => ("authorization", format!("Bearer {KEY}")),
    }
}

/// The longest answer, as `row` wants it told.
fn longest(row: &Provider, body: &Value) -> Value {
    let pointer = match (row.format, row.quirks.token_field) {
        (WireFormat::ChatCompletions, MaxTokensField::MaxCompletionTokens) => "/max_completion_tokens",
        (WireFormat::ChatCompletions, MaxTokensField::MaxTokens) | (WireFormat::Messages, _) => "/max_tokens",
        (WireFormat::Ollama, _) => "/options/num_predict",
        (WireFormat::Gemini, _) => "/generationConfig/maxOutputTokens",
        (WireFormat::Responses, _) => "/max_output_tokens",
    };
    body.pointer(pointer).cloned().unwrap_or_default()
}

#[test]
fn each_provider_works_with_its_key_variable_alone() {
    for row in rows() {
        let requests = play(&row, &[]);
        let name = &row.name;
        for request in &requests {
            assert_eq!(request.target, format!("POST {}", path(&row)), "{name}");
            let (header, key) = key_header(&row);
            let keyed = (!row.keys.is_empty()).then_some(key);
            assert_eq!(request.headers.get(header), keyed.as_ref(), "{name}");
            let elsewhere = ["authorization", "api-key", "x-api-key", "x-goog-api-key"];
            let others = elsewhere.iter().filter(|other| **other != header);
            assert!(others.clone().all(|other| !request.headers.contains_key(*other)), "{name}");
            assert_eq!(longest(&row, &request.body), 777, "{name}");
        }
        if row.format == WireFormat::ChatCompletions {
            chat_completions(&row, &requests);
        }
    }
}

#[test]
fn doctor_says_what_a_model_is_really_asked_in() {
    for (model, format) in [("openai/gpt-4.1", "chat_completions"), ("openai/gpt-5.4", "responses")] {
        let done = Lab::new().env("OPENAI_API_KEY", KEY).agent(&["doctor", "--model", model]).exits(0);
        assert!(done.stdout.contains(&format!("openai; speaks {format}\n")), "{model}: {}", done.stdout);
    }
}

#[test]
fn a_server_that_only_streams_is_still_asked_again_where_nothing_is_shown_early() {
    let server = Server::start("turns: [{text: half an answer, chunk: 4, fault: {cut: 2}}, {text: whole}]");
    let row = rows().into_iter().find(|row| row.quirks.stream_only).unwrap();
    let more = ["--no-stream", "--log-level", "debug"];
    let done = run_without_key(&keyed(&row), &format!("{}/m", row.name), &server.url(), &more).exits(0);
    assert_eq!(done.stdout, "whole\n");
    assert!(!done.stderr.contains("half"), "{}", done.stderr);
    assert!(server.requests().iter().all(|request| request.body["stream"] == true));
}

/// What the quirks of a server of Chat Completions make of a request.
fn chat_completions(row: &Provider, requests: &[Recorded]) {
    let (name, quirks) = (&row.name, row.quirks);
    let (first, second) = (&requests[0].body, &requests[1].body);
    assert_eq!(first["messages"][0]["role"], "system", "{name}");
    let usage = if quirks.stream_usage { json!({"include_usage": true}) } else { Value::Null };
    assert_eq!(first["stream_options"], usage, "{name}");
    let parallel = if quirks.ask_parallel_calls { json!(true) } else { Value::Null };
    assert_eq!(first["parallel_tool_calls"], parallel, "{name}");
    let (called, result) = (&second["messages"][2], &second["messages"][3]);
    let id = called["tool_calls"][0]["id"].as_str().unwrap();
    assert_eq!(result["tool_call_id"], id, "{name}");
    match quirks.call_ids {
        CallIdFormat::Any => assert!(id.len() > 40, "{name}: {id}"),
        CallIdFormat::Short => assert!(id.len() <= 40, "{name}: {id}"),
        CallIdFormat::NineAlphanumeric => {
            assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{name}: {id}");
        }
    }
    for (field, key) in [
        (ReasoningReplayField::ReasoningContent, "reasoning_content"),
        (ReasoningReplayField::Reasoning, "reasoning"),
    ] {
        let back = if quirks.replay_reasoning == field { json!("I read it first.") } else { Value::Null };
        assert_eq!(called[key], back, "{name}: {key}");
    }
}

#[test]
fn without_its_key_each_provider_names_the_variable() {
    for row in rows().iter().filter(|row| {
        !row.keys.is_empty() && !row.base.as_ref().is_some_and(|base| base.starts_with("http://"))
    }) {
        let model = format!("{}/m", row.name);
        let lab = Lab::new();
        let done = lab.agent(&["run", "task", "--model", &model]).exits(4);
        for variable in row.keys.first().into_iter().chain(row.base_keys.first()) {
            assert!(done.stderr.contains(variable.as_str()), "{model}: {}", done.stderr);
        }
    }
}

#[test]
fn doctor_says_for_each_provider_what_is_set_and_what_is_missing() {
    for row in rows() {
        let model = format!("{}/m", row.name);
        let set =
            keyed(&row).agent(&["doctor", "--model", &model, "--api-base", "https://192.0.2.1/v1"]).exits(0);
        assert!(set.stdout.contains(&format!("model          ok: {model}")), "{}", set.stdout);
        assert!(
            set.stdout.contains("not checked: --online checks it") && !set.stdout.contains(KEY),
            "{}",
            set.stdout
        );
        if let Some(variable) = row.keys.first() {
            assert!(set.stdout.contains(&format!("{variable} is set")), "{}", set.stdout);
        }
        if row.local || row.name == "litellm" {
            continue;
        }
        let missing = Lab::new().agent(&["doctor", "--model", &model]).exits(3);
        assert!(missing.stdout.contains(&format!("model          not ready: {model}")), "{}", missing.stdout);
        assert!(missing.stderr.contains("no usable model"), "{}", missing.stderr);
        let next = missing.stdout.lines().find(|line| line.starts_with("  next ")).unwrap();
        for variable in row.keys.first().into_iter().chain(row.base_keys.first()) {
            assert!(
                next.contains("export ") && next.contains(&format!(" {variable}=")),
                "{}",
                missing.stdout
            );
        }
    }
}

/// What `agent doctor` says of a model of `row` where only the variable `name` is set: its exit code, the lines about server
/// and key, and what is to be exported.
fn told_with(row: &Provider, name: &str, value: &str) -> (Option<i32>, String, String) {
    let done = Lab::new().env(name, value).agent(&["doctor", "--model", &format!("{}/m", row.name)]);
    let lines = |starts: &[&str]| {
        let starts = |line: &&str| starts.iter().any(|start| line.starts_with(&format!("  {start} ")));
        done.stdout.lines().filter(starts).collect::<Vec<_>>().join("\n")
    };
    (done.code, lines(&["server", "key"]), lines(&["next"]))
}

#[test]
fn doctor_names_each_variable_that_is_set_and_asks_only_for_the_others() {
    for row in rows().iter().filter(|row| !row.local && row.name != "litellm") {
        for name in &row.keys {
            let (code, told, next) = told_with(row, name, KEY);
            assert!(told.contains(&format!("{name} is set")), "{name}: {told}");
            assert_eq!(code, Some(if row.base_keys.is_empty() { 0 } else { 3 }), "{name}: {told}");
            assert!(row.keys.iter().all(|key| !next.contains(key.as_str())), "{name}: {next}");
            assert!(row.base_keys.first().is_none_or(|base| next.contains(base.as_str())), "{name}: {next}");
        }
        for name in &row.base_keys {
            let (code, told, next) = told_with(row, name, "https://192.0.2.1");
            assert!(told.contains(&format!("https://192.0.2.1 ({name})")), "{name}: {told}");
            assert!(told.contains(&format!("missing: none of {} is set", row.keys.join(", "))), "{told}");
            assert_eq!((code, next), (Some(3), format!("  next         export {}=…", row.keys[0])), "{name}");
            let (_, told, _) = told_with(row, name, "name.example.com");
            assert!(told.contains("it must begin with http:// or https://"), "{told}");
        }
    }
}

#[test]
fn doctor_asks_a_server_on_this_machine_what_it_has_and_holds() {
    let server = Server::start("turns: [{text: never}]");
    for (model, said) in [
        ("vllm/scripted-model", "answers, and has the model"),
        ("llamacpp/scripted-model", "answers, and has the model"),
        ("lmstudio/scripted-model", "answers, and has the model"),
        ("ollama/other", "answers, but does not list the model"),
    ] {
        let done = Lab::new().agent(&["doctor", "--model", model, "--api-base", &server.url()]).exits(0);
        assert!(done.stdout.contains(&format!("model          ok: {model}")), "{}", done.stdout);
        assert!(
            done.stdout.contains(said) && done.stdout.contains("20,000 tokens, from the server"),
            "{}",
            done.stdout
        );
    }
    assert_eq!((server.requests().len(), WINDOW), (0, 20_000));
    let url = server.url();
    drop(server);
    let done = Lab::new().agent(&["doctor", "--model", "vllm/m", "--api-base", &url]).exits(3);
    assert!(
        done.stdout.contains("not ready: vllm/m") && done.stdout.contains("does not answer"),
        "{}",
        done.stdout
    );
}

#[test]
fn doctor_says_when_a_server_refuses_the_key() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = [0; 4096];
        let length = stream.read(&mut asked).unwrap();
        stream.write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n").unwrap();
        String::from_utf8_lossy(&asked[..length]).into_owned()
    });
    let lab = Lab::new().env("GROQ_API_KEY", KEY);
    let done = lab.agent(&["doctor", "--model", "groq/m", "--api-base", &base]).exits(3);
    assert!(
        done.stdout.contains("not ready: groq/m") && done.stdout.contains("refuses the key"),
        "{}",
        done.stdout
    );
    let asked = serving.join().unwrap();
    assert!(asked.starts_with("GET /v1/models ") && asked.contains(&format!("Bearer {KEY}")), "{asked}");
}

#[test]
fn u16_the_models_of_an_endpoint_are_listed_and_offered_in_a_conversation() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let answers = |status: &str, body: &str| {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = [0; 4096];
        let length = stream.read(&mut asked).unwrap();
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(head.as_bytes()).unwrap();
        String::from_utf8_lossy(&asked[..length]).into_owned()
    };
    let config = format!("llm: {{api_base: '{base}', model: groq/m}}\n");
    let lab = Lab::new().config(&config).env("GROQ_API_KEY", KEY);
    let list = |words: &[&str], status: &str, body: &str| {
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| answers(status, body));
            let done = lab.agent(&[&["models", "--endpoint"], words].concat());
            assert!(asked.join().unwrap().starts_with("GET /v1/models "));
            done
        })
    };
    let two = r#"{"data": [{"id": "coder-7b"}, {"id": "writer-7b"}, {"id": "embed"}]}"#;
    assert_eq!(list(&[], "200 OK", two).exits(0).stdout, "groq/coder-7b\ngroq/writer-7b\n");
    assert_eq!(list(&["writer"], "200 OK", two).exits(0).stdout, "groq/writer-7b\n");
    let refused = list(&[], "401 Unauthorized", "").exits(4);
    assert!(refused.stderr.contains("lists no models (status 401)"), "{}", refused.stderr);
    // What was listed last is in the menu.
    let mut chat = AtTerminal::launch_on_screen(lab.command(&["chat"]));
    chat.prompt(1);
    chat.types("/model coder-7");
    chat.see("the menu", |text| text.contains("→ groq/coder-7b"));
    chat.types("\u{15}/quit\r");
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn a_named_provider_gets_its_own_key_and_no_other_server_is_asked() {
    let [one, two] = [(), ()].map(|()| Server::done());
    let providers = json!({
        "one": {"base": one.url(), "keys": ["ONE_KEY"]},
        "two": {"base": two.url(), "keys": ["TWO_KEY"]},
    });
    let lab = |llm: &Value| {
        let lab = Lab::new().config(&json!({ "llm": llm }).to_string());
        lab.env("ONE_KEY", "key-of-one-123").env("TWO_KEY", "key-of-two-456")
    };
    // What is configured for the model of another server is not for this one.
    let of_one =
        json!({"model": "one/m", "api_base": one.url(), "api_key_env": "ONE_KEY", "providers": providers});
    let listed = lab(&of_one).agent(&["models", "--endpoint=two"]).exits(0);
    assert_eq!(listed.stdout, "two/scripted-model\n");
    let lab = lab(&json!({"model": "one/m", "providers": providers}));
    lab.agent(&["models", "--endpoint"]).exits(0);
    lab.agent(&["run", "task", "--model", "two/m"]).exits(0);
    lab.agent(&["run", "task"]).exits(0);
    for (server, own, other) in [(&one, "key-of-one", "key-of-two"), (&two, "key-of-two", "key-of-one")] {
        assert!(!server.queries().is_empty() && server.requests().len() == 1);
        for request in server.queries().iter().chain(&server.requests()) {
            let headers = format!("{:?}", request.headers);
            assert!(headers.contains(own) && !headers.contains(other), "{headers}");
            assert!(!String::from_utf8_lossy(&request.bytes).contains(other), "{headers}");
        }
    }
}

#[test]
fn what_a_model_may_hold_is_learnt_from_the_servers_that_say_it() {
    let server = Server::start("turns: [{text: never}]");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let window = |name: &str| {
        let model = Some(format!("{name}/scripted-model"));
        let options = ModelOptions { model, api_base: Some(server.url()), ..ModelOptions::default() };
        runtime.block_on(connect(&options, &|_| None, Rc::new(Clock::new()))).unwrap().window()
    };
    for row in rows() {
        let known = row.local.then_some(WINDOW);
        assert_eq!(window(&row.name), known, "{}", row.name);
    }
}

#[test]
fn a_server_that_only_streams_is_asked_for_a_stream_whatever_is_shown() {
    let row = rows().into_iter().find(|row| row.name == "dashscope").unwrap();
    for request in play(&row, &["--no-stream"]) {
        assert_eq!(
            (&request.body["stream"], &request.body["stream_options"]),
            (&json!(true), &json!({"include_usage": true}))
        );
    }
}

#[test]
fn turns_of_another_model_get_a_blank_where_reasoning_is_required() {
    let lab = Lab::with_a_txt().env("OPENAI_API_KEY", KEY).env("MOONSHOT_API_KEY", KEY);
    run_without_key(&lab, "openai/m", &Server::start(TASK).url(), &[]).exits(0);
    let server = Server::done();
    lab.agent(&["resume", "--last", "go on", "--model", "moonshot/m", "--api-base", &server.url()]).exits(0);
    let messages = &server.requests()[0].body["messages"];
    assert_eq!((&messages[2]["role"], &messages[2]["reasoning_content"]), (&json!("assistant"), &json!(" ")));
}

#[test]
fn a_provider_of_ones_own_has_the_form_of_a_row() {
    let server = Server::start(TASK);
    let own = format!(
        "llm:\n  providers:\n    mine: {{base: '{}', keys: [MY_GATEWAY], format: messages, key_header: authorization}}\n",
        server.url()
    );
    let lab = Lab::with_a_txt().config(&own).env("MY_GATEWAY", KEY);
    let done = lab.agent(&["run", "task", "--model", "mine/some/model", "--json"]).exits(0);
    assert_eq!(done.json()["model"], "mine/some/model");
    let request = &server.requests()[0];
    assert_eq!(
        (request.target.as_str(), &request.body["model"]),
        ("POST /v1/messages", &json!("some/model"))
    );
    assert_eq!(request.headers["authorization"], format!("Bearer {KEY}"));
    assert!(request.headers.contains_key("anthropic-version") && !request.headers.contains_key("x-api-key"));
}

#[test]
fn f07_the_key_of_a_provider_of_ones_own_is_kept_from_commands() {
    let script = "turns:\n- calls: [{name: run_command, arguments: {command: env}}]\n- {text: done, expect: {not_contains: [sk-test-0123456789abcdef]}}";
    let server = Server::start(script);
    let own = format!("llm: {{providers: {{mine: {{base: '{}', keys: [MY_GATEWAY]}}}}}}", server.url());
    let lab = Lab::new().config(&own).env("MY_GATEWAY", KEY);
    lab.agent(&["run", "task", "--model", "mine/m", "--mode", "yolo"]).exits(0);
    let told = String::from_utf8(server.requests()[1].bytes.clone()).unwrap();
    assert!(!told.contains(KEY) && !told.contains("MY_GATEWAY"), "{told}");
}

#[test]
fn a_built_in_provider_is_changed_key_by_key() {
    let server = Server::done();
    let own = format!(
        "llm:\n  max_output_tokens: 5\n  providers:\n    groq:\n      base: '{}'\n      quirks: {{token_field: max_tokens}}\n",
        server.url()
    );
    let lab = Lab::new().config(&own).env("GROQ_API_KEY", KEY);
    lab.agent(&["run", "task", "--model", "groq/m"]).exits(0);
    let request = &server.requests()[0];
    assert_eq!(request.body["max_tokens"], 5);
    assert_eq!(request.headers["authorization"], format!("Bearer {KEY}"));
}

#[test]
fn a_project_cannot_send_a_key_elsewhere() {
    let thief = Server::start("turns: [{text: thanks}]");
    let project = format!("llm: {{providers: {{openai: {{base: '{}'}}}}}}", thief.url());
    let lab = Lab::new().file(".agent/config.yaml", &project).env("OPENAI_API_KEY", KEY);
    let honest = Server::done();
    let done = run_without_key(&lab, "openai/m", &honest.url(), &[]).exits(0);
    assert!(
        done.stderr.contains("llm.providers.openai.base (never taken from a project)"),
        "{}",
        done.stderr
    );
    let told = lab.agent(&["doctor", "--model", "openai/m"]);
    assert!(told.stdout.contains("https://api.openai.com/v1"), "{}", told.stdout);
    assert_eq!((thief.connections(), honest.requests().len()), (0, 1));
}

#[test]
fn what_is_wrong_with_a_row_of_ones_own_is_told_with_its_place() {
    for (row, words) in [
        ("{base: 'http://h/v1', quirk: {}}", ["llm.providers.mine.quirk", "did you mean `quirks`?"]),
        (
            "{base: 'http://h/v1', quirks: {call_ids: nine}}",
            ["llm.providers.mine.quirks.call_ids", "nine_alphanumeric"],
        ),
        ("{base: 'ftp://h'}", ["llm.providers.mine.base", "http://"]),
        (
            "{base: 'http://h/v1', keys: ['sk-0123 4']}",
            ["llm.providers.mine.keys", "a key itself must not be in a file"],
        ),
        ("{base: 'http://h/v1', path: chat}", ["llm.providers.mine.path", "slash"]),
        ("{keys: [MY_KEY]}", ["llm.providers.mine", "needs `base`"]),
    ] {
        let lab = Lab::new().config(&format!("llm:\n  providers:\n    mine: {row}\n"));
        for command in [&["config", "validate"][..], &["run", "task", "--model", "mine/m"]] {
            let done = lab.agent(command).exits(3);
            let told = format!("{}{}", done.stdout, done.stderr);
            assert!(told.contains("config.yaml:3"), "{row}: {told}");
            assert!(words.iter().all(|word| told.contains(word)), "{row}: {told}");
        }
    }
    let lab = Lab::new().config("llm: {providers: {local: {base: 'http://h/v1'}}}");
    assert!(lab.agent(&["agents"]).exits(3).stderr.contains("the name of a provider"));
}
