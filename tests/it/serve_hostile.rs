//! `agent serve` with a client that is slow, dies, floods, lies or sends half a line.

use crate::support::extent::all;
use crate::support::mcp_client::piped;
use crate::support::rpc_client::RpcClient;
use crate::support::run::{Lab, PATIENCE};
use crate::support::server::Server;
use crate::support::sleepers::{unique_seconds, wait_for_sleepers};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::symlink;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

fn sleeps(seconds: &str) -> Value {
    json!({"calls": [{"name": "run_command", "arguments": {"command": format!("sleep {seconds} & sleep {seconds}")}}]})
}

/// A server whose output nobody reads yet.
fn unread(lab: &Lab, model: &Server) -> Child {
    let url = model.url();
    let mut command =
        lab.command(&["serve", "--model", "openai/mock", "--api-base", &url, "--api-key", "k-123456789"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn l33_serve_ends_runs_and_children_within_a_second_when_the_client_leaves() {
    let (lab, seconds) = (Lab::new(), unique_seconds());
    let model = Server::turns(json!([sleeps(&seconds)]));
    let mut client = RpcClient::start(&lab, &model, &["--mode", "yolo"]);
    client.begin("x");
    wait_for_sleepers(&seconds, 2);
    let left = Instant::now();
    assert_eq!(client.client.leave(), Some(0));
    wait_for_sleepers(&seconds, 0);
    assert!(left.elapsed() < Duration::from_secs(1), "{:?}", left.elapsed());
    let sessions = lab.agent(&["sessions", "list", "--json"]).exits(0).json();
    assert_eq!(sessions[0]["stop_reason"], "user_interrupt", "{sessions}");
}

#[test]
fn l33_serve_half_a_line_at_the_end_of_the_input_ends_a_run_that_waits_for_approval() {
    let lab = Lab::new();
    let model = Server::turns(
        json!([{"calls": [{"name": "write_file", "arguments": {"path": "a.txt", "content": "x"}}]}, {"text": "unused"}]),
    );
    let mut client = RpcClient::start(&lab, &model, &[]);
    client.begin("x");
    client.wait("approval");
    client.client.send_part("{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"appr");
    assert_eq!(client.client.leave(), Some(0));
    assert!(!lab.exists("a.txt"));
}

#[test]
fn l33_serve_that_is_killed_leaves_no_child_and_a_session_that_can_be_continued() {
    let (lab, seconds) = (Lab::new(), unique_seconds());
    let model = Server::turns(json!([sleeps(&seconds), {"text": "second"}]));
    let mut client = RpcClient::start(&lab, &model, &["--mode", "yolo"]);
    let session = client.begin("x");
    wait_for_sleepers(&seconds, 2);
    client.client.child.kill().unwrap();
    wait_for_sleepers(&seconds, 0);
    let mut client = RpcClient::start(&lab, &model, &["--mode", "yolo"]);
    assert_eq!(client.call("list", &json!({}))["sessions"][0]["state"], "unfinished");
    client.call("send", &json!({"session_id": session, "prompt": "y"}));
    assert_eq!(client.result(&session)["output"], "second");
}

#[test]
fn serve_a_client_that_does_not_read_ends_the_server_and_the_reason_is_told() {
    let (lab, model) = (Lab::new(), Server::turns(json!([{"text": "unused"}])));
    let mut child = unread(&lab, &model);
    let line = json!({"jsonrpc": "2.0", "id": "x".repeat(15 << 20), "method": "nonsense"}).to_string();
    let mut input = child.stdin.take().unwrap();
    // The server repeats the ids, which fill its queue, and closes its input when it ends.
    while writeln!(input, "{line}").is_ok() {}
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0));
    let stderr = String::from_utf8(done.stderr).unwrap();
    assert!(stderr.contains("did not read 64 MiB"), "{stderr}");
}

/// The run goes on while the client reads nothing; what it misses are pieces of text, and how many is told.
#[test]
fn o09_serve_a_slow_client_misses_pieces_of_text_and_nothing_else() {
    let lab = Lab::new();
    let text = "0123456789abcdef".repeat(60_000);
    let model = Server::turns(json!([{"text": text, "chunk": 400}]));
    let mut child = unread(&lab, &model);
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": 1, "method": "start", "params": {"task": "x"}}))
        .unwrap();
    let begun = Instant::now();
    let has_ended = || {
        lab.journals().iter().any(|it| fs::read_to_string(it).is_ok_and(|text| text.contains("\"run_end\"")))
    };
    while !has_ended() {
        assert!(begun.elapsed() < PATIENCE, "the run does not end");
        std::thread::yield_now();
    }
    let (mut missed, mut whole, mut last) = (0, false, Value::Null);
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let event = &message["params"]["event"];
        missed += event["events"].as_u64().unwrap_or(0);
        whole |= event["type"] == "model_response" && event.to_string().contains(&text);
        last = message;
        if last["method"] == "finished" {
            break;
        }
    }
    assert!(missed > 0 && whole, "{missed} missed");
    assert_eq!(last["params"]["result"]["status"], "success");
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// A stored session that is larger than the queue for the client is sent as fast as the client reads.
#[test]
fn serve_subscribe_waits_for_a_slow_client() {
    if !all() {
        return;
    }
    let lab = Lab::new().file("big.txt", "0123456789abcdef\n".repeat(400));
    let read = json!({"calls": [{"name": "read_file", "arguments": {"path": "big.txt"}}]});
    let turns: Vec<Value> = std::iter::repeat_n(read, 300).chain([json!({"text": "done"})]).collect();
    let model = Server::turns(json!(turns));
    let lab = lab.config("loop: {max_repeated_calls: 0, repeat_window: 0, max_same_results: 0}\n");
    let mut client = RpcClient::start(&lab, &model, &["--max-steps", "400", "--no-stream"]);
    let (session, result) = client.run("x");
    assert_eq!(result["status"], "success", "{result}");
    let live = client.events(&session).len();
    assert_eq!(client.client.leave(), Some(0));

    let mut child = unread(&lab, &model);
    let mut input = child.stdin.take().unwrap();
    let subscribe = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "subscribe", "params": {"session_id": session}});
    for id in 0..40 {
        writeln!(input, "{}", subscribe(id)).unwrap();
    }
    let lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let (mut events, mut done, mut refused) = (0, 0, 0);
    for message in lines {
        events += usize::from(message["method"] == "event");
        done += usize::from(message.get("result").is_some());
        refused += usize::from(message["error"]["code"] == -32600);
        if done + refused == 40 {
            break;
        }
    }
    assert!(done >= 16 && refused > 0, "{done} done, {refused} refused");
    assert_eq!(events, done * live);
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn serve_messages_that_are_none_get_the_errors_of_the_protocol() {
    let (lab, model) = (Lab::new(), Server::done());
    let mut client = RpcClient::start(&lab, &model, &[]);
    for (line, code, id) in [
        ("{\"half", -32700, Value::Null),
        ("[]", -32600, Value::Null),
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"list\"}]", -32600, Value::Null),
        ("{\"jsonrpc\":\"2.0\",\"id\":1}", -32600, json!(1)),
        ("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"list\"}", -32600, json!(1)),
        ("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"list\"}", -32600, Value::Null),
        ("{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"nonsense\"}", -32601, json!("a")),
        ("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"start\"}", -32602, json!(2)),
        ("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"start\",\"params\":[\"x\"]}", -32602, json!(2)),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"start\",\"params\":{\"task\":\"x\",\"budget\":1}}",
            -32602,
            json!(2),
        ),
        ("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"list\",\"params\":{\"cursor\":7}}", -32602, json!(3)),
        ("{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"list\",\"params\":{},\"other\":1}", -32600, json!(4)),
    ] {
        client.client.send_line(line);
        let answer = client.response(&id);
        assert_eq!(answer["error"]["code"], code, "{line} {answer}");
    }
    client.client.send_line(&"x".repeat((16 << 20) + 1));
    assert_eq!(client.response(&Value::Null)["error"]["code"], -32600, "a line above the limit");
    client.client.send_line(&format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"start\",\"params\":{{\"task\":{}}}}}",
        "[".repeat(200_000)
    ));
    assert_eq!(client.response(&Value::Null)["error"]["code"], -32600, "nested too deeply");
    // What expects no answer gets none and does nothing: notifications, and responses to nothing.
    client.client.send_line("{\"jsonrpc\":\"2.0\",\"method\":\"start\",\"params\":{\"task\":\"x\"}}");
    client.client.send_line("{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}");
    assert_eq!(client.call("list", &json!({}))["sessions"], json!([]));
    assert_eq!(client.run("x").1["status"], "success");
}

#[test]
fn serve_what_fails_in_the_program_is_an_internal_error() {
    let (lab, model) = (Lab::new(), Server::done());
    let mut client = RpcClient::start(&lab, &model, &[]);
    client.run("x");
    let sessions = lab.journal().ancestors().nth(2).unwrap().to_owned();
    fs::remove_dir_all(&sessions).unwrap();
    symlink(&sessions, &sessions).unwrap();
    assert_eq!(client.refused("list", &json!({})), -32603);
    assert_eq!(client.client.leave(), Some(0));
}

#[test]
fn serve_ends_in_order_for_a_client_that_speaks_something_else() {
    for input in ["", "GET / HTTP/1.1\r\n\r\n", "{\"half", "[]\n", "{}\n", "\u{0}\u{1b}[31m\n"] {
        let finished = piped(Lab::new(), input, &["serve"]);
        assert_eq!(finished.code, Some(0), "{input:?}: {} {}", finished.stdout, finished.stderr);
        assert!(!finished.stdout.contains('\u{1b}') && !finished.stderr.contains('\u{1b}'), "{input:?}");
    }
}

#[test]
fn serve_refuses_options_that_it_cannot_honour_and_an_invalid_configuration() {
    for flag in
        [["--report", "json"], ["--image", "a.png"], ["--output-format", "json"], ["--budget-total", "1e9"]]
    {
        let done = Lab::new().agent(&[&["serve"], flag.as_slice()].concat()).exits(3);
        assert!(done.stderr.contains(flag[0]), "{}", done.stderr);
    }
    let lab = Lab::new().config("nonsense: 1\n");
    assert!(lab.agent(&["serve"]).exits(3).stderr.contains("nonsense"));
}

#[test]
fn serve_sends_no_secret() {
    let secret = "sk-0123456789abcdefghij";
    let lab = Lab::new().env("THE_SERVICE_API_KEY", secret).file("a.txt", format!("the key is {secret}\n"));
    let model = Server::turns(
        json!([{"calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]}, {"text": format!("it is {secret}")}]),
    );
    let mut child = unread(&lab, &model);
    let mut input = child.stdin.take().unwrap();
    writeln!(
        input,
        "{}",
        json!({"jsonrpc": "2.0", "id": 1, "method": "start", "params": {"task": format!("look at {secret}")}})
    )
    .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains("\"finished\"") {
        assert_ne!(output.read_line(&mut text).unwrap(), 0, "{text}");
    }
    drop(input);
    output.read_to_string(&mut text).unwrap();
    assert!(!text.contains(secret), "{text}");
    child.wait().unwrap();
}
