//! Tools of MCP servers in subagents: those that their list names, on the servers of the run.

use crate::support::calls::turn;
use crate::support::mcp::{configure, done, peers, results, with_search};
use crate::support::run::{Lab, YOLO};
use crate::support::server::{Recorded, Server};
use serde_json::{Value, json};

/// A lab with two servers, which count their starts, and an agent that has these tools.
fn with_helper(tools: &str) -> Lab {
    let counted = "at_initialized() { echo started >> starts.txt; }";
    let lab = peers(&[("one", counted, "workspace: write"), ("two", "", "")]);
    configure(
        lab,
        &format!(
            "agents: {{helper: {{system_prompt: Help., subagent: true, mode: yolo, allowed_tools: [{tools}]}}}}\n"
        ),
    )
}

/// A turn that starts that agent.
fn helper() -> Value {
    turn("dispatch_subagent", &json!({"agent_type": "helper", "task": "look"}))
}

/// The requests of a run in which the helper makes these calls.
fn requests(lab: &Lab, calls: &[Value], mode: &str) -> Vec<Recorded> {
    let turns: Vec<Value> =
        [helper()].into_iter().chain(calls.iter().cloned()).chain([done(), done()]).collect();
    let model: Server = Server::turns(turns);
    lab.run(&model, &["--mode", mode]);
    model.requests()
}

fn of_servers(request: &Recorded) -> Vec<String> {
    request.tools().into_iter().filter(|name| name.starts_with("mcp__")).collect()
}

#[test]
fn a_subagent_gets_the_tools_that_its_list_names_from_the_server_that_runs() {
    let lab = with_helper("read_file, 'mcp__one__*'");
    let calls = [turn("mcp__one__echo", &json!({})), turn("mcp__two__echo", &json!({}))];
    let requests = requests(&lab, &calls, YOLO[1]);
    assert_eq!(of_servers(&requests[0]), ["mcp__one__echo", "mcp__two__echo"]);
    assert_eq!(of_servers(&requests[1]), ["mcp__one__echo"]);
    assert!(results(&requests[2]).contains("called"), "{}", results(&requests[2]));
    assert!(results(&requests[3]).contains("Unknown tool 'mcp__two__echo'"), "{}", results(&requests[3]));
    assert_eq!(lab.read("starts.txt"), "started\n");
}

#[test]
fn a_subagent_whose_list_names_no_server_or_only_a_star_gets_no_tool_of_one() {
    for tools in ["read_file", "read_file, '*'", "read_file, mcp__three__echo"] {
        let requests = requests(&with_helper(tools), &[], YOLO[1]);
        assert_eq!(of_servers(&requests[1]), Vec::<String>::new(), "{tools}");
    }
}

#[test]
fn a_call_of_a_subagent_needs_the_same_approval_and_many_tools_are_searched() {
    let calls = [turn("mcp__one__echo", &json!({}))];
    let asked = requests(&with_helper("'mcp__one__echo'"), &calls, "confirm-sensitive");
    assert!(results(&asked[2]).contains("needs a confirmation"), "{}", results(&asked[2]));
    let lab = with_search(with_helper("'mcp__one__*'"));
    let named = |name: &str| turn("call_tool", &json!({"name": name, "input": {}}));
    let searched = requests(&lab, &[named("mcp__one__echo"), named("mcp__two__echo")], YOLO[1]);
    assert_eq!(searched[1].tools(), ["call_tool", "tool_search"]);
    assert!(results(&searched[2]).contains("called"), "{}", results(&searched[2]));
    assert!(results(&searched[3]).contains("There is no tool 'mcp__two__echo'"), "{}", results(&searched[3]));
}
