use super::*;
use serde_json::json;

/// A directory with these files.
#[expect(clippy::disallowed_methods, reason = "the test makes the files")]
fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    directory
}

fn errors(files: &[(&str, &str)]) -> String {
    read(directory(files).path(), true).unwrap_err().join("\n")
}

#[test]
fn a_task_has_the_keys_of_its_file_and_tasks_are_sorted() {
    let folders = directory(&[
        ("b/task.yaml", "prompt: second\n"),
        ("b/workspace/x", ""),
        ("a/task.yaml", "prompt: first\nchecks: [one, two]\ntimeout: 5\nmax_steps: 7\n"),
        ("a/workspace/x", ""),
        (".git/config", ""),
        ("README.md", ""),
    ]);
    let tasks = read(folders.path(), true).unwrap();
    assert_eq!(tasks.iter().map(|task| task.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(
        (&tasks[0].checks, tasks[0].timeout, tasks[0].max_steps),
        (&vec!["one".to_owned(), "two".to_owned()], Some(5), Some(7))
    );
    let stored = serde_json::to_string(&tasks).unwrap();
    assert_eq!(serde_json::from_str::<Vec<EvalTask>>(&stored).unwrap(), tasks);
}

#[test]
fn a_path_of_an_exercise_outside_of_it_is_refused() {
    for path in ["../x", "/x", "", "a/../../x"] {
        let config = json!({"files": {"solution": ["a"], "test": [path], "example": ["b"]}}).to_string();
        let files = [
            ("python/exercises/practice/x/.meta/config.json", config.as_str()),
            ("python/exercises/practice/x/.docs/instructions.md", "x"),
        ];
        assert!(errors(&files).contains("is no path below the exercise"), "{path}");
    }
}

#[test]
fn an_exercise_without_an_example_or_instructions_is_refused() {
    let config = json!({"files": {"solution": ["a"], "test": ["t"], "example": ["b"]}}).to_string();
    let without = config.replace("example", "editor");
    let file = "go/exercises/practice/x/.meta/config.json";
    assert!(errors(&[(file, &config)]).contains("instructions.md: does not exist"));
    assert!(errors(&[(file, &without)]).contains("files.example is empty"));
    assert!(errors(&[(file, &config), ("docs/x", "")]).contains("docs: has no exercises/practice"));
}

fn instance(id: &str) -> serde_json::Value {
    json!({
        "instance_id": id, "repo": "o/n", "base_commit": "0123456789", "problem_statement": "p", "test_patch": "",
        "FAIL_TO_PASS": ["a b", "c"], "PASS_TO_PASS": "[]", "version": "1",
    })
}

#[test]
fn instances_are_read_from_a_list_or_from_lines() {
    let (list, lines) = (json!([instance("x")]).to_string(), format!("{}\n\n", instance("x")));
    for (name, text) in [("i.json", list), ("i.jsonl", lines)] {
        let directory = directory(&[(name, &text), ("n/.git/HEAD", "")]);
        let tasks = read(directory.path(), true).unwrap();
        assert_eq!(tasks[0].variables["AGENT_VAR_FAIL_TO_PASS"], "a b\nc");
        assert_eq!(
            tasks[0].files,
            TaskFiles::Commit { clone: directory.path().join("n"), commit: "0123456789".to_owned() }
        );
    }
}

#[test]
fn every_instance_that_cannot_be_used_is_named() {
    let mut wrong = [
        instance("a"),
        instance("b"),
        instance("c"),
        instance("d"),
        instance("e/f"),
        instance("g"),
        instance("g"),
        instance(".."),
    ];
    wrong[0]["repo"] = json!("other/repository");
    wrong[1]["base_commit"] = json!("--all");
    wrong[2]["FAIL_TO_PASS"] = json!("no list");
    wrong[3].as_object_mut().unwrap().remove("test_patch");
    let text = wrong.map(|instance| instance.to_string()).join("\n") + "\nnothing";
    let errors = errors(&[("i.jsonl", &text), ("n/.git/HEAD", "")]);
    for expected in [
        "a: there is no clone of other/repository",
        "b: base_commit is no id of a commit",
        "c: FAIL_TO_PASS: expected ident",
        "d: missing field `test_patch`",
        "e/f: an instance_id contains no `/`",
        "two tasks have the name g",
        "..: the name of a task is one line",
        "instance 9: expected ident",
    ] {
        assert!(errors.contains(expected), "{expected}: {errors}");
    }
}

#[test]
fn too_many_tasks_and_too_long_variables_are_refused() {
    let many: Vec<_> = (0..=MAX_TASKS).map(|number| instance(&number.to_string())).collect();
    assert!(
        errors(&[("i.json", &json!(many).to_string()), ("n/.git/HEAD", "")])
            .contains("1001 tasks are more than 1000")
    );
    let mut long = instance("long");
    long["PASS_TO_PASS"] = json!(["x".repeat(MAX_VARIABLE_BYTES + 1)]);
    assert!(
        errors(&[("i.jsonl", &long.to_string()), ("n/.git/HEAD", "")])
            .contains("long: AGENT_VAR_PASS_TO_PASS has more than")
    );
}
