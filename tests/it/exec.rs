//! `agent exec`: the command line that `@openai/codex-sdk` sends, and the events that it reads.

use crate::support::calls::{call, edit, turn};
use crate::support::run::{Finished, KEY, Lab, Running};
use crate::support::server::Server;
use crate::support::sleepers::{unique_seconds, wait_for_sleepers};
use crate::support::wire_server::{WireServer, head};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::{Duration, Instant};

fn exec_lab() -> Lab {
    Lab::new().env("CODEX_API_KEY", KEY).stdin("the task")
}

/// The arguments in the order of the SDK, whose base address is `url`.
fn arguments(url: &str, more: &[&str]) -> Vec<String> {
    let base = format!("openai_base_url={}", json!(url));
    let first = ["exec", "--experimental-json", "--config", &base, "--model", "mock"];
    first.iter().chain(more).map(|word| (*word).to_owned()).collect()
}

fn start(lab: &Lab, url: &str, more: &[&str]) -> Running {
    let arguments = arguments(url, more);
    lab.start(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Runs the task, with write access to the workspace unless `more` says otherwise.
fn exec(lab: &Lab, server: &Server, more: &[&str]) -> Finished {
    start(lab, &server.url(), more).finish()
}

const WRITE: [&str; 2] = ["--sandbox", "workspace-write"];

fn events(done: &Finished) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    done.stdout.lines().map(parse).collect()
}

/// The items that have ended, of this type.
fn items(done: &Finished, kind: &str) -> Vec<Value> {
    let all = events(done).into_iter().filter(|event| event["type"] == "item.completed");
    all.map(|event| event["item"].clone()).filter(|item| item["type"] == kind).collect()
}

/// Checks whether an item of the type `error` contains this text.
fn warned(done: &Finished, text: &str) -> bool {
    items(done, "error").iter().any(|item| item["message"].to_string().contains(text))
}

fn types(done: &Finished) -> Vec<String> {
    events(done).iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

/// The last request, in which the model reads the results of its calls.
fn told(model: &Server) -> String {
    model.requests().last().unwrap().body.to_string()
}

/// The reason of the failed turn; there is no success.
#[track_caller]
fn failure(done: &Finished) -> String {
    let events = events(done);
    assert!(events.iter().all(|event| event["type"] != "turn.completed"), "{}", done.stdout);
    let last = events.last().unwrap();
    assert_eq!(last["type"], "turn.failed", "{}", done.stdout);
    last["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn exec_thread_started_turn_started_agent_message_and_turn_completed_frame_a_run() {
    let (lab, model) = (
        exec_lab(),
        Server::turns(
            json!([{"text": "the answer", "usage": {"input": 100, "cached_read": 20, "output": 7, "reasoning": 3}}]),
        ),
    );
    let done = exec(&lab, &model, &[]).exits(0);
    assert_eq!(types(&done), ["thread.started", "turn.started", "item.completed", "turn.completed"]);
    let events = events(&done);
    let session = lab.journal().parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(events[0]["thread_id"], session.as_str());
    assert_eq!(events[2]["item"], json!({"id": "item_0", "type": "agent_message", "text": "the answer"}));
    let usage = &events[3]["usage"];
    let expected = json!({"input_tokens": 120, "cached_input_tokens": 20, "cache_write_input_tokens": 0,
        "output_tokens": 7, "reasoning_output_tokens": 3});
    assert_eq!(usage, &expected);
    let request = &model.requests()[0];
    assert!(request.target.ends_with("/v1/responses"), "{}", request.target);
    assert_eq!(request.headers["authorization"], format!("Bearer {KEY}"));
    assert!(request.body.to_string().contains("the task"), "the prompt comes from standard input");
}

#[test]
fn exec_resume_continues_the_session_and_an_unknown_one_fails() {
    let (lab, model) = (exec_lab(), Server::turns(json!([{"text": "first"}, {"text": "second"}])));
    let first = exec(&lab, &model, &[]).exits(0);
    let id = events(&first)[0]["thread_id"].as_str().unwrap().to_owned();
    let again = exec(&lab, &model, &["resume", &id]).exits(0);
    assert_eq!(events(&again)[0], json!({"type": "thread.started", "thread_id": id}));
    assert_eq!(items(&again, "agent_message")[0]["text"], "second");
    assert!(model.requests()[1].body.to_string().contains("first"));
    for unknown in ["20200101-000000-abcdef", "../../etc"] {
        let failed = exec(&lab, &model, &["resume", unknown]).exits(3);
        assert_eq!(types(&failed), ["error", "turn.failed"]);
        assert!(failure(&failed).contains("session"), "{}", failure(&failed));
    }
}

#[test]
fn exec_command_execution_has_its_output_and_exit_code() {
    let (lab, model) = (
        exec_lab(),
        Server::calls([
            call("run_command", &json!({"command": "echo good"})),
            call("run_command", &json!({"command": "echo bad; exit 7"})),
        ]),
    );
    let done = exec(&lab, &model, &WRITE).exits(0);
    let started: Vec<Value> =
        events(&done).into_iter().filter(|event| event["type"] == "item.started").collect();
    let item = json!({"id": "item_0", "type": "command_execution", "command": "echo good",
        "aggregated_output": "", "status": "in_progress"});
    assert_eq!(started[0]["item"], item);
    let [good, bad] = items(&done, "command_execution").try_into().unwrap();
    assert_eq!(
        (&good["id"], &good["status"], &good["exit_code"]),
        (&json!("item_0"), &json!("completed"), &json!(0))
    );
    assert!(good["aggregated_output"].as_str().unwrap().contains("good"), "{good}");
    assert_eq!((&bad["status"], &bad["exit_code"]), (&json!("failed"), &json!(7)), "{bad}");
}

#[test]
fn exec_file_change_lists_the_files_also_of_a_failed_change() {
    let lab = exec_lab().file("old.txt", "a\n");
    let model = Server::calls([
        call("write_file", &json!({"path": "new.txt", "content": "x"})),
        edit("old.txt", "a", "b"),
        edit("old.txt", "zzz", "b"),
    ]);
    let done = exec(&lab, &model, &WRITE).exits(0);
    let changes: Vec<Value> = items(&done, "file_change")
        .into_iter()
        .map(|item| json!([item["changes"], item["status"]]))
        .collect();
    let (added, updated) =
        (json!([{"path": "new.txt", "kind": "add"}]), json!([{"path": "old.txt", "kind": "update"}]));
    assert_eq!(json!(changes), json!([[added, "completed"], [updated, "completed"], [updated, "failed"]]));
    assert!(lab.exists("new.txt"));
}

#[test]
fn exec_mcp_tool_call_names_server_and_tool_and_own_tools_are_those_of_agent() {
    let lab = exec_lab().file("a.txt", "content of a");
    let read = json!({"path": "a.txt"});
    let model = Server::calls([
        call("read_file", &read),
        call("read_file", &json!({"path": "missing"})),
        call("mcp__files__look", &json!({"x": 1})),
    ]);
    let done = exec(&lab, &model, &WRITE).exits(0);
    let [first, missing, foreign] = items(&done, "mcp_tool_call").try_into().unwrap();
    assert_eq!(
        (&first["server"], &first["tool"], &first["arguments"]),
        (&json!("agent"), &json!("read_file"), &read)
    );
    assert_eq!(first["status"], "completed");
    assert!(first["result"]["content"][0]["text"].as_str().unwrap().contains("content of a"), "{first}");
    assert_eq!(missing["status"], "failed");
    assert!(missing["error"]["message"].as_str().unwrap().contains("missing"), "{missing}");
    assert_eq!(
        (&foreign["server"], &foreign["tool"], &foreign["status"]),
        (&json!("files"), &json!("look"), &json!("failed"))
    );
}

#[test]
fn exec_tools_of_mcp_servers_run_and_read_only_leaves_out_those_that_may_write() {
    for (access, sandbox, is_offered) in
        [("read", "workspace-write", true), ("read", "read-only", true), ("write", "read-only", false)]
    {
        let lab = exec_lab().file("server.sh", include_str!("support/mcp_server.sh"));
        let script = lab.ws().join("server.sh");
        let script = script.display();
        let lab = lab.config(&format!(
            "mcp: {{servers: {{test: {{command: /bin/sh, args: ['{script}'], workspace: {access}}}}}}}\n"
        ));
        let model = Server::calls([call("mcp__test__echo", &json!({"text": "hello"}))]);
        let done = exec(&lab, &model, &["--sandbox", sandbox]).exits(0);
        let item = items(&done, "mcp_tool_call").pop().unwrap();
        assert_eq!((&item["server"], &item["tool"]), (&json!("test"), &json!("echo")), "{item}");
        assert_eq!(item["status"] == "completed", is_offered, "{access} {sandbox}: {item}");
        assert_eq!(item["result"].to_string().contains("hello"), is_offered, "{item}");
    }
}

#[test]
fn exec_calls_of_subagents_are_items_and_their_texts_are_not() {
    let lab = exec_lab().file("a.txt", "content");
    let model = Server::turns(json!([turn("dispatch_subagent", &json!({"task": "look"})),
        turn("read_file", &json!({"path": "a.txt"})), {"text": "what the subagent says"}, {"text": "done"}]));
    let done = exec(&lab, &model, &[]).exits(0);
    let calls: Vec<Value> =
        items(&done, "mcp_tool_call").iter().map(|item| json!([item["tool"], item["status"]])).collect();
    assert_eq!(json!(calls), json!([["read_file", "completed"], ["dispatch_subagent", "completed"]]));
    let texts: Vec<Value> = items(&done, "agent_message").iter().map(|item| item["text"].clone()).collect();
    assert_eq!(texts, ["done"]);
}

#[test]
fn exec_reasoning_is_an_item_before_the_message() {
    let (lab, model) = (exec_lab(), Server::turns(json!([{"thinking": "I think", "text": "done"}])));
    let done = exec(&lab, &model, &[]).exits(0);
    assert_eq!(items(&done, "reasoning")[0], json!({"id": "item_0", "type": "reasoning", "text": "I think"}));
    assert_eq!(items(&done, "agent_message")[0]["id"], "item_1");
}

#[test]
fn exec_web_search_has_its_query_and_is_off_when_the_client_says_so() {
    let search = turn("web_search", &json!({"query": "rust"}));
    let lab = exec_lab().config(
        "web: {search: {provider: searxng, url: 'http://127.0.0.1:9'}, allowed_private: ['127.0.0.1:9']}\n",
    );
    let run = |value: &str| {
        let model = Server::turns(json!([search, {"text": "done"}]));
        let config = format!("web_search=\"{value}\"");
        let done = exec(&lab, &model, &[WRITE.as_slice(), &["--config", &config]].concat()).exits(0);
        let offered = model.requests()[0].body["tools"].to_string().contains("web_search");
        (offered, items(&done, "web_search"), items(&done, "error"))
    };
    let (offered, found, errors) = run("live");
    assert!(offered && errors.is_empty(), "{errors:?}");
    assert_eq!(found[0]["query"], "rust");
    let (offered, _, errors) = run("disabled");
    assert!(!offered && errors.is_empty(), "{errors:?}");
    let (offered, _, errors) = run("cached");
    assert!(!offered && errors[0]["message"].as_str().unwrap().contains("cached"), "{errors:?}");
}

#[test]
fn exec_error_items_tell_of_unknown_keys_ignored_flags_and_retries_and_the_run_goes_on() {
    let (lab, model) = (exec_lab(), Server::turns(json!([{"error": {"status": 500}}, {"text": "done"}])));
    let more = [
        "--config",
        "tools.view_image=true",
        "--config",
        "model_reasoning_effort=\"ultra\"",
        "--thread-source",
        "x",
        "--cyber-access-program",
        "standard",
        "--config",
        "web_search=\"live\"",
        "--add-dir",
        "/tmp",
        "--skip-git-repo-check",
    ];
    let done = exec(&lab, &model, &more).exits(0);
    let errors: Vec<String> =
        items(&done, "error").iter().map(|item| item["message"].as_str().unwrap().to_owned()).collect();
    for expected in [
        "`tools.view_image`",
        "model_reasoning_effort=\"ultra\"",
        "--thread-source",
        "--cyber-access-program",
        "web.search.provider",
        "--add-dir",
        "500",
    ] {
        assert!(errors.iter().any(|text| text.contains(expected)), "{expected}: {errors:#?}");
    }
    assert_eq!(errors.len(), 7, "{errors:#?}");
}

#[test]
fn exec_an_unknown_flag_or_an_invalid_permission_exits_3() {
    let (lab, model) = (exec_lab(), Server::done());
    for more in [["--no-such-flag", "x"], ["--sandbox", "none"]] {
        let done = exec(&lab, &model, &more).exits(3);
        assert_eq!(done.stdout, "");
    }
    for value in [
        "approval_policy=\"sometimes\"",
        "sandbox_mode=\"none\"",
        "web_search=1",
        "sandbox_workspace_write.network_access=2",
    ] {
        let done = exec(&lab, &model, &["--config", value]).exits(3);
        assert!(failure(&done).contains(value.split('=').next().unwrap()), "{value}: {}", failure(&done));
    }
    assert_eq!(exec(&lab, &model, &["resume"]).exits(3).stdout.lines().count(), 2);
    assert!(model.requests().is_empty());
}

#[test]
fn exec_sandboxes_permit_what_they_name() {
    let write = turn("write_file", &json!({"path": "tool.txt", "content": "x"}));
    let command = turn("run_command", &json!({"command": "echo x > command.txt"}));
    for (more, tool_writes, command_writes) in [
        (vec![], false, false),
        (vec!["--sandbox", "read-only"], false, false),
        (vec!["--config", "sandbox_mode=\"read-only\""], false, false),
        (vec!["--sandbox", "workspace-write"], true, true),
        (vec!["--sandbox", "workspace-write", "--config", "approval_policy=\"never\""], true, true),
        (vec!["--sandbox", "workspace-write", "--config", "approval_policy=\"untrusted\""], false, false),
        (vec!["--sandbox", "danger-full-access"], true, true),
    ] {
        let (lab, model) = (exec_lab(), Server::turns(json!([write, command, {"text": "done"}])));
        let done = exec(&lab, &model, &more).exits(0);
        let written = (lab.exists("tool.txt"), lab.exists("command.txt"));
        assert_eq!(written, (tool_writes, command_writes), "{more:?}: {}", done.stdout);
    }
}

#[test]
fn exec_read_only_offers_no_tool_that_writes_and_says_so_to_commands() {
    let lab = exec_lab().config("sandbox: {network: true, writable: [/tmp]}\n").file("a.txt", "x");
    let model = Server::calls([call("run_command", &json!({"command": "cat a.txt; touch b.txt"}))]);
    exec(&lab, &model, &["--sandbox", "read-only"]).exits(0);
    let tools = model.requests()[0].body["tools"].to_string();
    assert!(
        tools.contains("run_command") && !tools.contains("write_file") && !tools.contains("edit_file"),
        "{tools}"
    );
    let told = told(&model);
    assert!(told.contains("The workspace is read-only in this run"), "{told}");
    assert!(!lab.exists("b.txt"));
}

#[test]
fn exec_full_access_needs_a_flag_of_our_own() {
    let beside = |lab: &Lab| lab.outside().join("beside.txt");
    for (flag, is_free) in [(None, false), (Some("--allow-danger-full-access"), true)] {
        let lab = exec_lab();
        let path = beside(&lab);
        let command = format!("echo x > {}", path.display());
        let model = Server::calls([call("run_command", &json!({"command": command}))]);
        let mut more = vec!["--sandbox", "danger-full-access"];
        more.extend(flag);
        let done = exec(&lab, &model, &more).exits(0);
        assert_eq!(path.exists(), is_free, "{}", done.stdout);
        assert_eq!(warned(&done, "not permitted"), !is_free, "{}", done.stdout);
    }
}

/// The client decides only where the configuration does not.
#[test]
fn exec_network_access_is_that_of_the_client() {
    for (config, value, is_on, is_refused) in [
        ("", "true", true, false),
        ("", "false", false, false),
        ("sandbox: {network: true}", "false", false, false),
        ("sandbox: {network: true}", "true", true, false),
        ("sandbox: {network: false}", "true", false, true),
        ("sandbox: {allowed_hosts: [example.org]}", "true", false, true),
    ] {
        let lab = exec_lab().config(config);
        let command =
            json!({"command": "test \"$(readlink /proc/self/ns/net)\" = \"$HOST_NET\" && touch shared"});
        let net = std::fs::read_link("/proc/self/ns/net").unwrap();
        let command = command["command"].as_str().unwrap().replace("$HOST_NET", &net.to_string_lossy());
        let model = Server::calls([call("run_command", &json!({ "command": command }))]);
        let value = format!("sandbox_workspace_write.network_access={value}");
        let done = exec(&lab, &model, &[WRITE.as_slice(), &["--config", &value]].concat()).exits(0);
        assert_eq!(lab.exists("shared"), is_on, "{config} {value}: {}", done.stdout);
        assert_eq!(
            warned(&done, "network_access=true has no effect"),
            is_refused,
            "{config} {value}: {}",
            done.stdout
        );
    }
}

#[test]
fn exec_permits_no_more_than_a_configured_mode() {
    let write = turn("write_file", &json!({"path": "tool.txt", "content": "x"}));
    let command = turn("run_command", &json!({"command": "echo x > command.txt"}));
    for (config, sandbox, tool_writes, command_writes) in [
        ("mode: confirm-all", "workspace-write", false, false),
        ("mode: confirm-all", "danger-full-access", false, false),
        ("mode: confirm-sensitive", "workspace-write", false, false),
        ("agents: {build: {mode: confirm-all}}", "workspace-write", false, false),
        ("mode: yolo", "workspace-write", true, true),
    ] {
        let (lab, model) =
            (exec_lab().config(config), Server::turns(json!([write, command, {"text": "done"}])));
        let done = exec(&lab, &model, &["--sandbox", sandbox]).exits(0);
        let written = (lab.exists("tool.txt"), lab.exists("command.txt"));
        assert_eq!(written, (tool_writes, command_writes), "{config} {sandbox}: {}", done.stdout);
        assert_ne!(
            warned(&done, "the configuration sets the mode"),
            tool_writes,
            "{config}: {}",
            done.stdout
        );
    }
}

#[test]
fn exec_add_dir_does_not_widen_a_configured_list() {
    for (config, is_written) in [("", true), ("sandbox: {writable: []}", false)] {
        let lab = exec_lab();
        let extra = lab.home().join("extra");
        std::fs::create_dir(&extra).unwrap();
        let lab = lab.config(config);
        let file = extra.join("f");
        let command = format!("touch {}", file.display());
        let model = Server::calls([call("run_command", &json!({"command": command}))]);
        let add = ["--add-dir", extra.to_str().unwrap()];
        let done = exec(&lab, &model, &[WRITE.as_slice(), &add].concat()).exits(0);
        assert_eq!(file.exists(), is_written, "{config}: {}", done.stdout);
        assert_ne!(warned(&done, "sandbox.writable"), is_written, "{config}: {}", done.stdout);
    }
}

#[test]
fn exec_output_schema_makes_the_last_message_the_value() {
    let schema = r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false}"#;
    let lab = exec_lab().file("schema.json", schema);
    for (answer, fits) in [(r#"{"n": 1}"#, true), ("```json\n{\"n\": 1}\n```", true), ("no JSON", false)] {
        let model =
            Server::turns(json!([{"text": answer}, {"text": answer}, {"text": answer}, {"text": answer}]));
        let done = exec(&lab, &model, &["--output-schema", "schema.json"]);
        if fits {
            let last = items(&done.exits(0), "agent_message").pop().unwrap();
            assert_eq!(
                serde_json::from_str::<Value>(last["text"].as_str().unwrap()).unwrap(),
                json!({"n": 1})
            );
        } else {
            assert_ne!(done.code, Some(0));
            failure(&done);
        }
    }
    let missing =
        exec(&lab, &Server::turns(json!([{"text": "x"}])), &["--output-schema", "none.json"]).exits(3);
    assert!(failure(&missing).contains("none.json"));
}

#[test]
fn exec_images_follow_resume_as_the_sdk_sends_them() {
    let gif = b"GIF89a\x02\x01\x03\0\0\0\0;";
    let (lab, model) =
        (exec_lab().file("shot.gif", gif), Server::turns(json!([{"text": "first"}, {"text": "second"}])));
    let first = exec(&lab, &model, &["--image", "shot.gif"]).exits(0);
    let id = events(&first)[0]["thread_id"].as_str().unwrap().to_owned();
    exec(&lab, &model, &["resume", &id, "--image", "shot.gif"]).exits(0);
    let images = |number: usize| model.requests()[number].body.to_string().matches("data:image/gif").count();
    assert_eq!((images(0), images(1)), (1, 2));
}

#[test]
fn exec_turn_failed_tells_the_reason_of_every_run_that_is_no_success() {
    let looks: Vec<Value> =
        (0..60).map(|n| turn("list_files", &json!({"path": ".", "depth": n % 3 + 1}))).collect();
    for (config, turns, code, reason) in [
        ("max_steps: 2\n", json!(looks), 2, "max_steps"),
        ("", json!([{"error": {"status": 400}}]), 1, "400"),
        ("", json!([{"error": {"status": 401}}]), 4, "401"),
        ("", json!([{"text": "cut", "finish": "content_filter"}]), 2, "filtered"),
        (
            "guardrails: {max_gate_rounds: 0, quality_gates: [{name: no, command: 'false'}]}\n",
            json!([{"text": "done"}, {"text": "done"}, {"text": "done"}]),
            2,
            "not all checks passed",
        ),
        (
            "policy: {approvals: pause}\n",
            json!([turn("write_file", &json!({"path": "a", "content": "x"})), {"text": "done"}]),
            2,
            "awaiting_approval",
        ),
        ("timeout_seconds: 1\n", json!([{"text": "late", "delay_ms": 5000}]), 5, "time"),
    ] {
        let (lab, model) = (exec_lab().config(config), Server::turns(turns));
        let done = exec(&lab, &model, &[]);
        assert_eq!(done.code, Some(code), "{reason}: {}{}", done.stdout, done.stderr);
        assert!(failure(&done).contains(reason), "{reason}: {}", failure(&done));
        assert_eq!(types(&done).contains(&"error".to_owned()), matches!(code, 1 | 4), "{}", done.stdout);
    }
}

#[test]
fn exec_faults_of_a_stream_end_in_turn_failed() {
    let answers = [
        head("500 Oops", "content-length: 0\r\n"),
        head("200 OK", "content-type: application/json\r\ncontent-length: 999\r\n") + "{\"id\": \"r\", \"out",
        head("200 OK", "content-type: application/json\r\ncontent-length: 6\r\n") + "{\"id\":",
        head("200 OK", "content-type: text/event-stream\r\n") + "data: {\"type\": \"response.created\"}\n\n",
        String::new(),
    ];
    for answer in answers {
        let lab = exec_lab().config("llm: {retries: 1, context_window: 100000}\n");
        let server = WireServer::bytes(answer.clone());
        let done = start(&lab, &server.url(), &[]).finish();
        assert_eq!(done.code, Some(1), "{answer:?}: {}", done.stdout);
        assert!(!failure(&done).is_empty());
    }
}

#[test]
fn l33_exec_ends_at_a_signal_as_the_sdk_sends_it_when_it_aborts() {
    for signal in [Signal::TERM, Signal::INT] {
        let (lab, seconds) = (exec_lab(), unique_seconds());
        let sleeps = turn("run_command", &json!({"command": format!("sleep {seconds}")}));
        let model = Server::turns(json!([sleeps, {"text": "done"}]));
        let running = start(&lab, &model.url(), &WRITE);
        wait_for_sleepers(&seconds, 1);
        running.signal(signal);
        let done = running.finish().exits(130);
        wait_for_sleepers(&seconds, 0);
        let last = events(&done).pop().unwrap();
        assert_eq!(last["type"], "error", "{last}");
        assert!(last["message"].as_str().unwrap().contains("user_interrupt"), "{last}");
        assert!(
            !done.stdout.contains("turn.completed") && !done.stdout.contains("turn.failed"),
            "{}",
            done.stdout
        );
        assert_eq!(items(&done, "command_execution")[0]["status"], "failed");
    }
}

#[test]
fn l33_exec_ends_when_nobody_reads_its_events() {
    let (lab, seconds) = (Lab::new().env("CODEX_API_KEY", KEY), unique_seconds());
    let sleeps = turn("run_command", &json!({"command": format!("sleep {seconds}")}));
    let model = Server::turns(json!([sleeps, {"text": "done"}]));
    let arguments = arguments(&model.url(), &["--sandbox", "workspace-write", "task"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut child = lab.command(&arguments).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_sleepers(&seconds, 1);
    let left = Instant::now();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    wait_for_sleepers(&seconds, 0);
    assert!(left.elapsed() < Duration::from_secs(1), "{:?}", left.elapsed());
}

#[test]
fn s20_exec_asks_nobody_and_refuses_what_needs_approval() {
    let (lab, model) =
        (exec_lab(), Server::calls([call("write_file", &json!({"path": "a.txt", "content": "x"}))]));
    let done = exec(&lab, &model, &["--config", "approval_policy=\"on-request\""]).exits(0);
    assert!(told(&model).contains("needs a confirmation"), "{}", told(&model));
    assert_eq!(items(&done, "file_change")[0]["status"], "failed");
}

#[test]
fn exec_without_json_prints_the_answer_and_tells_the_rest_on_standard_error() {
    let (lab, model) = (exec_lab(), Server::turns(json!([{"text": "the answer"}])));
    let base = format!("openai_base_url={}", json!(model.url()));
    let done = lab.agent(&["exec", "-c", &base, "-c", "foo=1", "-m", "mock", "do it"]).exits(0);
    assert_eq!(done.stdout, "the answer\n");
    assert!(done.stderr.contains("`foo`"), "{}", done.stderr);
    assert!(model.requests()[0].body.to_string().contains("do it"));
}

#[test]
fn exec_gives_key_and_server_of_the_client_to_no_other_provider() {
    let (lab, model) = (exec_lab().env("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdef"), Server::done());
    let config = format!("llm: {{providers: {{anthropic: {{base: '{}'}}}}}}\n", model.url());
    let lab = lab.config(&config);
    let done = lab
        .agent(&["exec", "--json", "-c", "openai_base_url=\"http://127.0.0.1:9/v1\"", "-m", "anthropic/m"])
        .exits(0);
    assert!(
        items(&done, "error")[0]["message"].to_string().contains("CODEX_API_KEY are not used"),
        "{}",
        done.stdout
    );
    assert_eq!(model.requests()[0].headers["x-api-key"], "sk-ant-0123456789abcdef");
    let redacted = lab.agent(&["exec", "--json", "-m", "anthropic/m", "-c", &format!("{KEY}=1")]);
    assert!(!redacted.stdout.contains(KEY), "{}", redacted.stdout);
}
