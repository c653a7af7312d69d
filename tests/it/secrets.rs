//! What must not be told: keys and tokens, to the model, in journals, logs, documents.

use crate::support::run::Lab;
use crate::support::server::Server;

/// The value of a variable that is called like a secret; no key by its form.
const TOKEN: &str = "correct-horse-battery-9";

#[test]
fn class_55_s25_a_secret_is_told_to_nobody_and_its_marker_is_not_written_back() {
    let lab = Lab::new().env("DEPLOY_TOKEN", TOKEN).file("a.txt", format!("token = {TOKEN}\nport = 1\n"));
    let server = Server::start(
        r#"{"turns": [
            {"calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]},
            {"calls": [{"name": "write_file", "arguments": {"path": "a.txt",
                "content": "token = [redacted: DEPLOY_TOKEN]\nport = 2\n"}}]},
            {"calls": [{"name": "edit_file", "arguments": {"path": "a.txt", "old_str": "port = 1", "new_str": "port = 2"}}]},
            {"text": "the token is correct-horse-battery-9"}]}"#,
    );
    let log = lab.outside().join("run.log");
    let run = lab.run(&server, &["--mode", "yolo", "--json", "--log-file", log.to_str().unwrap()]).exits(0);
    assert_eq!(lab.read("a.txt"), format!("token = {TOKEN}\nport = 2\n"), "the edit works on the real bytes");
    let requests = server.requests();
    let sent = |n: usize| String::from_utf8_lossy(&requests[n].bytes).into_owned();
    assert!(sent(1).contains("[redacted: DEPLOY_TOKEN]"), "{}", sent(1));
    assert!(sent(2).contains("stands for a secret"), "{}", sent(2));
    assert!(!sent(3).contains(TOKEN), "{}", sent(3));
    assert_eq!(run.json()["output"], "the token is [redacted: DEPLOY_TOKEN]");
    let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
    for told in [run.stdout, run.stderr, read(&lab.journal()), read(&log)] {
        assert!(!told.contains(TOKEN), "{told}");
    }
}

#[test]
fn class_47_invisible_characters_are_pointed_out_to_the_model() {
    let lab = Lab::new().file("a.txt", "x\u{202e}y\n");
    let server = Server::start(
        r#"{"turns": [{"calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]}, {"text": "done"}]}"#,
    );
    lab.run(&server, &[]).exits(0);
    let sent = server.requests()[1].body.to_string();
    assert!(sent.contains("Invisible characters in this result: U+202E in line"), "{sent}");
    assert_eq!(lab.read("a.txt"), "x\u{202e}y\n");
}
