//! `agent parallel`: worktrees and branches, workers, one budget, limits, merging, resuming, cleanup.

use crate::support::run::{Finished, KEY, Lab, Running};
use crate::support::schema;
use crate::support::server::Server;
use crate::support::work::{newest_id, resume};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::process::Command;

/// A lab whose scripted model writes `file`, and its model.
fn writes(lab: Lab, file: &str, content: &str) -> Lab {
    let script = format!(
        "turns:\n  - calls: [{{name: write_file, arguments: {{path: {file}, content: \"{content}\\n\"}}}}]\n  - text: wrote {file}\n"
    );
    std::fs::write(lab.outside().join(format!("{file}.yaml")), script).unwrap();
    lab
}

fn model(lab: &Lab, name: &str) -> String {
    format!("scripted:{}", lab.outside().join(format!("{name}.yaml")).display())
}

/// Writes a file of tasks, each with a scripted model of its own.
fn tasks_file(lab: &Lab, names: &[&str]) -> String {
    let line = |name: &&str| json!({"task": format!("make {name}"), "model": model(lab, name)}).to_string();
    let path = lab.outside().join("tasks.jsonl");
    std::fs::write(&path, names.iter().map(line).collect::<Vec<_>>().join("\n")).unwrap();
    path.to_str().unwrap().to_owned()
}

fn parallel(lab: &Lab, more: &[&str]) -> Finished {
    lab.agent(&[&["parallel", "--mode", "yolo"], more].concat())
}

fn start(lab: &Lab, more: &[&str]) -> Running {
    lab.start(&[&["parallel", "--mode", "yolo"], more].concat())
}

fn git(lab: &Lab, args: &[&str]) -> String {
    let done = Command::new("git").args(args).current_dir(lab.ws()).output().unwrap();
    String::from_utf8(done.stdout).unwrap().trim_end().to_owned()
}

fn runs(json: &Value) -> Vec<Value> {
    json["runs"].as_array().unwrap().clone()
}

fn of(runs: &[Value], key: &str) -> Vec<Value> {
    runs.iter().map(|run| run[key].clone()).collect()
}

#[test]
fn a06_each_task_has_a_worktree_and_a_branch_and_the_users_files_stay() {
    let lab = writes(writes(Lab::repository(), "b.txt", "b"), "c.txt", "c");
    lab.git(&["stash", "list"]);
    let before = (git(&lab, &["rev-parse", "HEAD"]), git(&lab, &["status", "--porcelain"]));
    let json =
        parallel(&lab, &["--tasks-file", &tasks_file(&lab, &["b.txt", "c.txt"]), "--json"]).exits(0).json();
    schema::valid(&schema::of("work"), &json);
    assert_eq!((&json["command"], &json["stop_reason"]), (&json!("parallel"), &json!("done")));
    let runs = runs(&json);
    assert_eq!(of(&runs, "name"), [json!("task 1"), json!("task 2")]);
    for (run, file) in runs.iter().zip(["b.txt", "c.txt"]) {
        let branch = run["worktree"]["branch"].as_str().unwrap();
        assert!(branch.starts_with("agent/"), "{branch}");
        assert_eq!(
            git(&lab, &["show", "--format=%an: %s", "--name-only", branch]).lines().last(),
            Some(file)
        );
        assert_eq!(git(&lab, &["rev-parse", branch]), run["worktree"]["commit"].as_str().unwrap());
        assert_eq!(run["files_modified"][0]["path"], file);
        assert!(!lab.exists(file));
    }
    assert_eq!(before, (git(&lab, &["rev-parse", "HEAD"]), git(&lab, &["status", "--porcelain"])));
}

// Fault B1, found beside it: below the hidden state directory, nothing was protected.
#[test]
fn a_command_cannot_change_protected_files_of_a_worktree() {
    let lab = Lab::new().file(".claude/settings.json", "{}\n").file("a.txt", "first\n");
    let lab = lab.committed();
    let command = "f=.cla; echo x >> ${f}ude/settings.json; echo x >> a.txt";
    let script = json!({"turns": [
        {"calls": [{"name": "run_command", "arguments": {"command": command}}]},
        {"text": "done"},
    ]});
    std::fs::write(lab.outside().join("m.yaml"), script.to_string()).unwrap();
    let json = parallel(&lab, &["change", "--model", &model(&lab, "m"), "--json"]).exits(0).json();
    let branch = runs(&json)[0]["worktree"]["branch"].as_str().unwrap().to_owned();
    assert_eq!(git(&lab, &["show", &format!("{branch}:a.txt")]), "first\nx");
    assert_eq!(git(&lab, &["show", &format!("{branch}:.claude/settings.json")]), "{}");
}

#[test]
fn a06_more_tasks_than_workers_wait_and_none_is_left_out() {
    let lab = writes(Lab::repository(), "b.txt", "b");
    let model = model(&lab, "b.txt");
    let tasks: Vec<String> = (0..7).flat_map(|at| ["--task".to_owned(), format!("task {at}")]).collect();
    let tasks: Vec<&str> = tasks.iter().map(String::as_str).collect();
    let json = parallel(&lab, &[&["--workers", "2", "--model", &model, "--json"], &tasks[..]].concat())
        .exits(0)
        .json();
    assert_eq!(runs(&json).len(), 7);
    assert!(of(&runs(&json), "status").iter().all(|status| status == "success"));
    assert_eq!(git(&lab, &["branch", "--list", "agent/*"]).lines().count(), 7);
}

#[test]
fn a06_one_task_is_given_to_each_model() {
    let lab = writes(writes(Lab::repository(), "b.txt", "b"), "c.txt", "c");
    let models = format!("{},{}", model(&lab, "b.txt"), model(&lab, "c.txt"));
    let json = parallel(&lab, &["make it", "--models", &models, "--json"]).exits(0).json();
    let files: Vec<Value> = runs(&json).iter().map(|run| run["files_modified"][0]["path"].clone()).collect();
    assert_eq!(files, [json!("b.txt"), json!("c.txt")]);
}

#[test]
fn a06_uncommitted_files_are_counted_or_taken_along() {
    let lab = writes(Lab::repository(), "b.txt", "b").file("a.txt", "changed\n").file("new.txt", "new\n");
    let model = model(&lab, "b.txt");
    let status = git(&lab, &["status", "--porcelain"]);
    let done = parallel(&lab, &["task", "--model", &model]).exits(0);
    assert!(done.stderr.contains("2 files without a commit"), "{}", done.stderr);
    let json =
        parallel(&lab, &["task", "--model", &model, "--include-uncommitted", "--json"]).exits(0).json();
    let branch = json["runs"][0]["worktree"]["branch"].as_str().unwrap();
    assert_eq!(git(&lab, &["show", &format!("{branch}:a.txt")]), "changed");
    assert_eq!(git(&lab, &["show", &format!("{branch}:new.txt")]), "new");
    assert_eq!(git(&lab, &["status", "--porcelain"]), status);
}

#[test]
fn a07_a_timeout_ends_one_task_and_its_processes_and_the_others_go_on() {
    let lab = writes(writes(Lab::repository(), "b.txt", "b"), "c.txt", "c");
    let slow = "turns: [{calls: [{name: run_command, arguments: {command: sleep 600}}]}]";
    std::fs::write(lab.outside().join("slow.yaml"), slow).unwrap();
    let file = tasks_file(&lab, &["b.txt", "slow", "c.txt"]);
    let json =
        parallel(&lab, &["--tasks-file", &file, "--timeout-per-worker", "2", "--json"]).exits(5).json();
    let reasons = of(&runs(&json), "stop_reason");
    assert_eq!(reasons, [json!("llm_done"), json!("timeout"), json!("llm_done")], "{json}");
    assert_eq!(json["stop_reason"], "timeout");
    let any =
        parallel(&lab, &["--tasks-file", &file, "--timeout-per-worker", "1", "--require", "any", "--json"]);
    assert_eq!(any.exits(0).json()["stop_reason"], "done");
}

#[test]
fn a06_all_tasks_share_one_budget_which_is_never_exceeded() {
    let prices =
        "models:\n  openai/mock: {input: 0.01, output: 40, cached_read: 0.001, output_limit: 50000}\n";
    let lab = Lab::repository().file("prices.yaml", prices).config(
        "costs: {prices_file: prices.yaml}\nllm: {max_output_tokens: 10000}\nloop: {on_limit: stop}\n",
    );
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-q", "-m", "prices"]);
    let server = Server::start("turns: [{text: done, usage: {input: 0, output: 10000}, repeat: 20}]");
    let url = server.url();
    let tasks: Vec<String> = (0..10).flat_map(|at| ["--task".to_owned(), format!("task {at}")]).collect();
    let tasks: Vec<&str> = tasks.iter().map(String::as_str).collect();
    let model =
        ["--model", "openai/mock", "--api-base", &url, "--api-key", KEY, "--budget", "1.61", "--json"];
    let json = parallel(&lab, &[&model, &tasks[..]].concat()).exits(2).json();
    let runs = runs(&json);
    let with = |reason: &str| runs.iter().filter(|run| run["stop_reason"] == reason).count();
    assert_eq!((with("llm_done"), with("budget_exceeded"), server.requests().len()), (4, 6, 4), "{json}");
    assert_eq!((&json["stop_reason"], &json["cost_usd"]), (&json!("budget_exceeded"), &json!(1.6)));
    let sessions: Vec<String> =
        of(&runs, "session_id").iter().filter_map(|id| id.as_str().map(str::to_owned)).collect();
    for id in sessions {
        lab.agent(&["replay", &id]).exits(0);
    }
}

#[test]
fn a06_a_failed_task_is_in_the_document_and_in_the_exit_code() {
    let lab = writes(Lab::repository(), "b.txt", "b");
    std::fs::write(lab.outside().join("bad.yaml"), "turns: [{error: {kind: auth, message: no}}]").unwrap();
    let file = tasks_file(&lab, &["b.txt", "bad"]);
    let json = parallel(&lab, &["--tasks-file", &file, "--json"]).exits(4).json();
    assert_eq!((&json["status"], &json["stop_reason"]), (&json!("failed"), &json!("run_failed")));
    assert_eq!(of(&runs(&json), "status"), [json!("success"), json!("failed")]);
}

#[test]
fn a06_merge_takes_whole_branches_and_names_the_files_in_conflict() {
    let lab = writes(writes(writes(Lab::repository(), "b.txt", "b"), "c.txt", "c"), "a.txt", "other");
    let both = "turns:\n  - calls: [{name: write_file, arguments: {path: c.txt, content: \"mine\\n\"}}]\n  - text: done\n";
    std::fs::write(lab.outside().join("both.yaml"), both).unwrap();
    let file = tasks_file(&lab, &["b.txt", "c.txt", "both"]);
    let done = parallel(&lab, &["--tasks-file", &file, "--merge"]).exits(2);
    assert!(done.stderr.contains("not merged, conflicts in: c.txt"), "{}", done.stderr);
    assert_eq!((lab.read("b.txt"), lab.read("c.txt")), ("b\n".to_owned(), "c\n".to_owned()));
    assert_eq!(git(&lab, &["status", "--porcelain"]), "");
    assert_eq!(git(&lab, &["rev-list", "--count", "--merges", "HEAD"]), "2");
}

#[test]
fn a06_merge_leaves_local_changes_alone() {
    let script = "turns:\n  - calls: [{name: run_command, arguments: {command: echo theirs > a.txt}}]\n  - text: done\n";
    let lab = Lab::repository().file("a.txt", "mine\n");
    std::fs::write(lab.outside().join("a.txt.yaml"), script).unwrap();
    let head = git(&lab, &["rev-parse", "HEAD"]);
    let file = tasks_file(&lab, &["a.txt"]);
    let json = parallel(&lab, &["--tasks-file", &file, "--merge", "--json"]).exits(2).json();
    assert_eq!(json["stop_reason"], "not_merged");
    let problem = json["runs"][0]["worktree"]["problem"].as_str().unwrap();
    assert!(problem.starts_with("the branch could not be merged: error: Your local changes"), "{problem}");
    assert_eq!((lab.read("a.txt"), git(&lab, &["rev-parse", "HEAD"])), ("mine\n".to_owned(), head));
}

#[test]
fn a08_cleanup_removes_worktrees_and_branches_and_keeps_commits_that_are_nowhere_else() {
    let lab = writes(writes(Lab::repository(), "b.txt", "b"), "c.txt", "c");
    let file = tasks_file(&lab, &["b.txt", "c.txt"]);
    let json = parallel(&lab, &["--tasks-file", &file, "--json"]).exits(0).json();
    let (runs, id) = (runs(&json), json["work_id"].as_str().unwrap());
    lab.git(&["merge", "-q", runs[0]["worktree"]["branch"].as_str().unwrap()]);
    lab.git(&["branch", "agent/mine"]);
    let refused = lab.agent(&["work", "rm", id]).exits(3);
    assert!(refused.stderr.contains(&format!("agent parallel-cleanup {id}")), "{}", refused.stderr);
    let done = lab.agent(&["parallel-cleanup", id]).exits(0).stdout;
    assert!(done.contains(&format!("kept as refs/agent/kept/{id}-2")), "{done}");
    assert!(!done.contains(&format!("kept/{id}-1")), "{done}");
    assert_eq!(git(&lab, &["branch", "--list", "agent/*"]).trim(), "agent/mine");
    assert_eq!(git(&lab, &["worktree", "list"]).lines().count(), 1);
    let kept = format!("refs/agent/kept/{id}-2");
    assert_eq!(git(&lab, &["rev-parse", &kept]), runs[1]["worktree"]["commit"].as_str().unwrap());
    assert!(runs.iter().all(|run| !std::path::Path::new(run["worktree"]["path"].as_str().unwrap()).exists()));
    assert_eq!(lab.agent(&["parallel-cleanup"]).exits(0).stdout, "There are no worktrees.\n");
    lab.agent(&["work", "rm", id]).exits(0);
    parallel(&lab, &["--tasks-file", &file, "--json"]).exits(0);
    let forced = lab.agent(&["parallel-cleanup", "--force"]).exits(0).stdout;
    assert!(forced.contains("removed agent/") && !forced.contains("kept"), "{forced}");
}

#[test]
fn a08_cleanup_commits_what_a_task_that_was_killed_has_left() {
    let lab = Lab::repository();
    let server = Server::start(
        "turns: [{calls: [{name: write_file, arguments: {path: b.txt, content: x}}]}, {fault: hang}]",
    );
    let url = server.url();
    let running = start(&lab, &["task", "--model", "openai/mock", "--api-base", &url, "--api-key", KEY]);
    server.wait_for_request(2);
    let busy = lab.agent(&["parallel-cleanup"]).exits(0);
    assert!(busy.stderr.contains("is busy"), "{}", busy.stderr);
    running.signal(Signal::KILL);
    running.finish();
    let done = lab.agent(&["parallel-cleanup"]).exits(0).stdout;
    let kept = done.split_whitespace().last().unwrap();
    assert_eq!(git(&lab, &["show", &format!("{kept}:b.txt")]), "x");
}

#[test]
fn a06_tasks_that_were_killed_go_on_and_those_that_ended_are_not_repeated() {
    let lab = Lab::repository();
    let quick = "turns:\n  - calls: [{name: run_command, arguments: {command: echo one >> log.txt}}]\n  - text: done\n";
    std::fs::write(lab.outside().join("quick.yaml"), quick).unwrap();
    let server = Server::start(
        "turns: [{calls: [{name: run_command, arguments: {command: echo two >> log.txt}}]}, {fault: hang}]",
    );
    let file = lab.outside().join("tasks.jsonl");
    let first = json!({"task": "quick", "model": model(&lab, "quick")});
    std::fs::write(&file, format!("{first}\n{}", json!({"task": "slow", "model": "openai/mock"}))).unwrap();
    let url = server.url();
    let running = start(
        &lab,
        &[
            "--tasks-file",
            file.to_str().unwrap(),
            "--workers",
            "1",
            "--api-base",
            &url,
            "--api-key",
            KEY,
            "--json",
        ],
    );
    server.wait_for_request(2);
    running.signal(Signal::KILL);
    running.finish();
    std::fs::remove_file(&file).unwrap();
    let listed = lab.agent(&["work", "list"]).exits(0).stdout;
    let id = listed.split_whitespace().next().unwrap().to_owned();
    let server = Server::done();
    let json = resume(&lab, &server, "parallel", &id).exits(0).json();
    let runs = runs(&json);
    assert_eq!(of(&runs, "status"), [json!("success"), json!("success")]);
    for (run, line) in runs.iter().zip(["one", "two"]) {
        let branch = run["worktree"]["branch"].as_str().unwrap();
        assert_eq!(git(&lab, &["show", &format!("{branch}:log.txt")]), line);
    }
    assert_eq!(server.requests().len(), 1);
    assert_eq!(git(&lab, &["fsck", "--no-progress"]), "");
}

#[test]
fn a06_an_interrupt_ends_all_tasks_with_130() {
    let lab = Lab::repository();
    let server = Server::start("turns: [{fault: hang}, {fault: hang}]");
    let url = server.url();
    let running = start(
        &lab,
        &[
            "--task",
            "a",
            "--task",
            "b",
            "--task",
            "c",
            "--workers",
            "2",
            "--model",
            "openai/mock",
            "--api-base",
            &url,
            "--api-key",
            KEY,
            "--json",
        ],
    );
    server.wait_for_request(2);
    running.signal(Signal::INT);
    let json = running.finish().exits(130).json();
    assert_eq!(json["stop_reason"], "user_interrupt");
    assert!(of(&runs(&json), "stop_reason").iter().all(|reason| reason == "user_interrupt"), "{json}");
    assert_eq!(runs(&json).len(), 3);
}

#[test]
fn a06_nothing_that_a_repository_configures_runs() {
    let lab = writes(Lab::repository(), "b.txt", "b");
    let marker = lab.outside().join("marker");
    let runs = format!("touch {}", marker.display());
    let lab = lab.file(".gitattributes", "*.txt filter=evil merge=evil\n").file("big.txt", "x\n");
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-q", "-m", "attributes"]);
    for hook in [
        "post-checkout",
        "pre-commit",
        "commit-msg",
        "post-commit",
        "post-merge",
        "reference-transaction",
        "post-index-change",
    ] {
        let path = lab.ws().join(".git/hooks").join(hook);
        std::fs::write(&path, format!("#!/bin/sh\n{runs}\n")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).unwrap();
    }
    for (key, value) in [
        ("filter.evil.clean", runs.as_str()),
        ("filter.evil.smudge", &runs),
        ("filter.evil.required", "true"),
        ("merge.evil.driver", &runs),
        ("core.fsmonitor", &runs),
        ("core.editor", &runs),
        ("commit.gpgSign", "true"),
        ("gpg.program", &runs),
        ("diff.external", &runs),
    ] {
        lab.git(&["config", key, value]);
    }
    let model = model(&lab, "b.txt");
    let done = parallel(&lab, &["task", "--model", &model, "--merge", "--include-uncommitted"]);
    assert!(!marker.exists(), "{}", done.stderr);
    let done = done.exits(0);
    assert!(done.stderr.contains("with a filter such as Git LFS"), "{}", done.stderr);
    // The file of the task has a filter, which is not run.
    let kept = lab.agent(&["parallel-cleanup"]).exits(2).stdout;
    assert!(kept.contains("not in the commit") && kept.contains("b.txt"), "{kept}");
    assert!(!marker.exists());
}

#[test]
fn a06_without_a_repository_or_a_task_nothing_starts() {
    let lab = Lab::new();
    std::fs::write(lab.outside().join("m.yaml"), "turns: [{text: never}]").unwrap();
    let model = model(&lab, "m");
    let none = parallel(&lab, &["task", "--model", &model]).exits(3);
    assert!(none.stderr.contains("need a git repository with a commit"), "{}", none.stderr);
    lab.git(&["init", "-q"]);
    let empty = parallel(&lab, &["task", "--model", &model]).exits(3);
    // Fault A5
    assert!(empty.stderr.contains("make a first commit"), "{}", empty.stderr);
    assert!(empty.stderr.contains("need a git repository with a commit"), "{}", empty.stderr);
    let lab = Lab::repository();
    for (more, why) in [
        (&["--task", " "][..], "a task is empty"),
        (&["--tasks-file", "no.jsonl"], "there is no such file"),
        (&["--task", "x", "--dry-run"], "there is no `--dry-run`"),
        (&["--task", "x", "--base", "nowhere"], "was not usable"),
    ] {
        let done = parallel(&lab, more).exits(3);
        assert!(done.stderr.contains(why), "{}", done.stderr);
    }
}

#[test]
fn f06_the_section_parallel_holds_when_no_flag_is_given() {
    let lab = writes(Lab::repository(), "b.txt", "b").config("parallel: {max_steps: 1}");
    let model = model(&lab, "b.txt");
    let json = parallel(&lab, &["task", "--model", &model, "--json"]).exits(2).json();
    assert_eq!(
        (&json["runs"][0]["stop_reason"], &json["stop_reason"]),
        (&json!("max_steps"), &json!("run_partial"))
    );
}

/// A git that does not finish the worktree of the second task: it leaves what a killed one leaves, makes a file `stuck`, and waits.
const UNFINISHED: &str = r#"#!/bin/sh
case "$*" in
  *"worktree add"*-2*)
    GIT "$@"
    for path in "$@"; do case "$path" in */worktrees/*-2) break;; esac; done
    name=$(basename "$path")
    echo > "$path/.git"
    echo initializing > ".git/worktrees/$name/locked"
    echo > ".git/refs/heads/agent/$name.lock"
    touch stuck
    exec sleep 300;;
esac
exec GIT "$@"
"#;

#[test]
fn a06_what_a_killed_git_leaves_of_a_worktree_does_not_stop_the_tasks() {
    let lab = writes(writes(Lab::repository(), "b.txt", "b"), "c.txt", "c");
    let bin = lab.outside().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let real = Command::new("sh").args(["-c", "command -v git"]).output().unwrap();
    let real = String::from_utf8(real.stdout).unwrap();
    let lab = lab.script("../bin/git", &UNFINISHED.replace("GIT", real.trim()));
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let lab = lab.env("PATH", &path);
    let file = tasks_file(&lab, &["b.txt", "c.txt"]);
    let running = start(&lab, &["--tasks-file", &file, "--workers", "1"]);
    lab.wait_for_file("stuck");
    running.signal(Signal::KILL);
    running.finish();
    std::fs::remove_file(bin.join("git")).unwrap();
    let id = newest_id(&lab);
    // The first task has ended but for its commit: what it wrote is committed when it goes on.
    let own = lab.ws().join(format!(".git/worktrees/{id}-1/index.lock"));
    std::fs::write(own, "").unwrap();
    let json = lab.agent(&["parallel", "resume", &id, "--json"]).exits(0).json();
    let runs = runs(&json);
    assert_eq!(of(&runs, "status"), [json!("success"), json!("success")]);
    for (run, file) in runs.iter().zip(["b.txt", "c.txt"]) {
        let branch = run["worktree"]["branch"].as_str().unwrap();
        assert_eq!(git(&lab, &["show", &format!("{branch}:{file}")]), file[..1]);
    }
}
