//! `agent mcp serve`: another program drives runs over MCP.

use crate::support::calls::results;
use crate::support::mcp_client::{McpClient, piped};
use crate::support::run::Lab;
use crate::support::server::Server;
use crate::support::sleepers::{unique_seconds, wait_for_sleepers};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn writes() -> Value {
    json!({"calls": [{"name": "write_file", "arguments": {"path": "new.txt", "content": "x"}}]})
}

fn sleeps(seconds: &str) -> Value {
    json!({"calls": [{"name": "run_command", "arguments": {"command": format!("sleep {seconds} & sleep {seconds}")}}]})
}

fn forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

#[test]
fn serve_lists_its_tools_runs_a_task_and_continues_its_session() {
    let (lab, model) = (Lab::new(), Server::turns(json!([{"text": "first"}, {"text": "second"}])));
    let mut client = McpClient::start(&lab, &model, &[], &json!({}));
    let tools = client.request("tools/list", &json!({}));
    let names: Vec<&str> = tools["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["run", "reply", "session"]);
    let result = client.call("run", &json!({"task": "say it"}))["result"].clone();
    assert_eq!(result["content"][0]["text"], "first");
    assert_ne!(result["isError"], true);
    let document = &result["structuredContent"];
    assert_eq!((&document["status"], &document["steps"]), (&json!("success"), &json!(1)));
    let id = &document["session_id"];
    let again = client.call("reply", &json!({"session_id": id, "prompt": "and then"}))["result"].clone();
    assert_eq!(
        (&again["content"][0]["text"], &again["structuredContent"]["session_id"]),
        (&json!("second"), id)
    );
    let last = client.call("session", &json!({"session_id": id}))["result"].clone();
    assert_eq!(last["structuredContent"], again["structuredContent"]);
    assert_eq!(client.request("ping", &json!({}))["result"], json!({}));
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn serve_tells_progress_to_a_client_that_asks_for_it() {
    let (lab, model) = (
        Lab::new().file("a.txt", "text"),
        Server::turns(json!([
        {"calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]}, {"text": "done"}])),
    );
    let mut client = McpClient::start(&lab, &model, &[], &json!({}));
    client.begin(
        "tools/call",
        &json!({"name": "run", "arguments": {"task": "x"}, "_meta": {"progressToken": "t"}}),
    );
    let progress = client.receive();
    assert_eq!(progress["method"], "notifications/progress");
    assert_eq!(progress["params"]["progressToken"], "t");
    assert_eq!(progress["params"]["message"], "read_file a.txt");
}

#[test]
fn s20_serve_asks_the_client_and_its_answer_counts() {
    for (reply, is_written) in [
        (json!({"action": "accept", "content": {"decision": "allow"}}), true),
        (json!({"action": "accept", "content": {"decision": "refuse", "reason": "not this file"}}), false),
        (json!({"action": "decline"}), false),
    ] {
        let (lab, model) = (Lab::new(), Server::turns(json!([writes(), {"text": "done"}])));
        let mut client = McpClient::start(&lab, &model, &[], &forms());
        let id = client.begin("tools/call", &json!({"name": "run", "arguments": {"task": "x"}}));
        let question = client.asked();
        assert_eq!(question["method"], "elicitation/create");
        assert!(question["params"]["message"].as_str().unwrap().contains("write_file new.txt"), "{question}");
        client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": reply}));
        client.answer(id);
        assert_eq!(lab.exists("new.txt"), is_written, "{reply}");
        let told = results(&model).concat();
        assert_eq!(told.contains("not this file"), reply["content"]["reason"].is_string(), "{told}");
    }
}

#[test]
fn s20_serve_asks_a_client_of_the_newest_protocol_by_its_result() {
    let (lab, model) = (Lab::new(), Server::turns(json!([writes(), {"text": "done"}])));
    let mut client = McpClient::spawn(&lab, &model, &[]);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": forms()});
    let discovered = client.request("server/discover", &json!({"_meta": meta}));
    assert!(discovered["result"]["supportedVersions"].to_string().contains("2026-07-28"), "{discovered}");
    let call = json!({"name": "run", "arguments": {"task": "x"}, "_meta": meta});
    let asked = client.request("tools/call", &call)["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert!(
        asked["inputRequests"]["approval"]["params"]["message"].to_string().contains("new.txt"),
        "{asked}"
    );
    let mut again = call.clone();
    again["requestState"] = asked["requestState"].clone();
    again["inputResponses"] = json!({"approval": {"action": "accept", "content": {"decision": "allow"}}});
    let done = client.request("tools/call", &again);
    assert_eq!(done["result"]["structuredContent"]["status"], "success", "{done}");
    assert!(lab.exists("new.txt"));
    let unknown = client.request("tools/call", &again);
    assert_eq!(unknown["error"]["code"], -32602, "an answer counts once: {unknown}");
}

#[test]
fn s20_serve_refuses_what_needs_approval_when_the_client_takes_no_questions() {
    let (lab, model) = (Lab::new(), Server::turns(json!([writes(), {"text": "done"}])));
    let mut client = McpClient::start(&lab, &model, &[], &json!({}));
    client.call("run", &json!({"task": "x"}));
    assert!(!lab.exists("new.txt"));
    assert!(results(&model).concat().contains("needs a confirmation"), "{:?}", results(&model));
}

#[test]
fn serve_is_bounded_by_its_own_flags_whatever_a_client_sends() {
    let lab = Lab::new().config("agents: {free: {mode: yolo, system_prompt: Do it.}}\n");
    let model = Server::turns(
        json!([writes(), {"text": "done"}, {"calls": [{"name": "list_files", "arguments": {}}]},
        {"calls": [{"name": "list_files", "arguments": {"path": "."}}]}, {"text": "closed"}]),
    );
    let mut client = McpClient::start(&lab, &model, &["--max-steps", "3"], &json!({}));
    client.call("run", &json!({"task": "x", "agent": "free", "max_steps": 900}));
    assert!(!lab.exists("new.txt"), "the mode of the agent does not widen that of the server");
    let cut = client.call("run", &json!({"task": "x", "max_steps": 1}))["result"].clone();
    assert_eq!(
        (&cut["isError"], &cut["structuredContent"]["stop_reason"]),
        (&json!(true), &json!("max_steps")),
        "{cut}"
    );
    for arguments in [json!({"task": "x", "mode": "yolo"}), json!({"task": "x", "workspace": "/"}), json!({})]
    {
        assert_eq!(client.call("run", &arguments)["error"]["code"], -32602, "{arguments}");
    }
    assert_eq!(client.call("other", &json!({}))["error"]["code"], -32602);
    assert_eq!(client.request("nonsense/method", &json!({}))["error"]["code"], -32601);
}

#[test]
fn serve_with_an_agent_runs_no_other() {
    let lab = Lab::new();
    let model = Server::done();
    let mut client = McpClient::start(&lab, &model, &["--agent", "plan"], &json!({}));
    let refused = client.call("run", &json!({"task": "x", "agent": "build"}));
    assert!(refused["error"]["message"].as_str().unwrap().contains("`plan` only"), "{refused}");
    assert_eq!(
        client.call("run", &json!({"task": "x", "agent": "plan"}))["result"]["structuredContent"]["status"],
        "success"
    );
}

#[test]
fn serve_tells_the_truth_about_what_failed() {
    let (lab, model) = (Lab::new(), Server::turns(json!([{"error": {"status": 400}}])));
    let mut client = McpClient::start(&lab, &model, &[], &json!({}));
    let failed = client.call("run", &json!({"task": "x"}))["result"].clone();
    assert_eq!(
        (&failed["isError"], &failed["structuredContent"]["status"]),
        (&json!(true), &json!("failed")),
        "{failed}"
    );
    let unknown =
        client.call("reply", &json!({"session_id": "20200101-000000-abcdef", "prompt": "x"}))["result"]
            .clone();
    assert_eq!(unknown["isError"], true, "{unknown}");
    let outside = client.call("session", &json!({"session_id": "../../etc"}))["result"].clone();
    assert_eq!(outside["isError"], true, "{outside}");
}

#[test]
fn l33_serve_interrupts_a_call_that_is_cancelled_and_goes_on() {
    let (lab, seconds) = (Lab::new(), unique_seconds());
    let model = Server::turns(json!([sleeps(&seconds), {"text": "second"}]));
    let mut client = McpClient::start(&lab, &model, &["--mode", "yolo"], &json!({}));
    let id = client.begin("tools/call", &json!({"name": "run", "arguments": {"task": "x"}}));
    wait_for_sleepers(&seconds, 2);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    wait_for_sleepers(&seconds, 0);
    assert_eq!(client.call("run", &json!({"task": "y"}))["result"]["content"][0]["text"], "second");
    let sessions = lab.agent(&["sessions", "list", "--json"]).exits(0).json();
    assert!(sessions.to_string().contains("user_interrupt"), "{sessions}");
}

#[test]
fn l33_serve_ends_runs_and_children_within_a_second_when_the_client_leaves() {
    let (lab, seconds) = (Lab::new(), unique_seconds());
    let model = Server::turns(json!([sleeps(&seconds), {"text": "done"}]));
    let mut client = McpClient::start(&lab, &model, &["--mode", "yolo"], &json!({}));
    client.begin("tools/call", &json!({"name": "run", "arguments": {"task": "x"}}));
    wait_for_sleepers(&seconds, 2);
    let left = Instant::now();
    assert_eq!(client.leave(), Some(0));
    wait_for_sleepers(&seconds, 0);
    assert!(left.elapsed() < Duration::from_secs(1), "{:?}", left.elapsed());
}

#[test]
fn serve_performs_calls_side_by_side() {
    let lab = Lab::new();
    let model = Server::turns(json!([{"text": "slow", "delay_ms": 1500}, {"text": "fast"}]));
    let mut client = McpClient::start(&lab, &model, &[], &json!({}));
    let slow = client.begin("tools/call", &json!({"name": "run", "arguments": {"task": "x"}}));
    model.wait_for_request(1);
    let fast = client.begin("tools/call", &json!({"name": "run", "arguments": {"task": "y"}}));
    let first = client.receive();
    assert_eq!(
        (&first["id"], &first["result"]["content"][0]["text"]),
        (&json!(fast), &json!("fast")),
        "{first}"
    );
    assert_eq!(client.answer(slow)["result"]["content"][0]["text"], "slow");
}

#[test]
fn serve_ends_in_order_for_a_client_that_speaks_something_else() {
    for input in ["", "GET / HTTP/1.1\r\n\r\n", "{\"half", "[]\n", "{}\n", "\u{0}\u{1b}[31m\n"] {
        let finished = piped(Lab::new(), input, &["mcp"]);
        assert!(matches!(finished.code, Some(0 | 1)), "{input:?}: {} {}", finished.stdout, finished.stderr);
        assert!(!finished.stdout.contains('\u{1b}') && !finished.stderr.contains('\u{1b}'), "{input:?}");
    }
}

#[test]
fn serve_ends_a_call_whose_run_ends_during_an_unanswered_question() {
    let (lab, model) = (Lab::new(), Server::turns(json!([writes(), {"text": "done"}])));
    let mut client = McpClient::start(&lab, &model, &[], &forms());
    let call = json!({"name": "run", "arguments": {"task": "x", "timeout_seconds": 1}});
    let id = client.begin("tools/call", &call);
    client.asked();
    let ended = client.answer(id)["result"].clone();
    assert_eq!(
        (&ended["isError"], &ended["structuredContent"]["stop_reason"]),
        (&json!(true), &json!("timeout"))
    );
}

#[test]
fn serve_shows_no_control_characters_in_questions() {
    let hostile = json!({"calls": [{"name": "write_file", "arguments": {"path": "a.txt", "content": "hi\u{1b}[2J\u{202e}"}}]});
    let (lab, model) = (Lab::new(), Server::turns(json!([hostile, {"text": "done"}])));
    let mut client = McpClient::start(&lab, &model, &[], &forms());
    client.begin("tools/call", &json!({"name": "run", "arguments": {"task": "x"}}));
    let question = client.asked();
    let message = question["params"]["message"].as_str().unwrap();
    assert!(message.contains("hi"), "{message:?}");
    assert!(!message.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'), "{message:?}");
}

#[test]
fn serve_refuses_a_message_of_millions_of_values_and_options_that_it_cannot_honour() {
    let (lab, model) = (Lab::new(), Server::done());
    let mut client = McpClient::start(&lab, &model, &[], &json!({}));
    let zeros = "0,".repeat(1 << 20);
    client.flood(&format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":99,\"method\":\"tools/call\",\"params\":{{\"name\":\"run\",\"arguments\":{{\"task\":[{zeros}0]}}}}}}"
    ));
    assert_eq!(client.receive()["error"]["code"], -32600);
    assert_eq!(client.leave(), Some(0));
    for flag in [["--report", "json"], ["--report-file", "r.md"], ["--image", "a.png"]] {
        let done = lab.agent(&[&["mcp", "serve"], flag.as_slice()].concat()).exits(3);
        assert!(done.stderr.contains("is for one run at the command line"), "{}", done.stderr);
    }
}
