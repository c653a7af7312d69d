//! Sessions: the journal, resuming, locks.

use crate::support::run::{KEY, Lab, Running, program};
use crate::support::server::Server;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const READ: &str = "  - calls: [{name: read_file, arguments: {path: a.txt}}]\n";

fn messages(body: &Value) -> &Vec<Value> {
    body["messages"].as_array().unwrap()
}

#[track_caller]
fn every_call_is_answered(body: &Value) {
    let ids = |role: &str, pick: fn(&Value) -> Vec<String>| -> BTreeSet<String> {
        messages(body).iter().filter(|m| m["role"] == role).flat_map(pick).collect()
    };
    let calls = ids("assistant", |m| {
        let calls = m["tool_calls"].as_array().cloned().unwrap_or_default();
        calls.iter().map(|call| call["id"].as_str().unwrap().to_owned()).collect()
    });
    let results = ids("tool", |m| vec![m["tool_call_id"].as_str().unwrap().to_owned()]);
    assert_eq!(calls, results);
}

#[test]
fn l34_after_a_stop_in_the_middle_of_a_batch_every_call_has_a_result() {
    let script = "turns:
  - calls:
      - {name: read_file, arguments: {path: a.txt}}
      - {name: run_command, arguments: {command: sleep 60}}
      - {name: read_file, arguments: {path: a.txt}}
";
    let server = Server::start(script);
    let lab = Lab::with_a_txt();
    let run = lab.start_run(&server, &["--mode", "yolo"]);
    run.wait_for_stderr("run_command");
    run.signal(Signal::INT);
    run.finish().exits(130);
    let server = Server::done();
    lab.resume(&server, &["go on"]).exits(0);
    let requests = server.requests();
    every_call_is_answered(&requests[0].body);
    assert_eq!(messages(&requests[0].body).last().unwrap()["content"], "go on");
}

#[test]
fn l35_a_second_process_on_one_session_is_told_that_it_is_busy() {
    let server = Server::start("turns: [{fault: hang}]");
    let lab = Lab::with_a_txt();
    let run = lab.start_run(&server, &[]);
    server.wait_for_request(1);
    let second = lab.resume(&server, &["more"]).exits(3);
    assert!(second.stderr.contains("busy"), "{}", second.stderr);
    run.signal(Signal::INT);
    run.finish().exits(130);
}

#[test]
fn o10_after_kill_9_the_journal_parses_and_the_completed_step_is_there() {
    let server = Server::start(&format!("turns:\n{READ}  - fault: hang\n"));
    let lab = Lab::with_a_txt();
    let run = lab.start_run(&server, &[]);
    server.wait_for_request(2);
    run.signal(Signal::KILL);
    run.finish();
    let journal = fs::read_to_string(lab.journal()).unwrap();
    let kinds: Vec<String> = journal
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| line["record"]["event"]["type"].as_str().unwrap().to_owned())
        .collect();
    assert!(kinds.contains(&"tool_call_end".to_owned()), "{kinds:?}");
    let id = lab.journal().parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let parts: Vec<&str> = id.split('-').collect();
    assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 6, 6], "{id}");
}

#[test]
fn o11_resume_restores_messages_figures_and_files() {
    let script = "turns:
  - calls: [{name: write_file, arguments: {path: new.txt, content: x}}]
    usage: {input: 100, output: 10}
  - text: first answer
    usage: {input: 100, output: 10}
";
    let server = Server::start(script);
    let lab = Lab::with_a_txt();
    lab.run_yolo(&server, &[]).exits(0);
    let before = server.requests()[1].body.clone();

    let server = Server::start("turns: [{text: second answer, usage: {input: 100, output: 10}}]");
    let done = lab.resume(&server, &["and now?", "--json"]).exits(0);
    let after = server.requests()[0].body.clone();
    let (before, after) = (messages(&before), messages(&after));
    assert_eq!(&after[..before.len()], &before[..]);
    assert_eq!(after[before.len()]["content"], "first answer");
    assert_eq!(after.last().unwrap()["content"], "and now?");
    let json = done.json();
    assert_eq!(json["output"], "second answer");
    assert_eq!(json["usage"]["input"], 300);
    assert_eq!(json["steps"], 3);
    assert_eq!(json["files_modified"][0]["path"], "new.txt");
    assert_eq!(json["files_modified"][0]["action"], "created");
}

#[test]
fn o12_a_resumed_run_prints_its_answer_as_a_run_does() {
    let lab = Lab::new();
    lab.run(&Server::start("turns: [{text: first}]"), &[]).exits(0);
    for more in [&["go on"][..], &["go on", "--no-stream", "--quiet"]] {
        let done = lab.resume(&Server::start("turns: [{text: second}]"), more).exits(0);
        assert_eq!(done.stdout, "second\n", "{more:?}");
    }
    let done = lab.resume(&Server::start("turns: [{text: second}]"), &["go on", "--json"]).exits(0);
    assert_eq!(done.json()["output"], "second");
}

#[test]
fn o11_a_file_read_before_the_resume_may_be_edited_after_it() {
    let server = Server::start(&format!("turns:\n{READ}  - text: read it\n"));
    let lab = Lab::with_a_txt();
    lab.run(&server, &[]).exits(0);
    let script = "turns:
  - calls: [{name: write_file, arguments: {path: a.txt, content: beta}}]
  - text: done
";
    let server = Server::start(script);
    lab.resume(&server, &["overwrite it", "--mode", "yolo"]).exits(0);
    assert_eq!(lab.read("a.txt"), "beta");
}

#[test]
fn a_call_that_was_running_at_kill_9_is_closed_as_interrupted() {
    let script = "turns:
  - calls: [{name: run_command, arguments: {command: 'touch started; sleep 60'}}]
";
    let server = Server::start(script);
    let lab = Lab::with_a_txt();
    let run = lab.start_run(&server, &["--mode", "yolo"]);
    run.wait_for_stderr("run_command");
    run.signal(Signal::KILL);
    run.finish();
    let server = Server::done();
    lab.resume(&server, &[]).exits(0);
    let requests = server.requests();
    every_call_is_answered(&requests[0].body);
    let sent = messages(&requests[0].body);
    let result = sent.iter().find(|m| m["role"] == "tool").unwrap();
    assert!(result["content"].as_str().unwrap().contains("interrupted; outcome unknown"));
}

#[test]
fn a_torn_tail_is_dropped_and_reported_and_nothing_is_rewritten() {
    let server = Server::start("turns: [{text: one}]");
    let lab = Lab::with_a_txt();
    lab.run(&server, &[]).exits(0);
    let journal = lab.journal();
    let mut bytes = fs::read(&journal).unwrap();
    bytes.truncate(bytes.len() - 7);
    fs::write(&journal, &bytes).unwrap();
    let server = Server::start("turns: [{text: two}]");
    let done = lab.resume(&server, &["go on"]).exits(0);
    assert!(done.stderr.contains("damaged"), "{}", done.stderr);
    assert!(fs::read(&journal).unwrap().starts_with(&bytes));
}

#[test]
fn what_stands_beside_zeros_in_the_middle_is_gone_on_with() {
    let server = Server::start(&format!("turns:\n{READ}  - text: one\n"));
    let lab = Lab::with_a_txt();
    lab.run(&server, &[]).exits(0);
    let journal = fs::read_to_string(lab.journal()).unwrap();
    let at = journal.find("\"type\":\"tool_call_end\"").unwrap();
    let at = journal[..at].rfind('\n').unwrap() + 1;
    let (before, after) = journal.split_at(at);
    let damaged = [before.as_bytes(), &[0; 4096], after.as_bytes()].concat();
    fs::write(lab.journal(), &damaged).unwrap();
    let server = Server::start("turns: [{text: two}]");
    let done = lab.resume(&server, &["go on"]).exits(0);
    assert!(done.stderr.contains("1 record of the session's journal damaged"), "{}", done.stderr);
    let requests = server.requests();
    every_call_is_answered(&requests[0].body);
    assert!(
        messages(&requests[0].body)
            .iter()
            .any(|m| m["content"].as_str().is_some_and(|c| c.contains("alpha")))
    );
    assert!(fs::read(lab.journal()).unwrap().starts_with(&damaged), "what is damaged stays as it is");
}

/// Puts these records, each a line of JSON, in the place of what the session of `lab` holds.
fn put(lab: &Lab, records: &str) {
    let lines = records.replace("WORKSPACE", lab.ws().to_str().unwrap());
    let guarded = lines.lines().map(|record| {
        let crc = crc32fast::hash(record.as_bytes());
        format!("{{\"crc\":\"{crc:08x}\",\"record\":{record}}}\n")
    });
    fs::write(lab.journal(), guarded.collect::<String>()).unwrap();
}

#[test]
fn o11_a_journal_in_the_form_of_the_first_version_is_gone_on_with() {
    let lab = Lab::with_a_txt();
    lab.run(&Server::start("turns: [{text: one}]"), &[]).exits(0);
    put(&lab, include_str!("../journals/first.jsonl"));
    let id = lab.journal().parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let shown = lab.agent(&["sessions", "show", &id]).exits(0).stdout;
    assert!(shown.contains("write_file s: ok: written") && !shown.contains("damaged"), "{shown}");
    let server = Server::start("turns: [{text: two}]");
    let done = lab.resume(&server, &["go on", "--json"]).exits(0);
    assert!(!done.stderr.contains("damaged"), "{}", done.stderr);
    assert_eq!((&done.json()["steps"], &done.json()["tool_calls"]), (&3.into(), &3.into()));
    let requests = server.requests();
    every_call_is_answered(&requests[0].body);
    assert_eq!(messages(&requests[0].body).iter().filter(|m| m["role"] == "tool").count(), 3);
}

/// A session in which the model has written a file whose content is longer than a line of a journal; what was sent last.
fn with_a_long_call(lab: &Lab) -> Value {
    let content = "0123456789".repeat(10_000);
    let script = format!(
        "turns:\n  - calls: [{{name: write_file, arguments: {{path: long.txt, content: '{content}'}}}}]\n  - text: one\n"
    );
    let server = Server::start(&script);
    lab.run_yolo(&server, &[]).exits(0);
    server.requests()[1].body.clone()
}

fn texts(lab: &Lab) -> Vec<std::path::PathBuf> {
    let dir = lab.journal().with_file_name("texts");
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn o10_what_is_too_long_for_a_line_of_the_journal_is_kept_beside_it_and_gone_on_with() {
    let lab = Lab::with_a_txt();
    let before = with_a_long_call(&lab);
    let journal = fs::read_to_string(lab.journal()).unwrap();
    let longest = journal.lines().map(str::len).max().unwrap();
    assert!(longest <= 64 << 10, "{longest}");
    for text in texts(&lab) {
        assert_eq!(fs::metadata(&text).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(text.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    }
    let server = Server::start("turns: [{text: two}]");
    lab.resume(&server, &["go on"]).exits(0);
    let (before, after) = (messages(&before), server.requests()[0].body.clone());
    assert_eq!(&messages(&after)[..before.len()], &before[..]);
    assert!(fs::read_to_string(lab.journal()).unwrap().starts_with(&journal));
}

#[test]
fn o10_a_text_that_is_gone_from_beside_the_journal_is_told_and_the_session_goes_on() {
    let lab = Lab::with_a_txt();
    with_a_long_call(&lab);
    for text in texts(&lab) {
        fs::remove_file(text).unwrap();
    }
    let server = Server::start("turns: [{text: two}]");
    let done = lab.resume(&server, &["go on"]).exits(0);
    assert!(done.stderr.contains("without its stored text"), "{}", done.stderr);
    let requests = server.requests();
    every_call_is_answered(&requests[0].body);
    assert!(requests[0].body.to_string().contains("is missing from the files of this session"));
}

#[test]
fn what_a_later_version_has_written_is_not_gone_on_with() {
    let lab = Lab::with_a_txt();
    lab.run(&Server::start("turns: [{text: one}]"), &[]).exits(0);
    let first = include_str!("../journals/first.jsonl");
    let more =
        r#"{"v":2,"seq":99,"run":"r","step":0,"wall_ms":1,"mono_us":1,"event":{"type":"of_tomorrow"}}"#;
    put(&lab, &format!("{first}{more}\n"));
    let before = fs::read(lab.journal()).unwrap();
    let done = lab.resume(&Server::start("turns: [{text: never}]"), &["go on"]).exits(3);
    assert!(done.stderr.contains("a later version of agent has written to it"), "{}", done.stderr);
    assert_eq!(fs::read(lab.journal()).unwrap(), before);
}

#[test]
fn a_line_of_a_journal_that_is_too_long_is_left_out_and_never_held_in_memory() {
    let server = Server::start("turns: [{text: done, repeat: 2}]");
    let lab = Lab::with_a_txt();
    lab.run(&server, &[]).exits(0);
    let journal = fs::File::options().write(true).open(lab.journal()).unwrap();
    journal.set_len(1 << 30).unwrap();
    let (agent, url) = (program(), server.url());
    for command in [
        format!("resume --last more --model openai/mock --api-base {url} --api-key k"),
        "sessions list".to_owned(),
    ] {
        let mut shell = std::process::Command::new("/bin/bash");
        shell.args(["-c", &format!("ulimit -v 500000; exec '{agent}' {command}")]);
        let output = shell.current_dir(lab.ws()).env("AGENT_HOME", lab.home()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{command}: {stderr}");
        assert!(command == "sessions list" || stderr.contains("damaged and left out"), "{stderr}");
    }
}

#[test]
fn o13_a_missing_session_or_an_id_with_path_parts_exits_3() {
    let lab = Lab::with_a_txt();
    for id in ["20200101-000000-abcdef", "../../etc", "a/b", ""] {
        let done = lab.agent(&["resume", id, "x"]).exits(3);
        assert!(!done.stderr.is_empty());
        assert!(done.stdout.is_empty());
    }
    lab.agent(&["resume", "--last", "x"]).exits(3);
    lab.agent(&["sessions", "show", "../x"]).exits(3);
}

#[test]
fn sessions_are_listed_and_shown() {
    let server = Server::start(&format!("turns:\n{READ}  - text: all well\n"));
    let lab = Lab::with_a_txt();
    assert!(lab.agent(&["sessions", "list"]).exits(0).stdout.contains("no session"));
    lab.run(&server, &[]).exits(0);
    let list = lab.agent(&["sessions", "list"]).exits(0).stdout;
    assert!(list.contains("success (llm_done)") && list.contains("task"), "{list}");
    let id = list.lines().nth(1).unwrap().split_whitespace().next().unwrap();
    let shown = lab.agent(&["sessions", "show", id]).exits(0).stdout;
    for expected in ["you: task", "read_file a.txt: ok", "all well"] {
        assert!(shown.contains(expected), "{expected}:\n{shown}");
    }
}

#[test]
fn s27_session_files_are_private_under_any_umask() {
    let server = Server::start("turns: [{text: hi}]");
    let lab = Lab::with_a_txt();
    let url = server.url();
    let agent = program();
    let command =
        format!("umask 000; exec '{agent}' run task --model openai/mock --api-base {url} --api-key {KEY}");
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", &command]).current_dir(lab.ws()).env("AGENT_HOME", lab.home());
    assert!(shell.output().unwrap().status.success());
    let journal = lab.journal();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&journal), 0o600);
    assert_eq!(mode(journal.parent().unwrap()), 0o700);
    assert!(!fs::read_to_string(&journal).unwrap().contains(KEY));
}

#[test]
fn what_a_killed_edit_left_beside_its_file_is_cleared_on_resume() {
    let script = "turns:
  - calls: [{name: read_file, arguments: {path: a.txt}}]
  - calls: [{name: write_file, arguments: {path: a.txt, content: beta}}]
";
    let server = Server::start(script);
    let lab = Lab::with_a_txt()
        .config("hooks: {post_tool_use: [{matcher: write_file, command: touch asked; sleep 60}]}\n");
    let run = lab.start_run(&server, &["--mode", "yolo"]);
    lab.wait_for_file("asked");
    run.signal(Signal::KILL);
    run.finish();
    // As if the kill had come between the swap and the end of the edit, and once with somebody's save.
    fs::write(lab.ws().join(".agent-tmp-2147483647-1"), "alpha\n").unwrap();
    fs::write(lab.ws().join(".agent-tmp-2147483647-2"), "a person's save").unwrap();
    let server = Server::done();
    let lab = lab.config("");
    let done = lab.resume(&server, &["--mode", "yolo"]).exits(0);
    assert!(!lab.exists(".agent-tmp-2147483647-1"), "the old content is known and gone");
    assert_eq!(lab.read(".agent-tmp-2147483647-2"), "a person's save");
    assert_eq!(lab.read("a.txt"), "beta");
    assert!(
        done.stderr.contains(".agent-tmp-2147483647-2 contains the content that it replaced"),
        "{}",
        done.stderr
    );
}

#[test]
fn a_session_of_another_workspace_is_not_gone_on_with() {
    let server = Server::start("turns: [{text: one}]");
    let (lab, other) = (Lab::with_a_txt(), Lab::with_a_txt());
    lab.run(&server, &[]).exits(0);
    other.run(&Server::start("turns: [{text: two}]"), &[]).exits(0);
    fs::copy(lab.journal(), other.journal()).unwrap();
    let done = other.resume(&Server::start("turns: [{text: never}]"), &["go on"]).exits(3);
    assert!(done.stderr.contains("another workspace"), "{}", done.stderr);
}

// Fault A6
#[test]
fn a_renamed_project_finds_its_sessions_by_id() {
    let lab = Lab::with_a_txt().file("keep.txt", "x");
    let write = "turns: [{calls: [{name: edit_file, arguments: {path: a.txt, old_str: alpha, new_str: beta}}]}, {text: first}]";
    let started = lab.run_yolo(&Server::start(write), &["--json"]);
    let id = started.exits(0).json()["session_id"].as_str().unwrap().to_owned();
    let (old, new) = (lab.ws(), lab.outside().join("renamed"));
    fs::rename(&old, &new).unwrap();
    let other = lab.outside().join("other");
    fs::create_dir(&other).unwrap();
    fs::create_dir(lab.outside().join("start")).unwrap();
    let agent = |args: &[&str]| {
        let mut command = lab.command(args);
        command.current_dir(&new);
        Running::new(command.stdin(std::process::Stdio::null()).spawn().unwrap()).finish()
    };
    let listed = agent(&["sessions", "list", "--all"]).exits(0).stdout;
    assert!(
        listed.contains(&format!(
            "Of {}, which was renamed",
            old.canonicalize().unwrap_or(old.clone()).display()
        )) && listed.contains(&id),
        "{listed}"
    );
    assert!(!agent(&["sessions", "list"]).exits(0).stdout.contains(&id));
    let json = agent(&["sessions", "list", "--all", "--json"]).exits(0).json();
    assert_eq!(json[0]["id"], id.as_str());
    assert!(json[0]["workspace"].as_str().unwrap().ends_with("/ws"));
    for args in [&["sessions", "show"][..], &["sessions", "export"], &["report"], &["replay"], &["diff"]] {
        let done = agent(&[args, &[&id]].concat());
        assert_eq!(done.code, Some(0), "{args:?}: {}", done.stderr);
    }
    let server = Server::start("turns: [{text: second}]");
    let url = server.url();
    let resumed =
        agent(&["resume", &id, "go on", "--model", "openai/mock", "--api-base", &url, "--api-key", KEY])
            .exits(0);
    assert!(resumed.stderr.contains("where nothing is any more: it continues here"), "{}", resumed.stderr);
    assert!(server.requests()[0].body.to_string().contains("first"));
    agent(&["undo", &id]).exits(0);
    assert_eq!(fs::read_to_string(new.join("a.txt")).unwrap(), "alpha\n");
    // A new project at the old path is another one, for which the sessions do not count as the last ones.
    fs::create_dir(&old).unwrap();
    let last = lab.resume(&Server::start("turns: [{text: third}]"), &["go on"]);
    let is_told = last.stderr.contains("was created after the last session") && last.stderr.contains(&id);
    assert!(last.code == Some(3) && is_told, "{}", last.stderr);
    let elsewhere =
        agent(&["resume", &id, "go on", "--model", "openai/mock", "--api-base", &url, "--api-key", KEY]);
    let names_old = elsewhere.stderr.contains("belongs to another workspace, /")
        && elsewhere.stderr.contains("/ws (work");
    assert!(elsewhere.code == Some(3) && names_old, "{}", elsewhere.stderr);
    let refused = agent(&["sessions", "rm", &id]).exits(3).stderr;
    assert!(refused.contains("belongs to another workspace"), "{refused}");
    fs::remove_dir(&old).unwrap();
    agent(&["sessions", "rm", &id]).exits(0);
    assert!(agent(&["sessions", "show", &id]).exits(3).stderr.contains("no session"));
    assert!(agent(&["sessions", "show", "20200101-000000-aaaaaa"]).exits(3).stderr.contains("no session"));
}
