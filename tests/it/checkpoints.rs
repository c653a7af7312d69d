//! Commits of what a session makes of files, for those who ask for them: `checkpoints.enabled`.

use crate::support::calls::{call, command, script, write};
use crate::support::kernel::confines;
use crate::support::run::Lab;
use crate::support::server::Server;
use crate::support::tree::{Tree, tree};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// What git says, without anybody's configuration.
fn git(lab: &Lab, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command
        .args(words)
        .current_dir(lab.ws())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        // Whoever looks changes nothing.
        .env("GIT_OPTIONAL_LOCKS", "0");
    if let Some(uid) = lab.uid() {
        std::os::unix::process::CommandExt::uid(&mut command, uid);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn commit(lab: &Lab, message: &str) {
    git(lab, &["add", "-A"]);
    git(lab, &["-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qm", message]);
}

/// A repository with a commit, work that is not committed, and something in the index.
fn repository(every: u32) -> Lab {
    let lab = Lab::new()
        .config(&format!(
            "checkpoints: {{enabled: true, every_n_steps: {every}}}\nworkspace: {{allow_delete: true}}\n"
        ))
        .file("a.txt", "one\ntwo\n")
        .file("gone.txt", "gone\n")
        .file("mine.txt", "mine\n")
        .file(".gitignore", "ignored\n")
        .unprivileged();
    git(&lab, &["init", "-q", "."]);
    commit(&lab, "one");
    let lab = lab.file("mine.txt", "mine, not committed\n").file("staged.txt", "staged\n").unprivileged();
    git(&lab, &["add", "staged.txt"]);
    lab
}

/// Every path of `.git` but those of objects and of the references that are the agent's own.
fn rest_of_git(lab: &Lab) -> Tree {
    let mut rest = tree(&lab.ws().join(".git"));
    rest.retain(|path, _| !path.starts_with("objects") && !path.starts_with("refs/agent"));
    rest
}

fn session(lab: &Lab) -> String {
    lab.journal().parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned()
}

fn show(lab: &Lab, step: u32, path: &str) -> String {
    git(lab, &["show", &format!("refs/agent/{}/{step}:{path}", session(lab))])
}

#[test]
fn a14_every_n_steps_and_at_the_end_the_work_is_a_commit_and_nothing_else_is_touched() {
    let lab = repository(2);
    let before = (rest_of_git(&lab), git(&lab, &["status", "--porcelain"]));
    let head = git(&lab, &["rev-parse", "HEAD"]);
    lab.run_yolo(
        &Server::start(&script(&[
            vec![write("new dir/\"é\".txt", "new\n")],
            vec![command("printf three >> a.txt; ln -s a.txt link"), write("ignored", "ignored\n")],
            vec![call("delete_file", &json!({"path": "gone.txt"})), write("new dir/\"é\".txt", "newer\n")],
            vec![command("chmod +x a.txt; rm 'new dir/\"é\".txt'; echo x > x")],
            vec![command("echo y > x")],
        ])),
        &[],
    )
    .exits(0);
    let told = git(&lab, &["for-each-ref", "--format=%(refname:lstrip=-1)", "refs/agent"]);
    assert_eq!(told.split_whitespace().collect::<Vec<_>>(), ["2", "4", "5"]);
    let reference = |step| format!("refs/agent/{}/{step}", session(&lab));
    for step in [2, 4, 5] {
        assert_eq!(git(&lab, &["rev-parse", &format!("{}^", reference(step))]), head);
        assert_eq!(show(&lab, step, "mine.txt"), "mine\n", "what the session has not changed is as in HEAD");
    }
    assert_eq!(
        (show(&lab, 2, "new dir/\"é\".txt"), show(&lab, 2, "ignored")),
        ("new\n".into(), "ignored\n".into())
    );
    let names = |step| git(&lab, &["ls-tree", "-r", "--format=%(objectmode) %(path)", &reference(step)]);
    assert_eq!(
        names(2),
        "100644 .gitignore\n100644 a.txt\n100644 gone.txt\n100644 ignored\n120000 link\n100644 mine.txt\n100644 \"new dir/\\\"\\303\\251\\\".txt\"\n"
    );
    assert_eq!(
        names(4),
        "100644 .gitignore\n100755 a.txt\n100644 ignored\n120000 link\n100644 mine.txt\n100644 x\n"
    );
    assert_eq!((show(&lab, 4, "x"), show(&lab, 5, "x")), ("x\n".to_owned(), "y\n".to_owned()));
    let history = lab.agent(&["history"]).exits(0).stdout;
    let short = |step| git(&lab, &["rev-parse", &reference(step)])[..7].to_owned();
    for step in [2, 4, 5] {
        assert!(history.contains(&format!("  {}  ", short(step))), "{step}: {history}");
    }
    // Fault B28: stays; without a step it undoes the session, as `agent undo`.
    lab.agent(&["rollback"]).exits(0);
    assert_eq!((rest_of_git(&lab), git(&lab, &["status", "--porcelain"])), before);
}

#[test]
fn a14_checkpoints_go_on_counting_in_a_session_that_goes_on() {
    let lab = repository(50);
    lab.run_yolo(&Server::start(&script(&[vec![write("a.new", "1\n")]])), &[]).exits(0);
    let server = Server::start(&script(&[vec![write("b.new", "2\n")]]));
    lab.resume(&server, &["--mode", "yolo", "go on"]).exits(0);
    let told = git(&lab, &["for-each-ref", "--format=%(refname:lstrip=-1)", "refs/agent"]);
    assert_eq!(told.split_whitespace().count(), 2, "{told}");
    let last = told.split_whitespace().last().unwrap().parse().unwrap();
    assert_eq!((show(&lab, last, "a.new"), show(&lab, last, "b.new")), ("1\n".to_owned(), "2\n".to_owned()));
}

/// The checkpoints there are, of every session.
fn checkpoints(lab: &Lab) -> String {
    git(lab, &["for-each-ref", "--format=%(refname)", "refs/agent"])
}

#[test]
fn a14_checkpoints_go_with_their_session_and_nothing_else_is_touched() {
    let lab = repository(1);
    let ran = |number: u32| {
        let made = |step: u32| vec![write(&format!("{number}.{step}"), "made\n")];
        let document =
            lab.run_yolo(&Server::start(&script(&[made(1), made(2)])), &["--json"]).exits(0).json();
        document["session_id"].as_str().unwrap().to_owned()
    };
    let (first, second, third) = (ran(1), ran(2), ran(3));
    git(&lab, &["pack-refs", "--all"]);
    let fourth = ran(4);
    let hook = lab.ws().join(".git/hooks/reference-transaction");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", lab.ws().join("ran").display())).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let lab = lab.unprivileged();
    let of = |sessions: &[&String]| {
        let names = sessions.iter().flat_map(|id| [1, 2].map(|step| format!("refs/agent/{id}/{step}\n")));
        let mut names: Vec<String> = names.collect();
        names.sort();
        names.concat()
    };
    assert_eq!(checkpoints(&lab), of(&[&first, &second, &third, &fourth]));
    let rest = |lab: &Lab| (git(lab, &["for-each-ref", "refs/heads"]), git(lab, &["status", "--porcelain"]));
    let before = rest(&lab);

    lab.agent(&["sessions", "rm", &first]).exits(0);
    assert_eq!(checkpoints(&lab), of(&[&second, &third, &fourth]));
    // Nor is one in the way that somebody else has let go.
    git(&lab, &["-c", "core.hooksPath=/dev/null", "update-ref", "-d", &format!("refs/agent/{second}/1")]);
    lab.age(&second, 8);
    let told = lab.agent(&["sessions", "cleanup", "--older-than", "7"]).exits(0);
    assert_eq!((told.stdout.as_str(), told.stderr.as_str()), ("1 session removed\n", ""));
    assert_eq!(checkpoints(&lab), of(&[&third, &fourth]));
    lab.age(&third, 8);
    let lab = lab.config("sessions: {cleanup_after_days: 7}\n");
    lab.run_yolo(&Server::start(&script(&[vec![write("c.new", "c\n")]])), &[]).exits(0);
    assert_eq!(checkpoints(&lab), of(&[&fourth]));
    fs::remove_file(lab.ws().join("c.new")).unwrap();
    assert_eq!(rest(&lab), before);
    assert!(!lab.exists("ran"));
}

#[test]
fn a14_checkpoints_that_cannot_go_are_told_and_the_session_goes_all_the_same() {
    let lab = repository(1);
    lab.run_yolo(&Server::start(&script(&[vec![write("a.new", "a\n")]])), &[]).exits(0);
    let id = session(&lab);
    fs::write(lab.ws().join(format!(".git/refs/agent/{id}/1.lock")), "").unwrap();
    let told = lab.agent(&["sessions", "rm", &id]).exits(0).stderr;
    assert!(told.contains("stay in the repository") && told.contains("agent help undo"), "{told}");
    assert!(lab.agent(&["sessions", "show", &id]).exits(3).stdout.is_empty());
    assert_eq!(checkpoints(&lab), format!("refs/agent/{id}/1\n"));
}

#[test]
fn a14_a_checkpoint_runs_nothing_that_the_repository_names_and_holds_no_secret() {
    let lab = repository(1).env("DEPLOY_TOKEN", "correct-horse-battery-9");
    let program = lab.outside().join("program");
    fs::write(&program, format!("#!/bin/sh\ntouch {}\ncat\n", lab.ws().join("ran").display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let program = program.to_str().unwrap();
    for (name, value) in [
        ("filter.evil.clean", program),
        ("filter.evil.process", program),
        ("core.fsmonitor", program),
        ("gpg.program", program),
        ("commit.gpgSign", "true"),
    ] {
        git(&lab, &["config", name, value]);
    }
    for hook in ["reference-transaction", "post-commit", "pre-commit", "post-index-change"] {
        let hook = lab.ws().join(".git/hooks").join(hook);
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        fs::copy(program, hook).unwrap();
    }
    let lab =
        lab.file(".gitattributes", "* filter=evil\n").file("sub/.git", "gitdir: elsewhere\n").unprivileged();
    let told = lab
        .run_yolo(
            &Server::start(&script(&[vec![
                write("a.new", "new\n"),
                write("token.txt", "correct-horse-battery-9"),
                write("sub/x", "x\n"),
            ]])),
            &[],
        )
        .exits(0);
    assert!(!lab.exists("ran"), "{}", told.stderr);
    assert!(told.stderr.contains("without these") && told.stderr.contains("sub/x"), "{}", told.stderr);
    let commit = format!("refs/agent/{}/1", session(&lab));
    let names = fs::read_dir(lab.ws().join(".git/refs/agent").join(session(&lab))).unwrap().count();
    assert_eq!(names, 1);
    fs::remove_dir_all(lab.ws().join(".git/hooks")).unwrap();
    let held = git(&lab, &["-c", "core.fsmonitor=false", "ls-tree", "-r", "--name-only", &commit]);
    assert!(held.contains("a.new") && !held.contains("token.txt") && !held.contains("sub/"), "{held}");
}

// Fault A4
#[test]
fn checkpoints_are_made_in_a_linked_worktree_and_a_failure_names_the_directory_to_allow() {
    let lab =
        Lab::new().config("checkpoints: {enabled: true}\n").file("a.txt", "a\n").file("pkg/p.txt", "p\n");
    let lab = lab.committed();
    lab.git(&["worktree", "add", "-q", "../linked"]);
    for tree in ["../linked", "pkg"] {
        let server = Server::start(&script(&[vec![write("new.txt", "n\n")]]));
        let done = lab.run_yolo(&server, &["--workspace", tree, "--json"]).exits(0);
        assert!(!done.stderr.contains("no checkpoints"), "{tree}: {}", done.stderr);
        let id = done.json()["session_id"].as_str().unwrap().to_owned();
        let names = lab.git(&["ls-tree", "-r", "--name-only", &format!("refs/agent/{id}/1")]);
        assert!(names.contains("new.txt"), "{tree}: {names}");
    }
    // The repository knows the worktree under another path.
    fs::rename(lab.outside().join("linked"), lab.outside().join("moved")).unwrap();
    let server = Server::start(&script(&[vec![write("other.txt", "n\n")]]));
    let done = lab.run_yolo(&server, &["--workspace", "../moved"]).exits(0);
    let hint = format!("--allow-write {}", lab.ws().canonicalize().unwrap().join(".git").display());
    assert_eq!(done.stderr.contains("no checkpoints"), confines(), "{}", done.stderr);
    assert_eq!(done.stderr.contains(&hint), confines(), "{}", done.stderr);
}

#[test]
fn a14_without_a_repository_or_without_asking_there_are_no_checkpoints_and_the_run_goes_on() {
    let asking = || Lab::new().config("checkpoints: {enabled: true}\n");
    let told = asking()
        .run_yolo(&Server::start(&script(&[vec![write("a", "a\n")], vec![write("b", "b\n")]])), &[])
        .exits(0);
    assert_eq!(told.stderr.matches("no checkpoints are made").count(), 1, "{}", told.stderr);
    let lab = repository(1).config("");
    lab.run_yolo(&Server::start(&script(&[vec![write("a.new", "a\n")]])), &[]).exits(0);
    assert!(!lab.exists(".git/refs/agent"));
    let dry = repository(1);
    dry.run_yolo(&Server::start(&script(&[vec![write("a.new", "a\n")]])), &["--dry-run"]).exits(0);
    assert!(!dry.exists(".git/refs/agent"));
    let unborn = asking().unprivileged();
    git(&unborn, &["init", "-q", "."]);
    unborn.run_yolo(&Server::start(&script(&[vec![write("a.new", "a\n")]])), &[]).exits(0);
    assert_eq!(show(&unborn, 1, "a.new"), "a\n");
}
