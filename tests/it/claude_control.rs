//! In place of Claude Code: control requests in both directions, and clients that lie, flood, are slow or die.

use crate::support::calls::{call, turn};
use crate::support::claude_client::ClaudeClient;
use crate::support::run::Lab;
use crate::support::server::Server;
use crate::support::sleepers::{unique_seconds, wait_for_sleepers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

fn write(path: &str) -> Value {
    turn("write_file", &json!({"path": path, "content": "x"}))
}

/// The last request, in which the model reads the results of its calls.
fn told(model: &Server) -> String {
    model.requests().last().unwrap().body.to_string()
}

fn hooks(event: &str, more: &Value) -> Value {
    let mut matcher = json!({"hookCallbackIds": ["h0"]});
    matcher.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"subtype": "initialize", "hooks": {event: [matcher]}})
}

#[test]
fn claude_initialize_answers_what_it_honours_and_refuses_what_takes_permission_away() {
    let (lab, model) = (Lab::new(), Server::turns(json!([{"text": "{\"n\": 1}"}])));
    let mut client = ClaudeClient::start(&lab, &model, &[]);
    for refused in [
        json!({"settings": "{}"}),
        json!({"managedSettings": {"x": 1}}),
        json!({"hooks": {"PermissionRequest": [{"hookCallbackIds": ["h0"]}]}}),
        json!({"hooks": {"PreToolUse": [{"matcher": "(", "hookCallbackIds": ["h0"]}]}}),
        json!({"sdkMcpServers": ["a b"]}),
        json!({"sdkMcpServers": ["a"], "sdkMcpServerConfigs": {"a": {"tools": [{"name": "x"}]}}}),
        json!({"disallowedTools": ["Bash(unclosed"]}),
        json!({"disallowedTools": 7}),
    ] {
        let mut request = json!({"subtype": "initialize"});
        request.as_object_mut().unwrap().extend(refused.as_object().unwrap().clone());
        let answer = client.control(&request);
        assert_eq!(answer["subtype"], "error", "{refused} {answer}");
    }
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
    let answer = client.control(
        &json!({"subtype": "initialize", "systemPrompt": [""], "agents": {"x": {}}, "jsonSchema": schema,
        "disallowedTools": ["Bash"], "hooks": {"SessionStart": [{"hookCallbackIds": ["h0"]}]}}),
    );
    let response = &answer["response"];
    assert_eq!(
        (&answer["subtype"], &response["disallowed_tools_applied"]),
        (&json!("success"), &json!(true)),
        "{answer}"
    );
    assert_eq!(
        (&response["hooks_applied"], &response["models"][0]["value"]),
        (&json!(false), &json!("anthropic/mock"))
    );
    assert_eq!(client.turn("task")["structured_output"], json!({"n": 1}));
    assert!(!model.requests()[0].body["tools"].to_string().contains("run_command"));
    let warnings = client.warnings();
    assert!(
        warnings.contains("SessionStart")
            && warnings.contains("agents")
            && !warnings.contains("systemPrompt"),
        "{warnings}"
    );
}

#[test]
fn claude_interrupt_ends_the_run_and_the_next_message_runs() {
    let (lab, seconds) = (Lab::new(), unique_seconds());
    let sleeps = turn("run_command", &json!({"command": format!("sleep {seconds}")}));
    let model = Server::turns(json!([sleeps, {"text": "next"}]));
    let mut client = ClaudeClient::start(&lab, &model, &["--dangerously-skip-permissions"]);
    assert_eq!(client.control(&json!({"subtype": "interrupt"}))["subtype"], "success", "nothing runs yet");
    client.say(&json!("sleep"));
    wait_for_sleepers(&seconds, 1);
    assert_eq!(client.control(&json!({"subtype": "interrupt"}))["subtype"], "success");
    let result = client.result();
    assert_eq!(result["subtype"], "error_during_execution");
    assert!(result["errors"][0].as_str().unwrap().contains("user_interrupt"), "{result}");
    wait_for_sleepers(&seconds, 0);
    assert_eq!(client.turn("next")["result"], "next");
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn claude_set_permission_mode_applies_at_once_and_bypass_needs_its_flag() {
    for (flags, may_bypass) in [(&[][..], false), (&["--allow-dangerously-skip-permissions"], true)] {
        let (lab, model) = (
            Lab::new(),
            Server::turns(json!([write("a.txt"), {"text": "one"}, write("b.txt"), {"text": "two"}])),
        );
        let mut client = ClaudeClient::start(&lab, &model, flags);
        client.turn("one");
        let set = |mode: &str| json!({"subtype": "set_permission_mode", "mode": mode});
        let answer = client.control(&set("bypassPermissions"));
        assert_eq!(answer["subtype"] == "success", may_bypass, "{answer}");
        assert_eq!(client.control(&set("nonsense"))["subtype"], "error");
        if !may_bypass {
            assert_eq!(client.control(&set("acceptEdits"))["subtype"], "success");
        }
        client.turn("two");
        assert_eq!((lab.exists("a.txt"), lab.exists("b.txt")), (false, true));
        let inits: Vec<&Value> =
            client.seen.iter().filter(|it| it["subtype"] == "init").map(|it| &it["permissionMode"]).collect();
        assert_eq!(inits, ["default", if may_bypass { "bypassPermissions" } else { "acceptEdits" }]);
    }
}

#[test]
fn claude_set_model_selects_the_model_of_the_next_run() {
    let (lab, model) =
        (Lab::new(), Server::turns(json!([{"text": "one"}, {"text": "two"}, {"text": "three"}])));
    let mut client = ClaudeClient::start(&lab, &model, &[]);
    client.turn("one");
    assert_eq!(client.control(&json!({"subtype": "set_model", "model": "other"}))["subtype"], "success");
    client.turn("two");
    assert_eq!(client.control(&json!({"subtype": "set_model"}))["subtype"], "success");
    assert_eq!(client.control(&json!({"subtype": "set_model", "model": 7}))["subtype"], "error");
    client.turn("three");
    let models: Vec<Value> = model.requests().iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(models, ["mock", "other", "mock"]);
}

#[test]
fn claude_other_control_requests_and_lines_that_are_none_get_errors_and_the_session_goes_on() {
    let (lab, model) = (Lab::new(), Server::done());
    let mut client = ClaudeClient::start(&lab, &model, &[]);
    for subtype in ["rewind_files", "mcp_status", "set_max_thinking_tokens", "can_use_tool", "nonsense", ""] {
        let answer = client.control(&json!({ "subtype": subtype }));
        assert_eq!(answer["subtype"], "error", "{answer}");
    }
    client.client.send_line(r#"{"type":"control_request","request_id":"x","request":7}"#);
    assert_eq!(client.wait(|it| it["response"]["request_id"] == "x")["response"]["subtype"], "error");
    for line in
        ["{\"half", "[]", "{}", "\u{0}\u{1b}[31m", r#"{"type":"nonsense"}"#, r#"{"type":"control_response"}"#]
    {
        client.client.send_line(line);
        let told = client.wait(|it| it["subtype"] == "informational");
        assert!(!told.to_string().contains('\u{1b}'), "{told}");
    }
    // What needs no answer gets none.
    client.client.send_line(r#"{"type":"keep_alive"}"#);
    client
        .client
        .send_line(r#"{"type":"control_response","response":{"subtype":"success","request_id":"none"}}"#);
    client.client.send_line(&"x".repeat((16 << 20) + 1));
    client.wait(|it| it["subtype"] == "informational");
    assert_eq!(client.turn("task")["result"], "done");
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn s20_claude_can_use_tool_decides_and_what_is_no_clear_approval_is_a_refusal() {
    for (answer, runs) in [
        (json!({"behavior": "allow"}), true),
        (json!({"behavior": "deny", "message": "not this"}), false),
        (json!({"behavior": "Allow"}), false),
        (json!({"behavior": true}), false),
        (json!("allow"), false),
        (json!(null), false),
        (json!({"behavior": "allow", "updatedInput": "x"}), false),
        (json!({"behavior": "allow", "updatedInput": {"nonsense": 1}}), false),
        (json!({"behavior": "allow", "updatedInput": {"file_path": "../../etc/x", "content": "x"}}), false),
    ] {
        let (lab, model) = (Lab::new(), Server::turns(json!([write("new.txt"), {"text": "done"}])));
        let mut client = ClaudeClient::asked(&lab, &model, &[]);
        client.say(&json!("write"));
        let asked = client.request("can_use_tool");
        let request = &asked["request"];
        let input = json!({"file_path": lab.ws().join("new.txt"), "content": "x"});
        assert_eq!((&request["tool_name"], &request["input"]), (&json!("Write"), &input));
        assert_eq!(request["tool_use_id"], client.of("assistant")[0]["message"]["content"][0]["id"]);
        client.answer(&asked, &answer);
        assert_eq!(client.result()["subtype"], "success");
        assert_eq!(lab.exists("new.txt"), runs, "{answer}");
    }
}

#[test]
fn claude_can_use_tool_may_change_the_arguments_within_the_rules() {
    let config = "policy: {rules: [{action: deny, tool: write_file, path: secret.txt}]}\n";
    for (path, is_written) in [("other.txt", true), ("secret.txt", false)] {
        let (lab, model) =
            (Lab::new().config(config), Server::turns(json!([write("new.txt"), {"text": "done"}])));
        let mut client = ClaudeClient::asked(&lab, &model, &[]);
        client.say(&json!("write"));
        let asked = client.request("can_use_tool");
        client.answer(
            &asked,
            &json!({"behavior": "allow", "updatedInput": {"file_path": lab.ws().join(path), "content": "y"}}),
        );
        client.result();
        assert_eq!((lab.exists("new.txt"), lab.exists(path)), (false, is_written), "{path}");
    }
}

#[test]
fn claude_can_use_tool_with_interrupt_ends_the_run() {
    let (lab, model) = (Lab::new(), Server::turns(json!([write("new.txt"), {"text": "unused"}])));
    let mut client = ClaudeClient::asked(&lab, &model, &[]);
    client.say(&json!("write"));
    let asked = client.request("can_use_tool");
    client.answer(&asked, &json!({"behavior": "deny", "message": "no", "interrupt": true}));
    assert_eq!(client.result()["subtype"], "error_during_execution");
    assert!(!lab.exists("new.txt"));
    assert_eq!(client.leave(), Some(130));
}

#[test]
fn claude_a_question_is_withdrawn_when_the_run_is_interrupted_and_refused_when_the_input_ends() {
    let (lab, model) = (Lab::new(), Server::turns(json!([write("a.txt"), write("b.txt"), {"text": "done"}])));
    let mut client = ClaudeClient::asked(&lab, &model, &[]);
    client.say(&json!("write"));
    let asked = client.request("can_use_tool");
    client.control(&json!({"subtype": "interrupt"}));
    let withdrawn = client.wait(|it| it["type"] == "control_cancel_request");
    assert_eq!(withdrawn["request_id"], asked["request_id"]);
    client.result();
    // An answer that comes too late counts for nothing.
    client.answer(&asked, &json!({"behavior": "allow"}));
    client.say(&json!("write"));
    client.request("can_use_tool");
    client.client.close_input();
    let result = client.result();
    assert_eq!(
        (&result["subtype"], result["permission_denials"].as_array().unwrap().len()),
        (&json!("success"), 1),
        "{result}"
    );
    assert!(!lab.exists("a.txt") && !lab.exists("b.txt"));
}

#[test]
fn claude_hook_callback_before_a_call_denies_asks_changes_and_blocks_when_it_fails() {
    let specific = |decision: &str| {
        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision,
        "permissionDecisionReason": "because of the hook"}})
    };
    for (answer, runs) in [
        (Ok(specific("deny")), false),
        (Ok(specific("allow")), true),
        (Ok(specific("defer")), false),
        (Ok(json!({"decision": "block", "reason": "because of the hook"})), false),
        (Ok(json!({})), false),
        (Err("thrown"), false),
    ] {
        let (lab, model) = (Lab::new(), Server::turns(json!([write("new.txt"), {"text": "done"}])));
        let mut client = ClaudeClient::start(&lab, &model, &[]);
        let set = client.control(&hooks("PreToolUse", &json!({"matcher": "Write|Bash"})));
        assert_eq!(set["response"]["hooks_applied"], true, "{set}");
        client.say(&json!("write"));
        let fired = client.request("hook_callback");
        let request = &fired["request"];
        assert_eq!(
            (&request["callback_id"], &request["input"]["tool_name"]),
            (&json!("h0"), &json!("Write"))
        );
        assert_eq!(request["input"]["tool_input"]["file_path"], json!(lab.ws().join("new.txt")));
        match &answer {
            Ok(answer) => client.answer(&fired, answer),
            Err(why) => client.client.send(&json!({"type": "control_response",
                "response": {"subtype": "error", "request_id": fired["request_id"], "error": why}})),
        }
        client.result();
        assert_eq!(lab.exists("new.txt"), runs, "{answer:?}");
        if answer.as_ref().is_ok_and(|answer| answer.to_string().contains("because")) && !runs {
            assert!(told(&model).contains("because of the hook"), "{}", told(&model));
        }
    }
}

// Fault E1: a call with the id of an approved one ran without approval.
#[test]
fn claude_an_approval_by_a_hook_covers_no_call_of_a_subagent_or_run_with_the_same_id() {
    let touch = |file: &str| {
        let arguments = json!({"command": format!("touch {file}; rm -r dummy")});
        json!({"calls": [{"id": "same", "name": "run_command", "arguments": arguments}]})
    };
    let dispatch = || turn("dispatch_subagent", &json!({"agent_type": "test", "task": "look"}));
    for turns in [
        json!([touch("first"), dispatch(), touch("second"), {"text": "looked"}, {"text": "done"}]),
        json!([dispatch(), touch("first"), {"text": "looked"}, touch("second"), {"text": "done"}]),
        json!([dispatch(), touch("first"), {"text": "looked"}, dispatch(), touch("second"), {"text": "looked"}, {"text": "done"}]),
    ] {
        let (lab, model) = (Lab::new().file("dummy/a", "a"), Server::turns(turns.clone()));
        let mut client = ClaudeClient::start(&lab, &model, &[]);
        client.control(&hooks("PreToolUse", &json!({"matcher": "Bash"})));
        client.say(&json!("x"));
        for answer in [json!({"hookSpecificOutput": {"permissionDecision": "allow"}}), json!({})] {
            let fired = client.request("hook_callback");
            client.answer(&fired, &answer);
        }
        client.result();
        assert!(lab.exists("first") && !lab.exists("second"), "{turns}");
    }
}

// Fault E1: an approval is one of the arguments that were shown.
#[test]
fn claude_an_approval_by_a_hook_does_not_cover_arguments_that_a_later_hook_sets() {
    for (change, runs) in
        [(json!({}), true), (json!({"updatedInput": {"command": "touch new; rm -r dummy"}}), false)]
    {
        let turns =
            json!([turn("run_command", &json!({"command": "touch new; rm -r ./dummy"})), {"text": "done"}]);
        let (lab, model) = (Lab::new().file("dummy/a", "a"), Server::turns(turns.clone()));
        let mut client = ClaudeClient::start(&lab, &model, &[]);
        client.control(&hooks("PreToolUse", &json!({"hookCallbackIds": ["h0", "h1"]})));
        client.say(&json!("x"));
        for answer in [json!({"permissionDecision": "allow"}), change] {
            let fired = client.request("hook_callback");
            client.answer(&fired, &json!({"hookSpecificOutput": answer}));
        }
        client.result();
        assert_eq!(lab.exists("new"), runs);
    }
}

#[test]
fn claude_a_hook_that_asks_or_changes_arguments_reaches_the_client_and_a_silent_one_blocks() {
    let (lab, model) = (
        Lab::new().file("b.txt", "content of b"),
        Server::calls([call("read_file", &json!({"path": "a.txt"}))]),
    );
    let mut client = ClaudeClient::asked(&lab, &model, &[]);
    client.control(&hooks("PreToolUse", &json!({})));
    client.say(&json!("read"));
    let fired = client.request("hook_callback");
    client.answer(
        &fired,
        &json!({"hookSpecificOutput": {"permissionDecision": "ask", "updatedInput": {"file_path": "b.txt"}}}),
    );
    let asked = client.request("can_use_tool");
    assert_eq!(asked["request"]["input"], json!({"file_path": "b.txt"}));
    client.answer(&asked, &json!({"behavior": "allow"}));
    client.result();
    assert!(told(&model).contains("content of b"), "{}", told(&model));

    let (lab, model) = (
        Lab::new().file("a.txt", "content of a"),
        Server::calls([call("read_file", &json!({"path": "a.txt"}))]),
    );
    let mut client = ClaudeClient::start(&lab, &model, &[]);
    client.control(&hooks("PreToolUse", &json!({"timeout": 1})));
    client.turn("read");
    assert!(
        told(&model).contains("no answer within 1 s") && !told(&model).contains("content of a"),
        "{}",
        told(&model)
    );
}

#[test]
fn claude_hook_callbacks_after_a_call_at_the_end_and_for_a_message() {
    let (lab, model) = (Lab::new(), Server::calls([call("read_file", &json!({"path": "none"}))]));
    let mut client = ClaudeClient::start(&lab, &model, &[]);
    let matcher = |id: &str| json!([{"hookCallbackIds": [id]}]);
    client.control(&json!({"subtype": "initialize", "hooks": {"PostToolUse": matcher("post"), "PostToolUseFailure": matcher("failure"),
        "Stop": matcher("stop"), "UserPromptSubmit": matcher("prompt")}}));
    client.say(&json!("read"));
    let context = |text: &str| json!({"hookSpecificOutput": {"additionalContext": text}});
    for (id, answer) in [
        ("prompt", context("seen by the hook")),
        ("failure", context("look elsewhere")),
        ("stop", json!({"decision": "block"})),
    ] {
        let fired = client.request("hook_callback");
        assert_eq!(fired["request"]["callback_id"], id, "{fired}");
        client.answer(&fired, &answer);
    }
    assert_eq!(client.result()["subtype"], "success");
    assert!(client.warnings().contains("Stop"), "{}", client.warnings());
    let told = told(&model);
    assert!(told.contains("seen by the hook") && told.contains("look elsewhere"), "{told}");
    client.say(&json!("again"));
    let fired = client.request("hook_callback");
    assert_eq!(fired["request"]["input"]["prompt"], "again");
    client.answer(&fired, &json!({"decision": "block", "reason": "not this one"}));
    let result = client.result();
    assert_eq!(
        (&result["subtype"], &result["errors"]),
        (&json!("error_during_execution"), &json!(["not this one"]))
    );
    assert_eq!(model.requests().len(), 2);
}

/// Answers the messages for the server `calc` as an MCP server does, up to a call, which it returns.
fn serve_calc(client: &mut ClaudeClient) -> Value {
    loop {
        let request = client.request("mcp_message");
        assert_eq!(request["request"]["server_name"], "calc");
        let message = &request["request"]["message"];
        let tool = json!({"name": "add", "description": "Adds", "inputSchema": {"type": "object"}});
        let answer = match message["method"].as_str().unwrap() {
            "initialize" => json!({"protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}}, "serverInfo": {"name": "calc", "version": "1"}}),
            "tools/list" => json!({ "tools": [tool] }),
            "tools/call" => return request,
            _ => json!({}),
        };
        reply(client, &request, &answer);
    }
}

/// Answers a message for a server with this result.
fn reply(client: &mut ClaudeClient, request: &Value, result: &Value) {
    let id = &request["request"]["message"]["id"];
    client.answer(request, &json!({"mcp_response": {"jsonrpc": "2.0", "id": id, "result": result}}));
}

/// Starts a client with the server `calc`, whose tool the model calls.
fn with_calc(lab: &Lab, model: &Server) -> ClaudeClient {
    let mut client = ClaudeClient::start(lab, model, &["--allowedTools=mcp__calc__*"]);
    client.control(&json!({"subtype": "initialize", "sdkMcpServers": ["calc"]}));
    client.say(&json!("add"));
    client
}

#[test]
fn claude_mcp_message_carries_a_server_of_the_client_in_both_directions() {
    let (lab, model) = (Lab::new(), Server::calls([call("mcp__calc__add", &json!({"a": 1}))]));
    let mut client = with_calc(&lab, &model);
    let called = serve_calc(&mut client);
    assert_eq!(called["request"]["message"]["params"]["arguments"], json!({"a": 1}));
    let note = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}});
    let send = |server: &str| json!({"subtype": "mcp_message", "server_name": server, "message": note});
    assert_eq!(client.control(&send("calc"))["subtype"], "success");
    assert_eq!(client.control(&send("other"))["subtype"], "error");
    reply(&mut client, &called, &json!({"content": [{"type": "text", "text": "sum 42"}]}));
    assert_eq!(client.result()["subtype"], "success");
    assert!(told(&model).contains("sum 42"), "{}", told(&model));
    let init = client.seen.iter().find(|it| it["subtype"] == "init").unwrap();
    assert_eq!(init["mcp_servers"], json!([{"name": "calc", "status": "connected"}]));
}

#[test]
fn claude_a_server_of_the_client_that_lies_or_fails_is_an_error_for_the_model() {
    // Fault A10: a bare text is an answer.
    for (lie, is_error) in [(json!("no result"), false), (json!({"isError": true, "content": []}), true)] {
        let (lab, model) = (Lab::new(), Server::calls([call("mcp__calc__add", &json!({}))]));
        let mut client = with_calc(&lab, &model);
        let called = serve_calc(&mut client);
        reply(&mut client, &called, &lie);
        assert_eq!(client.result()["subtype"], "success");
        let results = client.of("user");
        assert_eq!(results[0]["message"]["content"][0]["is_error"], is_error, "{lie} {}", results[0]);
    }
    let (lab, model) = (Lab::new(), Server::done());
    let mut client = with_calc(&lab, &model);
    let first = client.request("mcp_message");
    client.client.send(&json!({"type": "control_response",
        "response": {"subtype": "error", "request_id": first["request_id"], "error": "not there"}}));
    assert_eq!(client.result()["subtype"], "success");
    assert!(client.warnings().contains("not there"), "{}", client.warnings());
}

#[test]
fn l33_claude_a_client_that_dies_ends_run_and_children_within_a_second() {
    let (lab, seconds) = (Lab::new(), unique_seconds());
    let sleeps = turn("run_command", &json!({"command": format!("sleep {seconds} & sleep {seconds}")}));
    let model = Server::turns(json!([sleeps, {"text": "unused"}]));
    let mut command = lab.command(&[
        "-p",
        "sleep",
        "--model=mock",
        "--output-format=stream-json",
        "--dangerously-skip-permissions",
    ]);
    command.env("ANTHROPIC_BASE_URL", model.url()).env("ANTHROPIC_API_KEY", "sk-ant-test-0123456789abcdef");
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_sleepers(&seconds, 2);
    let left = Instant::now();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    wait_for_sleepers(&seconds, 0);
    assert!(left.elapsed() < Duration::from_secs(1), "{:?}", left.elapsed());
    let sessions = lab.agent(&["sessions", "list", "--json"]).exits(0).json();
    assert!(sessions.to_string().contains("user_interrupt"), "{sessions}");
}

/// The types of the messages allow them.
#[test]
fn claude_further_fields_of_a_message_have_no_effect() {
    let (lab, model) = (Lab::new(), Server::turns(json!([write("a.txt"), {"text": "done"}])));
    let mut client = ClaudeClient::start(&lab, &model, &[]);
    for request in [
        json!({"subtype": "set_model", "model": "other", "mode": "bypassPermissions"}),
        json!({"subtype": "interrupt", "other": 1}),
    ] {
        assert_eq!(client.control(&request)["subtype"], "success", "{request}");
    }
    let message = json!({"role": "user", "content": "task", "other": 1});
    client.client.send(&json!({"type": "user", "message": message, "permissionMode": "bypassPermissions"}));
    assert_eq!(client.result()["subtype"], "success");
    assert!(!lab.exists("a.txt"));
}

#[test]
fn claude_a_slow_client_gets_everything() {
    let text = "0123456789abcdef".repeat(20_000);
    for more in
        [&["--output-format=stream-json", "--include-partial-messages"][..], &["--output-format=json"]]
    {
        let (lab, model) = (Lab::new(), Server::turns(json!([{"text": text, "chunk": 400}])));
        let mut command = lab.command(&[&["-p", "x", "--model=mock"], more].concat());
        command
            .env("ANTHROPIC_BASE_URL", model.url())
            .env("ANTHROPIC_API_KEY", "sk-ant-test-0123456789abcdef");
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        model.wait_for_request(1);
        let output = child.stdout.take().unwrap();
        // Longer than the program waits for a client that has gone.
        let pause = Timespec { tv_sec: 3, tv_nsec: 0 };
        let has_ended = poll(&mut [PollFd::new(&output, PollFlags::empty())], Some(&pause)).unwrap() > 0;
        assert!(!has_ended, "{more:?}: ended before everything was read");
        let last = BufReader::new(output).lines().last().unwrap().unwrap();
        let result: Value = serde_json::from_str(&last).unwrap();
        assert_eq!((&result["type"], &result["result"]), (&json!("result"), &json!(text)), "{more:?}");
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn claude_a_client_that_floods_gets_errors_for_messages_that_cannot_wait() {
    let (lab, model) = (Lab::new(), Server::turns(json!([{"text": "late", "delay_ms": 60_000}])));
    let mut client = ClaudeClient::start(&lab, &model, &[]);
    for _ in 0..70 {
        client.say(&json!("x"));
    }
    for _ in 0..3 {
        let result = client.result();
        assert!(result["errors"][0].as_str().unwrap().contains("too many messages"), "{result}");
    }
    client.control(&json!({"subtype": "interrupt"}));
    assert_eq!(client.result()["subtype"], "error_during_execution");
    drop(client.client.child.kill());
}

#[test]
fn claude_ends_in_order_for_a_client_that_sends_half_a_line() {
    for part in ["", "{\"type\":\"user\"", "GET / HTTP/1.1\r\n\r\n"] {
        let (lab, model) = (Lab::new(), Server::turns(json!([{"text": "unused"}])));
        let mut client = ClaudeClient::start(&lab, &model, &[]);
        client.client.send_part(part);
        assert_eq!(client.leave(), Some(0), "{part:?}");
        assert!(model.requests().is_empty());
    }
}
