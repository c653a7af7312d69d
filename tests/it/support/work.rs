//! Commands of several runs against the scripted server, and what their runs were sent.

use super::run::{Finished, KEY, Lab};
use super::server::Server;
use serde_json::Value;

/// The options that name the server, after the words of the command.
pub fn on_server<'a>(words: &[&'a str], url: &'a str) -> Vec<&'a str> {
    [words, &["--api-base", url, "--api-key", KEY]].concat()
}

/// The id of the newest record.
pub fn newest_id(lab: &Lab) -> String {
    lab.agent(&["work", "list"]).exits(0).stdout.split_whitespace().next().unwrap().to_owned()
}

/// Resumes record `id` of `command`.
pub fn resume(lab: &Lab, server: &Server, command: &str, id: &str) -> Finished {
    lab.agent(&on_server(&[command, "resume", id], &server.url()))
}

/// Resumes the newest record of `command`.
pub fn resume_newest(lab: &Lab, server: &Server, command: &str) -> Finished {
    resume(lab, server, command, &newest_id(lab))
}

/// A server with a script for each of the models `a`, `b` and `judge`.
pub fn debaters(a: &str, b: &str, judge: &str) -> Server {
    let scripts = [a, b, judge].map(|turns| format!("turns: [{turns}]"));
    Server::by_model(&[("a", &scripts[0]), ("b", &scripts[1]), ("judge", &scripts[2])])
}

/// The messages of a request, with the data between their delimiters.
pub fn sent(server: &Server, request: usize) -> String {
    let body: Value = serde_json::from_slice(&server.requests()[request].bytes).unwrap();
    let messages = body["messages"].as_array().unwrap();
    let texts = messages.iter().filter_map(|message| message["content"].as_str());
    texts.collect::<Vec<_>>().join("\n---\n")
}

/// Checks that request number `request` has `text` below `heading`, as untrusted data.
#[track_caller]
pub fn has_data(server: &Server, request: usize, heading: &str, text: &str) {
    let sent = sent(server, request);
    let after = sent.split_once(&format!("## {heading}\n<data "));
    let (token, rest) = after.unwrap_or_else(|| panic!("no {heading}: {sent}")).1.split_once(">\n").unwrap();
    let data = rest.split_once(&format!("\n</data {token}>")).unwrap().0;
    assert_eq!(data, text);
}

/// The names of the runs of a document.
pub fn names(document: &Value) -> Vec<&str> {
    document["runs"].as_array().unwrap().iter().map(|run| run["name"].as_str().unwrap()).collect()
}

/// The words of the first command line on the page `topic` of the manual.
pub fn example(topic: &str) -> Vec<String> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/config/help/");
    let page = std::fs::read_to_string(format!("{page}{topic}.md")).unwrap();
    let line = page.lines().find_map(|line| line.strip_prefix("    agent ")).unwrap();
    let quoted = line.split('"').enumerate();
    let words = quoted.flat_map(|(index, part)| match index % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}
