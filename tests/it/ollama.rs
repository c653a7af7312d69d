//! What only Ollama's own API has: a window that is asked for and told.

use crate::support::run::{Finished, Lab};
use crate::support::server::{Server, WINDOW};
use agent_llm::discovery::query_window;
use agent_llm::window_request::WindowEndpoint;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;

/// `agent run task` with a model of the Ollama server at `base`.
fn run_without_key(lab: &Lab, base: &str, more: &[&str]) -> Finished {
    let args = ["run", "task", "--model", "ollama/m", "--api-base", base, "--mode", "yolo"];
    lab.agent(&[&args, more].concat())
}

#[test]
fn every_request_asks_for_the_window_and_names_the_tools_of_its_results() {
    let script = "turns:
- thinking: I look first.
  calls: [{name: read_file, arguments: {path: a.txt}}, {name: list_files, arguments: {}}]
- text: done
";
    for more in [&[][..], &["--no-stream"]] {
        let lab = Lab::with_a_txt();
        let server = Server::start(script);
        run_without_key(&lab, &server.url(), more).exits(0);
        let requests = server.requests();
        for request in &requests {
            assert_eq!(request.target, "POST /api/chat");
            assert_eq!(request.body["options"], json!({"num_ctx": WINDOW}));
            assert_eq!((&request.body["truncate"], &request.body["shift"]), (&json!(false), &json!(false)));
            assert!(!request.headers.contains_key("authorization"));
        }
        let messages = &requests[1].body["messages"];
        assert_eq!(messages[2]["thinking"], "I look first.");
        let call = json!({"function": {"name": "read_file", "arguments": {"path": "a.txt"}}});
        assert_eq!(messages[2]["tool_calls"][0], call);
        assert_eq!(
            (&messages[3]["tool_name"], &messages[4]["tool_name"]),
            (&json!("read_file"), &json!("list_files"))
        );
    }
}

#[test]
fn a_prompt_above_the_window_is_told_and_not_repeated() {
    let server = Server::start(
        "turns: [{fault: {http: {status: 400, body: '{\"error\": \"the prompt is longer than the context length \
         currently available to the model\"}'}}}, {text: never}]",
    );
    let done = run_without_key(&Lab::new(), &server.url(), &["--json"]);
    assert_eq!(done.json()["error"]["kind"], "context_overflow", "{}", done.stderr);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_server_that_does_not_say_what_its_model_holds_is_no_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ask = || runtime.block_on(query_window(&base, &[], WindowEndpoint::OllamaShow, "m"));
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
