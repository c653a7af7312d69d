//! Ollama's own API in whole runs: the window that is asked for, whole tasks, faults, a conversation begun elsewhere.

use crate::support::run::{Finished, Lab};
use crate::support::server::{Server, WINDOW};
use agent::llm::chat_completions::request::Quirks;
use agent::llm::format::Format;
use agent::llm::local::window;
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;

/// `agent run task` with a model of the Ollama server at `base`.
fn run(lab: &Lab, base: &str, more: &[&str]) -> Finished {
    let args = ["run", "task", "--model", "ollama/m", "--api-base", base, "--mode", "yolo"];
    lab.agent(&[&args, more].concat())
}

/// Read, edit, run, answer.
const TASK: &str = "turns:
  - thinking: I look first.
    calls:
      - {name: read_file, arguments: {path: a.txt}}
      - {name: read_file, arguments: {path: b.txt}}
    usage: {input: 100, output: 10}
  - expect: {last_role: tool, last_contains: [alpha, beta]}
    calls: [{name: edit_file, arguments: {path: a.txt, old_str: alpha, new_str: gamma}}]
    usage: {input: 150, output: 20}
  - text: Now I look at it.
    calls: [{name: run_command, arguments: {command: cat a.txt}}]
    usage: {input: 200, output: 30}
  - expect: {last_contains: [gamma]}
    text: It says gamma now.
    chunk: 3
    usage: {input: 250, output: 40}
";

#[test]
fn a_task_is_done_over_ollamas_own_api_streamed_or_not() {
    for more in [&[][..], &["--json"], &["--no-stream"]] {
        let lab = Lab::new().file("a.txt", "alpha\n").file("b.txt", "beta\n");
        let server = Server::start(TASK);
        let done = run(&lab, &server.url(), more).exits(0);
        assert!(done.stdout.contains("It says gamma now."), "{}", done.stdout);
        assert_eq!(lab.read("a.txt"), "gamma\n");
        let requests = server.requests();
        assert_eq!(requests.len(), 4);
        for request in &requests {
            assert_eq!(request.target, "POST /api/chat");
            assert_eq!(request.body["options"], json!({"num_ctx": WINDOW}));
            assert_eq!((&request.body["truncate"], &request.body["shift"]), (&json!(false), &json!(false)));
            assert!(!request.headers.contains_key("authorization"));
        }
        let [.., last] = requests.as_slice() else { panic!("no requests") };
        let asked = &last.body["messages"][2];
        assert_eq!(asked["thinking"], "I look first.");
        assert_eq!(
            asked["tool_calls"][0],
            json!({"function": {"name": "read_file", "arguments": {"path": "a.txt"}}})
        );
        assert_eq!(last.body["messages"][3]["tool_name"], "read_file");
        if more == ["--json"] {
            let usage = &done.json()["usage"];
            assert_eq!((&usage["input"], &usage["output"]), (&json!(700), &json!(100)), "{usage}");
        }
    }
}

#[test]
fn a_stream_of_lines_that_breaks_is_asked_for_again_and_arguments_that_are_no_json_are_told() {
    let script = "turns:
  - {text: a long answer, chunk: 2, chunk_delay_ms: 0, fault: {cut: 0}}
  - error: {status: 503, retry_after: 0.01, message: loading model}
  - calls: [{name: read_file, arguments: '{\"path\":'}]
  - expect: {last_role: tool, last_contains: [JSON]}
    text: done
";
    let lab = Lab::new();
    let server = Server::start(script);
    assert_eq!(run(&lab, &server.url(), &[]).exits(0).stdout, "done\n");
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn a_prompt_above_the_window_is_told_and_not_repeated() {
    let server = Server::start(
        "turns: [{fault: {http: {status: 400, body: '{\"error\": \"the prompt is longer than the context length \
         currently available to the model\"}'}}}, {text: never}]",
    );
    let done = run(&Lab::new(), &server.url(), &["--json"]);
    assert_eq!(done.json()["error"]["kind"], "context_overflow", "{}", done.stderr);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_conversation_begun_with_another_provider_goes_on_with_ollama() {
    let script = "turns:
  - {thinking: foreign, calls: [{id: call_1, name: read_file, arguments: {path: a.txt}}]}
  - text: It says alpha.
  - expect: {last_contains: [and now]}
    text: Still alpha.
";
    let lab = Lab::new().file("a.txt", "alpha\n");
    let server = Server::start(script);
    lab.run(&server, &[]).exits(0);
    let args = ["resume", "--last", "and now?", "--model", "ollama/m", "--api-base", &server.url()];
    assert_eq!(lab.agent(&args).exits(0).stdout, "Still alpha.\n");
    let [.., last] = &server.requests()[..] else { panic!("no requests") };
    assert_eq!(last.target, "POST /api/chat");
    let sent = last.body["messages"].to_string();
    assert!(!sent.contains("foreign") && !sent.contains("call_1"), "{sent}");
    let journal = fs::read_to_string(lab.journal()).unwrap();
    let models = journal.lines().filter_map(|line| {
        serde_json::from_str::<Value>(line).unwrap()["record"]["event"]["model"].as_str().map(str::to_owned)
    });
    assert!(models.into_iter().any(|model| model == "ollama/m"));
}

#[test]
fn a_server_that_does_not_say_what_its_model_holds_is_no_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let codec = Format::Ollama.codec(Quirks::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ask = || runtime.block_on(window(&base, codec.as_ref(), None, "m"));
    let answers = [
        "404 Not Found\r\ncontent-length: 0\r\n\r\n",
        "200 OK\r\ncontent-length: 3\r\n\r\n<p>",
        "200 OK\r\n",
    ];
    let serving = std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            drop(stream.read(&mut [0; 4096]));
            stream.write_all(format!("HTTP/1.1 {answer}").as_bytes()).unwrap();
        }
    });
    for answer in answers {
        assert_eq!(ask(), None, "{answer}");
    }
    serving.join().unwrap();
    assert_eq!(ask(), None, "nobody answers any more");
}
