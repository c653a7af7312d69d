//! `agent run --history FILE`: a session that begins with an earlier conversation.

use crate::support::run::{KEY, Lab, holding};
use crate::support::server::Server;
use serde_json::{Value, json};
use std::fs;

fn two() -> Value {
    json!([{"role": "user", "content": "Call me Ada."}, {"role": "assistant", "content": "I will, Ada."}])
}

/// Roles and contents of what the first request said.
fn conversation(server: &Server) -> Vec<(String, String)> {
    let requests = server.requests();
    let messages = requests[0].messages();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    messages.iter().map(|message| (text(&message["role"]), text(&message["content"]))).collect()
}

#[test]
fn k16_given_messages_stand_between_the_system_message_and_the_task_and_stay() {
    let (lab, server) = (Lab::new().file("history.json", two().to_string()), Server::done());
    let done = lab.run(&server, &["--history", "history.json", "-v"]).exits(0);
    assert!(
        done.stderr.contains("the task follows 2 messages of an earlier conversation"),
        "{}",
        done.stderr
    );
    let first = conversation(&server);
    let roles: Vec<&str> = first.iter().map(|(role, _)| role.as_str()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    let said: Vec<&str> = first.iter().skip(1).map(|(_, text)| text.as_str()).collect();
    assert_eq!(said, ["Call me Ada.", "I will, Ada.", "task"]);

    fs::remove_file(lab.ws().join("history.json")).unwrap();
    let server = Server::done();
    lab.resume(&server, &["and now?"]).exits(0);
    assert_eq!(conversation(&server)[..4], first);
}

#[test]
fn k16_given_messages_reach_a_server_of_every_format() {
    for model in ["anthropic/mock", "gemini/mock", "openai-responses/mock", "ollama/mock"] {
        let (lab, server) = (Lab::new().file("history.json", two().to_string()), Server::done());
        let url = server.url();
        let base = if model.starts_with("openai") { url.as_str() } else { url.trim_end_matches("/v1") };
        let args = ["run", "task", "--history", "history.json", "--model", model, "--api-base", base];
        lab.agent(&[&args[..], &["--api-key", KEY]].concat()).exits(0);
        let requests = server.requests();
        let bytes = String::from_utf8_lossy(&requests.last().unwrap().bytes).into_owned();
        let places = ["Call me Ada.", "I will, Ada.", "task\""].map(|text| bytes.rfind(text));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{model}: {places:?}\n{bytes}");
    }
}

#[test]
fn k16_given_messages_are_shown_and_found_and_go_into_a_fork() {
    let lab = Lab::new().file("history.json", two().to_string());
    let done = lab.run_done(&["--history", "history.json", "--json"]).exits(0);
    let id = done.json()["session_id"].as_str().unwrap().to_owned();
    let shown = lab.agent(&["sessions", "show", &id]).exits(0).stdout;
    assert!(shown.contains("earlier, you: Call me Ada.\nearlier, model: I will, Ada.\n"), "{shown}");
    let found = lab.agent(&["sessions", "search", "i will"]).exits(0).stdout;
    assert!(found.contains("earlier: ") && found.contains("I will, Ada."), "{found}");
    lab.agent(&["sessions", "fork", &id]).exits(0);
    let server = Server::done();
    lab.resume(&server, &["more"]).exits(0);
    assert_eq!(conversation(&server)[1].1, "Call me Ada.");
}

#[test]
fn k16_a_file_that_cannot_be_used_is_refused_before_anything_begins() {
    let lab = Lab::new().file("history.json", two().to_string());
    let _pipe = lab.pipe("pipe");
    let large = format!(r#"[{{"role":"user","content":"{}"}}]"#, "x".repeat(4 << 20));
    let lab = lab
        .file("large.json", large)
        .file("words.json", "Call me Ada.")
        .file("latin1.json", b"[\"\xe9\"]")
        .file("system.json", json!([{"role": "system", "content": "obey"}]).to_string())
        .file("calls.json", json!([{"role": "user", "content": "x", "tool_calls": []}]).to_string())
        .file("answer.json", json!([{"role": "assistant", "content": "x"}]).to_string())
        .file("empty.json", "[]")
        .file("silent.json", json!([{"role": "user", "content": ""}]).to_string());
    let server = Server::done();
    for (file, why) in [
        ("absent.json", "does not exist"),
        ("pipe", "is a special file"),
        (".", "is a directory"),
        ("large.json", "is larger than 4194304 bytes"),
        ("words.json", "expected value at line 1 column 1"),
        ("latin1.json", "is not valid UTF-8"),
        ("system.json", "unknown variant `system`"),
        ("calls.json", "unknown field `tool_calls`"),
        ("answer.json", "starts with an answer"),
        ("empty.json", "contains no message"),
        ("silent.json", "has no text in message 1"),
    ] {
        let done = lab.run(&server, &["--history", file, "--json"]).exits(3);
        let message = done.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(why) && message.contains(file), "{file}: {message}");
    }
    assert_eq!(server.requests().len(), 0);
    assert!(lab.agent(&["sessions", "list"]).exits(0).stdout.contains("no session"));
}

#[test]
fn k16_a_secret_in_given_messages_stays_out_of_request_and_session() {
    let lab = Lab::new().file(
        "history.json",
        json!([{"role": "user", "content": format!("the key is {KEY}, remember it")}]).to_string(),
    );
    let server = Server::done();
    lab.run(&server, &["--history", "history.json"]).exits(0);
    assert!(!String::from_utf8_lossy(&server.requests()[0].bytes).contains(KEY));
    assert_eq!(holding(&lab.home(), KEY), Vec::<String>::new());
    assert_eq!(holding(&lab.home(), "remember it").len(), 1, "it was written all the same");
}

#[test]
fn k16_guardrails_look_at_given_messages_whoever_said_them() {
    let rule = "guardrails:
  text_rules: [{name: r, pattern: CODEWORD, on: input, action: halt, message: not for models}]
";
    for role in ["user", "assistant"] {
        let history = json!([{"role": "user", "content": "hello"}, {"role": role, "content": "CODEWORD"}]);
        let (lab, server) =
            (Lab::new().file("history.json", history.to_string()).config(rule), Server::done());
        let done = lab.run(&server, &["--history", "history.json", "--json"]).exits(2);
        assert_eq!(done.json()["stop_reason"], "guardrail", "{role}");
        assert_eq!(server.requests().len(), 0, "{role}");
    }
}

#[test]
fn k16_given_messages_are_no_task_when_the_run_was_killed_before_it_had_one() {
    let lab = Lab::new().file("history.json", two().to_string());
    lab.run_done(&["--history", "history.json"]).exits(0);
    let journal = fs::read_to_string(lab.journal()).unwrap();
    let end = journal.lines().position(|line| line.contains(r#""type":"history""#)).unwrap();
    let killed: String = journal.split_inclusive('\n').take(end + 1).collect();
    fs::write(lab.journal(), killed).unwrap();
    let server = Server::done();
    let done = lab.resume(&server, &[]).exits(3);
    assert!(done.stderr.contains("ended before it had a task"), "{}", done.stderr);
    lab.resume(&server, &["task"]).exits(0);
    let said: Vec<String> = conversation(&server).into_iter().skip(1).map(|(_, text)| text).collect();
    assert_eq!(said, ["Call me Ada.", "I will, Ada.", "task"]);
}
