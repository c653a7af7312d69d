//! What tasks in worktrees have changed is in their commit, or named as left out while the worktree is kept: repositories below a worktree, submodules,
//! filters, ignored files, and branches that cannot be made.

use crate::support::calls::{command, write};
use crate::support::run::{Finished, KEY, Lab};
use crate::support::server::Server;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// The model of a script that makes these calls, one after another, and then answers.
fn model(lab: &Lab, calls: &[Value]) -> String {
    let path = lab.outside().join("model.yaml");
    let mut turns: Vec<Value> = calls.iter().map(|call| json!({"calls": [call]})).collect();
    turns.push(json!({"text": "COMPLETE"}));
    fs::write(&path, json!({"turns": turns}).to_string()).unwrap();
    format!("scripted:{}", path.display())
}

const COMMIT: &str = "git -c user.name=t -c user.email=t@localhost commit -qm x";

/// Calls that make a repository with a commit, one in it without a commit, and another one without a commit.
fn repositories() -> [Value; 3] {
    let with_commit =
        format!("git init -q part && cd part && echo a > a.txt && git add . && {COMMIT} && echo b >> a.txt");
    [
        command(&with_commit),
        command(
            "git init -q part/in && echo c > part/in/c.txt && chmod +x part/in/c.txt && ln -s c.txt part/in/link",
        ),
        command("git init -q plain && mkdir plain/sub && echo d > plain/sub/d.txt && echo top > top.txt"),
    ]
}

fn check_repositories(lab: &Lab, commit: &str) {
    let files = lab.git(&["ls-tree", "-r", "--format=%(objectmode) %(path)", commit]);
    let expected = [
        "100644 a.txt",
        "100644 part/a.txt",
        "100755 part/in/c.txt",
        "120000 part/in/link",
        "100644 plain/sub/d.txt",
        "100644 top.txt",
    ];
    assert_eq!(files.lines().collect::<Vec<_>>(), expected);
    assert_eq!(lab.git(&["show", &format!("{commit}:part/a.txt")]), "a\nb\n");
}

/// A repository with the submodule `lib`, which is empty in worktrees.
fn with_submodule() -> Lab {
    let lab = Lab::repository();
    let library = lab.outside().join("library");
    let git = |args: &[&str], directory: &Path| {
        let identity =
            ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "protocol.file.allow=always"];
        let done = Command::new("git").args(identity).args(args).current_dir(directory).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    fs::create_dir(&library).unwrap();
    git(&["init", "-q"], &library);
    git(&["commit", "-q", "--allow-empty", "-m", "library"], &library);
    git(&["submodule", "--quiet", "add", library.to_str().unwrap(), "lib"], &lab.ws());
    git(&["commit", "-qm", "submodule"], &lab.ws());
    lab
}

fn submit(lab: &Lab) {
    lab.agent(&["submit", "x", "--id", "a"]).exits(0);
}

fn worker(lab: &Lab, model: &str) -> Finished {
    lab.agent(&["worker", "--drain", "--mode", "yolo", "--model", model])
}

fn task(lab: &Lab) -> Value {
    lab.agent(&["tasks", "show", "a", "--json"]).exits(0).json()["tasks"][0].clone()
}

fn worktrees(lab: &Lab) -> usize {
    lab.git(&["worktree", "list"]).lines().count() - 1
}

fn parallel(lab: &Lab, model: &str, more: &[&str]) -> Finished {
    lab.agent(&[&["parallel", "task", "--mode", "yolo", "--json", "--model", model], more].concat())
}

fn worktree(json: &Value) -> Value {
    json["runs"][0]["worktree"].clone()
}

// Fault A2, A3: their files were in no commit, and a repository without a commit discarded all others.
#[test]
fn files_of_repositories_that_a_task_of_the_queue_makes_are_on_its_branch() {
    let lab = Lab::repository();
    submit(&lab);
    worker(&lab, &model(&lab, &repositories())).exits(0);
    let task = task(&lab);
    assert_eq!(
        (&task["state"], &task["attempt"], &task["left_out"]),
        (&json!("done"), &json!(1), &Value::Null)
    );
    check_repositories(&lab, "agent/task/a");
    assert_eq!(worktrees(&lab), 0);
}

// Fault A2, A3.
#[test]
fn files_of_repositories_that_parallel_tasks_make_are_merged_and_survive_the_cleanup() {
    let lab = Lab::repository();
    let model = model(&lab, &repositories());
    let json = parallel(&lab, &model, &["--merge"]).exits(0).json();
    assert!(worktree(&json)["merged"].is_string(), "{json}");
    check_repositories(&lab, "HEAD");
    assert_eq!(lab.read("part/in/c.txt"), "c\n");
    let lab = Lab::repository();
    let json = parallel(&lab, &model, &[]).exits(0).json();
    let id = json["work_id"].as_str().unwrap();
    lab.agent(&["parallel-cleanup"]).exits(0);
    check_repositories(&lab, &format!("refs/agent/kept/{id}-1"));
    assert_eq!(worktrees(&lab), 0);
}

// Fault A2: a run that commits adds the repository as a submodule that nobody has.
#[test]
fn files_of_a_repository_that_a_run_has_committed_as_a_submodule_are_on_the_branch() {
    let lab = Lab::repository();
    let [first, ..] = repositories();
    let model = model(&lab, &[first, command(&format!("git add -A && {COMMIT}"))]);
    let json = parallel(&lab, &model, &["--sandbox", "off"]).exits(0).json();
    let branch = worktree(&json)["branch"].as_str().unwrap().to_owned();
    assert_eq!(lab.git(&["ls-tree", "-r", "--name-only", &branch]), "a.txt\npart/a.txt\n");
    assert!(lab.git(&["ls-tree", &format!("{branch}~1")]).contains("160000 commit"));
}

// Fault A2: the commits of a run that changes the branch were merged as nothing.
#[test]
fn commits_that_a_run_makes_on_another_branch_are_merged() {
    let lab = Lab::repository();
    let model = model(
        &lab,
        &[command(&format!("git checkout -qb other && echo b > b.txt && git add . && {COMMIT}"))],
    );
    parallel(&lab, &model, &["--merge", "--sandbox", "off"]).exits(0);
    assert_eq!(lab.read("b.txt"), "b\n");
}

// Fault A3: the loop said "done", and nothing was committed.
#[test]
fn files_of_repositories_that_a_loop_makes_in_a_worktree_are_on_its_branch() {
    let lab = Lab::repository();
    let model = model(&lab, &repositories());
    let words =
        ["loop", "task", "--worktree", "--check", "true", "--mode", "yolo", "--json", "--model", &model];
    let json = lab.agent(&words).exits(0).json();
    check_repositories(&lab, json["worktree"]["commit"].as_str().unwrap());
}

// Fault A3: the commit with the uncommitted files failed.
#[test]
fn files_of_repositories_in_the_users_tree_are_taken_along() {
    let lab = Lab::repository();
    for call in repositories() {
        let text = call["arguments"]["command"].as_str().unwrap();
        assert!(Command::new("sh").args(["-c", text]).current_dir(lab.ws()).status().unwrap().success());
    }
    let model = model(&lab, &[command("cat part/a.txt plain/sub/d.txt > seen.txt; rm top.txt")]);
    let json = parallel(&lab, &model, &["--include-uncommitted"]).exits(0).json();
    let commit = worktree(&json)["commit"].as_str().unwrap().to_owned();
    assert_eq!(lab.git(&["show", &format!("{commit}:seen.txt")]), "a\nb\nd\n");
    check_repositories(&lab, &format!("{commit}~1"));
    assert!(lab.exists("part/.git") && lab.exists("plain/.git"));
    assert!(!lab.exists(".git/agent-index"));
}

// Fault A2, A3: the same in the clone of a bundle, whose commits are fetched.
#[test]
fn files_of_repositories_that_a_task_with_a_bundle_makes_are_fetched() {
    let lab = Lab::repository();
    lab.agent(&["submit", "x", "--id", "a", "--bundle", "HEAD"]).exits(0);
    worker(&lab, &model(&lab, &repositories())).exits(0);
    lab.agent(&["tasks", "fetch", "a"]).exits(0);
    check_repositories(&lab, "agent/task/a");
}

// Fault A3: the commit of a task of `agent eval` failed.
#[test]
fn files_of_repositories_that_a_task_of_eval_makes_are_in_its_commit() {
    let lab = Lab::new();
    let tasks = lab.outside().join("tasks");
    fs::create_dir_all(tasks.join("one/workspace")).unwrap();
    fs::write(tasks.join("one/task.yaml"), "prompt: x\nchecks: test -e plain/sub/d.txt\n").unwrap();
    fs::write(tasks.join("one/workspace/a.txt"), "first\n").unwrap();
    let first = model(&lab, &repositories());
    let second = lab.outside().join("second.yaml");
    fs::copy(lab.outside().join("model.yaml"), &second).unwrap();
    let models = format!("{first},scripted:{}", second.display());
    let words = ["eval", "--mode", "yolo", "--tasks", tasks.to_str().unwrap(), "--models", &models, "--json"];
    let worktree = worktree(&lab.agent(&words).exits(0).json());
    let path = worktree["path"].as_str().unwrap();
    let listed = lab.git(&["-C", path, "ls-tree", "-r", "--name-only", worktree["commit"].as_str().unwrap()]);
    assert!(listed.contains("part/in/c.txt") && listed.contains("plain/sub/d.txt"), "{listed}");
}

// Fault A2: the ignore files of the repository around count, too, and a tracked directory that becomes a repository stays what it is.
#[test]
fn ignored_files_of_a_repository_are_not_added_and_a_tracked_directory_stays_tracked() {
    let lab = Lab::new().file(".gitignore", "modules/\n").file("app/x.txt", "x\n").file("old", "file\n");
    let lab = lab.committed();
    submit(&lab);
    let calls = [
        command("git init -q app && echo y > app/y.txt && echo z >> app/x.txt"),
        command(
            "rm old && git init -q old && mkdir old/modules && echo m > old/modules/m && echo o > old/o && echo l > old/l && echo l > old/.gitignore",
        ),
    ];
    worker(&lab, &model(&lab, &calls)).exits(0);
    let files = lab.git(&["ls-tree", "-r", "--name-only", "agent/task/a"]);
    assert_eq!(
        files.lines().collect::<Vec<_>>(),
        [".gitignore", "app/x.txt", "app/y.txt", "old/.gitignore", "old/o"]
    );
    assert_eq!(lab.git(&["show", "agent/task/a:app/x.txt"]), "x\nz\n");
}

// Fault A2: "done", without a branch, and the file was gone.
#[test]
fn files_in_an_empty_submodule_are_named_and_the_worktree_of_the_task_is_kept() {
    let lab = with_submodule();
    submit(&lab);
    let model = model(&lab, &[write("lib/new.txt", "new\n"), write("b.txt", "b\n")]);
    let done = worker(&lab, &model).exits(0);
    let task = task(&lab);
    assert_eq!((&task["state"], &task["left_out"]), (&json!("done"), &json!(["lib/new.txt"])));
    let path = PathBuf::from(task["worktree"].as_str().unwrap());
    for part in ["lib/new.txt", path.to_str().unwrap()] {
        assert!(done.stderr.contains(part), "{}", done.stderr);
        assert!(lab.agent(&["tasks", "show", "a"]).exits(0).stdout.contains(part));
    }
    assert_eq!(lab.git(&["ls-tree", "--name-only", "agent/task/a"]), ".gitmodules\na.txt\nb.txt\nlib\n");
    // No later worker removes it.
    lab.agent(&["submit", "x", "--id", "b"]).exits(0);
    worker(&lab, &model).exits(0);
    assert_eq!(fs::read_to_string(path.join("lib/new.txt")).unwrap(), "new\n");
}

// Fault A2: a submodule that gets a commit stays one, and its files are in the worktree alone.
#[test]
fn a_submodule_with_a_commit_of_its_own_stays_one_and_is_named() {
    let lab = with_submodule();
    let calls =
        [command(&format!("git init -q lib && cd lib && echo new > new.txt && git add . && {COMMIT}"))];
    let json = parallel(&lab, &model(&lab, &calls), &[]).exits(0).json();
    let worktree = worktree(&json);
    assert_eq!(worktree["left_out"], json!(["lib/"]));
    assert!(lab.git(&["ls-tree", worktree["branch"].as_str().unwrap(), "lib"]).starts_with("160000 commit"));
    let path = Path::new(worktree["path"].as_str().unwrap());
    let kept = lab.agent(&["parallel-cleanup"]).exits(2).stdout;
    assert!(kept.contains("lib/") && kept.contains("`--force` removes it"), "{kept}");
    assert!(path.join("lib/new.txt").exists());
    lab.agent(&["parallel-cleanup", "--force"]).exits(0);
    assert!(!path.exists());
}

// Fault "Seen on the way" 2: the content was committed as it is; for git-crypt that is plain text.
#[test]
fn a_file_with_a_filter_is_named_and_not_committed_unfiltered() {
    let lab =
        Lab::repository().file(".gitattributes", "*.key filter=git-crypt\n").file("old.key", "encrypted\n");
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-qm", "filter"]);
    let calls = [
        write("new.key", "plain\n"),
        command("echo plain > old.key; git init -q part; echo plain > part/in.key; echo b > b.txt"),
    ];
    let worktree = worktree(&parallel(&lab, &model(&lab, &calls), &[]).exits(0).json());
    assert_eq!(worktree["left_out"], json!(["new.key", "old.key", "part/in.key"]));
    let branch = worktree["branch"].as_str().unwrap();
    assert_eq!(lab.git(&["diff", "--name-only", &format!("main..{branch}")]), "b.txt\n");
    let text =
        lab.agent(&["parallel", "task", "--mode", "yolo", "--model", &model(&lab, &calls)]).exits(0).stderr;
    assert!(text.contains("not in the commit") && text.contains("old.key"), "{text}");
}

// Fault "Seen on the way" 2: with `--include-uncommitted` the plain text was in the commit that the branches begin with.
#[test]
fn a_changed_file_with_a_filter_is_not_taken_along_and_one_without_changes_is_not_named() {
    let lab = Lab::repository()
        .file(".gitattributes", "*.key filter=crypt\n")
        .file("old.key", "plain\n")
        .file("new.key", "x\n");
    lab.git(&["config", "filter.crypt.clean", "tr a-z b-za"]);
    lab.git(&["config", "filter.crypt.smudge", "tr b-za a-z"]);
    // git compares the contents of files that are as new as its index.
    let old = fs::File::options().append(true).open(lab.ws().join("old.key")).unwrap();
    old.set_modified(std::time::UNIX_EPOCH).unwrap();
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-qm", "filter"]);
    let lab = lab.file("new.key", "changed\n").file("b.txt", "b\n");
    let model = model(&lab, &[write("c.txt", "c\n")]);
    let done = parallel(&lab, &model, &["--include-uncommitted"]).exits(0);
    assert!(done.stderr.contains("new.key"), "{}", done.stderr);
    let branch = worktree(&done.json())["branch"].as_str().unwrap().to_owned();
    assert_eq!(lab.git(&["diff", "--name-only", &format!("main..{branch}")]), "b.txt\nc.txt\n");
}

// Fault "Seen on the way" 2: the same on the branch of a pipeline.
#[test]
fn a_checkpoint_on_the_branch_names_a_file_with_a_filter_and_leaves_it_out() {
    let steps = "steps: [{name: one, run: 'echo plain > new.key; echo b > b.txt', checkpoint: commit}]\n";
    let lab = Lab::repository().file(".gitattributes", "*.key filter=git-crypt\n").pipeline(steps);
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-qm", "filter"]);
    let done = lab.agent(&["pipeline", "../p.yaml", "--mode", "yolo"]).exits(0);
    assert!(done.stderr.contains("with a filter") && done.stderr.contains("new.key"), "{}", done.stderr);
    assert_eq!(lab.git(&["show", "--format=", "--name-only", "HEAD"]), "b.txt\n");
    assert_eq!(lab.git(&["status", "--porcelain"]), "?? new.key\n");
}

// Fault A2: what a file tool has written where git ignores it was removed with the worktree.
#[test]
fn an_ignored_file_that_a_tool_has_written_is_named_and_the_worktree_is_kept() {
    let lab = Lab::new().file(".gitignore", "*.env\nbuild/\n").file("a.txt", "first\n");
    let lab = lab.committed();
    submit(&lab);
    let model = model(&lab, &[write("local.env", "x\n"), command("mkdir build && echo o > build/o")]);
    worker(&lab, &model).exits(0);
    let task = task(&lab);
    assert_eq!((&task["state"], &task["left_out"]), (&json!("done"), &json!(["local.env"])));
    assert!(Path::new(task["worktree"].as_str().unwrap()).join("local.env").exists());
}

/// A git that cannot write a tree.
const NO_TREE: &str =
    "#!/bin/sh\ncase \"$*\" in *write-tree*) echo 'fatal: no tree' >&2; exit 128;; esac\nexec GIT \"$@\"\n";

/// The lab with a git that cannot commit.
fn cannot_commit(lab: Lab) -> Lab {
    let real = Command::new("sh").args(["-c", "command -v git"]).output().unwrap();
    let real = String::from_utf8(real.stdout).unwrap();
    fs::create_dir(lab.outside().join("bin")).unwrap();
    let lab = lab.script("../bin/git", &NO_TREE.replace("GIT", real.trim()));
    let path = format!("{}:{}", lab.outside().join("bin").display(), std::env::var("PATH").unwrap());
    lab.env("PATH", &path)
}

// Fault A3: the run was paid three times, and nothing was kept.
#[test]
fn a_task_whose_changes_cannot_be_committed_fails_once_and_its_worktree_is_kept() {
    let lab = cannot_commit(Lab::repository());
    submit(&lab);
    worker(&lab, &model(&lab, &[write("b.txt", "b\n")])).exits(0);
    let task = task(&lab);
    assert_eq!((&task["state"], &task["attempt"]), (&json!("failed"), &json!(1)));
    assert!(task["cause"].as_str().unwrap().contains("could not be committed: fatal: no tree"), "{task}");
    let kept = Path::new(task["worktree"].as_str().unwrap()).join("b.txt");
    assert_eq!(fs::read_to_string(&kept).unwrap(), "b\n");
    lab.agent(&["tasks", "retry", "a"]).exits(0);
    worker(&lab, &model(&lab, &[])).exits(0);
    assert!(kept.exists());
}

// Fault A3: a task was tried again, after two seconds, because git met the worktree that another process was creating.
#[test]
fn worktrees_are_made_while_others_are_created() {
    let lab = Lab::repository();
    let data = lab.ws().join(".git/worktrees/other");
    fs::create_dir_all(&data).unwrap();
    fs::write(data.join("gitdir"), "/nowhere/.git\n").unwrap();
    fs::write(data.join("HEAD"), "ref: refs/heads/other\n").unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                fs::write(data.join("commondir"), "").unwrap();
                fs::write(data.join("commondir"), "../..\n").unwrap();
                // It is empty for a moment only.
                (0..100).for_each(|_| drop(fs::read(data.join("commondir")).unwrap()));
            }
        });
        let model = model(&lab, &[write("b.txt", "b\n")]);
        let done = [(); 3].map(|()| parallel(&lab, &model, &["--workers", "3"]));
        over.store(true, Ordering::Relaxed);
        for done in done {
            done.exits(0);
        }
    });
}

// Fault A2: commits of a task that had left its branch were lost by the cleanup.
#[test]
fn the_cleanup_keeps_commits_that_the_branch_of_a_task_lacks() {
    let lab = Lab::repository();
    let make = |name: &str| format!("echo {name} > {name}.txt && git add . && {COMMIT}");
    let script = format!("{} && git checkout -q --detach HEAD~1 && {}", make("one"), make("two"));
    let model = model(&lab, &[command(&script)]);
    let json = parallel(&lab, &model, &["--sandbox", "off"]).exits(1).json();
    assert_eq!(json["stop_reason"], "run_failed");
    let kept = lab.agent(&["parallel-cleanup"]).exits(2).stdout;
    assert!(kept.contains("has left the branch"), "{kept}");
    assert_eq!(worktrees(&lab), 1);
}

// Fault A3: exit code 0 and "done" with nothing committed; a cleanup that ends at the first worktree.
#[test]
fn a_command_whose_changes_cannot_be_committed_fails_and_the_cleanup_keeps_them() {
    let lab = cannot_commit(Lab::repository());
    let model = model(&lab, &[write("b.txt", "b\n")]);
    let words =
        ["loop", "task", "--worktree", "--check", "true", "--mode", "yolo", "--json", "--model", &model];
    let json = lab.agent(&words).exits(1).json();
    assert_eq!((&json["status"], &json["stop_reason"]), (&json!("failed"), &json!("run_failed")));
    let json = parallel(&lab, &model, &[]).exits(1).json();
    assert_eq!(json["stop_reason"], "run_failed");
    let kept = lab.agent(&["parallel-cleanup"]).exits(2).stdout;
    assert_eq!(kept.matches("could not be committed: fatal: no tree").count(), 2, "{kept}");
    assert_eq!(
        fs::read_to_string(Path::new(worktree(&json)["path"].as_str().unwrap()).join("b.txt")).unwrap(),
        "b\n"
    );
    lab.agent(&["parallel-cleanup", "--force"]).exits(0);
    assert_eq!(worktrees(&lab), 0);
}

// Fault "Seen on the way" 1: the run was paid, and its branch could not be made.
#[test]
fn a_branch_that_excludes_that_of_a_task_is_named_before_anything_is_spent() {
    for name in ["agent", "agent/task", "agent/task/a/b"] {
        let lab = Lab::repository();
        lab.git(&["branch", name]);
        submit(&lab);
        worker(&lab, &model(&lab, &[write("b.txt", "b\n")])).exits(0);
        let task = task(&lab);
        assert_eq!((&task["state"], &task["result"]), (&json!("failed"), &Value::Null));
        assert!(task["cause"].as_str().unwrap().contains(&format!("'refs/heads/{name}' exists")), "{task}");
        assert_eq!(worktrees(&lab), 0);
    }
    let lab = Lab::repository();
    lab.git(&["branch", "agent"]);
    let server = Server::start("turns: [{text: never}]");
    let url = server.url();
    let more = ["--api-base", &url, "--api-key", KEY];
    let json = parallel(&lab, "openai/mock", &more).exits(1).json();
    let message = json["runs"][0]["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("'refs/heads/agent' exists") && !message.contains("need a git repository"),
        "{message}"
    );
    assert_eq!(server.requests().len(), 0);
}

// Fault "Seen on the way" 3: only git's message about a promisor.
#[test]
fn a_partial_clone_that_lacks_files_of_a_commit_says_how_to_fetch_them() {
    let origin = Lab::repository();
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    let origin = origin.file("a.txt", "second\n");
    origin.git(&["commit", "-qam", "second"]);
    let lab = Lab::new();
    let url = format!("file://{}", origin.ws().display());
    lab.git(&["clone", "-q", "--filter=blob:none", &url, "."]);
    let done = lab.agent(&["review", "--base", "HEAD~1", "--model", &model(&lab, &[])]).exits(3);
    assert!(
        done.stderr.contains("partial clone") && done.stderr.contains("git diff COMMIT"),
        "{}",
        done.stderr
    );
    lab.git(&["diff", "HEAD~1"]);
    let fetched = lab.agent(&["review", "--base", "HEAD~1", "--model", &model(&lab, &[])]);
    assert!(!fetched.stderr.contains("partial clone"), "{}", fetched.stderr);
}
