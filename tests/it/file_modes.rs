//! Rights of what the program makes: its own files are private under any umask, those of the workspace are what the umask
//! says.

use crate::support::run::Lab;
use crate::support::server::Server;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// All rights for everybody, the usual ones, private ones, and none for anybody, not even for the owner.
const UMASKS: [u32; 4] = [0o000, 0o022, 0o077, 0o777];

/// A command that makes what it must not; in a file, because the rules about texts are another matter.
const PROTECTED: &str = "mkdir .vscode; echo x > .vscode/tasks.json; echo x > .envrc; true\n";

/// As root, where the tests are, and as an unprivileged user, whom missing rights of his own stop.
fn for_each_user_and_umask(project: impl Fn() -> Lab, test: impl Fn(&Lab, u32)) {
    for umask in UMASKS {
        test(&project().umask(umask), umask);
        if rustix::process::geteuid().is_root() {
            test(&project().umask(umask).unprivileged(), umask);
        }
    }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// All files and directories at and below `place` with their rights. What commands keep in their temporary directory, and
/// what was taken away from them, has the rights that they gave it, in a directory of ours.
fn made(place: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = vec![(place.to_owned(), mode(place))];
    let is_below =
        |levels: usize, name: &str| place.ancestors().nth(levels).is_some_and(|dir| dir.ends_with(name));
    if place.is_dir() && !is_below(1, "tmp") && !is_below(2, "quarantine") {
        for entry in fs::read_dir(place).unwrap() {
            found.extend(made(&entry.unwrap().path()));
        }
    }
    found
}

/// Checks that what is below the state and cache directories is private; their paths.
#[track_caller]
fn private(lab: &Lab, umask: u32) -> String {
    let places = ["state", "cache"].map(|name| lab.home().join(name));
    let mut paths = String::new();
    for (path, rights) in places.iter().filter(|place| place.exists()).flat_map(|place| made(place)) {
        let private = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(rights, private, "umask {umask:03o}, {:?}: {rights:04o} {}", lab.uid(), path.display());
        paths.extend([path.to_str().unwrap(), "\n"]);
    }
    paths
}

#[track_caller]
fn holds(paths: &str, names: &[&str]) {
    for name in names {
        assert!(paths.contains(name), "{name} is not there:\n{paths}");
    }
}

/// What one run does in its steps.
fn steps() -> Value {
    let steps = [
        ("read_file", json!({"path": "old.sh"})),
        ("edit_file", json!({"path": "old.sh", "old_str": "one", "new_str": "two"})),
        ("write_file", json!({"path": "new/deep/made.txt", "content": "made\n"})),
        ("run_command", json!({"command": "umask > command.umask; touch from-command; seq 1 40000"})),
        (
            "run_command",
            json!({"command": "touch begun; while ! [ -e go ]; do sleep 0.05; done; sh protected.sh"}),
        ),
    ];
    let turns = steps.map(|(name, arguments)| json!({"calls": [{"name": name, "arguments": arguments}]}));
    json!({"turns": turns.into_iter().chain([json!({"text": "done"})]).collect::<Vec<_>>()})
}

#[test]
fn class_56_s27_all_that_a_run_keeps_is_private_under_any_umask() {
    let project = || {
        let lab = Lab::new()
            .started()
            .config("hooks: {pre_tool_use: [{matcher: write_file, command: 'umask > hook.umask'}]}\n")
            .file("old.sh", "one\n")
            .file("protected.sh", PROTECTED);
        fs::set_permissions(lab.ws().join("old.sh"), fs::Permissions::from_mode(0o754)).unwrap();
        lab
    };
    for_each_user_and_umask(project, |lab, umask| {
        let server = Server::start(&steps().to_string());
        let log = lab.outside().join("run.log");
        let args = ["--mode", "yolo", "--cache", "--log-file", log.to_str().unwrap()];
        let running = lab.start_run(&server, &args);
        lab.wait_for_file("begun");
        holds(&private(lab, umask), &["/tmp/run-", ".lock"]);
        fs::write(lab.ws().join("go"), "").unwrap();
        running.finish().exits(0);
        holds(
            &private(lab, umask),
            &["/lock", "/journal.jsonl", "/outputs/", ".txt", "/sandbox.json", "/answers/"],
        );
        let at = |name: &str| mode(&lab.ws().join(name));
        assert_eq!((mode(&log), at("old.sh")), (0o600, 0o754), "{umask:03o}");
        assert_eq!(at("new/deep/made.txt"), 0o666 & !umask | 0o600, "{umask:03o}");
        assert_eq!((at("new"), at("new/deep")), (0o777 & !umask | 0o700, 0o777 & !umask | 0o700));
        assert_eq!(at("from-command"), 0o666 & !umask, "{umask:03o}");
        for name in ["command.umask", "hook.umask"] {
            fs::set_permissions(lab.ws().join(name), fs::Permissions::from_mode(0o600)).unwrap();
            assert_eq!(u32::from_str_radix(lab.read(name).trim(), 8).unwrap(), umask, "{name}");
        }
    });
}

#[test]
fn class_56_what_other_commands_keep_is_private_under_any_umask() {
    let project = || Lab::new().started().file(".agent/config.yaml", "commands: {env: {A: b}}\n");
    for_each_user_and_umask(project, |lab, umask| {
        lab.agent(&["trust", "--yes"]).exits(0);
        let long = json!({"command": "seq 1 40000"}).to_string();
        lab.agent(&["tools", "call", "run_command", &long, "--mode", "yolo"]).exits(0);
        lab.agent(&["doctor"]).exits(3);
        lab.agent(&["sessions", "list"]).exits(0);
        holds(&private(lab, umask), &["/trust.json", "/calls/"]);
    });
}

#[test]
fn class_56_skills_of_the_user_are_private_under_any_umask() {
    let private = |lab: &Lab, count: usize| {
        let files = made(&lab.home().join("skills"));
        assert_eq!(files.len(), count, "{files:?}");
        for (path, rights) in files {
            let private = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(rights, private, "{rights:04o} {}", path.display());
        }
    };
    for_each_user_and_umask(Lab::new, |lab, _| {
        lab.agent(&["skills", "create", "ours", "--user"]).exits(0);
        private(lab, 3);
    });
    let skill = "---\nname: theirs\ndescription: d\n---\nText.\n";
    let lab = Lab::new()
        .started()
        .file("skills/theirs/SKILL.md", skill)
        .file("skills/theirs/a/b.sh", "b\n")
        .umask(0o000);
    for words in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "x"]] {
        lab.git(words);
    }
    lab.agent(&["skills", "install", "./", "--user", "--yes"]).exits(0);
    // Two directories of skills, and a skill with a directory, two files and its source.
    private(&lab, 6);
}

#[test]
fn class_15_what_a_command_made_of_a_protected_file_is_kept_in_a_private_directory() {
    for_each_user_and_umask(
        || Lab::new().started().file("protected.sh", PROTECTED),
        |lab, umask| {
            let call = json!({"command": "sh protected.sh"}).to_string();
            let done = lab.agent(&["tools", "call", "run_command", &call, "--mode", "yolo"]);
            let said = format!("{}{}", done.stdout, done.stderr);
            let kept = private(lab, umask);
            // Where nothing confines commands, nothing is put back.
            assert_eq!(kept.contains("/quarantine/"), said.contains("is stored in "), "{said}\n{kept}");
            assert_eq!(lab.exists(".envrc"), !said.contains("is stored in "), "{said}");
        },
    );
}

#[test]
fn class_15_the_demonstration_is_private_while_it_lasts_and_leaves_nothing() {
    let lab = Lab::new().started();
    let temporary = lab.outside().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let lab = lab.env("TMPDIR", temporary.to_str().unwrap()).umask(0o000);
    let watch = rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::CLOEXEC).unwrap();
    let made = rustix::fs::inotify::WatchFlags::CREATE;
    rustix::fs::inotify::add_watch(&watch, &temporary, made).unwrap();
    let running = lab.start(&["demo"]);
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut events = rustix::fs::inotify::Reader::new(&watch, &mut buffer);
    let name = events.next().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(mode(&temporary.join(name)), 0o700);
    running.finish().exits(0);
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}
