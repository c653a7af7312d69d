//! Sessions with tools of MCP servers: what a resumed one is told, and replays, which start no server.

use crate::support::calls::turn;
use crate::support::mcp::{done, echo, processes_with, results, with_search, with_server};
use crate::support::run::Lab;
use crate::support::server::Server;
use serde_json::json;
use std::fs;

/// Turns that call a tool directly and through `call_tool`.
fn turns() -> [serde_json::Value; 4] {
    let search = turn("tool_search", &json!({"queries": ["echo"]}));
    [
        search,
        turn("call_tool", &json!({"name": "mcp__test__echo", "input": {"text": "a"}})),
        echo("b"),
        done(),
    ]
}

/// A session with these turns, and what its server was sent.
fn session() -> (Lab, String) {
    let lab = with_search(with_server(&json!({"LOG": "log.txt"}), "workspace: write"));
    let model = Server::turns(turns());
    lab.run_yolo(&model, &[]).exits(0);
    assert!(results(&model.requests()[3]).contains("echo: b"));
    let log = lab.read("log.txt");
    (lab, log)
}

#[test]
fn o15_a_resumed_session_is_told_once_which_tools_of_servers_have_changed() {
    let new = || with_server(&json!({"DESCRIPTION": "Repeats a text.", "TOOLS": "other"}), "");
    for lab in [new(), with_search(new())] {
        lab.run_yolo(&Server::done(), &[]).exits(0);
        let path = lab.home().join("config.yaml");
        let own = fs::read_to_string(&path).unwrap();
        fs::write(&path, own.replace("Repeats a text.", "Says a text again.")).unwrap();
        lab.agent(&["mcp", "pin", "test"]).exits(0);
        for told in [1, 0] {
            let model = Server::done();
            let resumed = lab.resume(&model, &["go on"]).exits(0);
            let notice = "the tools have changed since the previous run; the model is notified: changed: mcp__test__echo\n";
            assert_eq!(resumed.stderr.matches(notice).count(), told, "{}", resumed.stderr);
            let request = model.requests()[0].body["messages"].to_string();
            let message = "Your tools have changed since your last step (changed: mcp__test__echo)";
            assert_eq!(request.matches(message).count(), 1, "{request}");
        }
        lab.agent(&["replay"]).exits(0);
    }
}

#[test]
fn a_replay_calls_no_server() {
    let (lab, log) = session();
    let replayed = lab.agent(&["replay"]).exits(0);
    assert!(replayed.stdout.contains("identical to its end"), "{}", replayed.stdout);
    assert_eq!((lab.read("log.txt"), processes_with(&lab.ws().display().to_string())), (log, 0));
}

#[test]
fn a_replay_with_live_tools_says_that_calls_of_servers_are_not_repeated() {
    let (lab, log) = session();
    let replayed = lab.agent(&["replay", "--live-tools", "--mode", "yolo"]).exits(0);
    let told = &replayed.stdout;
    assert!(told.contains("0 calls run again; taken from the journal: 3 to MCP servers"), "{told}");
    assert!(!told.contains("Unknown tool") && told.contains("identical to its end"), "{told}");
    assert_eq!((lab.read("log.txt"), processes_with(&lab.ws().display().to_string())), (log, 0));
}
