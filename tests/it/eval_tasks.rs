//! `agent eval --tasks`: folders with `task.yaml`, exercises of the polyglot benchmark, instances of SWE-bench; errors, resuming, cleanup.

use crate::support::run::{Finished, Lab};
use crate::support::schema;
use crate::support::server::Server;
use crate::support::work::{newest_id, on_server};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Returns the model of a script that makes these calls and then answers.
fn model(lab: &Lab, name: &str, calls: &str) -> String {
    let file = lab.outside().join(format!("{name}.yaml"));
    write(&file, &format!("turns:\n  - calls: [{calls}]\n  - text: done\n"));
    format!("scripted:{}", file.display())
}

fn command(command: &str) -> String {
    format!("{{name: run_command, arguments: {{command: {}}}}}", json!(command))
}

fn eval(lab: &Lab, tasks: &Path, models: &[&str], more: &[&str]) -> Finished {
    let models = models.join(",");
    let words = ["eval", "--mode", "yolo", "--tasks", tasks.to_str().unwrap(), "--models", &models];
    lab.agent(&[&words, more].concat())
}

/// Returns the names and the scored runs of a task.
fn runs_of<'a>(json: &'a Value, task: &str) -> Vec<(&'a str, bool)> {
    let scores = json["task_scores"].as_array().unwrap();
    let of_task = scores.iter().filter(|score| score["task"] == task);
    let run =
        |score: &'a Value| (score["name"].as_str().unwrap(), score["runs"][0]["passed"].as_bool().unwrap());
    of_task.map(run).collect()
}

/// Two tasks: `create` needs b.txt, `keep` needs a.txt unchanged.
fn folders(lab: &Lab) -> PathBuf {
    let tasks = lab.outside().join("tasks");
    write(&tasks.join("create/task.yaml"), "prompt: make b.txt\nchecks: test -e b.txt\nmax_steps: 10\n");
    write(&tasks.join("create/workspace/a.txt"), "first\n");
    write(&tasks.join("keep/task.yaml"), "prompt: look\nchecks: [\"grep -q second a.txt\"]\ntimeout: 60\n");
    write(&tasks.join("keep/workspace/a.txt"), "second\n");
    tasks
}

#[test]
fn a18_each_task_of_a_directory_is_measured_in_a_repository_of_its_own() {
    let lab = Lab::new();
    let tasks = folders(&lab);
    let good = model(&lab, "good", "{name: write_file, arguments: {path: b.txt, content: x}}");
    let bad = model(&lab, "bad", "{name: list_files, arguments: {}}");
    let json = eval(&lab, &tasks, &[&bad, &good], &["--json"]).exits(2).json();
    schema::valid(&schema::of("work"), &json);
    assert_eq!(runs_of(&json, "create"), [(bad.as_str(), false), (good.as_str(), true)]);
    assert_eq!(runs_of(&json, "keep"), [(bad.as_str(), true), (good.as_str(), true)]);
    let first = &json["ranking"][0];
    assert_eq!((&first["name"], &first["passed"], &first["runs"]), (&json!(good), &json!(2), &json!(2)));
    // The limit of the task: two of ten steps.
    let run = &json["task_scores"][1]["runs"][0];
    assert_eq!(run["parts"]["efficiency"], json!(16.0));
    let worktree = &json["runs"][1]["worktree"];
    assert_ne!(worktree["commit"], worktree["base"]);
    assert!(!tasks.join("create/workspace/b.txt").exists() && !lab.exists("b.txt"));
    assert!(!tasks.join("create/workspace/.git").exists());
}

#[test]
fn a18_all_errors_of_the_tasks_are_reported_with_their_positions_and_nothing_runs() {
    let lab = Lab::new();
    let tasks = folders(&lab);
    write(&tasks.join("create/task.yaml"), "task: x\nchecks: \"\"\n");
    write(&tasks.join("keep/task.yaml"), "prompt: look\nmax_steps: 0\nchecks: \"test {{x}}\"\n");
    std::fs::create_dir_all(tasks.join("other")).unwrap();
    let done = eval(&lab, &tasks, &["scripted:a", "scripted:b"], &[]).exits(3);
    for expected in [
        "create/task.yaml:1:1: unknown key `task` (did you mean `prompt`?)",
        "create/task.yaml:2:9: `checks` is empty",
        "keep/task.yaml:2:12: `max_steps` is a number of steps, 1 to 10000",
        "keep/task.yaml:3:9: `{{x}}` in a command",
        "other/task.yaml: does not exist",
    ] {
        assert!(done.stderr.contains(expected), "{expected}: {}", done.stderr);
    }
    assert!(lab.journals().is_empty());
}

#[test]
fn a18_a_directory_without_tasks_a_task_beside_it_and_missing_checks_are_exit_3() {
    let lab = Lab::new();
    let empty = lab.outside().join("empty");
    std::fs::create_dir_all(&empty).unwrap();
    let models = ["scripted:a", "scripted:b"];
    let done = eval(&lab, &empty, &models, &[]).exits(3);
    assert!(done.stderr.contains("contains neither folders with a `task.yaml`"), "{}", done.stderr);
    let done = eval(&lab, &empty, &models, &["a task"]).exits(3);
    assert!(done.stderr.contains("give either a task or `--tasks DIR`"), "{}", done.stderr);
    let tasks = folders(&lab);
    write(&tasks.join("keep/task.yaml"), "prompt: look\n");
    let done = eval(&lab, &tasks, &models, &[]).exits(3);
    assert!(done.stderr.contains("the task has no checks"), "{}", done.stderr);
}

#[test]
fn a18_an_exercise_hides_its_example_and_gets_its_tests_back_before_the_checks() {
    let lab = Lab::new();
    let tasks = lab.outside().join("polyglot");
    let exercise = tasks.join("python/exercises/practice/two");
    write(&exercise.join(".docs/instructions.md"), "Make two() return 2.\n");
    let config =
        json!({"files": {"solution": ["two.py"], "test": ["two_test.py"], "example": [".meta/example.py"]}});
    write(&exercise.join(".meta/config.json"), &config.to_string());
    write(&exercise.join(".meta/example.py"), "EXAMPLE\n");
    write(&exercise.join("two.py"), "1\n");
    write(&exercise.join("two_test.py"), "2\n");
    let honest = model(&lab, "honest", &command("cp two_test.py two.py; rm two_test.py"));
    let example = exercise.join(".meta/example.py");
    let look = format!("cat {} > two.py; cp two.py two_test.py; ls -a > seen.txt", example.display());
    let cheat = model(&lab, "cheat", &command(&look));
    let check = "cmp two.py two_test.py && test $AGENT_VAR_LANGUAGE/$AGENT_VAR_TASK = python/python/two";
    let json = eval(&lab, &tasks, &[&honest, &cheat], &["--check", check, "--json"]).exits(2).json();
    assert_eq!(runs_of(&json, "python/two"), [(honest.as_str(), true), (cheat.as_str(), false)]);
    let path = |run: usize| PathBuf::from(json["runs"][run]["worktree"]["path"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(path(1).join("two.py")).unwrap(), "");
    assert!(!std::fs::read_to_string(path(1).join("seen.txt")).unwrap().contains(".meta"));
    assert_eq!(std::fs::read_to_string(path(0).join("two_test.py")).unwrap(), "2\n");
    assert!(path(0).ends_with("two"));
}

/// A clone with the commits `base` and `solution`, and one instance; returns the directory.
fn instances(lab: &Lab, base_commit: Option<&str>) -> PathBuf {
    let tasks = lab.outside().join("swe");
    let clone = tasks.join("owner__name");
    write(&clone.join("value.txt"), "1\n");
    let git = |words: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=x", "-c", "user.email=x@x", "-C", clone.to_str().unwrap()]).args(words);
        String::from_utf8(git.output().unwrap().stdout).unwrap().trim().to_owned()
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "base"]);
    let base = git(&["rev-parse", "HEAD"]);
    write(&clone.join("value.txt"), "2\n");
    git(&["commit", "-q", "-a", "-m", "solution"]);
    let instance = json!({
        "instance_id": "owner__name-1",
        "repo": "owner/name",
        "base_commit": base_commit.unwrap_or(&base),
        "problem_statement": "value.txt must hold 2",
        "patch": "the solution",
        "test_patch": "diff --git a/tests/value.txt b/tests/value.txt\nnew file mode 100644\n--- /dev/null\n+++ b/tests/value.txt\n@@ -0,0 +1 @@\n+2\n",
        "FAIL_TO_PASS": "[\"tests/value.txt\"]",
        "PASS_TO_PASS": [],
    });
    write(&tasks.join("instances.jsonl"), &format!("{instance}\n"));
    tasks
}

#[test]
fn a18_an_instance_of_swe_bench_has_no_history_and_gets_its_test_patch_after_the_run() {
    let lab = Lab::new();
    let tasks = instances(&lab, None);
    let good = model(
        &lab,
        "good",
        &command("ls > /dev/null; git log --all --oneline | wc -l > log.txt; echo 2 > value.txt"),
    );
    let cheat = model(&lab, "cheat", &command("mkdir tests; cp value.txt tests/value.txt; ls -R > seen.txt"));
    let check = "cmp value.txt \"$AGENT_VAR_FAIL_TO_PASS\"";
    let json = eval(&lab, &tasks, &[&good, &cheat], &["--check", check, "--json"]).exits(2).json();
    assert_eq!(runs_of(&json, "owner__name-1"), [(good.as_str(), true), (cheat.as_str(), false)]);
    let path = |run: usize| PathBuf::from(json["runs"][run]["worktree"]["path"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(path(0).join("log.txt")).unwrap().trim(), "1");
    assert_eq!(std::fs::read_to_string(path(1).join("tests/value.txt")).unwrap(), "2\n");
    assert_eq!(std::fs::read_to_string(tasks.join("owner__name/value.txt")).unwrap(), "2\n");
}

#[test]
fn a18_files_with_a_filter_and_submodules_of_an_instance_are_counted() {
    let lab = Lab::new();
    let placeholder = "0".repeat(40);
    let tasks = instances(&lab, Some(&placeholder));
    let clone = tasks.join("owner__name");
    write(&clone.join(".gitattributes"), "*.bin filter=lfs\n");
    write(&clone.join("a.bin"), "pointer");
    let git = |words: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=x", "-c", "user.email=x@x", "-C", clone.to_str().unwrap()]).args(words);
        let done = git.output().unwrap();
        assert!(done.status.success());
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    git(&["add", "-A"]);
    git(&["update-index", "--add", "--cacheinfo", &format!("160000,{},sub", "1".repeat(40))]);
    git(&["commit", "-q", "-m", "more"]);
    let (file, base) = (tasks.join("instances.jsonl"), git(&["rev-parse", "HEAD"]));
    let text = std::fs::read_to_string(&file).unwrap().replace(&placeholder, &base);
    write(&file, &text);
    let models = [model(&lab, "one", &command("true")), model(&lab, "two", &command("true"))];
    let done = eval(&lab, &tasks, &[&models[0], &models[1]], &["--check", "true"]).exits(0);
    let warnings: Vec<&str> = done.stderr.lines().filter(|line| line.contains("owner__name-1: 1 ")).collect();
    assert_eq!(warnings.len(), 2, "{}", done.stderr);
    assert!(warnings[0].contains("1 file with a filter such as Git LFS"), "{warnings:?}");
    assert!(warnings[1].contains("1 submodule: empty"), "{warnings:?}");
}

#[test]
fn a18_an_instance_that_cannot_be_used_is_named() {
    let lab = Lab::new();
    let tasks = instances(&lab, Some(&"0".repeat(40)));
    let models = ["scripted:a", "scripted:b"];
    let json = eval(&lab, &tasks, &models, &["--check", "true", "--json"]).json();
    assert_eq!(
        (&json["status"], &json["runs"][0]["name"]),
        (&json!("failed"), &json!("owner__name-1: scripted:a"))
    );
    let error = json["runs"][0]["error"]["message"].as_str().unwrap();
    assert!(error.contains("the files of the task owner__name-1 could not be copied"), "{error}");
    let document = lab.outside().join("document.json");
    write(&document, &json.to_string());
    let done = lab.agent(&["eval", "compare", document.to_str().unwrap()]).exits(3);
    assert!(done.stderr.contains("2 of its runs did not start"), "{}", done.stderr);
    std::fs::rename(tasks.join("owner__name"), lab.outside().join("elsewhere")).unwrap();
    let done = eval(&lab, &tasks, &models, &["--check", "true"]).exits(3);
    assert!(done.stderr.contains("owner__name-1: there is no clone of owner/name"), "{}", done.stderr);
}

#[test]
fn a18_tasks_that_were_killed_go_on_and_their_directories_are_removed() {
    let lab = Lab::new().config("parallel: {workers: 1}");
    let tasks = folders(&lab);
    let server = Server::start("turns: [{text: done}, {fault: hang}]");
    let (url, good) = (server.url(), model(&lab, "good", &command("echo x >> b.txt")));
    let models = format!("{good},openai/mock");
    let words = ["eval", "--mode", "yolo", "--tasks", tasks.to_str().unwrap(), "--models", &models];
    let running = lab.start(&on_server(&words, &url));
    server.wait_for_request(2);
    running.signal(Signal::KILL);
    running.finish();
    let id = newest_id(&lab);
    let again = Server::done();
    let url = again.url();
    let json = lab.agent(&on_server(&["eval", "resume", &id, "--json"], &url)).exits(2).json();
    assert_eq!((again.requests().len(), json["runs"].as_array().unwrap().len()), (1, 4));
    assert_eq!(runs_of(&json, "keep"), [(good.as_str(), true), ("openai/mock", true)]);
    let path = PathBuf::from(json["runs"][0]["worktree"]["path"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(path.join("b.txt")).unwrap(), "x\n");
    lab.agent(&["work", "rm", &id]).exits(3);
    lab.agent(&["parallel-cleanup", &id]).exits(0);
    assert!(!path.exists() && !path.parent().unwrap().exists());
    lab.agent(&["work", "rm", &id]).exits(0);
}

/// Returns the directory of the first run on the instance.
fn first_run(lab: &Lab) -> PathBuf {
    let entries = |path: PathBuf| path.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let workspaces = entries(lab.home().join("state/workspaces"));
    let runs = workspaces
        .map(|workspace| workspace.join("worktrees"))
        .filter(|path| path.exists())
        .flat_map(entries);
    runs.map(|run| run.join("owner__name-1")).min().unwrap()
}

#[test]
fn a18_tests_that_a_kill_interrupted_run_again_and_are_no_work_of_the_model() {
    let lab = Lab::new().config("parallel: {workers: 1}");
    let tasks = instances(&lab, None);
    let server = Server::start(
        "turns:\n  - calls: [{name: run_command, arguments: {command: \"echo 2 > value.txt; touch slow\"}}]\n  - text: done\n",
    );
    let (url, other) = (server.url(), model(&lab, "other", &command("echo 2 > value.txt")));
    let models = format!("openai/mock,{other}");
    let check = "if test -e slow && ! test -e started; then touch started; sleep 60; fi; cmp value.txt tests/value.txt";
    let words =
        ["eval", "--mode", "yolo", "--tasks", tasks.to_str().unwrap(), "--models", &models, "--check", check];
    let running = lab.start(&on_server(&words, &url));
    server.wait_for_request(2);
    let path = first_run(&lab);
    lab.wait_for_file(path.join("started").to_str().unwrap());
    running.signal(Signal::KILL);
    running.finish();
    let id = newest_id(&lab);
    let json = lab.agent(&["eval", "resume", &id, "--json"]).exits(0).json();
    assert_eq!(runs_of(&json, "owner__name-1"), [("openai/mock", true), (other.as_str(), true)]);
    let worktree = &json["runs"][0]["worktree"];
    let range = format!("{}..{}", worktree["base"].as_str().unwrap(), worktree["commit"].as_str().unwrap());
    let mut git = std::process::Command::new("git");
    let diff = git.args(["-c", "safe.directory=*", "diff", "--name-only", &range]).current_dir(&path);
    assert_eq!(String::from_utf8(diff.output().unwrap().stdout).unwrap(), "slow\nvalue.txt\n");
    assert_eq!(server.requests().len(), 2);
}

// Fault A2
#[test]
fn a18_what_the_commit_of_a_run_lacks_is_named_also_after_its_tests_were_restored() {
    let lab = Lab::new();
    let tasks = instances(&lab, None);
    let filtered = "echo '*.bin filter=unknown' > .gitattributes; echo 1 > a.bin; echo 2 > value.txt";
    let (one, two) = (model(&lab, "one", &command(filtered)), model(&lab, "two", &command("true")));
    let json =
        eval(&lab, &tasks, &[&one, &two], &["--check", "cmp value.txt tests/value.txt", "--json"]).json();
    let left_out = |run: usize| &json["runs"][run]["worktree"]["left_out"];
    assert_eq!((left_out(0), left_out(1)), (&json!(["a.bin"]), &Value::Null), "{json}");
}

#[test]
fn a18_an_interrupted_run_is_resumed_without_the_tests_and_all_its_work_is_committed() {
    let lab = Lab::new().config("parallel: {workers: 1}");
    let tasks = instances(&lab, None);
    let calls = command("echo 1 > value.txt");
    let server = Server::start(&format!("turns:\n  - calls: [{calls}]\n  - fault: hang\n"));
    let (url, other) = (server.url(), model(&lab, "other", &command("echo 2 > value.txt")));
    let models = format!("openai/mock,{other}");
    let check = "cmp value.txt tests/value.txt";
    let words =
        ["eval", "--mode", "yolo", "--tasks", tasks.to_str().unwrap(), "--models", &models, "--check", check];
    let running = lab.start(&on_server(&words, &url));
    server.wait_for_request(2);
    running.signal(Signal::INT);
    running.finish().exits(130);
    let path = first_run(&lab);
    assert!(!path.join("tests/value.txt").exists());
    let id = newest_id(&lab);
    let calls = command("echo 2 > value.txt");
    let again = Server::start(&format!("turns:\n  - calls: [{calls}]\n  - text: done\n"));
    let url = again.url();
    let json = lab.agent(&on_server(&["eval", "resume", &id, "--json"], &url)).exits(0).json();
    let commit = json["runs"][0]["worktree"]["commit"].as_str().unwrap();
    let mut git = std::process::Command::new("git");
    let shown =
        git.args(["-c", "safe.directory=*", "show", &format!("{commit}:value.txt")]).current_dir(&path);
    assert_eq!(String::from_utf8(shown.output().unwrap().stdout).unwrap(), "2\n");
}
