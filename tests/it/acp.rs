//! `agent acp`: an editor drives runs over the Agent Client Protocol.

use crate::support::calls::{call, results, turn};
use crate::support::mcp_client::{McpClient, piped};
use crate::support::run::Lab;
use crate::support::server::Server;
use crate::support::sleepers::{unique_seconds, wait_for_sleepers};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn writes() -> Value {
    turn("write_file", &json!({"path": "new.txt", "content": "x"}))
}

fn sleeps(seconds: &str) -> Value {
    turn("run_command", &json!({"command": format!("sleep {seconds} & sleep {seconds}")}))
}

/// A client that has performed the handshake.
pub struct Editor {
    client: McpClient,
    updates: Vec<Value>,
}

impl Editor {
    pub fn start(lab: &Lab, model: &Server, more: &[&str]) -> Self {
        Self::with(lab, model, more, &json!({}))
    }

    fn with(lab: &Lab, model: &Server, more: &[&str], capabilities: &Value) -> Self {
        let mut client = McpClient::spawn_as(&["acp"], lab, model, more);
        let about =
            client.request("initialize", &json!({"protocolVersion": 1, "clientCapabilities": capabilities}));
        assert_eq!(about["result"]["protocolVersion"], 1, "{about}");
        Self { client, updates: Vec::new() }
    }

    pub fn open(&mut self, lab: &Lab) -> String {
        let opened = self.request("session/new", &json!({"cwd": lab.ws(), "mcpServers": []}));
        opened["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{opened}")).to_owned()
    }

    fn begin(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.client.begin("session/prompt", &json!({"sessionId": session, "prompt": prompt}))
    }

    /// Waits for a message that is no update; updates before it are kept.
    fn next(&mut self) -> Value {
        loop {
            let message = self.client.receive();
            if message["method"] != "session/update" {
                return message;
            }
            self.updates.push(message["params"].clone());
        }
    }

    fn answer(&mut self, id: u64) -> Value {
        let message = self.next();
        assert_eq!(message["id"], id, "{message}");
        message
    }

    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.client.begin(method, params);
        self.answer(id)
    }

    fn prompt(&mut self, session: &str, text: &str) -> Value {
        let id = self.begin(session, text);
        self.answer(id)
    }

    fn reply(&mut self, question: &Value, result: &Value) {
        self.client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}));
    }

    /// The updates of this kind.
    fn of(&self, kind: &str) -> Vec<&Value> {
        let updates = self.updates.iter().map(|update| &update["update"]);
        updates.filter(|update| update["sessionUpdate"] == kind).collect()
    }

    fn text(&self, kind: &str) -> String {
        self.of(kind).iter().filter_map(|update| update["content"]["text"].as_str()).collect()
    }
}

fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

#[test]
fn acp_initialize_announces_version_1_and_what_it_takes() {
    let (lab, model) = (Lab::new(), Server::turns(json!([{"text": "unused"}])));
    let mut client = McpClient::spawn_as(&["acp"], &lab, &model, &[]);
    let early = client.request("session/new", &json!({"cwd": lab.ws(), "mcpServers": []}));
    assert_eq!(early["error"]["code"], -32600, "{early}");
    let about = client.request("initialize", &json!({"protocolVersion": 9}))["result"].clone();
    let capabilities = &about["agentCapabilities"];
    assert_eq!((&about["protocolVersion"], &about["agentInfo"]["name"]), (&json!(1), &json!("agent")));
    assert_eq!(
        (&capabilities["loadSession"], &capabilities["mcpCapabilities"]["http"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn acp_prompt_streams_the_answer_and_continues_the_session_of_its_id() {
    let (lab, model) = (Lab::new(), Server::turns(json!([{"text": "first"}, {"text": "second"}])));
    let mut editor = Editor::start(&lab, &model, &[]);
    let session = editor.open(&lab);
    let done = editor.prompt(&session, "say it");
    assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
    assert_eq!(editor.text("agent_message_chunk"), "first");
    assert!(editor.updates.iter().all(|update| update["sessionId"] == session.as_str()));
    assert_eq!(editor.of("available_commands_update").len(), 1);
    assert_eq!(editor.prompt(&session, "and then")["result"]["stopReason"], "end_turn");
    assert_eq!(editor.text("agent_message_chunk"), "firstsecond");
    let ids: Vec<&Value> =
        editor.of("agent_message_chunk").iter().map(|update| &update["messageId"]).collect();
    assert_ne!(ids.first(), ids.last(), "each answer is a message of its own");
    let sessions = lab.agent(&["sessions", "list", "--json"]).exits(0).json().to_string();
    assert!(sessions.contains(&session), "{sessions}");
    assert!(model.requests()[1].body.to_string().contains("say it"), "one conversation");
}

#[test]
fn acp_tool_calls_have_kind_place_diff_and_status() {
    let lab = Lab::new().file("a.txt", "old\n");
    let model = Server::calls([
        call("read_file", &json!({"path": "a.txt"})),
        call("write_file", &json!({"path": "a.txt", "content": "new\n"})),
        call("read_file", &json!({"path": "absent.txt"})),
    ]);
    let mut editor = Editor::start(&lab, &model, &["--mode", "yolo"]);
    let session = editor.open(&lab);
    assert_eq!(editor.prompt(&session, "x")["result"]["stopReason"], "end_turn");
    let (started, ended) = (editor.of("tool_call"), editor.of("tool_call_update"));
    let kinds: Vec<&Value> = started.iter().map(|call| &call["kind"]).collect();
    assert_eq!(kinds, [&json!("read"), &json!("edit"), &json!("read")]);
    assert_eq!(started[0]["locations"][0]["path"], json!(lab.ws().canonicalize().unwrap().join("a.txt")));
    assert_eq!(started[1]["rawInput"]["path"], "a.txt");
    let states: Vec<&Value> = ended.iter().map(|call| &call["status"]).collect();
    assert_eq!(states, [&json!("completed"), &json!("completed"), &json!("failed")]);
    let diff = &ended[1]["content"][0];
    assert_eq!(
        (&diff["type"], &diff["oldText"], &diff["newText"]),
        (&json!("diff"), &json!("old\n"), &json!("new\n"))
    );
    assert_eq!(ended[1]["toolCallId"], started[1]["toolCallId"]);
}

#[test]
fn acp_thoughts_and_usage_are_updates_of_their_own() {
    let lab = Lab::new().config("llm: {context_window: 20000}\n");
    let model =
        Server::turns(json!([{"thinking": "hm", "text": "done", "usage": {"input": 70, "output": 7}}]));
    let mut editor = Editor::start(&lab, &model, &[]);
    let session = editor.open(&lab);
    editor.prompt(&session, "x");
    assert_eq!(editor.text("agent_message_chunk"), "done");
    assert_eq!(editor.text("agent_thought_chunk"), "hm");
    let usage = editor.of("usage_update");
    assert_eq!(usage.first().map(|usage| &usage["size"]), Some(&json!(20000)), "{:?}", editor.updates);
    assert!(usage[0]["used"].as_u64().unwrap() > 0, "{usage:?}");
}

#[test]
fn u07_acp_shows_the_list_of_steps_as_a_plan() {
    let steps = json!([{"text": "read", "status": "done"}, {"text": "mend", "status": "in_progress"}]);
    let call = json!({"calls": [{"name": "todo", "arguments": {"steps": steps}}]});
    let (lab, model) = (Lab::new(), Server::turns(json!([call, {"text": "done"}])));
    let mut editor = Editor::start(&lab, &model, &[]);
    let session = editor.open(&lab);
    editor.prompt(&session, "x");
    let entry = |text: &str, status: &str| json!({"content": text, "priority": "medium", "status": status});
    let plan = editor.of("plan");
    assert_eq!(plan.len(), 1, "{:?}", editor.updates);
    assert_eq!(plan[0]["entries"], json!([entry("read", "completed"), entry("mend", "in_progress")]));
}

#[test]
fn s20_acp_asks_for_permission_and_the_answer_counts() {
    for (outcome, is_written) in [
        (selected("allow"), true),
        (selected("allow_always"), true),
        (selected("refuse"), false),
        (selected("nonsense"), false),
        (json!({"outcome": {"outcome": "cancelled"}}), false),
        (json!("allow"), false),
    ] {
        let (lab, model) = (Lab::new(), Server::turns(json!([writes(), {"text": "done"}])));
        let mut editor = Editor::start(&lab, &model, &[]);
        let session = editor.open(&lab);
        let id = editor.begin(&session, "x");
        let question = editor.next();
        assert_eq!(question["method"], "session/request_permission", "{question}");
        let asked = &question["params"];
        assert_eq!(asked["sessionId"], session.as_str());
        assert_eq!(asked["toolCall"]["toolCallId"], editor.of("tool_call")[0]["toolCallId"]);
        assert!(asked["toolCall"]["title"].as_str().unwrap().contains("new.txt"), "{asked}");
        let kinds: Vec<&Value> =
            asked["options"].as_array().unwrap().iter().map(|option| &option["kind"]).collect();
        assert_eq!(kinds, [&json!("allow_once"), &json!("allow_always"), &json!("reject_once")]);
        editor.reply(&question, &outcome);
        assert_eq!(editor.answer(id)["result"]["stopReason"], "end_turn");
        assert_eq!(lab.exists("new.txt"), is_written, "{outcome}");
    }
}

#[test]
fn s20_acp_refuses_a_call_whose_question_the_client_answers_with_an_error() {
    let (lab, model) = (Lab::new(), Server::turns(json!([writes(), {"text": "done"}])));
    let mut editor = Editor::start(&lab, &model, &[]);
    let session = editor.open(&lab);
    let id = editor.begin(&session, "x");
    let question = editor.next();
    let error = json!({"code": -32601, "message": "no"});
    editor.client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "error": error}));
    editor.answer(id);
    assert!(!lab.exists("new.txt"));
}

#[test]
fn l33_acp_cancel_interrupts_the_prompt_and_the_session_goes_on() {
    let (lab, seconds) = (Lab::new(), unique_seconds());
    let model = Server::turns(json!([sleeps(&seconds), {"text": "second"}]));
    let mut editor = Editor::start(&lab, &model, &["--mode", "yolo"]);
    let session = editor.open(&lab);
    let id = editor.begin(&session, "x");
    wait_for_sleepers(&seconds, 2);
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
    editor.client.send(&cancel);
    assert_eq!(editor.answer(id)["result"]["stopReason"], "cancelled");
    wait_for_sleepers(&seconds, 0);
    assert_eq!(editor.prompt(&session, "y")["result"]["stopReason"], "end_turn");
}

#[test]
fn l33_acp_cancel_of_the_request_interrupts_its_prompt() {
    let (lab, seconds) = (Lab::new(), unique_seconds());
    let model = Server::turns(json!([sleeps(&seconds)]));
    let mut editor = Editor::start(&lab, &model, &["--mode", "yolo"]);
    let session = editor.open(&lab);
    let id = editor.begin(&session, "x");
    wait_for_sleepers(&seconds, 2);
    for request in [id + 1, id] {
        editor
            .client
            .send(&json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": request}}));
    }
    assert_eq!(editor.answer(id)["result"]["stopReason"], "cancelled");
    wait_for_sleepers(&seconds, 0);
}

#[test]
fn l33_acp_cancel_ends_a_prompt_that_waits_for_permission() {
    let (lab, model) = (Lab::new(), Server::turns(json!([writes(), {"text": "second"}])));
    let mut editor = Editor::start(&lab, &model, &[]);
    let session = editor.open(&lab);
    let id = editor.begin(&session, "x");
    let question = editor.next();
    editor
        .client
        .send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}));
    editor.reply(&question, &json!({"outcome": {"outcome": "cancelled"}}));
    assert_eq!(editor.answer(id)["result"]["stopReason"], "cancelled");
    assert!(!lab.exists("new.txt"));
}

#[test]
fn l33_acp_ends_runs_and_children_when_the_client_leaves() {
    let (lab, seconds) = (Lab::new(), unique_seconds());
    let model = Server::turns(json!([sleeps(&seconds), {"text": "done"}]));
    let mut editor = Editor::start(&lab, &model, &["--mode", "yolo"]);
    let session = editor.open(&lab);
    editor.begin(&session, "x");
    wait_for_sleepers(&seconds, 2);
    let left = Instant::now();
    assert_eq!(editor.client.leave(), Some(0));
    wait_for_sleepers(&seconds, 0);
    assert!(left.elapsed() < Duration::from_secs(1), "{:?}", left.elapsed());
}

#[test]
fn acp_load_shows_an_earlier_session_and_resume_does_not() {
    let lab = Lab::new().file("a.txt", "old\n");
    let model = Server::turns(json!([
        turn("write_file", &json!({"path": "b.txt", "content": "new\n"})), {"text": "first"}, {"text": "second"}, {"text": "third"}]));
    let mut editor = Editor::start(&lab, &model, &["--mode", "yolo"]);
    let session = editor.open(&lab);
    editor.prompt(&session, "say it");
    assert_eq!(editor.client.leave(), Some(0));

    let mut editor = Editor::start(&lab, &model, &["--mode", "yolo"]);
    let place = json!({"sessionId": session, "cwd": lab.ws(), "mcpServers": []});
    let loaded = editor.request("session/load", &place);
    assert_eq!(loaded["result"]["modes"]["currentModeId"], "yolo", "{loaded}");
    assert_eq!(
        (editor.text("user_message_chunk"), editor.text("agent_message_chunk")),
        ("say it".to_owned(), "first".to_owned())
    );
    assert_eq!(editor.of("tool_call_update")[0]["content"][0]["newText"], "new\n");
    assert_eq!(editor.prompt(&session, "again")["result"]["stopReason"], "end_turn");

    let mut editor = Editor::start(&lab, &model, &["--mode", "yolo"]);
    let resumed = editor.request("session/resume", &place);
    assert_eq!(
        (resumed["result"]["modes"]["currentModeId"].as_str(), editor.updates.len()),
        (Some("yolo"), 0)
    );
    assert_eq!(editor.prompt(&session, "and again")["result"]["stopReason"], "end_turn");
    assert!(model.requests()[3].body.to_string().contains("say it"));
}

#[test]
fn acp_load_of_a_session_that_is_not_there_or_elsewhere_is_an_error() {
    let (lab, other, model) = (Lab::new(), Lab::new(), Server::turns(json!([{"text": "first"}])));
    let mut editor = Editor::start(&lab, &model, &[]);
    let session = editor.open(&lab);
    editor.prompt(&session, "x");
    for (id, cwd) in
        [("20200101-000000-abcdef", lab.ws()), ("../../../etc", lab.ws()), (&session, other.ws())]
    {
        let loaded = editor.request("session/load", &json!({"sessionId": id, "cwd": cwd, "mcpServers": []}));
        assert_eq!(loaded["error"]["code"], -32002, "{loaded}");
    }
    let unknown = editor.prompt("20200101-000000-abcdef", "x");
    assert_eq!(unknown["error"]["code"], -32002, "{unknown}");
}

// Fault A6
#[test]
fn acp_loads_a_session_of_a_project_that_was_renamed() {
    let (lab, model) = (Lab::new(), Server::turns(json!([{"text": "first"}, {"text": "second"}])));
    let (old, new) = (lab.ws().join("old"), lab.ws().join("new"));
    std::fs::create_dir(&old).unwrap();
    let mut editor = Editor::start(&lab, &model, &[]);
    let opened = editor.request("session/new", &json!({"cwd": old, "mcpServers": []}));
    let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    editor.prompt(&session, "say it");
    assert_eq!(editor.client.leave(), Some(0));
    std::fs::rename(&old, &new).unwrap();
    let mut editor = Editor::start(&lab, &model, &[]);
    let loaded = editor.request("session/load", &json!({"sessionId": session, "cwd": new, "mcpServers": []}));
    assert!(loaded["error"].is_null() && editor.text("agent_message_chunk") == "first", "{loaded}");
    editor.prompt(&session, "again");
    assert!(model.requests()[1].body.to_string().contains("say it"));
}

#[test]
fn acp_list_names_the_sessions_of_a_directory() {
    let (lab, model) = (Lab::new(), Server::turns(json!([{"text": "first"}])));
    let mut editor = Editor::start(&lab, &model, &[]);
    let session = editor.open(&lab);
    editor.prompt(&session, "say it");
    let listed = editor.request("session/list", &json!({"cwd": lab.ws()}))["result"].clone();
    let found = &listed["sessions"][0];
    assert_eq!((&found["sessionId"], &found["title"]), (&json!(session), &json!("say it")), "{listed}");
    assert_eq!(found["cwd"], json!(lab.ws().canonicalize().unwrap()));
    let wrong = editor.request("session/list", &json!({"cursor": "x"}));
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
}

#[test]
fn acp_close_ends_the_prompt_of_a_session_and_forgets_it() {
    let (lab, seconds) = (Lab::new(), unique_seconds());
    let model = Server::turns(json!([sleeps(&seconds)]));
    let mut editor = Editor::start(&lab, &model, &["--mode", "yolo"]);
    let session = editor.open(&lab);
    let prompt = editor.begin(&session, "x");
    wait_for_sleepers(&seconds, 2);
    let closed = editor.request("session/close", &json!({"sessionId": session}));
    assert_eq!(closed["result"], json!({}), "{closed}");
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "cancelled");
    wait_for_sleepers(&seconds, 0);
    assert_eq!(editor.prompt(&session, "y")["error"]["code"], -32002);
}

#[test]
fn acp_modes_and_options_are_bounded_by_the_flags_of_the_server() {
    let (lab, model) = (Lab::new(), Server::turns(json!([writes(), {"text": "done"}])));
    let mut editor = Editor::start(&lab, &model, &["--mode", "confirm-sensitive"]);
    let opened = editor.request("session/new", &json!({"cwd": lab.ws(), "mcpServers": []}))["result"].clone();
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    let modes: Vec<&Value> =
        opened["modes"]["availableModes"].as_array().unwrap().iter().map(|mode| &mode["id"]).collect();
    assert_eq!(modes, [&json!("confirm-all"), &json!("confirm-sensitive")]);
    let mut set =
        |mode: &str| editor.request("session/set_mode", &json!({"sessionId": session, "modeId": mode}));
    assert_eq!(set("yolo")["error"]["code"], -32602);
    assert_eq!(set("confirm-all")["result"], json!({}));
    assert_eq!(editor.of("config_option_update")[0]["configOptions"][0]["currentValue"], "confirm-all");
    let mut option = |id: &str, value: &str| {
        editor.request(
            "session/set_config_option",
            &json!({"sessionId": session, "configId": id, "value": value}),
        )
    };
    assert_eq!(option("mode", "yolo")["error"]["code"], -32602);
    assert_eq!(option("nonsense", "x")["error"]["code"], -32602);
    assert_eq!(option("agent", "nobody")["error"]["code"], -32602);
    let set = option("mode", "confirm-sensitive");
    assert_eq!(set["result"]["configOptions"][0]["currentValue"], "confirm-sensitive", "{set}");
    assert_eq!(option("effort", "high")["result"]["configOptions"][2]["currentValue"], "high");
    assert_eq!(editor.of("current_mode_update")[0]["currentModeId"], "confirm-sensitive");
    let id = editor.begin(&session, "x");
    let question = editor.next();
    assert_eq!(question["method"], "session/request_permission", "{question}");
    editor.reply(&question, &selected("refuse"));
    editor.answer(id);
}

#[test]
fn acp_limits_cuts_filters_and_failures_are_no_success() {
    let list = || turn("list_files", &json!({}));
    for (turns, flags, reason, told) in [
        (json!([list(), {"text": "closed"}]), &["--max-steps", "1"][..], "max_turn_requests", "max_steps"),
        (json!([{"text": "no", "finish": "content_filter"}]), &[], "refusal", "content_filter"),
        (
            json!([{"text": "ab", "finish": "length"}, {"text": "ab", "finish": "length"}, {"text": "ab", "finish": "length"}, {"text": "ab", "finish": "length"}, {"text": "ab", "finish": "length"}, {"text": "ab", "finish": "length"}]),
            &[],
            "max_tokens",
            "truncated",
        ),
    ] {
        let (lab, model) = (Lab::new(), Server::turns(turns));
        let mut editor = Editor::start(&lab, &model, flags);
        let session = editor.open(&lab);
        let done = editor.prompt(&session, "x");
        assert_eq!(done["result"]["stopReason"], reason, "{done}");
        let text = editor.text("agent_message_chunk");
        assert!(text.contains("not complete") && text.contains(told), "{text}");
    }
    let (lab, model) = (Lab::new(), Server::turns(json!([{"error": {"status": 400}}, {"text": "now"}])));
    let mut editor = Editor::start(&lab, &model, &[]);
    let session = editor.open(&lab);
    let failed = editor.prompt(&session, "x");
    assert_eq!(
        (&failed["error"]["code"], &failed["error"]["data"]["status"]),
        (&json!(-32603), &json!("failed")),
        "{failed}"
    );
    assert_eq!(editor.prompt(&session, "again")["result"]["stopReason"], "end_turn");
}

#[test]
fn acp_works_in_the_directory_of_the_client_or_only_in_its_own() {
    let (lab, other, model) = (
        Lab::new(),
        Lab::new().file("b.txt", "there"),
        Server::calls([call("read_file", &json!({"path": "b.txt"}))]),
    );
    let mut editor = Editor::start(&lab, &model, &[]);
    let session = editor.open(&other);
    editor.prompt(&session, "x");
    assert!(results(&model).concat().contains("there"));
    for request in [
        json!({"cwd": "relative", "mcpServers": []}),
        json!({"cwd": "/nonexistent-directory", "mcpServers": []}),
        json!({"cwd": lab.ws(), "mcpServers": [], "additionalDirectories": ["/"]}),
        json!({"mcpServers": []}),
    ] {
        assert_eq!(editor.request("session/new", &request)["error"]["code"], -32602, "{request}");
    }
    let own = lab.ws();
    let mut editor = Editor::start(&lab, &model, &["-w", own.to_str().unwrap()]);
    editor.open(&lab);
    for (method, params) in [
        ("session/new", json!({"cwd": other.ws(), "mcpServers": []})),
        ("session/list", json!({"cwd": other.ws()})),
    ] {
        assert_eq!(editor.request(method, &params)["error"]["code"], -32602);
    }
}

#[test]
fn acp_sessions_work_side_by_side_with_one_prompt_each() {
    let lab = Lab::new();
    let model = Server::turns(json!([{"text": "slow", "delay_ms": 1500}, {"text": "fast"}]));
    let mut editor = Editor::start(&lab, &model, &[]);
    let (one, two) = (editor.open(&lab), editor.open(&lab));
    let slow = editor.begin(&one, "x");
    model.wait_for_request(1);
    let second = editor.prompt(&one, "y");
    assert_eq!(second["error"]["code"], -32600, "{second}");
    assert_eq!(editor.prompt(&two, "z")["result"]["stopReason"], "end_turn");
    assert_eq!(editor.answer(slow)["result"]["stopReason"], "end_turn");
}

#[test]
fn acp_an_edit_of_a_file_with_unsaved_changes_is_refused() {
    for (reply, is_written) in [
        (json!({"result": {"content": "unsaved\n"}}), false),
        (json!({"result": {"content": "old\r\n"}}), true),
        (json!({"error": {"code": -32002, "message": "not open"}}), true),
        (json!({"result": {}}), false),
        (json!({"result": null}), false),
        (json!({"result": {"content": 7}}), false),
        (json!({"result": "old\n"}), false),
    ] {
        let lab = Lab::new().file("a.txt", "old\n");
        let model = Server::calls([
            call("read_file", &json!({"path": "a.txt"})),
            call("write_file", &json!({"path": "a.txt", "content": "new\n"})),
        ]);
        let capabilities = json!({"fs": {"readTextFile": true}});
        let mut editor = Editor::with(&lab, &model, &["--mode", "yolo"], &capabilities);
        let session = editor.open(&lab);
        let id = editor.begin(&session, "x");
        let question = editor.next();
        assert_eq!(question["method"], "fs/read_text_file", "{question}");
        assert!(question["params"]["path"].as_str().unwrap().ends_with("/ws/a.txt"), "{question}");
        let mut answer = reply.clone();
        (answer["jsonrpc"], answer["id"]) = (json!("2.0"), question["id"].clone());
        editor.client.send(&answer);
        editor.answer(id);
        assert_eq!(lab.read("a.txt") == "new\n", is_written, "{reply}");
        assert_eq!(results(&model).concat().contains("unsaved changes"), !is_written);
    }
}

#[test]
fn acp_the_mcp_servers_of_the_client_are_used_and_names_that_are_taken_are_reported() {
    let lab = Lab::new().file("server.sh", include_str!("support/mcp_server.sh"));
    let script = lab.ws().join("server.sh");
    let lab = lab.config("mcp: {servers: {mine: {command: /bin/false, enabled: false}}}\n");
    let model = Server::calls([call("mcp__the-editor__echo", &json!({"text": "hello"}))]);
    let mut editor = Editor::start(&lab, &model, &["--mode", "yolo"]);
    let stdio = |name: &str| {
        json!({"name": name, "command": "/bin/sh", "args": [script],
            "env": [{"name": "THE_TOKEN", "value": "a-secret-of-the-editor-1"}]})
    };
    let servers = json!([stdio("The Editor"), stdio("mine")]);
    let opened = editor.request("session/new", &json!({"cwd": lab.ws(), "mcpServers": servers}));
    let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    editor.prompt(&session, "the token is a-secret-of-the-editor-1");
    assert!(editor.text("agent_message_chunk").contains("`mine`"), "{:?}", editor.updates);
    assert!(results(&model).concat().contains("hello"), "{:?}", results(&model));
    assert!(!std::fs::read_to_string(lab.journal()).unwrap().contains("a-secret-of-the-editor-1"));
    for servers in [
        json!([{"type": "sse", "name": "s", "url": "https://x", "headers": []}]),
        json!([{"name": "s", "command": "/bin/sh", "args": [], "env": [{"name": "not a name", "value": ""}]}]),
    ] {
        let refused = editor.request("session/new", &json!({"cwd": lab.ws(), "mcpServers": servers}));
        assert!(refused["error"]["code"].is_i64(), "{refused}");
    }
}

#[test]
fn acp_calls_have_ids_of_their_own_although_a_model_repeats_its() {
    let call = || json!({"calls": [{"id": "same", "name": "list_files", "arguments": {}}]});
    let (lab, model) = (Lab::new(), Server::turns(json!([call(), {"text": "a"}, call(), {"text": "b"}])));
    let mut editor = Editor::start(&lab, &model, &[]);
    let session = editor.open(&lab);
    editor.prompt(&session, "x");
    editor.prompt(&session, "y");
    let ids = |kind: &str| -> Vec<Value> {
        editor.of(kind).iter().map(|call| call["toolCallId"].clone()).collect()
    };
    assert_eq!(ids("tool_call"), ids("tool_call_update"));
    assert_ne!(ids("tool_call")[0], ids("tool_call")[1]);
}

#[test]
fn acp_a_loaded_session_keeps_its_agent() {
    let (lab, model) = (Lab::new(), Server::turns(json!([{"text": "a"}, {"text": "b"}])));
    let mut editor = Editor::start(&lab, &model, &[]);
    let session = editor.open(&lab);
    let choice = json!({"sessionId": session, "configId": "agent", "value": "plan"});
    let set = editor.request("session/set_config_option", &choice);
    assert_eq!(set["result"]["configOptions"][1]["currentValue"], "plan", "{set}");
    editor.prompt(&session, "x");
    let mut editor = Editor::start(&lab, &model, &[]);
    let place = json!({"sessionId": session, "cwd": lab.ws(), "mcpServers": []});
    let loaded = editor.request("session/resume", &place);
    assert_eq!(loaded["result"]["configOptions"][1]["currentValue"], "plan", "{loaded}");
}

#[test]
fn acp_a_client_that_does_not_read_ends_the_server() {
    let (lab, model) = (Lab::new(), Server::turns(json!([{"text": "unused"}])));
    let url = model.url();
    let mut command = lab.command(&["acp", "--model", "openai/mock", "--api-base", &url]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let line = json!({"jsonrpc": "2.0", "id": "x".repeat(15 << 20), "method": "nonsense"}).to_string();
    let mut input = child.stdin.take().unwrap();
    // The server repeats the ids, which fill its queue, and closes its input when it ends.
    while writeln!(input, "{line}").is_ok() {}
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn o09_acp_an_answer_that_breaks_off_is_marked_and_a_stream_that_never_ends_well_is_an_error() {
    let broken = || json!({"text": "first part", "chunk": 5, "fault": {"close": 1}});
    let (lab, model) = (Lab::new(), Server::turns(json!([broken(), {"text": "whole"}])));
    let mut editor = Editor::start(&lab, &model, &[]);
    let session = editor.open(&lab);
    assert_eq!(editor.prompt(&session, "x")["result"]["stopReason"], "end_turn");
    let text = editor.text("agent_message_chunk");
    assert!(
        text.starts_with("first") && text.contains("requested again") && text.ends_with("whole"),
        "{text}"
    );

    let model = Server::turns(json!([{"text": "ab", "chunk": 1, "fault": {"close": 1}, "repeat": 20}]));
    let lab = Lab::new().config("llm: {retries: 1}\n");
    let mut editor = Editor::start(&lab, &model, &[]);
    let session = editor.open(&lab);
    let failed = editor.prompt(&session, "x");
    assert_eq!(failed["error"]["code"], -32603, "{failed}");
    assert!(!failed["error"]["message"].as_str().unwrap().is_empty(), "{failed}");
}

#[test]
fn o09_acp_calls_of_a_subagent_are_shown_and_its_text_is_not() {
    let (lab, model) = (
        Lab::new(),
        Server::turns(json!([
        turn("dispatch_subagent", &json!({"task": "look"})),
        {"text": "looking", "calls": [{"name": "list_files", "arguments": {}}]},
        {"text": "seen"},
        {"text": "done"}])),
    );
    let mut editor = Editor::start(&lab, &model, &[]);
    let session = editor.open(&lab);
    editor.prompt(&session, "x");
    assert_eq!(editor.text("agent_message_chunk"), "done");
    let kinds: Vec<&Value> = editor.of("tool_call").iter().map(|call| &call["kind"]).collect();
    assert_eq!(kinds, [&Value::Null, &json!("read")]);
}

#[test]
fn acp_warnings_are_thoughts_and_a_stricter_agent_changes_the_mode_that_is_shown() {
    let lab = Lab::new().config("agents: {careful: {mode: confirm-all, system_prompt: Think.}}\ncontext: {max_context_tokens: 3000}\n");
    let model = Server::done();
    let mut editor = Editor::start(&lab, &model, &[]);
    let session = editor.open(&lab);
    editor.request(
        "session/set_config_option",
        &json!({"sessionId": session, "configId": "agent", "value": "careful"}),
    );
    editor.prompt(&session, "x");
    assert!(editor.text("agent_thought_chunk").contains("3,000"), "{:?}", editor.updates);
    assert_eq!(editor.of("current_mode_update")[0]["currentModeId"], "confirm-all");
}

#[test]
fn s20_acp_invisible_characters_and_fences_of_a_call_are_visible_in_its_question() {
    let command = "echo '\u{202e}\u{200b}'\n```\necho hidden";
    let (lab, model) = (Lab::new(), Server::calls([call("run_command", &json!({"command": command}))]));
    let mut editor = Editor::start(&lab, &model, &["--mode", "confirm-all"]);
    let session = editor.open(&lab);
    let id = editor.begin(&session, "x");
    let question = editor.next();
    let call = &question["params"]["toolCall"];
    let (title, text) =
        (call["title"].as_str().unwrap(), call["content"][0]["content"]["text"].as_str().unwrap());
    for shown in [title, text] {
        assert!(!shown.contains('\u{202e}') && shown.contains("\\u{202e}"), "{shown}");
    }
    assert!(text.contains("\n````\n") && text.contains("echo hidden"), "{text}");
    editor.reply(&question, &selected("refuse"));
    editor.answer(id);
}

#[test]
fn s20_acp_allow_always_lasts_until_the_prompt_ends() {
    let write = |content: &str| turn("write_file", &json!({"path": "new.txt", "content": content}));
    let append =
        |content: &str| turn("write_file", &json!({"path": "new.txt", "content": content, "mode": "append"}));
    let (lab, model) = (
        Lab::new(),
        Server::turns(json!([write("a"), append("b"), {"text": "done"}, append("c"), {"text": "done"}])),
    );
    let mut editor = Editor::start(&lab, &model, &[]);
    let session = editor.open(&lab);
    let id = editor.begin(&session, "x");
    let question = editor.next();
    editor.reply(&question, &selected("allow_always"));
    assert_eq!(editor.answer(id)["result"]["stopReason"], "end_turn", "the second call is not asked about");
    assert_eq!(lab.read("new.txt"), "ab");
    let id = editor.begin(&session, "y");
    let question = editor.next();
    assert_eq!(question["method"], "session/request_permission", "{question}");
    editor.reply(&question, &selected("refuse"));
    editor.answer(id);
    assert_eq!(lab.read("new.txt"), "ab");
}

#[test]
fn l33_acp_half_a_line_at_the_end_of_the_input_ends_a_running_prompt() {
    let (lab, seconds) = (Lab::new(), unique_seconds());
    let model = Server::turns(json!([sleeps(&seconds)]));
    let mut editor = Editor::start(&lab, &model, &["--mode", "yolo"]);
    let session = editor.open(&lab);
    editor.begin(&session, "x");
    wait_for_sleepers(&seconds, 2);
    editor.client.send_part("{\"jsonrpc\": \"2.0\", \"method\": \"session/can");
    assert_eq!(editor.client.leave(), Some(0));
    wait_for_sleepers(&seconds, 0);
    let sessions = lab.agent(&["sessions", "list", "--json"]).exits(0).json();
    assert!(sessions.to_string().contains("user_interrupt"), "{sessions}");
}

#[test]
fn acp_slash_commands_of_the_user_are_announced_and_expanded() {
    let (lab, model) = (Lab::new(), Server::done());
    std::fs::create_dir_all(lab.home().join("commands")).unwrap();
    std::fs::write(lab.home().join("commands/explain.md"), "Explain the file $1.").unwrap();
    let mut editor = Editor::start(&lab, &model, &[]);
    let session = editor.open(&lab);
    editor.prompt(&session, "/explain a.rs");
    assert_eq!(editor.of("available_commands_update")[0]["availableCommands"][0]["name"], "explain");
    assert!(model.requests()[0].body.to_string().contains("Explain the file a.rs."));
}

#[test]
fn acp_messages_that_are_none_get_the_errors_of_the_protocol() {
    let (lab, model) = (Lab::new(), Server::turns(json!([{"text": "unused"}])));
    let mut editor = Editor::start(&lab, &model, &[]);
    for (line, code) in [
        ("{\"half", -32700),
        ("[]", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"nonsense\"}", -32601),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/prompt\",\"params\":{\"sessionId\":7}}", -32602),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/new\",\"params\":[]}", -32602),
    ] {
        editor.client.send_line(line);
        let answer = editor.next();
        assert_eq!(answer["error"]["code"], code, "{line} {answer}");
    }
    // What expects no answer gets none: unknown notifications, answers to nothing.
    editor.client.send_line("{\"jsonrpc\":\"2.0\",\"method\":\"nonsense\"}");
    editor.client.send_line("{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}");
    editor.open(&lab);
}

/// The schema of the protocol allows them.
#[test]
fn acp_further_fields_of_a_message_have_no_effect() {
    let (lab, model) = (Lab::new(), Server::turns(json!([writes(), {"text": "done"}])));
    let mut editor = Editor::start(&lab, &model, &[]);
    let place =
        json!({"cwd": lab.ws(), "mcpServers": [], "mode": "yolo", "modes": {"currentModeId": "yolo"}});
    let opened = editor.client.request("session/new", &place);
    let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(opened["result"]["modes"]["currentModeId"], "confirm-sensitive", "{opened}");
    let prompt = json!([{"type": "text", "text": "x", "other": 1}]);
    let id = editor
        .client
        .begin("session/prompt", &json!({"sessionId": session, "prompt": prompt, "mode": "yolo"}));
    let question = editor.next();
    assert_eq!(question["method"], "session/request_permission", "{question}");
    editor.reply(&question, &selected("refuse"));
    assert_eq!(editor.answer(id)["result"]["stopReason"], "end_turn");
}

#[test]
fn acp_a_line_above_the_limit_is_refused_and_the_next_is_read() {
    let (lab, model) = (Lab::new(), Server::turns(json!([{"text": "unused"}])));
    let mut editor = Editor::start(&lab, &model, &[]);
    editor.client.send_line(&"x".repeat((16 << 20) + 1));
    assert_eq!(editor.next()["error"]["code"], -32600);
    editor.open(&lab);
}

#[test]
fn acp_a_client_opens_a_limited_number_of_sessions() {
    let (lab, model) = (Lab::new(), Server::turns(json!([{"text": "unused"}])));
    let mut editor = Editor::start(&lab, &model, &[]);
    for _ in 0..64 {
        editor.open(&lab);
    }
    let refused = editor.request("session/new", &json!({"cwd": lab.ws(), "mcpServers": []}));
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
}

#[test]
fn acp_ends_in_order_for_a_client_that_speaks_something_else() {
    for input in ["", "GET / HTTP/1.1\r\n\r\n", "{\"half", "[]\n", "{}\n", "\u{0}\u{1b}[31m\n"] {
        let finished = piped(Lab::new(), input, &["acp"]);
        assert_eq!(finished.code, Some(0), "{input:?}: {} {}", finished.stdout, finished.stderr);
        assert!(!finished.stdout.contains('\u{1b}') && !finished.stderr.contains('\u{1b}'), "{input:?}");
    }
}
