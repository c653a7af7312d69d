//! MCP servers for tests: labs that have some configured, runs that call them, and what the model then reads.

use super::calls::turn;
use super::run::{KEY, Lab};
use super::server::Recorded;
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs;

/// A server with one tool that repeats a text; variables set what it does wrong.
pub const SERVER: &str = include_str!("mcp_server.sh");

/// A server whose answers are shell functions.
pub const PEER: &str = include_str!("mcp_peer.sh");

/// A lab whose user has configured the test server with these variables and keys.
pub fn with_server(variables: &Value, more: &str) -> Lab {
    lab_with(&[("test", variables)], more)
}

/// A lab with several servers.
pub fn lab_with(servers: &[(&str, &Value)], more: &str) -> Lab {
    let lab = Lab::new().file("server.sh", SERVER);
    let script = lab.ws().join("server.sh");
    let mut yaml = "mcp:\n  servers:\n".to_owned();
    for (name, variables) in servers {
        let env: Vec<String> = variables
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| format!("{name}: {{value: {value}}}"))
            .collect();
        let args = format!("args: ['{}'], env: {{{}}}", script.display(), env.join(", "));
        writeln!(yaml, "    {name}: {{command: /bin/sh, {args}, {more}}}").unwrap();
    }
    lab.config(&yaml)
}

/// A lab with servers whose answers these shell functions replace: name, functions, keys of the configuration.
pub fn peers(servers: &[(&str, &str, &str)]) -> Lab {
    let mut lab = Lab::new();
    let mut yaml = "mcp:\n  servers:\n".to_owned();
    for (name, functions, keys) in servers {
        let file = format!("{name}.sh");
        let script = lab.ws().join(&file);
        lab = lab.file(&file, PEER.replace("\n# CASE\n", &format!("\n{functions}\n")));
        writeln!(yaml, "    {name}: {{command: /bin/sh, args: ['{}'], {keys}}}", script.display()).unwrap();
    }
    lab.config(&yaml)
}

/// Appends to the user's configuration.
pub fn configure(lab: Lab, yaml: &str) -> Lab {
    let own = fs::read_to_string(lab.home().join("config.yaml")).unwrap();
    lab.config(&format!("{own}{yaml}"))
}

/// Offers the tools of servers through `tool_search` and `call_tool` only.
pub fn with_search(lab: Lab) -> Lab {
    let own = fs::read_to_string(lab.home().join("config.yaml")).unwrap();
    lab.config(&own.replace("mcp:\n", "mcp:\n  listing: search\n"))
}

/// Counts the processes whose command line contains `text`, such as the path of a script.
pub fn processes_with(text: &str) -> usize {
    let lines = fs::read_dir("/proc").unwrap().flatten().map(|entry| fs::read(entry.path().join("cmdline")));
    lines.flatten().filter(|line| String::from_utf8_lossy(line).contains(text)).count()
}

/// A turn that calls the tool of the server `test`.
pub fn echo(text: &str) -> Value {
    turn("mcp__test__echo", &json!({ "text": text }))
}

/// The last turn.
pub fn done() -> Value {
    json!({"text": "done"})
}

/// The arguments of `agent run work` with the model at `url`.
pub fn run_args<'a>(url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["run", "work", "--model", "openai/mock", "--api-base", url, "--api-key", KEY], more].concat()
}

/// All results of tools in a request.
pub fn results(request: &Recorded) -> String {
    let all = request.messages().iter();
    all.filter(|message| message["role"] == "tool").map(|message| message["content"].to_string()).collect()
}
