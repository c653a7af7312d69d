//! In place of Claude Code: the command line that `@anthropic-ai/claude-agent-sdk` sends, and the messages that it reads.

use crate::support::calls::{call, turn};
use crate::support::claude_client::{ClaudeClient, FLAGS};
use crate::support::run::{Finished, Lab};
use crate::support::server::Server;
use crate::support::wire_server::{WireServer, head};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

fn write(path: &str) -> Value {
    turn("write_file", &json!({"path": path, "content": "x"}))
}

/// The last request, in which the model reads the results of its calls.
fn told(model: &Server) -> String {
    model.requests().last().unwrap().body.to_string()
}

/// Runs a command line to its end.
fn once(lab: Lab, model: &Server, args: &[&str]) -> Finished {
    let lab =
        lab.env("ANTHROPIC_BASE_URL", &model.url()).env("ANTHROPIC_API_KEY", "sk-ant-test-0123456789abcdef");
    lab.agent(args)
}

#[test]
fn claude_system_init_assistant_user_and_result_are_a_turn() {
    let lab = Lab::new().file("a.txt", "content of a");
    let model = Server::turns(
        json!([{"thinking": "hm", "text": "I look", "calls": [{"name": "read_file", "arguments": {"path": "a.txt", "limit": 5}}]},
        {"text": "the answer", "usage": {"input": 100, "cached_read": 20, "output": 7}}]),
    );
    let mut client = ClaudeClient::start(&lab, &model, &[]);
    let result = client.turn("the task");
    let kinds: Vec<&str> = client.seen.iter().map(|message| message["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["system", "assistant", "user", "assistant", "result"]);
    let init = &client.seen[0];
    assert_eq!(
        (&init["subtype"], &init["model"], &init["apiKeySource"]),
        (&json!("init"), &json!("mock"), &json!("ANTHROPIC_API_KEY"))
    );
    assert_eq!((&init["permissionMode"], &init["cwd"]), (&json!("default"), &json!(lab.ws())));
    let tools = init["tools"].as_array().unwrap();
    assert!(
        ["Bash", "Read", "Write", "Edit", "Grep"].iter().all(|name| tools.contains(&json!(name))),
        "{init}"
    );
    let content = &client.seen[1]["message"]["content"];
    let types: Vec<&Value> = content.as_array().unwrap().iter().map(|block| &block["type"]).collect();
    assert_eq!(types, ["thinking", "text", "tool_use"]);
    let path = lab.ws().join("a.txt");
    assert_eq!(
        (&content[2]["name"], &content[2]["input"]),
        (&json!("Read"), &json!({"file_path": path, "limit": 5}))
    );
    let answered = &client.seen[2]["message"]["content"][0];
    assert_eq!(answered["tool_use_id"], content[2]["id"]);
    assert!(answered["content"].as_str().unwrap().contains("content of a"), "{answered}");
    let shown = ["subtype", "is_error", "result", "num_turns", "stop_reason"].map(|key| result[key].clone());
    assert_eq!(json!(shown), json!(["success", false, "the answer", 2, "end_turn"]));
    assert_eq!(
        (&result["usage"]["cache_read_input_tokens"], &result["permission_denials"]),
        (&json!(20), &json!([]))
    );
    let session = lab.journal().parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    assert!(client.seen.iter().all(|message| message["session_id"] == session.as_str()));
    let uuids: std::collections::BTreeSet<&str> =
        client.seen.iter().map(|it| it["uuid"].as_str().unwrap()).collect();
    assert_eq!(uuids.len(), 5);
    let request = &model.requests()[0];
    assert!(request.target.ends_with("/v1/messages"), "{}", request.target);
    assert_eq!(request.headers["x-api-key"], "sk-ant-test-0123456789abcdef");
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn claude_two_messages_are_two_runs_on_one_session_and_their_usage_adds_up() {
    let (lab, model) = (
        Lab::new(),
        Server::turns(json!([{"text": "first", "usage": {"input": 10, "output": 1}},
        {"text": "second", "usage": {"input": 30, "output": 2}}])),
    );
    let mut client = ClaudeClient::start(&lab, &model, &[]);
    // The second one waits for the first.
    client.say(&json!("one"));
    client.say(&json!([{"type": "text", "text": "two"}]));
    let first = client.result();
    let second = client.result();
    assert_eq!((&first["result"], &second["result"]), (&json!("first"), &json!("second")));
    assert_eq!(
        (&second["usage"]["input_tokens"], &second["modelUsage"]["mock"]["inputTokens"]),
        (&json!(30), &json!(40))
    );
    assert_eq!(client.seen.iter().filter(|message| message["subtype"] == "init").count(), 2);
    assert_eq!(first["session_id"], second["session_id"]);
    assert!(told(&model).contains("first"), "one conversation");
    assert_eq!(lab.journals().len(), 1);
}

#[test]
fn claude_input_that_ends_early_lets_the_messages_run() {
    let (lab, model) =
        (Lab::new(), Server::turns(json!([{"text": "first", "delay_ms": 100}, {"text": "second"}])));
    let mut client = ClaudeClient::start(&lab, &model, &[]);
    client.say(&json!("one"));
    client.say(&json!("two"));
    client.client.close_input();
    assert_eq!(
        (client.result()["result"].clone(), client.result()["result"].clone()),
        (json!("first"), json!("second"))
    );
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn claude_stream_events_come_with_partial_messages_only() {
    for (flag, is_streamed) in [(&["--include-partial-messages"][..], true), (&[], false)] {
        let (lab, model) = (
            Lab::new(),
            Server::turns(json!([turn("read_file", &json!({"path": "x"})), {"text": "some words"}])),
        );
        let mut client = ClaudeClient::start(&lab, &model, flag);
        client.turn("task");
        let events = client.of("stream_event");
        let pieces = events.iter().filter(|it| it["event"]["delta"]["type"] == "text_delta");
        let text: String = pieces.map(|it| it["event"]["delta"]["text"].as_str().unwrap()).collect();
        assert_eq!(text, if is_streamed { "some words" } else { "" });
        let ends = events.iter().filter(|it| it["event"]["type"] == "message_stop").count();
        assert_eq!(ends, if is_streamed { 2 } else { 0 });
        assert_eq!(client.of("assistant").len(), 2, "whole messages come in any case");
    }
}

#[test]
fn claude_calls_of_subagents_have_their_parent_and_their_texts_are_not_shown() {
    let lab = Lab::new().file("a.txt", "content");
    let model = Server::turns(json!([turn("dispatch_subagent", &json!({"task": "look"})),
        turn("read_file", &json!({"path": "a.txt"})), {"text": "what the subagent says"}, {"text": "done"}]));
    let mut client = ClaudeClient::start(&lab, &model, &[]);
    client.turn("task");
    let blocks: Vec<Value> = client
        .of("assistant")
        .iter()
        .map(|it| json!([it["message"]["content"][0]["name"], it["parent_tool_use_id"].is_null()]))
        .collect();
    assert_eq!(json!(blocks), json!([["Agent", true], ["Read", false], [null, true]]));
    let parent = &client.of("assistant")[0]["message"]["content"][0]["id"];
    assert_eq!(&client.of("user")[0]["parent_tool_use_id"], parent);
}

#[test]
fn claude_result_has_the_subtype_of_each_end_that_is_no_success() {
    let looks: Vec<Value> =
        (0..60).map(|n| turn("list_files", &json!({"path": ".", "depth": n % 3 + 1}))).collect();
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}"#;
    let no_json = json!([{"text": "no"}, {"text": "no"}, {"text": "no"}, {"text": "no"}]);
    let priced = "costs: {prices_file: prices.yaml}\n";
    let prices = "models: {anthropic/mock: {input: 100, output: 100, output_limit: 1000}}";
    for (config, flags, turns, subtype, code) in [
        ("", &["--max-turns=2"][..], json!(looks), "error_max_turns", 2),
        (priced, &["--max-budget-usd", "0.001"], json!([{"text": "x"}]), "error_max_budget_usd", 2),
        ("", &["--json-schema", schema], no_json, "error_max_structured_output_retries", 1),
        ("", &[], json!([{"error": {"status": 400}}]), "error_during_execution", 1),
        ("", &[], json!([{"error": {"status": 401}}]), "error_during_execution", 4),
        ("", &[], json!([{"text": "cut", "finish": "refusal"}]), "error_during_execution", 2),
        (
            "timeout_seconds: 1\n",
            &[],
            json!([{"text": "late", "delay_ms": 5000}]),
            "error_during_execution",
            5,
        ),
    ] {
        let (lab, model) = (Lab::new().config(config).file("prices.yaml", prices), Server::turns(turns));
        let mut client = ClaudeClient::start(&lab, &model, flags);
        let result = client.turn("task");
        assert_eq!((&result["subtype"], &result["is_error"]), (&json!(subtype), &json!(true)), "{result}");
        assert!(result["errors"][0].as_str().is_some_and(|why| !why.is_empty()), "{result}");
        assert_eq!(client.leave(), Some(code), "{subtype}");
    }
}

#[test]
fn claude_budget_is_that_of_all_messages() {
    let config = "costs: {prices_file: prices.yaml}\n";
    let prices = "models: {anthropic/mock: {input: 1, output: 1, output_limit: 10}}";
    let turn = json!({"text": "x", "usage": {"input": 1_100_000, "output": 10}});
    let (lab, model) =
        (Lab::new().config(config).file("prices.yaml", prices), Server::turns(json!([turn, turn, turn])));
    let mut client = ClaudeClient::start(&lab, &model, &["--max-budget-usd=1"]);
    let first = client.turn("one");
    assert_eq!(first["subtype"], "success", "{first}");
    assert!((first["total_cost_usd"].as_f64().unwrap() - 1.10001).abs() < 1e-9, "{first}");
    let second = client.turn("two");
    assert_eq!(second["subtype"], "error_max_budget_usd", "{second}");
    assert_eq!(second["modelUsage"]["mock"]["costBasis"], "list");
}

#[test]
fn claude_a_schema_makes_the_value_part_of_the_result() {
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}"#;
    let (lab, model) = (Lab::new(), Server::turns(json!([{"text": "{\"n\": 1}"}])));
    let mut client = ClaudeClient::start(&lab, &model, &["--json-schema", schema]);
    assert_eq!(client.turn("a number")["structured_output"], json!({"n": 1}));
    let bad = once(Lab::new(), &model, &["-p", "--output-format=json", "--json-schema={\"type\": 7}", "x"])
        .exits(3);
    assert_eq!(bad.json()["subtype"], "error_during_execution");
}

#[test]
fn claude_images_reach_the_model_and_what_is_none_is_an_error() {
    let (lab, model) = (Lab::new(), Server::turns(json!([{"text": "seen"}])));
    let mut client = ClaudeClient::start(&lab, &model, &[]);
    let image = |data: &str| {
        json!([{"type": "text", "text": "look"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": data}}])
    };
    for wrong in [image("%"), image("AAAA"), json!([{"type": "document"}]), json!(""), json!(7)] {
        client.say(&wrong);
        assert_eq!(client.result()["subtype"], "error_during_execution", "{wrong}");
    }
    client.say(&image("R0lGODlhAgEDAAAAOw=="));
    assert_eq!(client.result()["result"], "seen");
    assert!(told(&model).contains("R0lGODlhAgEDAAAAOw=="), "{}", told(&model));
}

// Fault A6
#[test]
fn claude_resumes_and_copies_a_session_of_a_project_that_was_renamed() {
    let answers: Vec<Value> = (1..=3).map(|n| json!({"text": format!("answer {n}")})).collect();
    let (lab, model) = (Lab::new(), Server::turns(json!(answers)));
    let (old, new, other) = (lab.ws().join("old"), lab.ws().join("new"), lab.ws().join("other"));
    fs::create_dir(&old).unwrap();
    let turn = |directory: &Path, flags: &[&str]| {
        let mut client = ClaudeClient::below(&lab, directory, &model.url(), flags);
        let result = client.turn("go on");
        (result, client.leave())
    };
    let (first, _) = turn(&old, &[]);
    let id = first["session_id"].as_str().unwrap();
    fs::create_dir(&other).unwrap();
    for elsewhere in [&["--resume", id][..], &["--resume", id, "--fork-session"]] {
        let mut client = ClaudeClient::below(&lab, &other, &model.url(), elsewhere);
        client.say(&json!("go on"));
        assert!(client.result().to_string().contains("belongs to another workspace"), "{elsewhere:?}");
    }
    fs::rename(&old, &new).unwrap();
    assert_eq!(turn(&new, &["--resume", id]).1, Some(0));
    assert!(told(&model).contains("answer 1"), "{}", told(&model));
    assert_eq!(turn(&new, &["--resume", id, "--fork-session"]).1, Some(0));
    assert!(told(&model).contains("answer 2"), "{}", told(&model));
    assert_eq!(lab.journals().len(), 2, "the refused copy is not there");
}

#[test]
fn claude_sessions_are_resumed_continued_copied_and_created_with_an_id() {
    let answers: Vec<Value> = (1..=6).map(|n| json!({"text": format!("answer {n}")})).collect();
    let (lab, model) = (Lab::new(), Server::turns(json!(answers)));
    let turn = |flags: &[&str]| {
        let mut client = ClaudeClient::start(&lab, &model, flags);
        let result = client.turn("go on");
        (result["session_id"].as_str().unwrap().to_owned(), client.leave())
    };
    let given = "f198f2c4-1a2b-4c3d-8e4f-5a6b7c8d9e0f";
    assert_eq!(turn(&["--session-id", given]), (given.to_owned(), Some(0)));
    let (second, _) = turn(&[]);
    assert_eq!(turn(&["--continue"]).0, second, "the newest one, whatever its id");
    assert_eq!(turn(&["--resume", given]).0, given);
    assert!(told(&model).contains("answer 1") && !told(&model).contains("answer 2"), "{}", told(&model));
    let (copy, _) = turn(&["--resume", given, "--fork-session"]);
    assert!(copy != given && told(&model).contains("answer 4"), "{}", told(&model));
    assert_eq!(lab.journals().len(), 3);
    for wrong in [
        &["--resume", "20200101-000000-abcdef"][..],
        &["--resume=../../etc"],
        &["--session-id", given],
        &["--session-id=x"],
    ] {
        let mut client = ClaudeClient::start(&lab, &model, wrong);
        let result = client.result();
        assert_eq!(result["subtype"], "error_during_execution", "{wrong:?}");
        assert_eq!(client.leave(), Some(3), "{wrong:?}");
    }
}

#[test]
fn claude_text_and_json_print_the_end_of_one_run() {
    let model =
        Server::turns(json!([{"text": "the answer"}, {"text": "the answer"}, {"text": "from a pipe"}]));
    let text = once(Lab::new(), &model, &["-p", "do it", "--model", "mock", "--thinking=adaptive"]).exits(0);
    assert_eq!(text.stdout, "the answer\n");
    assert!(text.stderr.contains("--thinking"), "{}", text.stderr);
    let document =
        once(Lab::new(), &model, &["-p", "do it", "--model=mock", "--output-format=json"]).exits(0).json();
    assert_eq!((&document["type"], &document["result"]), (&json!("result"), &json!("the answer")));
    let piped = once(Lab::new().stdin("the task"), &model, &["--print", "--model", "mock"]).exits(0);
    assert_eq!(piped.stdout, "from a pipe\n");
    assert!(told(&model).contains("the task"));
    let failing = Server::turns(json!([{"error": {"status": 400}}]));
    let failed = once(Lab::new(), &failing, &["-p", "x", "--model", "mock"]).exits(1);
    assert!(failed.stdout.is_empty() && failed.stderr.contains("400"), "{} {}", failed.stdout, failed.stderr);
}

#[test]
fn claude_flags_without_a_counterpart_warn_and_those_that_take_permission_away_exit_3() {
    let model = Server::done();
    let lab = Lab::new();
    let flags = [
        "--thinking=adaptive",
        "--setting-sources=",
        "--effort=ultra",
        "--add-dir",
        "/tmp",
        "--permission-prompt-tool=mcp__x__y",
        "--allowedTools=Read(./src/**)",
        "--append-system-prompt",
        "be kind",
    ];
    let mut client = ClaudeClient::start(&lab, &model, &flags);
    assert_eq!(client.turn("task")["subtype"], "success");
    for expected in [
        "--thinking",
        "--setting-sources",
        "--effort=ultra",
        "--add-dir",
        "--permission-prompt-tool",
        "Read(./src/**)",
        "--append-system-prompt",
    ] {
        assert!(client.warnings().contains(expected), "{expected}: {}", client.warnings());
    }
    for refused in [
        &["--settings", "{}"][..],
        &["--managed-settings={}"],
        &["--agent=x"],
        &["--managed-settings-in-initialize"],
        &["--disallowedTools=Bash(unclosed"],
        &["--permission-mode=bypassPermissions"],
        &["--disallowedTools=WebFetch(x)"],
    ] {
        let mut client = ClaudeClient::start(&lab, &model, refused);
        assert_eq!(client.result()["subtype"], "error_during_execution", "{refused:?}");
        assert_eq!(client.leave(), Some(3), "{refused:?}");
    }
    for wrong in [&["--no-such-flag"][..], &["--initialize-fields=settings"]] {
        let done = once(Lab::new(), &model, &[&FLAGS, wrong].concat()).exits(3);
        assert_eq!(done.stdout, "", "{wrong:?}");
    }
    let interactive = once(Lab::new(), &model, &["--model", "mock"]).exits(3);
    assert!(interactive.stderr.contains("agent chat"), "{}", interactive.stderr);
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn claude_permission_prompts_host_and_the_mode_auto_permit_no_call() {
    for flags in [
        &["--permission-prompts=host"][..],
        &["--permission-mode=auto"],
        &["--permission-mode=auto", "--allowedTools", "Write", "Edit(**)"],
    ] {
        let (lab, model) = (Lab::new(), Server::turns(json!([write("a.txt"), {"text": "done"}])));
        let mut client = ClaudeClient::start(&lab, &model, flags);
        assert_eq!(client.turn("task")["subtype"], "success", "{flags:?}");
        assert!(!lab.exists("a.txt"), "{flags:?}");
        let is_auto = flags[0].ends_with("auto");
        assert_eq!(client.warnings().contains("no classifier"), is_auto, "{flags:?}: {}", client.warnings());
        assert_eq!(client.of("system")[0]["permissionMode"], "default", "{flags:?}");
    }
    let (lab, model) = (Lab::new(), Server::turns(json!([write("a.txt"), {"text": "done"}])));
    let mut client = ClaudeClient::asked(&lab, &model, &["--permission-prompts=host"]);
    client.say(&json!("task"));
    let question = client.request("can_use_tool");
    client.answer(&question, &json!({"behavior": "allow", "updatedInput": question["request"]["input"]}));
    assert_eq!(client.result()["subtype"], "success");
    assert!(lab.exists("a.txt"));
}

/// The directories that the configuration lists are those to which commands can write.
#[test]
fn claude_add_dir_does_not_widen_a_configured_list() {
    for (config, is_written) in [("", true), ("sandbox: {writable: []}\n", false)] {
        let lab = Lab::new();
        let extra = lab.home().join("extra");
        fs::create_dir(&extra).unwrap();
        let lab = lab.config(config);
        let file = extra.join("f");
        let model =
            Server::calls([call("run_command", &json!({"command": format!("touch {}", file.display())}))]);
        let directory = extra.to_str().unwrap();
        let flags = ["--add-dir", directory, "--allowedTools=Bash"];
        let mut client = ClaudeClient::start(&lab, &model, &flags);
        assert_eq!(client.turn("task")["subtype"], "success");
        assert_eq!(file.exists(), is_written, "{config}");
        assert_ne!(client.warnings().contains("sandbox.writable"), is_written, "{}", client.warnings());
    }
}

#[test]
fn claude_permission_modes_and_lists_of_tools_permit_what_they_name() {
    let command = turn("run_command", &json!({"command": "touch command.txt"}));
    let bypass = ["--permission-mode=bypassPermissions", "--allow-dangerously-skip-permissions"];
    for (config, flags, writes, runs) in [
        ("", &[][..], false, false),
        ("mode: yolo\n", &[], false, false),
        ("", &["--permission-mode=acceptEdits"], true, false),
        ("", &["--permission-mode=plan", "--allowedTools=Write,Bash"], false, false),
        ("", &["--permission-mode", "dontAsk", "--permission-prompt-tool=stdio"], false, false),
        ("", &bypass, true, true),
        ("", &["--dangerously-skip-permissions"], true, true),
        ("", &["--allowedTools", "Write"], true, false),
        ("", &["--allowedTools=Bash(touch:*)"], false, true),
        ("", &["--allowedTools=Write,Bash", "--disallowedTools=Bash(touch:*)"], true, false),
        ("", &["--dangerously-skip-permissions", "--disallowedTools=Edit"], true, true),
        ("", &["--dangerously-skip-permissions", "--disallowedTools", "Write", "Bash"], false, false),
        ("", &["--dangerously-skip-permissions", "--tools=Read,Bash"], false, true),
        ("", &["--dangerously-skip-permissions", "--tools="], false, false),
        ("mode: confirm-all\n", &bypass, false, false),
        ("mode: confirm-all\n", &["--allowedTools=Write,Bash(touch:*)"], false, false),
        ("policy: {rules: [{action: ask, tool: write_file}]}\n", &bypass, false, true),
        (
            "policy: {rules: [{action: deny, tool: run_command}]}\n",
            &["--dangerously-skip-permissions", "--allowedTools=Bash"],
            true,
            false,
        ),
    ] {
        let (lab, model) =
            (Lab::new().config(config), Server::turns(json!([write("tool.txt"), command, {"text": "done"}])));
        let mut client = ClaudeClient::start(&lab, &model, flags);
        let result = client.turn("task");
        assert_eq!(
            (lab.exists("tool.txt"), lab.exists("command.txt")),
            (writes, runs),
            "{config} {flags:?} {result}"
        );
    }
}

#[test]
fn claude_refused_tools_are_not_offered_and_denials_are_listed() {
    let (lab, model) = (Lab::new(), Server::turns(json!([write("no.txt"), {"text": "done"}])));
    let mut client = ClaudeClient::start(&lab, &model, &["--disallowedTools=Bash"]);
    let result = client.turn("task");
    let tools = model.requests()[0].body["tools"].to_string();
    assert!(!tools.contains("run_command") && tools.contains("read_file"), "{tools}");
    let denials = result["permission_denials"].as_array().unwrap();
    assert_eq!((denials.len(), &denials[0]["tool_name"]), (1, &json!("Write")), "{result}");
    assert_eq!(denials[0]["tool_use_id"], client.of("assistant")[0]["message"]["content"][0]["id"]);
    assert_eq!(denials[0]["tool_input"]["file_path"], json!(lab.ws().join("no.txt")));
}

#[test]
fn claude_mcp_servers_of_the_client_run_and_strict_leaves_out_the_others() {
    let lab = Lab::new().file("server.sh", include_str!("support/mcp_server.sh"));
    let script = lab.ws().join("server.sh");
    let lab = lab.config(&format!(
        "mcp: {{servers: {{own: {{command: /bin/sh, args: ['{}']}}}}}}\n",
        script.display()
    ));
    let servers = json!({"mcpServers": {"Test": {"type": "stdio", "command": "/bin/sh", "args": [script]},
        "inside": {"type": "sdk", "name": "inside"}}});
    let config = servers.to_string();
    let lab = lab.file("servers.json", &config);
    for (value, strict) in [(config.as_str(), false), ("servers.json", true)] {
        let model = Server::calls([call("mcp__test__echo", &json!({"text": "hello"}))]);
        let mut flags = vec!["--mcp-config", value, "--allowedTools=mcp__test"];
        flags.extend(strict.then_some("--strict-mcp-config"));
        let mut client = ClaudeClient::start(&lab, &model, &flags);
        assert_eq!(client.turn("task")["subtype"], "success");
        assert!(told(&model).contains("hello"), "{}", told(&model));
        let named = client.seen[0]["mcp_servers"].to_string();
        assert_eq!((named.contains("\"own\""), named.contains("\"test\"")), (!strict, true), "{named}");
    }
    for wrong in [
        "{\"mcpServers\": 1}",
        "{half",
        "none.json",
        "{\"mcpServers\": {\"x\": {\"type\": \"sse\", \"url\": \"https://x\"}}}",
    ] {
        let model = Server::turns(json!([{"text": "unused"}]));
        once(Lab::new(), &model, &["-p", "x", "--model=mock", "--mcp-config", wrong]).exits(3);
    }
}

#[test]
fn claude_faults_of_a_stream_are_no_success() {
    let start = "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1,\"output_tokens\":0}}}\n\n\
        data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
        data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"half\"}}\n\n";
    let answers = [
        head("500 Oops", "content-length: 0\r\n"),
        head("200 OK", "content-type: application/json\r\ncontent-length: 999\r\n") + "{\"id\": \"r\", \"con",
        head("200 OK", "content-type: application/json\r\ncontent-length: 6\r\n") + "{\"id\":",
        head("200 OK", "content-type: text/event-stream\r\n") + start,
        head("200 OK", "content-type: text/event-stream\r\n") + start + "data: {\"type\": no JSON}\n\n",
        head("200 OK", "content-type: text/event-stream\r\n")
            + start
            + "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n",
        String::new(),
    ];
    for answer in answers {
        for flags in [&[][..], &["--include-partial-messages"]] {
            let lab = Lab::new().config("llm: {retries: 1, context_window: 100000}\n");
            let model = WireServer::bytes(answer.clone());
            let mut client = ClaudeClient::at(&lab, &model.url(), flags);
            let result = client.turn("task");
            assert_eq!(result["subtype"], "error_during_execution", "{answer:?}: {result}");
            assert!(client.seen.iter().any(|message| message["subtype"] == "api_retry"), "{answer:?}");
            let (starts, ends) = ["message_start", "message_stop"]
                .map(|kind| client.of("stream_event").iter().filter(|it| it["event"]["type"] == kind).count())
                .into();
            assert_eq!(starts, ends, "{answer:?}: each streamed message ends");
            assert_eq!(client.leave(), Some(1), "{answer:?}");
        }
    }
}
