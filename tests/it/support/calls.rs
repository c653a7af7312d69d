//! Tool calls as the model makes them, and what it is told.

use super::run::Lab;
use super::server::Server;
use serde_json::{Value, json};

/// A call of the model.
pub fn call(name: &str, arguments: &Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

/// A turn of the model that makes one call.
pub fn turn(name: &str, arguments: &Value) -> Value {
    json!({"calls": [call(name, arguments)]})
}

/// A call that writes a whole file.
pub fn write(path: &str, content: &str) -> Value {
    call("write_file", &json!({"path": path, "content": content}))
}

/// A call that replaces a passage of a file.
pub fn edit(path: &str, old: &str, new: &str) -> Value {
    call("edit_file", &json!({"path": path, "old_str": old, "new_str": new}))
}

/// A call that runs a command.
pub fn command(text: &str) -> Value {
    call("run_command", &json!({"command": text}))
}

/// A script of these turns of calls, and a last answer.
pub fn script(turns: &[Vec<Value>]) -> String {
    let mut all: Vec<Value> = turns.iter().map(|calls| json!({"calls": calls})).collect();
    all.push(json!({"text": "done"}));
    json!({"turns": all}).to_string()
}

/// The results in the last request, one for each call so far.
pub fn results(server: &Server) -> Vec<String> {
    server.requests().last().unwrap().texts("tool")
}

/// What the model is told when it makes `calls`, with these flags.
pub fn told_with(lab: &Lab, flags: &[&str], calls: Vec<Value>) -> Vec<String> {
    let server = Server::start(&script(&[calls]));
    lab.run(&server, flags).exits(0);
    results(&server)
}

/// What the model is told when it makes `calls`, which nobody has to confirm.
pub fn told(lab: &Lab, calls: Vec<Value>) -> Vec<String> {
    told_with(lab, &["--mode", "yolo"], calls)
}

/// What the model is told when it makes one call.
pub fn told_once(lab: &Lab, name: &str, arguments: &Value) -> String {
    told(lab, vec![call(name, arguments)]).remove(0)
}

/// Every tool that takes a path, with `path`: where it searches, it searches for `hunter`, and `x` is what it writes.
pub fn every_tool(path: &str) -> Vec<Value> {
    vec![
        call("read_file", &json!({"path": path})),
        call("write_file", &json!({"path": path, "content": "x"})),
        call("write_file", &json!({"path": path, "content": "x", "mode": "append"})),
        call("edit_file", &json!({"path": path, "old_str": "h", "new_str": "x"})),
        call("apply_patch", &json!({"path": path, "patch": "@@ -0,0 +1 @@\n+x\n"})),
        call("grep", &json!({"text": "hunter", "path": path})),
        call("search_code", &json!({"pattern": "hunter", "path": path})),
        call("find_files", &json!({"pattern": "*", "path": path})),
        call("list_files", &json!({"path": path})),
        call("delete_file", &json!({"path": path})),
        call("run_command", &json!({"command": "cat *", "cwd": path})),
    ]
}

/// What the model is told when it runs `commands` in one answer, in this mode.
pub fn obeyed(lab: &Lab, mode: &str, commands: &[String]) -> Vec<String> {
    let calls = commands.iter().map(|text| call("run_command", &json!({"command": text})));
    told_with(lab, &["--mode", mode], calls.collect())
}
