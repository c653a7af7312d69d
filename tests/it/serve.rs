//! `agent serve`: each method, event and error of the program's own protocol.

use crate::support::calls::{results, turn};
use crate::support::mcp_client::McpClient;
use crate::support::rpc_client::{RpcClient, types};
use crate::support::run::{KEY, Lab};
use crate::support::schema;
use crate::support::server::Server;
use crate::support::sleepers::{unique_seconds, wait_for_sleepers};
use serde_json::{Value, json};

fn writes(path: &str) -> Value {
    turn("write_file", &json!({"path": path, "content": "x"}))
}

fn sleeps(seconds: &str) -> Value {
    turn("run_command", &json!({"command": format!("sleep {seconds} & sleep {seconds}")}))
}

#[test]
fn o09_serve_start_sends_the_events_of_the_stream_and_the_document_of_the_run() {
    let lab = Lab::new().file("a.txt", "old\n");
    let turns = || json!([turn("read_file", &json!({"path": "a.txt"})), {"text": "the answer", "chunk": 4}]);
    let model = Server::turns(turns());
    let mut client = RpcClient::start(&lab, &model, &[]);
    let (session, result) = client.run("look");
    let events = client.events(&session);
    assert_eq!((&result["status"], &result["output"]), (&json!("success"), &json!("the answer")));
    assert_eq!(result["session_id"], session.as_str());
    schema::is_result(&result);

    let other = lab.run(&Server::turns(turns()), &["--output-format", "stream-json"]).exits(0);
    let stream: Vec<Value> = other.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (last, stream) = stream.split_last().unwrap();
    assert_eq!((types(&events), &last["type"]), (types(stream), &json!("result")));
    let text: String = events
        .iter()
        .filter(|event| event["type"] == "text")
        .filter_map(|event| event["text"].as_str())
        .collect();
    assert_eq!(text, "the answer");
    let recorded =
        events.iter().filter(|event| !["text", "thinking"].contains(&event["type"].as_str().unwrap()));
    for (number, event) in recorded.enumerate() {
        assert_eq!(event["seq"], number, "no event is missing: {event}");
    }
    assert_eq!(client.client.leave(), Some(0));
}

#[test]
fn serve_send_continues_a_session_also_in_another_process_and_not_while_a_run_works() {
    let (lab, seconds) = (Lab::new(), unique_seconds());
    let model =
        Server::turns(json!([{"text": "first"}, {"text": "second"}, sleeps(&seconds), {"text": "unused"}]));
    let mut client = RpcClient::start(&lab, &model, &["--mode", "yolo"]);
    let (session, _) = client.run("say it");
    let begun = client.call("send", &json!({"session_id": session, "prompt": "again"}));
    assert_eq!(begun["session_id"], session.as_str());
    assert_eq!(client.result(&session)["output"], "second");
    assert!(model.requests()[1].body.to_string().contains("say it"), "one conversation");
    assert_eq!(client.client.leave(), Some(0));

    let mut client = RpcClient::start(&lab, &model, &["--mode", "yolo"]);
    client.call("send", &json!({"session_id": session, "prompt": "work"}));
    wait_for_sleepers(&seconds, 2);
    assert_eq!(client.refused("send", &json!({"session_id": session, "prompt": "more"})), -32600);
    assert_eq!(client.refused("undo", &json!({ "session_id": session })), -32600);
    let mut other = RpcClient::start(&lab, &model, &[]);
    other.call("send", &json!({"session_id": session, "prompt": "more"}));
    let busy = other.result(&session);
    assert_eq!((&busy["status"], &busy["error"]["kind"]), (&json!("failed"), &json!("session")), "{busy}");
    for unknown in ["20200101-000000-abcdef", "../../etc", ""] {
        assert_eq!(
            client.refused("send", &json!({"session_id": unknown, "prompt": "x"})),
            -32602,
            "{unknown}"
        );
    }
}

#[test]
fn l33_serve_interrupt_ends_a_run_and_its_children_and_the_session_goes_on() {
    let (lab, seconds) = (Lab::new(), unique_seconds());
    let model = Server::turns(json!([sleeps(&seconds), {"text": "second"}]));
    let mut client = RpcClient::start(&lab, &model, &["--mode", "yolo"]);
    let session = client.begin("x");
    wait_for_sleepers(&seconds, 2);
    assert_eq!(client.call("interrupt", &json!({ "session_id": session })), json!({}));
    let result = client.result(&session);
    assert_eq!((&result["status"], &result["stop_reason"]), (&json!("partial"), &json!("user_interrupt")));
    wait_for_sleepers(&seconds, 0);
    assert_eq!(client.refused("interrupt", &json!({ "session_id": session })), -32600, "no run works");
    client.call("send", &json!({"session_id": session, "prompt": "y"}));
    assert_eq!(client.result(&session)["output"], "second");
}

#[test]
fn s20_serve_asks_for_approval_and_the_decision_counts() {
    for (decision, is_written, reason) in [
        ("allow", true, "llm_done"),
        ("allow_always", true, "llm_done"),
        ("deny", false, "llm_done"),
        ("stop", false, "user_interrupt"),
    ] {
        let (lab, model) = (Lab::new(), Server::turns(json!([writes("new.txt"), {"text": "done"}])));
        let mut client = RpcClient::start(&lab, &model, &[]);
        let session = client.begin("x");
        let asked = client.wait("approval");
        let question = &asked["question"];
        assert_eq!((&asked["session_id"], &question["tool"]), (&json!(session), &json!("write_file")));
        assert!(question["summary"].as_str().unwrap().contains("new.txt"), "{question}");
        let events = client.events(&session);
        let call = events.iter().find(|event| event["type"] == "tool_call_start").unwrap();
        assert_eq!(call["call"]["id"], question["call_id"]);
        let answer = json!({"session_id": session, "question_id": question["id"], "decision": decision, "reason": "not this file"});
        assert_eq!(client.call("approve", &answer), json!({}));
        let result = client.result(&session);
        assert_eq!(lab.exists("new.txt"), is_written, "{decision}");
        assert_eq!(result["stop_reason"], reason, "{decision}: {result}");
        assert_eq!(results(&model).concat().contains("not this file"), decision == "deny");
        assert_eq!(client.refused("approve", &answer), -32600, "{decision}: no run works any more");
    }
}

// Fault E1: a question was shown by the id of the call alone.
#[test]
fn serve_names_the_subagent_whose_call_needs_approval() {
    let (lab, model) = (
        Lab::new().file("dummy/a", "a"),
        Server::turns(json!([
            turn("dispatch_subagent", &json!({"agent_type": "test", "task": "look"})),
            turn("run_command", &json!({"command": "rm -r dummy"})),
            {"text": "looked"},
            {"text": "done"}])),
    );
    let mut client = RpcClient::start(&lab, &model, &[]);
    let session = client.begin("x");
    let question = client.wait("approval")["question"].clone();
    let events = client.events(&session);
    let started = events.iter().rfind(|event| event["event"]["type"] == "tool_call_start").unwrap();
    assert_eq!(
        (&started["call_id"], &started["event"]["call"]["id"]),
        (&question["subagent"], &question["call_id"]),
        "{question}"
    );
}

#[test]
fn s20_serve_an_answer_counts_once_and_only_for_its_question() {
    let (lab, model) = (
        Lab::new(),
        Server::turns(json!([writes("a.txt"), writes("b.txt"), writes("c.txt"), {"text": "done"}])),
    );
    let mut client = RpcClient::start(&lab, &model, &[]);
    let session = client.begin("x");
    let first = client.wait("approval")["question"]["id"].clone();
    let answer =
        |question: &Value| json!({"session_id": session, "question_id": question, "decision": "allow"});
    assert_eq!(client.refused("approve", &answer(&json!("nonsense"))), -32602);
    client.call("approve", &answer(&first));
    let second = client.wait("approval")["question"]["id"].clone();
    assert_ne!(first, second);
    assert_eq!(client.refused("approve", &answer(&first)), -32602, "it was answered");
    assert!(lab.exists("a.txt") && !lab.exists("b.txt"));
    let (_, other) = (client.begin("y"), client.wait("approval"));
    let elsewhere = json!({"session_id": other["session_id"], "question_id": second, "decision": "allow"});
    assert_eq!(client.refused("approve", &elsewhere), -32602, "it is a question of another session");
    client.call("approve", &answer(&second));
}

#[test]
fn s20_serve_shows_invisible_characters_of_a_question_as_escapes() {
    let hostile = turn("run_command", &json!({"command": "echo '\u{202e}\u{1b}[2J'"}));
    let (lab, model) = (Lab::new(), Server::turns(json!([hostile, {"text": "done"}])));
    let mut client = RpcClient::start(&lab, &model, &["--mode", "confirm-all"]);
    client.begin("x");
    let question = client.wait("approval")["question"].to_string();
    assert!(!question.contains('\u{202e}') && question.contains("u{202e}"), "{question}");
    assert!(!question.contains("u001b"), "{question}");
}

#[test]
fn serve_list_shows_the_sessions_of_the_workspace_with_their_states() {
    let (lab, seconds) = (Lab::new(), unique_seconds());
    let model = Server::turns(json!([{"text": "done"}, {"error": {"status": 400}}, sleeps(&seconds)]));
    let mut client = RpcClient::start(&lab, &model, &["--mode", "yolo"]);
    assert_eq!(client.call("list", &json!({})), json!({"sessions": [], "next_cursor": null}));
    let (first, _) = client.run("one");
    let (second, _) = client.run("two");
    let third = client.begin(&"three".repeat(1000));
    wait_for_sleepers(&seconds, 2);
    let listed = client.call("list", &json!({}));
    let shown: Vec<Value> = listed["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| json!([it["id"], it["state"], it["status"]]))
        .collect();
    let wanted = json!([[third, "working", null], [second, "ended", "failed"], [first, "ended", "success"]]);
    assert_eq!(json!(shown), wanted, "{listed}");
    assert_eq!(listed["sessions"][2]["task"], "one");
    assert!(listed["sessions"][0]["task"].as_str().unwrap().len() < 1100, "the list is bounded");
    let mut other = RpcClient::start(&lab, &model, &[]);
    assert_eq!(other.call("list", &json!({}))["sessions"][0]["state"], "unfinished");
    assert_eq!(client.refused("list", &json!({"cursor": "x"})), -32602);
    assert_eq!(client.call("list", &json!({"cursor": "3"}))["sessions"], json!([]));
}

#[test]
fn serve_list_has_pages() {
    let lab = Lab::new();
    let model = Server::turns(json!([{"text": "done", "repeat": 51}]));
    let mut client = RpcClient::start(&lab, &model, &[]);
    let first = client.run("x").0;
    for _ in 0..50 {
        client.run("x");
    }
    let page = client.call("list", &json!({}));
    assert_eq!((page["sessions"].as_array().unwrap().len(), &page["next_cursor"]), (50, &json!("50")));
    let rest = client.call("list", &json!({"cursor": page["next_cursor"]}));
    assert_eq!((&rest["sessions"][0]["id"], &rest["next_cursor"]), (&json!(first), &Value::Null));
}

#[test]
fn serve_subscribe_sends_the_stored_events_again_from_a_number_on() {
    let lab = Lab::new().file("a.txt", "old\n");
    let model = Server::turns(
        json!([turn("read_file", &json!({"path": "a.txt"})), {"text": "done"}, {"text": "more"}]),
    );
    let mut client = RpcClient::start(&lab, &model, &["--no-stream"]);
    let (session, result) = client.run("x");
    let live = client.events(&session);
    let again = client.call("subscribe", &json!({ "session_id": session }));
    let next = again["next_seq"].as_u64().unwrap();
    assert_eq!(again, json!({"next_seq": next, "is_working": false, "damaged": 0}));
    assert_eq!(client.events(&session), live, "the same events");
    assert_eq!(client.result(&session), result, "and the same result");
    assert_eq!(client.client.leave(), Some(0));

    // A program that starts again asks for what it does not have.
    let mut client = RpcClient::start(&lab, &model, &["--no-stream"]);
    let have = live[3]["seq"].as_u64().unwrap();
    client.call("subscribe", &json!({"session_id": session, "from_seq": have + 1}));
    assert_eq!(client.events(&session), live[4..]);
    client.call("send", &json!({"session_id": session, "prompt": "y"}));
    client.wait("finished");
    client.result(&session);
    assert_eq!(client.events(&session)[0]["seq"], next, "the numbers go on");
    client.call("subscribe", &json!({"session_id": session, "from_seq": 1_000_000}));
    assert!(client.events(&session).is_empty());
    assert_eq!(client.refused("subscribe", &json!({"session_id": "20200101-000000-abcdef"})), -32602);
}

#[test]
fn serve_subscribe_to_a_working_run_says_so_and_damaged_records_are_counted() {
    let (lab, seconds) = (Lab::new(), unique_seconds());
    let model = Server::turns(json!([sleeps(&seconds), {"text": "unused"}]));
    let mut client = RpcClient::start(&lab, &model, &["--mode", "yolo", "--no-stream"]);
    let session = client.begin("x");
    wait_for_sleepers(&seconds, 2);
    let begun = client.call("subscribe", &json!({ "session_id": session }));
    assert_eq!((&begun["is_working"], &begun["damaged"]), (&json!(true), &json!(0)));
    client.call("interrupt", &json!({ "session_id": session }));
    client.result(&session);
    let journal = lab.journal();
    let text =
        std::fs::read_to_string(&journal).unwrap().replacen("\"session_start\"", "\"session_stare\"", 1);
    std::fs::write(&journal, text).unwrap();
    let damaged = client.call("subscribe", &json!({ "session_id": session }));
    assert_eq!((&damaged["is_working"], &damaged["damaged"]), (&json!(false), &json!(1)));
}

#[test]
fn a14_serve_undo_restores_files_as_the_command_does() {
    let lab = Lab::new().file("a.txt", "old\n").file("b.txt", "old\n");
    let write = |path: &str| turn("write_file", &json!({"path": path, "content": "new\n"}));
    let read = |path: &str| turn("read_file", &json!({ "path": path }));
    let model = Server::turns(
        json!([read("a.txt"), write("a.txt"), read("b.txt"), write("b.txt"), {"text": "done"}]),
    );
    let mut client = RpcClient::start(&lab, &model, &["--mode", "yolo"]);
    let (session, _) = client.run("x");
    assert_eq!((lab.read("a.txt"), lab.read("b.txt")), ("new\n".to_owned(), "new\n".to_owned()));
    let undone = client.call("undo", &json!({"session_id": session, "to_step": 2}));
    assert_eq!((&undone["changed"][0]["path"], &undone["changed"][1]), (&json!("b.txt"), &Value::Null));
    assert_eq!((lab.read("a.txt"), lab.read("b.txt")), ("new\n".to_owned(), "old\n".to_owned()));
    std::fs::write(lab.ws().join("a.txt"), "by somebody else\n").unwrap();
    let refused = client.request("undo", &json!({"session_id": session, "file": "a.txt"}));
    assert!(refused["error"]["message"].as_str().unwrap().contains("a.txt"), "{refused}");
    assert_eq!(lab.read("a.txt"), "by somebody else\n");
    client.call("undo", &json!({"session_id": session, "file": "a.txt", "force": true}));
    assert_eq!(lab.read("a.txt"), "old\n");
    assert_eq!(
        client.call("undo", &json!({ "session_id": session })),
        json!({"changed": [], "warnings": []})
    );
    assert_eq!(client.refused("undo", &json!({"session_id": session, "file": "../x"})), -32602);
    assert_eq!(client.refused("undo", &json!({"session_id": "20200101-000000-abcdef"})), -32602);
    let mut dry = RpcClient::start(&lab, &model, &["--dry-run"]);
    assert_eq!(dry.refused("undo", &json!({ "session_id": session })), -32600);
}

#[test]
fn serve_is_bounded_by_its_own_flags_whatever_a_client_sends() {
    let lab = Lab::new().config("agents: {free: {mode: yolo, system_prompt: Do it.}}\n");
    let list = |path: &str| turn("list_files", &json!({ "path": path }));
    let model = Server::turns(
        json!([writes("new.txt"), {"text": "done"}, list("."), {"text": "closed"}, list("."), list("."), {"text": "closed"}]),
    );
    let mut client = RpcClient::start(&lab, &model, &["--max-steps", "2"]);
    let begun = client.call("start", &json!({"task": "x", "agent": "free", "limits": {"mode": "yolo"}}));
    let asked = client.wait("approval");
    assert_eq!(asked["session_id"], begun["session_id"], "neither the agent nor the limits widen the mode");
    let deny = json!({"session_id": asked["session_id"], "question_id": asked["question"]["id"], "decision": "deny"});
    client.call("approve", &deny);
    client.wait("finished");
    for (limits, steps) in [(json!({"max_steps": 1}), 1), (json!({"max_steps": 900}), 2)] {
        client.call("start", &json!({"task": "x", "limits": limits}));
        let result = client.wait("finished")["result"].clone();
        assert_eq!(
            (&result["status"], &result["stop_reason"], &result["steps"]),
            (&json!("partial"), &json!("max_steps"), &json!(steps))
        );
    }
    for params in [
        json!({"task": "x", "workspace": "/"}),
        json!({"task": "x", "limits": {"sandbox": "off"}}),
        json!({}),
    ] {
        assert_eq!(client.refused("start", &params), -32602, "{params}");
    }
}

#[test]
fn serve_lowers_the_mode_of_a_run_to_what_the_client_asks_for() {
    let (lab, model) = (Lab::new(), Server::turns(json!([writes("new.txt"), {"text": "done"}])));
    let mut client = RpcClient::start(&lab, &model, &["--mode", "yolo"]);
    client.call("start", &json!({"task": "x", "limits": {"mode": "confirm-sensitive"}}));
    client.wait("approval");
    assert!(!lab.exists("new.txt"));
}

#[test]
fn serve_with_an_agent_or_a_model_runs_no_other() {
    let (lab, model) = (Lab::new(), Server::done());
    let mut client = RpcClient::start(&lab, &model, &["--agent", "plan"]);
    for params in [json!({"task": "x", "agent": "build"}), json!({"task": "x", "model": "openai/other"})] {
        assert_eq!(client.refused("start", &params), -32602, "{params}");
    }
    client.call("start", &json!({"task": "x", "agent": "plan", "model": "openai/mock"}));
    assert_eq!(client.wait("finished")["result"]["status"], "success");
}

#[test]
fn serve_without_a_model_of_its_own_runs_the_one_that_the_client_selects_within_its_bounds() {
    let model = Server::done();
    let config = format!("llm: {{model: openai/configured, api_base: '{}'}}\n", model.url());
    let lab =
        Lab::new().env("OPENAI_API_KEY", KEY).config(&config).file("secret.yaml", "turns: a-secret-line\n");
    let mut client = RpcClient::over(McpClient::over(lab.command(&["serve"])));
    client.call("start", &json!({"task": "x", "model": "openai/chosen"}));
    assert_eq!(client.wait("finished")["result"]["model"], "openai/chosen");
    assert_eq!(model.requests()[0].body["model"], "chosen");
    assert_eq!(client.refused("start", &json!({"task": "x", "model": "scripted:secret.yaml"})), -32602);
    let mut client = RpcClient::over(McpClient::over(lab.command(&["serve", "--budget", "1"])));
    client.call("start", &json!({"task": "x", "model": "openai/chosen"}));
    let result = client.wait("finished")["result"].clone();
    assert_eq!(
        (&result["status"], &result["error"]["kind"]),
        (&json!("failed"), &json!("config")),
        "no known price"
    );
}

#[test]
fn serve_what_fails_or_cannot_start_is_finished_and_no_success() {
    let lab = Lab::new();
    let model =
        Server::turns(json!([{"error": {"status": 400}}, {"text": "no", "finish": "content_filter"}]));
    let mut client = RpcClient::start(&lab, &model, &[]);
    assert_eq!(client.run("x").1["status"], "failed");
    assert_eq!(client.run("x").1["stop_reason"], "content_filter");
    let begun = client.call("start", &json!({"task": "x", "agent": "nobody"}));
    let result = client.result(begun["session_id"].as_str().unwrap());
    assert_eq!(
        (&result["status"], &result["error"]["kind"]),
        (&json!("failed"), &json!("config")),
        "{result}"
    );
    assert_eq!(
        client.refused("send", &json!({"session_id": begun["session_id"], "prompt": "x"})),
        -32602,
        "it never began"
    );
}

#[test]
fn serve_performs_runs_side_by_side_up_to_a_limit() {
    let lab = Lab::new();
    let model = Server::turns(json!([{"text": "slow", "delay_ms": 4000, "repeat": 16}, {"text": "fast"}]));
    let mut client = RpcClient::start(&lab, &model, &[]);
    for _ in 0..16 {
        client.begin("x");
    }
    assert_eq!(client.refused("start", &json!({"task": "x"})), -32600);
    for _ in 0..16 {
        assert_eq!(client.wait("finished")["result"]["output"], "slow");
    }
    assert_eq!(client.run("x").1["output"], "fast");
}

#[test]
fn schema_rpc_is_the_published_schema() {
    let printed = Lab::new().agent(&["schema", "rpc"]).exits(0);
    assert_eq!(printed.stdout, include_str!("../../config/schema/rpc.json"));
    let (schema, request) = (
        schema::of("rpc"),
        |params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": "start", "params": params}),
    );
    schema::valid(&schema, &request(json!({"task": "x", "limits": {"mode": "yolo"}})));
    for params in
        [json!({}), json!({"task": "x", "workspace": "/"}), json!({"task": "x", "limits": {"mode": "free"}})]
    {
        assert!(!schema.is_valid(&request(params.clone())), "{params}");
    }
}
