//! Calls that wait for an answer: `--approvals pause`, `agent approvals`, `agent approve`, `agent deny`.

use crate::support::calls::{call, command, edit, results, script};
use crate::support::run::{Finished, Lab, program};
use crate::support::server::Server;
use crate::support::terminal::AtTerminal;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs;

const PAUSE: [&str; 2] = ["--approvals", "pause"];

fn with_two_files() -> Lab {
    Lab::with_a_txt().file("b.txt", "bravo\n")
}

fn write(path: &str) -> Value {
    call("write_file", &json!({"path": path, "content": "new\n"}))
}

/// A run in which the model makes `calls` in its first answer, and no other: it ends because one of them waits.
fn paused(lab: &Lab, calls: Vec<Value>, more: &[&str]) -> (Finished, Vec<Value>) {
    let server = Server::start(&script(&[calls]));
    let done = lab.run(&server, &[&PAUSE, &["--json"][..], more].concat()).exits(2);
    assert_eq!(server.requests().len(), 1, "the model is not asked again");
    let json = done.json();
    assert_eq!((&json["stop_reason"], &json["status"]), (&json!("awaiting_approval"), &json!("partial")));
    let waiting = json["awaiting_approval"].as_array().cloned().unwrap_or_default();
    assert!(!waiting.is_empty());
    (done, waiting)
}

fn id(waiting: &Value) -> &str {
    waiting["id"].as_str().unwrap()
}

/// Approves all of them.
fn approve(lab: &Lab, waiting: &[Value]) {
    for call in waiting {
        lab.agent(&["approve", id(call)]).exits(0);
    }
}

// Fault A6
#[test]
fn a_call_of_a_renamed_project_is_approved_by_its_id() {
    let lab = with_two_files();
    let (_, waiting) = paused(&lab, vec![write("c.txt")], &[]);
    let (old, new) = (lab.ws(), lab.outside().join("renamed"));
    let approve = || lab.command(&["approve", id(&waiting[0])]).current_dir(&new).output().unwrap();
    fs::create_dir(&new).unwrap();
    let told = String::from_utf8(approve().stderr).unwrap();
    assert!(told.contains("belongs to another workspace"), "{told}");
    fs::remove_dir(&new).unwrap();
    fs::rename(&old, &new).unwrap();
    let done = approve();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// What waits, by `agent approvals list --json`.
fn listed(lab: &Lab) -> Vec<Value> {
    let done = lab.agent(&["approvals", "list", "--json"]).exits(0);
    done.json()["approvals"].as_array().unwrap().clone()
}

/// Goes on with a model that only says that it is done; gives back what it was told as results.
fn resumed(lab: &Lab, more: &[&str]) -> (Finished, Vec<String>) {
    let server = Server::done();
    let done = lab.resume(&server, more).exits(0);
    assert_eq!(server.requests().len(), 1);
    (done, results(&server))
}

/// Resumes a session in which something still waits: no request is made.
fn still_waits(lab: &Lab, more: &[&str]) -> Finished {
    let server = Server::done();
    let done = lab.resume(&server, more).exits(2);
    assert!(server.requests().is_empty(), "the model was asked");
    done
}

/// Rewrites the records of the newest session, each with a checksum that fits.
fn rewrite(lab: &Lab, change: impl Fn(&mut Value)) {
    let path = lab.journal();
    let mut text = String::new();
    for line in fs::read_to_string(&path).unwrap().lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        change(&mut line["record"]["event"]);
        let record = line["record"].to_string();
        let crc = crc32fast::hash(record.as_bytes());
        let _ = writeln!(text, "{{\"crc\":\"{crc:08x}\",\"record\":{record}}}");
    }
    fs::write(path, text).unwrap();
    lab.forges();
}

#[test]
fn s21_an_approved_call_runs_once_on_resume_and_the_model_is_not_asked_before() {
    let lab = with_two_files().unprivileged();
    let (_, waiting) = paused(&lab, vec![write("new.txt")], &[]);
    assert_eq!(
        (&waiting[0]["tool"], &waiting[0]["summary"]),
        (&json!("write_file"), &json!("new.txt (1 line)"))
    );
    assert!(!lab.exists("new.txt"));
    let said = lab.agent(&["approve", id(&waiting[0])]).exits(0);
    assert!(
        said.stdout.starts_with("approved: write_file new.txt (1 line)\ncontinue with: agent resume "),
        "{}",
        said.stdout
    );
    assert!(!lab.exists("new.txt"), "an answer runs nothing");
    let (done, told) = resumed(&lab, &["--json"]);
    assert_eq!(lab.read("new.txt"), "new\n");
    assert_eq!(told.len(), 1);
    assert!(!told[0].contains("Error"), "{}", told[0]);
    let json = done.json();
    assert_eq!(json["stop_reason"], "llm_done");
    assert_eq!(json["files_modified"][0]["path"], "new.txt");
    assert_eq!(json.get("awaiting_approval"), None);
    assert!(listed(&lab).is_empty());
    fs::remove_file(lab.ws().join("new.txt")).unwrap();
    resumed(&lab, &["again"]);
    assert!(!lab.exists("new.txt"), "it ran a second time");
}

#[test]
fn s21_the_log_says_what_waits_and_what_to_type_next_at_every_level() {
    for flags in [&[][..], &["--quiet"], &["--json"]] {
        let lab = with_two_files().unprivileged();
        let server = Server::start(&script(&[vec![write("new.txt")]]));
        let done = lab.run(&server, &[&PAUSE[..], flags].concat()).exits(2);
        let id = listed(&lab)[0]["id"].as_str().unwrap().to_owned();
        let session = listed(&lab)[0]["session_id"].as_str().unwrap().to_owned();
        for line in [
            "1 call waits for your answer:",
            &format!("{id}  write_file: new.txt (1 line)"),
            &format!("agent approve {id}"),
            &format!("agent resume {session}"),
        ] {
            assert!(done.stderr.contains(line), "{flags:?}, {line}:\n{}", done.stderr);
        }
    }
}

#[test]
fn s21_the_list_shows_what_a_call_would_do_and_nothing_that_a_terminal_obeys() {
    let lab = with_two_files().unprivileged();
    let hostile = edit("a.txt", "alpha", "beta\u{1b}[2J\u{202e}gamma");
    paused(&lab, vec![hostile], &[]);
    paused(&lab, vec![command("touch made\nrm -r x\u{1b}[1A")], &[]);
    let shown = lab.agent(&["approvals", "list"]).exits(0).stdout;
    for part in
        ["edit_file a.txt", "-alpha", "+beta\\u{1b}[2J\\u{202e}gamma", "touch made", "rm -r x\\u{1b}[1A"]
    {
        assert!(shown.contains(part), "{part}:\n{shown}");
    }
    for part in
        ["seconds ago", "not answered", "(mode confirm-sensitive)", "agent approve ID", "agent deny ID"]
    {
        assert!(
            shown.contains(part) || part == "seconds ago" && shown.contains("second ago"),
            "{part}:\n{shown}"
        );
    }
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown:?}");
    let document = lab.agent(&["approvals", "list", "--json"]).exits(0).stdout;
    assert!(!document.contains('\u{202e}') && document.lines().count() == 1, "{document:?}");
    let sessions: Vec<Value> = listed(&lab).iter().map(|waiting| waiting["session_id"].clone()).collect();
    assert!(sessions[0].as_str() > sessions[1].as_str(), "the newest first: {sessions:?}");
    assert_eq!(listed(&lab)[0]["answer"], Value::Null);
}

// Fault E2: the middle of a long command was in neither list, and `agent approve` ran it.
#[test]
fn s21_a_long_call_is_listed_whole_also_in_json() {
    let lab = with_two_files().config("memory: {enabled: true}\n").unprivileged();
    let content = format!("{}in the middle\n{}", "a line\n".repeat(20_000), "a line\n".repeat(20_000));
    paused(&lab, vec![call("write_file", &json!({"path": "new.txt", "content": content}))], &[]);
    let line = format!("true {}; touch hidden\u{202e}; true {}", "x".repeat(2_000), "x".repeat(2_000));
    paused(&lab, vec![command(&line)], &[]);
    let fact = format!("{} in the fact {}", "x".repeat(400), "x".repeat(400));
    paused(&lab, vec![call("remember", &json!({"fact": fact}))], &["--mode", "confirm-all"]);
    let shown = lab.agent(&["approvals", "list"]).exits(0).stdout;
    let listed: Vec<String> =
        listed(&lab).iter().map(|call| call["preview"].as_str().unwrap().to_owned()).collect();
    for part in ["+in the middle\n", "; touch hidden\\u{202e}; true", " in the fact "] {
        assert!(shown.contains(part), "{part}");
        assert!(listed.iter().any(|preview| preview.contains(part)), "{part}");
    }
    assert_eq!(shown.matches("+a line\n").count(), 40_000);
}

#[test]
fn s21_a_denied_call_tells_the_model_why_and_does_not_run() {
    let lab = with_two_files().unprivileged();
    let (_, waiting) = paused(&lab, vec![write("new.txt")], &[]);
    let said = lab.agent(&["deny", id(&waiting[0]), "--reason", "use the old file"]).exits(0);
    assert!(said.stdout.starts_with("refused: write_file new.txt"), "{}", said.stdout);
    let (done, told) = resumed(&lab, &["--mode", "yolo", "--json"]);
    assert!(told[0].contains("The user declined this action: use the old file"), "{}", told[0]);
    assert_eq!(done.json()["permission_denials"][0]["rule"], "person");
    assert!(!lab.exists("new.txt"));
    let (_, waiting) = paused(&lab, vec![write("new.txt")], &[]);
    lab.agent(&["deny", id(&waiting[0])]).exits(0);
    let (_, told) = resumed(&lab, &["--dry-run"]);
    assert!(told[0].contains("The user declined this action.\n"), "{}", told[0]);
}

#[test]
fn s21_without_an_answer_a_resume_says_what_waits_and_asks_no_model() {
    let lab = with_two_files().unprivileged();
    let (_, waiting) = paused(&lab, vec![write("new.txt")], &[]);
    let done = still_waits(&lab, &[]);
    assert!(done.stderr.contains(&format!("agent approve {}", id(&waiting[0]))), "{}", done.stderr);
    let done = still_waits(&lab, &["--json", "--mode", "yolo"]);
    assert_eq!(done.json()["awaiting_approval"], json!(waiting), "a wider mode is no answer");
    assert_eq!(done.json()["stop_reason"], "awaiting_approval");
    assert!(!lab.exists("new.txt"));
    still_waits(&lab, &["--exit-code-on-partial", "2"]);
}

#[test]
fn s21_calls_before_the_one_that_waits_have_run_and_those_after_it_wait() {
    for parallel in ["off", "reads", "all"] {
        calls_keep_their_order(parallel);
    }
}

fn calls_keep_their_order(parallel: &str) {
    let config = format!("commands: {{trust_sandbox: false}}\ntools: {{parallel: {parallel}}}\n");
    let lab = with_two_files().config(&config).unprivileged();
    let read = call("read_file", &json!({"path": "a.txt"}));
    let calls = vec![read.clone(), write("one.txt"), read, write("two.txt"), command("echo ran >> log")];
    let (done, waiting) = paused(&lab, calls, &[]);
    let tools: Vec<&Value> = waiting.iter().map(|call| &call["tool"]).collect();
    assert_eq!(tools, ["write_file", "write_file", "run_command"], "all questions are asked at once");
    assert_eq!(done.json()["tools_used"].as_array().unwrap().len(), 1, "only the first has run");
    lab.agent(&["approve", id(&waiting[1])]).exits(0);
    let said = still_waits(&lab, &["--json"]);
    assert!(!lab.exists("two.txt"), "it overtook the call before it");
    assert_eq!(said.json()["awaiting_approval"].as_array().unwrap().len(), 2);
    approve(&lab, &waiting[..1]);
    let said = still_waits(&lab, &["--json"]);
    assert_eq!((lab.exists("one.txt"), lab.exists("two.txt"), lab.exists("log")), (true, true, false));
    assert_eq!(said.json()["tools_used"].as_array().unwrap().len(), 4);
    lab.agent(&["approve", id(&waiting[2])]).exits(0);
    let (_, told) = resumed(&lab, &[]);
    assert_eq!(lab.read("log"), "ran\n");
    assert_eq!(told.len(), 5);
    assert!(told[0].contains("alpha") && told[2].contains("alpha"), "{told:?}");
}

#[test]
fn s21_a_second_change_of_a_file_is_asked_about_in_its_turn() {
    let lab = with_two_files().unprivileged();
    let (_, first) = paused(&lab, vec![edit("a.txt", "alpha", "beta"), edit("a.txt", "beta", "gamma")], &[]);
    assert_eq!(first.len(), 1);
    approve(&lab, &first[..1]);
    let again = still_waits(&lab, &["--json"]);
    assert_eq!(lab.read("a.txt"), "beta\n");
    let second = again.json()["awaiting_approval"][0].clone();
    assert_ne!(id(&second), id(&first[0]));
    assert!(listed(&lab)[0]["preview"].as_str().unwrap().contains("-beta\n+gamma"));
    lab.agent(&["approve", id(&second)]).exits(0);
    resumed(&lab, &[]);
    assert_eq!(lab.read("a.txt"), "gamma\n");
}

#[test]
fn s21_the_last_answer_counts_until_the_call_runs() {
    let lab = with_two_files().unprivileged();
    let (_, waiting) = paused(&lab, vec![write("new.txt")], &[]);
    approve(&lab, &waiting[..1]);
    assert_eq!(listed(&lab)[0]["answer"]["decision"], "approve");
    lab.agent(&["deny", id(&waiting[0])]).exits(0);
    resumed(&lab, &[]);
    assert!(!lab.exists("new.txt"));
    for args in [&["approve", id(&waiting[0])][..], &["deny", "000000000000"], &["approve", "../x"]] {
        let done = lab.agent(args).exits(3);
        assert!(done.stderr.contains("no pending call has the id"), "{}", done.stderr);
    }
}

#[test]
fn s21_a_session_at_work_takes_no_answer() {
    let lab = with_two_files().unprivileged();
    let (_, waiting) = paused(&lab, vec![write("new.txt")], &[]);
    approve(&lab, &waiting[..1]);
    let server = Server::start("turns: [{fault: hang}]");
    let url = server.url();
    let key = crate::support::run::KEY;
    let run =
        lab.start(&["resume", "--last", "--model", "openai/mock", "--api-base", &url, "--api-key", key]);
    server.wait_for_request(1);
    lab.agent(&["deny", id(&waiting[0])]).exits(3);
    run.signal(Signal::INT);
    run.finish().exits(130);
}

#[test]
fn s21_what_is_said_while_calls_wait_follows_their_results() {
    let lab = with_two_files().unprivileged();
    let (_, waiting) = paused(&lab, vec![write("new.txt")], &[]);
    still_waits(&lab, &["and then the tests"]);
    approve(&lab, &waiting[..1]);
    let server = Server::done();
    lab.resume(&server, &["quickly"]).exits(0);
    let requests = server.requests();
    let messages = requests[0].messages();
    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "user", "user"]);
    assert_eq!(
        (&messages[4]["content"], &messages[5]["content"]),
        (&json!("and then the tests"), &json!("quickly"))
    );
}

#[test]
fn s21_a_session_that_has_waited_waits_again_and_the_configuration_can_say_it_too() {
    let lab = with_two_files().config("policy: {approvals: pause}\n").unprivileged();
    let server = Server::start(&script(&[vec![write("one.txt")]]));
    lab.run(&server, &[]).exits(2);
    let lab = lab.config("");
    approve(&lab, &listed(&lab)[..1]);
    let server = Server::start(&script(&[vec![write("two.txt")]]));
    lab.resume(&server, &["--json"]).exits(2);
    assert_eq!((lab.exists("one.txt"), lab.exists("two.txt")), (true, false));
    approve(&lab, &listed(&lab)[..1]);
    let server = Server::start(&script(&[vec![write("three.txt")]]));
    lab.resume(&server, &["--approvals", "refuse"]).exits(0);
    assert_eq!((lab.exists("two.txt"), lab.exists("three.txt")), (true, false));
    assert!(listed(&lab).is_empty());
}

#[test]
fn s21_a_person_at_the_terminal_is_asked_at_once() {
    let lab = with_two_files().unprivileged();
    let server = Server::start(&script(&[vec![write("no.txt")], vec![write("yes.txt")]]));
    let mut run = AtTerminal::start(&lab, &server, &PAUSE);
    run.answer("n\r");
    run.answer("y\r");
    run.finish().exits(0);
    assert_eq!((lab.exists("no.txt"), lab.exists("yes.txt")), (false, true));
    assert!(listed(&lab).is_empty());
}

#[test]
fn s21_an_approved_call_waits_its_turn_behind_one_that_is_asked_about_later() {
    let lab = with_two_files().unprivileged();
    let calls = vec![edit("a.txt", "alpha", "beta"), edit("a.txt", "beta", "gamma"), write("new.txt")];
    let (_, waiting) = paused(&lab, calls, &[]);
    approve(&lab, &waiting);
    still_waits(&lab, &[]);
    assert_eq!((lab.read("a.txt").as_str(), lab.exists("new.txt")), ("beta\n", false));
    let states: Vec<Value> = listed(&lab).iter().map(|call| call["answer"]["decision"].clone()).collect();
    assert_eq!(states, [Value::Null, json!("approve")], "in the order of the calls");
    lab.agent(&["deny", id(&listed(&lab)[0])]).exits(0);
    resumed(&lab, &[]);
    assert_eq!((lab.read("a.txt").as_str(), lab.exists("new.txt")), ("beta\n", true));
}

#[test]
fn s21_a_call_without_a_session_cannot_wait() {
    let lab = with_two_files().config("policy: {approvals: pause}\n").unprivileged();
    let arguments = json!({"path": "new.txt", "content": "x"}).to_string();
    let done = lab.agent(&["tools", "call", "write_file", &arguments]).exits(1);
    assert!(done.stderr.contains("this run has no prompts"), "{}", done.stderr);
}

#[test]
fn s21_sessions_show_tells_of_questions_and_answers() {
    let lab = with_two_files().unprivileged();
    let (done, waiting) = paused(&lab, vec![write("new.txt")], &[]);
    lab.agent(&["deny", id(&waiting[0]), "--reason", "not now"]).exits(0);
    let json = done.json();
    let shown = lab.agent(&["sessions", "show", json["session_id"].as_str().unwrap()]).exits(0).stdout;
    let id = id(&waiting[0]);
    for line in [
        format!("write_file new.txt (1 line): waits for an answer ({id})"),
        format!("refused: {id}: not now"),
    ] {
        assert!(shown.contains(&line), "{line}:\n{shown}");
    }
    let list = lab.agent(&["sessions", "list"]).exits(0).stdout;
    assert!(list.contains("partial (awaiting_approval)"), "{list}");
}

#[test]
fn s21_kill_9_loses_no_question_and_runs_no_approved_call_twice() {
    let lab = with_two_files().config("commands: {trust_sandbox: false}\n").unprivileged();
    let (_, waiting) =
        paused(&lab, vec![command("echo ran >> log; touch began; sleep 60"), write("new.txt")], &[]);
    approve(&lab, &waiting[..1]);
    lab.agent(&["approve", id(&waiting[1])]).exits(0);
    let server = Server::done();
    let url = server.url();
    let key = crate::support::run::KEY;
    let run =
        lab.start(&["resume", "--last", "--model", "openai/mock", "--api-base", &url, "--api-key", key]);
    lab.wait_for_file("began");
    run.signal(Signal::KILL);
    run.finish();
    assert_eq!(listed(&lab).len(), 2, "neither has a result");
    let (_, told) = resumed(&lab, &[]);
    assert!(told[0].contains("interrupted; outcome unknown"), "{}", told[0]);
    assert_eq!((lab.read("log").as_str(), lab.read("new.txt").as_str()), ("ran\n", "new\n"));
}

#[test]
fn s21_a_run_that_died_after_its_question_can_still_be_answered() {
    let lab = with_two_files().unprivileged();
    let (_, waiting) = paused(&lab, vec![write("new.txt")], &[]);
    let journal = fs::read_to_string(lab.journal()).unwrap();
    let (kept, _) = journal.split_at(journal.rfind("{\"crc\"").unwrap());
    let asked = kept.rfind("tool_call_pending").unwrap();
    let end = asked + kept[asked..].find('\n').unwrap() + 1;
    fs::write(lab.journal(), &journal[..end]).unwrap();
    approve(&lab, &waiting[..1]);
    resumed(&lab, &[]);
    assert_eq!(lab.read("new.txt"), "new\n");
}

#[test]
fn s21_what_holds_a_secret_does_not_wait_but_is_refused() {
    let lab = with_two_files().unprivileged();
    let secret = call("write_file", &json!({"path": "new.txt", "content": crate::support::run::KEY}));
    let server = Server::start(&script(&[vec![secret]]));
    lab.run(&server, &PAUSE).exits(0);
    let told = results(&server);
    assert!(told[0].contains("has no prompts") && told[0].contains("contains a secret"), "{}", told[0]);
    assert!(listed(&lab).is_empty());
}

#[test]
fn s22_an_answer_is_for_the_arguments_that_were_shown() {
    let lab = with_two_files().unprivileged();
    let (_, waiting) = paused(&lab, vec![write("new.txt")], &[]);
    approve(&lab, &waiting[..1]);
    rewrite(&lab, |event| {
        if event["type"] == "model_response" {
            let call = event["message"]["parts"].as_array_mut().unwrap().last_mut().unwrap();
            call["arguments"] = json!(json!({"path": "other.txt", "content": "new\n"}).to_string());
        }
    });
    let (done, told) = resumed(&lab, &["--json"]);
    assert!(told[0].contains("The approval does not apply: its arguments are not"), "{}", told[0]);
    assert_eq!(done.json()["permission_denials"][0]["rule"], "approval");
    assert_eq!((lab.exists("new.txt"), lab.exists("other.txt")), (false, false));
}

#[test]
fn s22_an_answer_is_for_the_tool_that_was_shown() {
    let lab = with_two_files().unprivileged();
    let find = call("find_files", &json!({"pattern": "alpha"}));
    let (_, waiting) = paused(&lab, vec![find], &["--mode", "confirm-all"]);
    approve(&lab, &waiting[..1]);
    rewrite(&lab, |event| {
        if event["type"] == "model_response" {
            event["message"]["parts"].as_array_mut().unwrap().last_mut().unwrap()["name"] =
                json!("search_code");
        }
    });
    let (_, told) = resumed(&lab, &["--mode", "confirm-all"]);
    assert!(told[0].contains("The approval does not apply: it is another tool"), "{}", told[0]);
}

#[test]
fn s22_an_answer_is_for_the_question_that_was_shown_and_no_mode_frees_another() {
    let lab = with_two_files().unprivileged();
    let (_, waiting) = paused(&lab, vec![write("new.txt")], &[]);
    approve(&lab, &waiting[..1]);
    rewrite(&lab, |event| {
        if event["type"] == "tool_call_pending" {
            event["approval"]["summary"] = json!("harmless.txt");
        }
    });
    let (_, told) = resumed(&lab, &["--mode", "yolo"]);
    assert!(told[0].contains("the answer belongs to another session or call"), "{}", told[0]);
    assert!(!lab.exists("new.txt"));
}

#[test]
fn s22_an_answer_that_was_not_given_here_is_none_in_any_mode() {
    let denied = || {
        let lab = with_two_files().unprivileged();
        let (_, waiting) = paused(&lab, vec![write("new.txt")], &[]);
        (lab, waiting)
    };
    let refused = |lab: &Lab| {
        let (_, told) = resumed(lab, &["--mode", "yolo"]);
        assert!(told[0].contains("the answer belongs to another session or call"), "{}", told[0]);
        assert!(!lab.exists("new.txt"));
    };
    let (lab, waiting) = denied();
    lab.agent(&["deny", id(&waiting[0])]).exits(0);
    rewrite(&lab, |event| {
        if event["type"] == "approval_answered" {
            event["answer"] = json!({"decision": "approve"});
        }
    });
    refused(&lab);
    let (lab, waiting) = denied();
    approve(&lab, &waiting);
    let state = lab.journal().ancestors().nth(3).unwrap().to_owned();
    assert_eq!(listed(&lab)[0]["answer"]["decision"], "approve");
    fs::remove_file(state.join("answers.key")).unwrap();
    assert_eq!(listed(&lab)[0]["answer"], Value::Null);
    refused(&lab);
}

#[test]
fn s22_an_answer_is_for_the_files_as_they_were_and_for_where_paths_led() {
    let lab = with_two_files().file("real/x", "x\n").file("other/x", "x\n");
    std::os::unix::fs::symlink("real", lab.ws().join("link")).unwrap();
    let lab = lab.unprivileged();
    let (_, waiting) = paused(&lab, vec![edit("a.txt", "alpha", "beta"), edit("link/x", "x", "y")], &[]);
    approve(&lab, &waiting);
    fs::write(lab.ws().join("a.txt"), "alpha\nand more\n").unwrap();
    fs::remove_file(lab.ws().join("link")).unwrap();
    std::os::unix::fs::symlink("other", lab.ws().join("link")).unwrap();
    let (_, told) = resumed(&lab, &[]);
    assert!(told[0].contains("a.txt has changed"), "{}", told[0]);
    assert!(told[1].contains("its paths resolve to other files"), "{}", told[1]);
    assert_eq!((lab.read("a.txt").as_str(), lab.read("other/x").as_str()), ("alpha\nand more\n", "x\n"));
}

#[test]
fn s22_a_file_that_changed_since_it_was_read_is_refused_as_usual() {
    let lab = with_two_files().unprivileged();
    let read = call("read_file", &json!({"path": "a.txt"}));
    let server = Server::start(&script(&[vec![read], vec![edit("a.txt", "alpha", "beta")]]));
    lab.run(&server, &PAUSE).exits(2);
    fs::write(lab.ws().join("a.txt"), "alpha\nand more\n").unwrap();
    approve(&lab, &listed(&lab)[..1]);
    let (_, told) = resumed(&lab, &[]);
    assert!(told[1].contains("a.txt"), "{}", told[1]);
    assert_eq!(lab.read("a.txt"), "alpha\nand more\n");
}

#[test]
fn s22_the_policy_is_asked_again_when_an_approved_call_runs() {
    let lab = with_two_files().unprivileged();
    let (_, waiting) = paused(&lab, vec![write("a.lock"), write("new.txt"), command("touch made")], &[]);
    approve(&lab, &waiting);
    let rules = json!({
        "policy": {"rules": [{"action": "deny", "command": "touch", "reason": "changed my mind"}]},
        "guardrails": {"protected_files": ["*.lock"]},
    });
    let lab = lab.config(&rules.to_string());
    let (_, told) = resumed(&lab, &[]);
    assert!(told[0].contains("Protected file blocked by guardrail"), "{}", told[0]);
    assert!(told[2].contains("changed my mind"), "{}", told[2]);
    assert_eq!((lab.exists("a.lock"), lab.exists("new.txt"), lab.exists("made")), (false, true, false));
}

#[test]
fn s22_what_a_hook_made_of_the_arguments_is_shown_approved_and_run() {
    let hook = |path: &str| {
        let answer = json!({"updatedInput": {"path": path, "content": "by a hook\n"}});
        json!({"hooks": {"pre_tool_use": [{"command": format!("echo '{answer}'")}]}}).to_string()
    };
    for (path, runs) in [("hooked.txt", true), ("third.txt", false)] {
        let lab = with_two_files().config(&hook("hooked.txt")).unprivileged();
        let (_, waiting) = paused(&lab, vec![write("new.txt")], &[]);
        assert_eq!(waiting[0]["summary"], "hooked.txt (1 line)");
        approve(&lab, &waiting[..1]);
        let lab = lab.config(&hook(path));
        let (_, told) = resumed(&lab, &[]);
        assert_eq!(told[0].contains("its arguments are not those that were approved"), !runs, "{}", told[0]);
        assert_eq!((lab.exists("hooked.txt"), lab.exists("third.txt")), (runs, false));
        assert!(!lab.exists("new.txt"));
    }
}

#[test]
fn s21_a_call_that_a_hook_made_harmless_keeps_its_place_behind_one_that_waits() {
    let answer = json!({"updatedInput": {"command": "cat new.txt"}});
    let hook = json!({"matcher": "run_command", "command": format!("echo '{answer}'")});
    let lab = with_two_files().config(&json!({"hooks": {"pre_tool_use": [hook]}}).to_string()).unprivileged();
    let (done, waiting) =
        paused(&lab, vec![write("new.txt"), command("touch made")], &["--log-level", "human"]);
    assert_eq!(waiting.len(), 1);
    assert!(done.stderr.contains("WAITS for the calls before it"), "{}", done.stderr);
    approve(&lab, &waiting[..1]);
    let (_, told) = resumed(&lab, &[]);
    assert!(told[1].contains("new\n") && told[1].contains("were changed to"), "{}", told[1]);
    assert!(!lab.exists("made"));
}

#[test]
fn s22_a_confined_command_cannot_answer_for_the_person() {
    let lab = with_two_files().unprivileged();
    let (_, waiting) = paused(&lab, vec![write("new.txt")], &[]);
    let (home, agent) = (lab.home(), program());
    let answer = format!("AGENT_HOME={} '{agent}' approve {}; echo code $?", home.display(), id(&waiting[0]));
    let tried = |sandbox: &str| {
        let server = Server::start(&script(&[vec![command(&answer)]]));
        let done = lab.run_yolo(&server, &["--json", "--sandbox", sandbox]).exits(0);
        (results(&server).remove(0), done.json()["sandbox"] != "none")
    };
    let (told, is_confined) = tried("auto");
    assert_eq!(told.contains("code 3"), is_confined, "{told}");
    assert_eq!(listed(&lab)[0]["answer"] == Value::Null, is_confined);
    let (told, _) = tried("off");
    assert!(told.contains("code 0"), "what nothing confines acts for the person, as the manual says: {told}");
}
