//! Results of calls that later sessions may read (`tools.keep_results`).

use crate::support::calls::{call, script};
use crate::support::run::Lab;
use crate::support::server::Server;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// Runs a session of these calls and returns its requests as text: the system message and the last one.
fn session(lab: &Lab, calls: &[Value]) -> (String, String) {
    let server = Server::start(&script(&calls.iter().map(|call| vec![call.clone()]).collect::<Vec<_>>()));
    lab.run_yolo(&server, &[]).exits(0);
    let requests = server.requests();
    let system = requests[0].body["messages"][0]["content"].as_str().unwrap().to_owned();
    (system, requests.last().unwrap().body["messages"].to_string())
}

/// The names `kept:…` in a text.
fn names(text: &str) -> Vec<String> {
    let words = text.split_whitespace().filter(|word| word.starts_with("kept:"));
    words.map(str::to_owned).collect()
}

fn keeping_results() -> Lab {
    Lab::with_a_txt()
        .file("b.txt", "beta\n")
        .config("tools: {keep_results: {read_file: 24, run_command: 1, grep: 2}}\n")
}

fn read(path: &str) -> Value {
    call("read_file", &json!({ "path": path }))
}

fn kept_files(lab: &Lab) -> Vec<PathBuf> {
    let workspaces = fs::read_dir(lab.home().join("state/workspaces")).unwrap();
    let directories = workspaces.map(|entry| entry.unwrap().path().join("kept-results"));
    directories
        .filter_map(|path| fs::read_dir(path).ok())
        .flatten()
        .map(|file| file.unwrap().path())
        .collect()
}

#[test]
fn t34_the_second_session_lists_a_result_and_reads_it_by_its_name() {
    let lab = keeping_results();
    let (system, _) = session(&lab, &[read("a.txt"), call("run_command", &json!({"command": "seq 1 9000"}))]);
    assert!(names(&system).is_empty(), "{system}");
    let (system, _) = session(&lab, &[read("b.txt")]);
    let found = names(&system);
    assert_eq!(found.len(), 2, "{system}");
    assert!(
        system.contains(" read_file a.txt (") && system.contains(" run_command seq 1 9000 ("),
        "{system}"
    );
    let command =
        system.lines().find(|line| line.contains("seq 1")).map(|line| names(line)[0].clone()).unwrap();
    let calls = [read(&command), call("grep", &json!({"path": command, "text": "4321"}))];
    let (_, last) = session(&lab, &calls);
    assert!(last.contains("exit_code: 0") && last.contains(": 4321"), "the whole output is there: {last}");
    let files = kept_files(&lab);
    assert!(files.iter().all(|file| file.metadata().unwrap().permissions().mode() & 0o777 == 0o600));
}

#[test]
fn t34_a_result_is_void_when_a_file_or_the_setting_changes_or_its_time_is_over() {
    let lab = keeping_results();
    session(&lab, &[read("a.txt"), call("run_command", &json!({"command": "cat b.txt"}))]);
    let (system, _) = session(&lab, &[]);
    let name = system.lines().find(|line| line.contains("a.txt")).map(|line| names(line)[0].clone()).unwrap();
    fs::write(lab.ws().join("b.txt"), "other\n").unwrap();
    let listed = lab.agent(&["tools", "kept"]).exits(0).stdout;
    assert!(listed.contains("cat b.txt") && listed.contains("void: b.txt has changed"), "{listed}");
    assert!(!session(&lab, &[]).0.contains("cat b.txt"));
    // It is checked again when it is read: the model changes the file of the result that it was told of.
    let write = call("write_file", &json!({"path": "a.txt", "content": "new\n"}));
    let (system, last) = session(&lab, &[read("a.txt"), write, read(&name)]);
    assert!(system.contains(&name) && last.contains("is void: a.txt has changed"), "{last}");
    let (_, last) = session(&lab, &[read("kept:0123456789ab"), read("kept:../../../etc/passwd")]);
    assert_eq!(last.matches("There is no kept result").count(), 2, "{last}");
    // The time is over.
    session(&lab, &[read("b.txt")]);
    let file = kept_files(&lab).into_iter().find(|file| {
        file.extension().is_some_and(|end| end == "json")
            && fs::read_to_string(file).unwrap().contains("b.txt")
    });
    let file = file.unwrap();
    let mut entry: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    entry["kept_at"] = json!(entry["kept_at"].as_u64().unwrap() - 24 * 3600);
    fs::write(&file, entry.to_string()).unwrap();
    assert!(lab.agent(&["tools", "kept"]).exits(0).stdout.contains("void: it is older than 24 hours"));
    assert!(!session(&lab, &[]).0.contains("read_file b.txt"));
    assert!(!file.exists(), "void results are removed");
}

#[test]
fn t34_only_calls_that_succeed_and_change_nothing_are_kept_and_secrets_are_not() {
    let lab = keeping_results().env("MY_TOKEN", "tok-0123456789abcdefghij");
    let calls = [
        read("missing.txt"),
        call("run_command", &json!({"command": "false"})),
        call("run_command", &json!({"command": "echo new > c.txt"})),
        call("run_command", &json!({"command": "git init -q inner"})),
        call("find_files", &json!({"pattern": "*.txt"})),
        call("run_command", &json!({"command": "printf tok-0123456789; echo abcdefghij"})),
    ];
    session(&lab, &calls);
    let (system, _) = session(&lab, &[]);
    assert_eq!(names(&system).len(), 1, "{system}");
    let all: String = kept_files(&lab).iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    assert!(!all.contains("tok-0123456789abcdefghij"), "{all}");
    // The same call again replaces its result, whatever the order of its arguments.
    session(&lab, &[call("grep", &json!({"text": "alpha", "path": "a.txt"}))]);
    session(&lab, &[call("grep", &json!({"path": "a.txt", "text": "alpha"}))]);
    let (system, _) = session(&lab, &[]);
    assert_eq!(names(&system).len(), 2, "{system}");
    let removed = lab.agent(&["tools", "kept", "--clear"]).exits(0).stdout;
    assert!(removed.contains("removed 2 kept results"), "{removed}");
    assert!(kept_files(&lab).is_empty());
}

#[test]
fn t34_a_result_of_a_file_that_changes_before_it_is_kept_is_not_kept() {
    let keep = "tools: {keep_results: {read_file: 24}}\n";
    let hook = "hooks: {post_tool_use: [{matcher: read_file, command: 'echo new > a.txt'}]}\n";
    let lab = Lab::with_a_txt().file("b.txt", "beta\n").config(&format!("{keep}{hook}"));
    session(&lab, &[read("a.txt"), read("b.txt")]);
    assert_eq!(lab.read("a.txt"), "new\n");
    let (system, _) = session(&lab, &[]);
    assert!(system.contains(" read_file b.txt (") && !system.contains(" read_file a.txt ("), "{system}");
}

#[test]
fn t34_without_the_setting_nothing_is_kept_and_an_untrusted_project_cannot_set_it() {
    let lab = Lab::with_a_txt().file(".agent/config.yaml", "tools: {keep_results: {read_file: 24}}\n");
    session(&lab, &[read("a.txt")]);
    assert!(kept_files(&lab).is_empty());
    assert!(lab.agent(&["tools", "kept"]).exits(0).stdout.contains("No results are kept"));
    let lab = Lab::new().config("tools: {keep_results: {read_fil: 24}}\n");
    let done = lab.agent(&["config", "validate"]).exits(3);
    assert!(done.stderr.contains("results are kept of read_file"), "{}", done.stderr);
}

#[test]
fn t34_a_result_is_void_under_other_permission_rules_and_a_copy_of_one_is_not_kept() {
    let lab = keeping_results().file("src/main.rs", "fn main() {}\n");
    let command = call("run_command", &json!({"command": "cd src && cat main.rs; true"}));
    session(&lab, &[read("a.txt"), command]);
    let (system, _) = session(&lab, &[]);
    let names: Vec<String> = names(&system);
    session(&lab, &[read(&names[0]), read(&names[1])]);
    assert_eq!(self::names(&session(&lab, &[]).0).len(), 2);
    // A file that the command names below a directory that it names.
    fs::write(lab.ws().join("src/main.rs"), "changed\n").unwrap();
    let (system, _) = session(&lab, &[]);
    assert!(!system.contains("main.rs;") && system.contains("read_file a.txt"), "{system}");
    let name = self::names(&system)[0].clone();
    for (more, reason) in [
        ("policy: {rules: [{action: deny, tool: write_file}]}\n", "the permission rules have changed"),
        ("guardrails: {sensitive_files: [a.txt]}\n", "There is no kept result"),
    ] {
        let config = format!("tools: {{keep_results: {{read_file: 24}}}}\n{more}");
        fs::write(lab.home().join("config.yaml"), config).unwrap();
        let (system, last) = session(&lab, &[read(&name)]);
        assert!(!system.contains("read_file a.txt") && last.contains(reason), "{last}");
        assert!(!last.contains("alpha"));
    }
}
