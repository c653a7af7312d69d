//! `agent mcp serve` with a client that is slow, dies, floods, lies or sends half a line.

use crate::support::mcp_client::McpClient;
use crate::support::run::Lab;
use crate::support::server::Server;
use crate::support::sleepers::{unique_seconds, wait_for_sleepers};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::time::{Duration, Instant};

/// A server after the handshake, whose output nobody reads yet.
fn unread(lab: &Lab, model: &Server) -> (Child, ChildStdin) {
    let url = model.url();
    let args =
        ["mcp", "serve", "--mode=yolo", "--model=openai/mock", "--api-base", &url, "--api-key=k-123456789"];
    let mut command = lab.command(&args);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let about = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about}))
        .unwrap();
    writeln!(input, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).unwrap();
    (child, input)
}

#[test]
fn serve_mcp_a_client_that_does_not_read_ends_the_server_and_the_reason_is_told() {
    let (lab, model) = (Lab::new(), Server::turns(json!([{"text": "unused"}])));
    let (child, mut input) = unread(&lab, &model);
    let line = json!({"jsonrpc": "2.0", "id": "x".repeat(15 << 20), "method": "ping"}).to_string();
    // The server repeats the ids, which fill its queue, and closes its input when it ends.
    let sent = (0..99).take_while(|_| writeln!(input, "{line}").is_ok()).count();
    let done = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(done.stderr).unwrap();
    assert!(sent < 10, "{sent} messages of 15 MiB were taken");
    assert_eq!(done.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("did not read 64 MiB"), "{stderr}");
}

#[test]
fn serve_mcp_a_slow_client_gets_everything() {
    let (lab, model) = (Lab::new(), Server::turns(json!([{"text": "unused"}])));
    let (mut child, mut input) = unread(&lab, &model);
    for id in 1..=400 {
        writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"})).unwrap();
    }
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ids: Vec<u64> = lines
        .take(401)
        .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap())
        .inspect(|answer| assert!(answer["result"].is_object(), "{answer}"))
        .map(|answer| answer["id"].as_u64().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..=400).collect::<Vec<_>>());
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn serve_mcp_refuses_calls_when_too_many_or_too_long_ones_wait() {
    let (lab, model) =
        (Lab::new(), Server::turns(json!([{"text": "late", "delay_ms": 60_000, "repeat": 16}])));
    let mut client = McpClient::start(&lab, &model, &[], &json!({}));
    let begin = |client: &mut McpClient, name: &str, arguments: &Value| {
        client.begin("tools/call", &json!({"name": name, "arguments": arguments}));
    };
    for _ in 0..16 {
        begin(&mut client, "run", &json!({"task": "x"}));
    }
    model.wait_for_request(16);
    let long = json!({"session_id": "x".repeat(15 << 20)});
    for _ in 0..6 {
        begin(&mut client, "session", &long);
    }
    let refused = |client: &McpClient| {
        let answer = client.receive();
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(answer["error"]["code"] == -32600 && message.contains("call again later"), "{answer:.300}");
    };
    // Four of 15 MiB are within the 64 MiB for all texts.
    (0..2).for_each(|_| refused(&client));
    for _ in 0..70 {
        begin(&mut client, "session", &json!({"session_id": "none"}));
    }
    // 64 calls wait.
    (0..10).for_each(|_| refused(&client));
    assert!(client.request("ping", &json!({}))["result"].is_object());
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn serve_mcp_messages_that_are_none_get_the_errors_of_the_protocol() {
    let (lab, model) = (Lab::new(), Server::done());
    let mut client = McpClient::start(&lab, &model, &[], &json!({}));
    let call = |params: Value| json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    for (line, code, id) in [
        ("{\"half".to_owned(), -32700, Value::Null),
        ("[]".to_owned(), -32600, Value::Null),
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]".to_owned(), -32600, Value::Null),
        ("{\"jsonrpc\":\"2.0\",\"id\":1}".to_owned(), -32600, json!(1)),
        ("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}".to_owned(), -32600, json!(1)),
        ("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}".to_owned(), -32600, Value::Null),
        ("{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"nonsense\"}".to_owned(), -32601, json!("a")),
        ("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\"}".to_owned(), -32602, json!(2)),
        (call(json!(["run"])).to_string(), -32602, json!(7)),
        (call(json!({"name": "run", "arguments": "x"})).to_string(), -32602, json!(7)),
        (
            call(json!({"name": "run", "arguments": {"task": "x", "mode": "yolo"}})).to_string(),
            -32602,
            json!(7),
        ),
        (call(json!({"name": "nonsense", "arguments": {}})).to_string(), -32602, json!(7)),
        ("x".repeat((16 << 20) + 1), -32600, Value::Null),
        (
            call(json!({"name": "run", "arguments": {"task": vec![0; 1 << 20]}})).to_string(),
            -32600,
            Value::Null,
        ),
        (format!("{{\"a\":{}", "[".repeat(200_000)), -32600, Value::Null),
    ] {
        client.send_line(&line);
        let answer = client.receive();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{line:.200} {answer}");
    }
    // What expects no answer gets none: notifications, and responses to nothing.
    client.send_line("{\"jsonrpc\":\"2.0\",\"method\":\"nonsense\"}");
    client.send_line("{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}");
    // The schema of MCP allows further fields of a message.
    let params = json!({"name": "run", "arguments": {"task": "x"}, "other": 1});
    client.send(&json!({"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": params, "other": 1}));
    let done = client.receive();
    assert_eq!((&done["id"], &done["result"]["structuredContent"]["status"]), (&json!(8), &json!("success")));
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn l33_serve_mcp_ends_runs_and_children_within_a_second_when_the_client_dies() {
    let (lab, seconds) = (Lab::new(), unique_seconds());
    let sleep = format!("sleep {seconds} & sleep {seconds}");
    let model = Server::turns(json!([{"calls": [{"name": "run_command", "arguments": {"command": sleep}}]}]));
    let (mut child, mut input) = unread(&lab, &model);
    let params = json!({"name": "run", "arguments": {"task": "x"}});
    writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
        .unwrap();
    wait_for_sleepers(&seconds, 2);
    let died = Instant::now();
    drop((input, child.stdout.take(), child.stderr.take()));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    wait_for_sleepers(&seconds, 0);
    assert!(died.elapsed() < Duration::from_secs(1), "{:?}", died.elapsed());
}
