//! The examples of the documentation do what they say.
#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "the test starts the examples in a directory of its own")]

use std::fs;
use std::process::Command;

/// Runs an example with a script in a directory of its own, and returns what it printed.
fn run(example: &str, script: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let [home, workspace] = ["home", "workspace"].map(|name| dir.path().join(name));
    for directory in [&home, &workspace] {
        fs::create_dir(directory).unwrap();
    }
    fs::write(workspace.join("script.yaml"), script).unwrap();
    // Cargo builds examples beside the directory of tests.
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join("examples").join(example);
    let mut command = Command::new(program);
    command.current_dir(&workspace).env_clear().env("AGENT_HOME", &home).env("HOME", &home);
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && told.is_empty(), "{told}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_scripted_run_prints_its_events_and_its_outcome() {
    let printed = run(
        "scripted_run",
        r#"{"turns": [{"calls": [{"name": "list_files", "arguments": {}}]}, {"text": "hello"}]}"#,
    );
    let lines: Vec<&str> = printed.lines().collect();
    let [session, call, result, outcome] = lines[..] else { panic!("{printed}") };
    assert!(session.starts_with("session 20") && call.starts_with("list_files"), "{printed}");
    assert!(result.ends_with(" bytes"), "{printed}");
    assert_eq!(outcome, "success: hello");
}

#[test]
fn a_tool_of_the_program_answers_the_model() {
    let script = |expected: &str, room: &str| {
        format!(
            r#"{{"turns": [{{"calls": [{{"name": "temperature", "arguments": {{"room": "{room}"}}}}]}},
            {{"expect": {{"last_contains": ["{expected}"]}}, "text": "as told"}}]}}"#
        )
    };
    assert_eq!(run("own_tool", &script("21", "kitchen")), "as told\n");
    assert_eq!(run("own_tool", &script("There is no thermometer in 'attic'", "attic")), "as told\n");
}

#[test]
fn the_script_of_the_guide_is_one() {
    let printed = run("scripted_run", include_str!("examples/script.yaml"));
    assert!(printed.ends_with("success: There is one file.\n"), "{printed}");
}

#[test]
fn a_program_answers_the_questions_of_its_run() {
    let calls = r#"[{"name": "write_file", "arguments": {"path": "weather.txt", "content": "rain"}},
        {"name": "run_command", "arguments": {"command": "rm notes.txt"}}]"#;
    let printed = run("approvals", &format!(r#"{{"turns": [{{"calls": {calls}}}, {{"text": "noted"}}]}}"#));
    let lines: Vec<&str> = printed.lines().collect();
    let [write, remove, refused, answer] = lines[..] else { panic!("{printed}") };
    assert!(
        write.starts_with("write_file weather.txt") && remove.starts_with("run_command rm notes.txt"),
        "{printed}"
    );
    assert_eq!((refused, answer), ("refused: run_command rm notes.txt", "noted"), "{printed}");
}
