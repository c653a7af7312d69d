//! Repositories that commands make or work in: plain ones are no obstacle, and one that would run programs does not stay.

use crate::sandbox::{confining, project, run_script, said};
use crate::support::calls::{call, command, told, write};
use crate::support::kernel::{Kernel, confines};
use crate::support::run::{Finished, KEY, Lab};
use crate::support::server::Server;
use serde_json::json;
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a command says that makes repositories for which `$1` is no obstacle: with an identity, and nothing of the user's.
const GIT: &str = "set -e; export HOME=/nonexistent GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b.example \
                   GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b.example\n";

fn git(lab: &Lab, kernel: Kernel, script: &str) -> String {
    said(&run_script(lab, kernel, &format!("{GIT}{script}")))
}

/// A workspace that is a repository with one commit.
fn committed() -> Lab {
    let lab = Lab::new().file("a.txt", "a\n");
    for args in [
        &["init", "-q", "-b", "main"][..],
        &["add", "a.txt"],
        &["-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "-qm", "one"],
    ] {
        assert!(Command::new("git").args(args).current_dir(lab.ws()).status().unwrap().success(), "{args:?}");
    }
    lab
}

/// A run in which the model has these scripts run one after the other, and what it was told of each.
fn in_one_run(lab: &Lab, kernel: Kernel, scripts: &[&str]) -> (Vec<String>, Finished) {
    let server = Server::calls(scripts.iter().enumerate().map(|(number, script)| {
        let name = format!("step{number}.sh");
        fs::write(lab.ws().join(&name), format!("{GIT}{script}")).unwrap();
        command(&format!("sh {name}"))
    }));
    let url = server.url();
    let connection = ["--model", "openai/mock", "--api-base", &url, "--api-key", KEY, "--no-stream"];
    let finished = kernel.agent(lab, &[&["run", "task", "--mode", "yolo"][..], &connection].concat());
    (server.requests().last().unwrap().texts("tool"), finished)
}

#[test]
fn class_25_a_repository_made_below_the_root_that_would_run_programs_does_not_stay() {
    for (kernel, tier) in confining() {
        for (what, script, gone) in [
            (
                "a program in its configuration",
                "git init -q x; git -C x config core.fsmonitor ./evil",
                "x/.git",
            ),
            ("an alias", "git init -q x; git -C x config alias.st '!./evil'", "x/.git"),
            ("a hook", "git init -q x; echo echo > x/.git/hooks/post-checkout", "x/.git"),
            ("a filter for all files", "git init -q x; echo '* filter=y' > x/.git/info/attributes", "x/.git"),
            ("a copy", "mkdir -p deep/er; cp -r model deep/er/.git", "deep/er/.git"),
            ("a new name of files that were there", "mkdir x; mv model x/.git", "x/.git"),
            ("a directory that was there", "mv model notes/.git", "notes/.git"),
            ("a link", "mkdir x; ln -s ../model x/.git", "x/.git"),
            ("a file that leads there", "mkdir x; echo 'gitdir: ../model' > x/.git", "x/.git"),
            (
                "one with a name that differs at its end",
                "cp -r model 'model '; rm -r model; git init -q --bare model; mkdir x; echo 'gitdir: ../model ' > x/.git",
                "x/.git",
            ),
            (
                "one that says more than git reads",
                "mkdir x; printf 'gitdir: ../model\\0../nowhere' > x/.git",
                "x/.git",
            ),
            (
                "a worktree of it",
                "mkdir x w; echo ../model > w/commondir; echo 'gitdir: ../w' > x/.git",
                "x/.git",
            ),
            ("a bare one", "git init -q --bare x; git -C x config core.pager ./evil", "x/HEAD"),
            ("what makes a directory one", "mkdir model/refs", "model/HEAD"),
            ("a closed directory", "git init -q x; git -C x config core.pager ./evil; chmod 311 x", "x/.git"),
            (
                "a shut one",
                "mkdir -p x/y; git init -q x/y; git -C x/y config core.pager ./evil; chmod 000 x/y; chmod 444 x",
                "x/y/.git",
            ),
        ] {
            let lab = project()
                .file("model/config", "[core]\n\tfsmonitor = ./evil\n")
                .file("model/HEAD", "ref: refs/heads/main\n")
                .file("model/objects/keep", "")
                .file("notes/a.txt", "kept\n")
                .unprivileged();
            let text = git(&lab, kernel, script);
            assert!(text.contains(&format!("{gone}\" (created, now removed)")), "{tier}, {what}: {text}");
            assert!(fs::symlink_metadata(lab.ws().join(gone)).is_err(), "{tier}, {what}: {text}");
            assert_eq!(lab.read("notes/a.txt"), "kept\n", "{tier}, {what}");
        }
    }
}

#[test]
fn class_25_plain_repositories_and_packages_below_the_root_stay() {
    for (kernel, tier) in confining() {
        let lab = committed().file("old/.git/config", "[core]\n\tfsmonitor = ./mine\n").unprivileged();
        let text = git(
            &lab,
            kernel,
            "git init -q new; git clone -q . copy; git clone -q --bare . bare.git; git clone -q --mirror . mirror.git
            git clone -q --separate-git-dir=apart . split
            git -C copy remote add other https://example.org/x; git -C copy config user.name me
            mkdir -p node_modules/x/.vscode node_modules/x/.claude; echo {} > node_modules/x/.vscode/settings.json",
        );
        assert!(text.contains("exit_code: 0") && !text.contains("protected"), "{tier}: {text}");
        for name in [
            "new/.git/HEAD",
            "copy/.git/HEAD",
            "bare.git/HEAD",
            "mirror.git/HEAD",
            "split/.git",
            "old/.git/config",
        ] {
            assert!(lab.exists(name), "{tier}, {name}: {text}");
        }
    }
}

#[test]
fn class_25_a_repository_that_was_plain_is_looked_at_after_every_command() {
    for (kernel, tier) in confining() {
        let lab = project().unprivileged();
        let (told, finished) = in_one_run(
            &lab,
            kernel,
            &[
                "mkdir -p deep/x; git init -q deep/x; git init -q --bare bare",
                "git -C deep/x config user.name me; echo a > deep/x/a",
                "git -C deep/x config core.fsmonitor ./evil",
                "echo './evil' > bare/hooks/post-update",
                "echo goes on",
            ],
        );
        let [made, used, changed, hooked, last] = &told[..] else {
            panic!("{tier}: {told:?} {}", finished.stderr)
        };
        assert!(!made.contains("protected") && !used.contains("protected"), "{tier}: {made} {used}");
        assert!(changed.contains("deep/x/.git\" (created, now removed)"), "{tier}: {changed}");
        assert!(last.contains("goes on") && !last.contains("protected"), "{tier}: {last}");
        assert!(hooked.contains("bare/HEAD\" (created, now removed)"), "{tier}: {hooked}");
    }
}

#[test]
fn class_24_a_bare_repository_that_was_there_is_protected() {
    for (kernel, tier) in confining() {
        let lab = project()
            .file("store.git/HEAD", "ref: refs/heads/main\n")
            .file("store.git/config", "[core]\n\tbare = true\n")
            .file("store.git/objects/keep", "")
            .file("store.git/refs/keep", "");
        let attack =
            "echo evil >> store.git/config; mkdir store.git/hooks; echo evil > store.git/hooks/update; true";
        let text = said(&run_script(&lab, kernel, attack));
        assert_eq!(lab.read("store.git/config"), "[core]\n\tbare = true\n", "{tier}: {text}");
        assert!(!lab.exists("store.git/hooks/update"), "{tier}: {text}");
    }
}

/// A workspace with a bare repository, and one apart from its working directory.
fn with_repositories() -> Lab {
    let lab = Lab::new()
        .file("fix/repo.git/HEAD", "ref: refs/heads/main\n")
        .file("fix/repo.git/config", "[core]\n\tbare = true\n")
        .file("fix/repo.git/objects/keep", "")
        .file("fix/repo.git/refs/keep", "");
    let args = ["init", "-q", "--separate-git-dir=gd", "m"];
    assert!(Command::new("git").args(args).current_dir(lab.ws()).status().unwrap().success());
    lab
}

/// Hooks and settings of every kind, in each form in which a tool changes a file.
#[test]
fn class_24_no_tool_changes_what_makes_git_run_programs_wherever_the_repository_is() {
    let write = |path| write(path, "echo owned\n");
    let edit = json!({"path": "gd/config", "old_str": "[core]", "new_str": "[core]\n\tfsmonitor = ./evil"});
    let moved = "*** Begin Patch\n*** Update File: evil\n*** Move to: gd/hooks/post-merge\n@@\n-evil\n+owned\n*** End Patch\n";
    let attacks = vec![
        write("gd/hooks/post-checkout"),
        write("gd/Hooks/post-checkout"),
        write("gd/config.worktree"),
        write("gd/commondir"),
        write("gd/info/attributes"),
        write("gd/modules/x/config"),
        write("gd/worktrees/x/commondir"),
        write("link/hooks/post-checkout"),
        write("fix/repo.git/hooks/update"),
        call("edit_file", &edit),
        call("delete_file", &json!({"path": "fix/repo.git/HEAD"})),
        call("apply_patch", &json!({"patch": moved})),
    ];
    let lab = with_repositories().file("evil", "evil\n").config("workspace: {allow_delete: true}\n");
    std::os::unix::fs::symlink("gd", lab.ws().join("link")).unwrap();
    let reads =
        ["evil", "gd/config", "fix/repo.git/HEAD"].map(|path| call("read_file", &json!({"path": path})));
    let config = lab.read("gd/config");
    let said = told(&lab, reads.into_iter().chain(attacks.clone()).collect());
    for (attack, said) in attacks.iter().zip(said.iter().skip(3)) {
        assert!(said.contains("configures a repository"), "{attack}: {said}");
    }
    assert_eq!(lab.read("gd/config"), config);
    assert!(lab.exists("evil") && lab.exists("fix/repo.git/HEAD"), "{said:?}");
    for path in ["gd/hooks/post-checkout", "gd/hooks/post-merge", "fix/repo.git/hooks"] {
        assert!(!lab.exists(path), "{path}: {said:?}");
    }
}

/// What its configuration names, as teams share their hooks and settings.
#[test]
fn class_24_hooks_and_configuration_that_a_repository_takes_from_its_workspace_stay() {
    let config = "[core]\n\tbare = false\n\thooksPath = \"tools/hooks\" ; of the team\n\tattributesFile = ours.attributes\n\
                  [include]\n\tpath = ../team.gitconfig\n[includeIf \"onbranch:x\"] path = ../deep/absent\n";
    let team = "[alias]\n\tst = status\n[include]\n\tpath = more.gitconfig\n";
    let project = || {
        project()
            .file(".git/config", config)
            .file("tools/hooks/pre-commit", "true\n")
            .file("tools/build", "old\n")
            .file("team.gitconfig", team)
            .file("deep/a.txt", "")
            .file("more.gitconfig", "")
    };
    let kept = |lab: &Lab, context: &str| {
        assert_eq!(lab.read("tools/hooks/pre-commit"), "true\n", "{context}");
        assert_eq!(
            (lab.read("team.gitconfig"), lab.read("more.gitconfig")),
            (team.into(), String::new()),
            "{context}"
        );
        for made in ["tools/hooks/post-checkout", "deep/absent", "ours.attributes"] {
            assert!(!lab.exists(made), "{made}: {context}");
        }
    };
    let paths = [
        "tools/hooks/pre-commit",
        "tools/hooks/post-checkout",
        "team.gitconfig",
        "more.gitconfig",
        "deep/absent",
        "Ours.attributes",
    ];
    let writes =
        paths.map(|path| call("write_file", &json!({"path": path, "content": "x", "mode": "append"})));
    let lab = project();
    for (path, said) in paths.iter().zip(told(&lab, writes.to_vec())) {
        assert!(said.contains("configures a repository"), "{path}: {said}");
    }
    kept(&lab, "tools");
    for (kernel, tier) in confining() {
        let lab = project();
        let script = paths.map(|path| format!("echo evil >> {}\n", path.replace("Ours", "ours"))).concat();
        let text = said(&run_script(
            &lab,
            kernel,
            &format!("{script}mv tools/hooks x; echo new > tools/build; true"),
        ));
        kept(&lab, &format!("{tier}: {text}"));
        assert_eq!(lab.read("tools/build"), "new\n", "{tier}: {text}");
    }
}

#[test]
fn class_24_no_tool_changes_a_repository_that_a_command_has_made_look_like_none() {
    if !confines() {
        return;
    }
    let lab = with_repositories().unprivileged();
    let said = told(
        &lab,
        vec![
            command("mv fix/repo.git/refs fix/repo.git/r"),
            write("fix/repo.git/hooks/update", "echo owned\n"),
            command("mv fix/repo.git/r fix/repo.git/refs"),
        ],
    );
    assert!(said[1].contains("configures a repository"), "{said:?}");
    assert!(lab.exists("fix/repo.git/refs") && !lab.exists("fix/repo.git/hooks"), "{said:?}");
}

#[test]
fn class_24_no_tool_makes_a_directory_a_repository() {
    let whole = ["docs/config", "docs/HEAD", "docs/objects/a", "docs/refs/heads/a.lock"];
    for (last, first) in [
        ("docs/HEAD", &whole[..]),
        ("docs/objects/a", &whole),
        ("docs/refs/heads/a.lock", &whole),
        ("commondir", &["config", "HEAD"]),
    ] {
        let lab = Lab::new();
        let paths = first.iter().copied().filter(|path| *path != last).chain([last]);
        let said = told(&lab, paths.clone().map(|path| write(path, "ref: refs/heads/main\n")).collect());
        assert!(said.last().unwrap().contains("configures a repository"), "{last}: {said:?}");
        for path in paths {
            assert_eq!(lab.exists(path), path != last, "{path}: {said:?}");
        }
    }
}

#[test]
fn s24_what_is_no_configuration_of_a_repository_is_written_beside_and_in_it() {
    let paths = ["fix/repo.git/x", "fix/config", "HEAD", "objects/x.rs", "config", "hooks/x", "gd/info/x"];
    let lab = with_repositories();
    let said = told(&lab, paths.map(|path| write(path, "text\n")).to_vec());
    for path in paths {
        assert!(lab.exists(path), "{path}: {said:?}");
    }
}

#[test]
fn s24_worktrees_are_added_and_worked_in_in_each_kernel() {
    for (kernel, tier) in confining() {
        let lab = committed();
        let status =
            Command::new("git").args(["worktree", "add", "-q", "old"]).current_dir(lab.ws()).status();
        assert!(status.unwrap().success());
        let lab = lab.unprivileged();
        let (told, finished) = in_one_run(
            &lab,
            kernel,
            &[
                "git worktree add -q side; cd side; echo b > b; git add b; git commit -qm two",
                "cd side; git log --oneline; cd ../old; echo c > c; git add c; git commit -qm three; git status --short",
                "git worktree add -q other; git worktree remove other; git worktree remove side; git gc -q",
            ],
        );
        assert_eq!(told.len(), 3, "{tier}: {}", finished.stderr);
        for text in &told {
            assert!(text.contains("exit_code: 0") && !text.contains("protected"), "{tier}: {text}");
        }
        assert!(lab.exists("old/c") && !lab.exists("side"), "{tier}: {told:?}");
    }
}

/// A repository with a linked worktree, a subdirectory and a submodule, each with the directory of git that it uses.
fn other_working_trees() -> (Lab, [(&'static str, &'static str); 3]) {
    let lab = Lab::new().file("a.txt", "a\n").file("pkg/p.txt", "p\n");
    let script = "git init -q -b main; git add .; git commit -qm one; git worktree add -q ../linked
        git init -q -b main ../lib; echo l > ../lib/l.txt; git -C ../lib add .; git -C ../lib commit -qm lib
        git -c protocol.file.allow=always submodule --quiet add ../lib sub; git commit -qm sub";
    let script = format!("{GIT}{script}");
    let done = Command::new("sh").args(["-c", &script]).current_dir(lab.ws()).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let trees = [("../linked", "../ws/.git"), ("pkg", ".git"), ("sub", ".git/modules/sub")];
    (lab.unprivileged(), trees)
}

fn command_in(lab: &Lab, kernel: Kernel, tree: &str, script: &str) -> String {
    let arguments = json!({"command": format!("sh -c {}", quoted(&format!("{GIT}{script}")))}).to_string();
    said(
        &kernel
            .agent(lab, &["tools", "call", "run_command", &arguments, "--mode", "yolo", "--workspace", tree]),
    )
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

// Fault A4
#[test]
fn commands_commit_in_linked_worktrees_subdirectories_and_submodules_of_a_repository() {
    for (kernel, tier) in confining() {
        let (lab, trees) = other_working_trees();
        for (tree, git) in trees {
            let text = command_in(
                &lab,
                kernel,
                tree,
                "echo n > new.txt; git add new.txt; git commit -qm two; git branch side; git branch -q -d side; \
                 echo more >> new.txt; git stash -q; git stash pop -q; git log -1 --format=committed-%s",
            );
            let is_done = text.contains("exit_code: 0") && text.contains("committed-two");
            assert!(is_done && !text.contains("Read-only"), "{tier}, {tree}: {text}");
            let git = lab.ws().join(git);
            let before = fs::read(git.join("config")).unwrap();
            let attack = format!(
                "set +e; cd {}; echo evil > hooks/post-checkout; printf '[core]\\n\\tpager = evil\\n' >> config; \
                 echo '* filter=evil' > info/attributes; true",
                git.display()
            );
            let text = command_in(&lab, kernel, tree, &attack);
            assert_eq!(fs::read(git.join("config")).unwrap(), before, "{tier}, {tree}: {text}");
            for made in ["hooks/post-checkout", "info/attributes"] {
                assert!(!git.join(made).exists(), "{tier}, {tree}, {made}: {text}");
            }
        }
    }
}

/// Adds and removes the data of linked worktrees, as git does for other runs, while `work` runs.
fn while_worktrees_come_and_go<T>(repository: &Path, work: impl FnOnce() -> T) -> T {
    let (common, over) = (repository.join("worktrees"), AtomicBool::new(false));
    let files = [("gitdir", "/nowhere/.git\n"), ("HEAD", "ref: refs/heads/main\n"), ("commondir", "../..\n")];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut there = VecDeque::new();
            for number in 0.. {
                let data = common.join(format!("other-{number}"));
                fs::create_dir(&data).unwrap();
                for (file, text) in files {
                    fs::write(data.join(file), text).unwrap();
                }
                there.push_back(data);
                if there.len() > 25 {
                    fs::remove_dir_all(there.pop_front().unwrap()).unwrap();
                }
                if over.load(Ordering::Relaxed) {
                    break;
                }
            }
            for data in there {
                fs::remove_dir_all(data).unwrap();
            }
        });
        let done = work();
        over.store(true, Ordering::Relaxed);
        done
    })
}

// Fault A4: a command was refused when another run removed its worktree meanwhile, and the data of that came back.
#[test]
fn commands_of_a_linked_worktree_run_while_others_come_and_go() {
    // Bubblewrap itself looks whether a path is there, and starts nothing when the path goes a moment later.
    for (kernel, tier) in confining().filter(|(_, tier)| *tier != "bubblewrap") {
        let (lab, _) = other_working_trees();
        let told = while_worktrees_come_and_go(&lab.ws().join(".git"), || {
            [(); 15].map(|()| command_in(&lab, kernel, "../linked", "true"))
        });
        for text in told {
            assert!(text.contains("exit_code: 0") && !text.contains("protected"), "{tier}: {text}");
        }
        let left: Vec<_> = fs::read_dir(lab.ws().join(".git/worktrees"))
            .unwrap()
            .map(|it| it.unwrap().file_name())
            .collect();
        assert_eq!(left, ["linked"], "{tier}");
    }
}

// Fault A4: a `.git` file does not decide by itself which repository may be changed.
#[test]
fn a_repository_that_does_not_name_the_working_tree_is_not_changed_from_there() {
    for (kernel, tier) in confining() {
        let (lab, _) = other_working_trees();
        let victim = lab.ws().join(".git");
        let forged = lab.outside().join("forged");
        for (file, text) in [
            (".git", "gitdir: own\n".to_owned()),
            ("own/commondir", victim.display().to_string()),
            ("own/gitdir", forged.join(".git").display().to_string()),
            ("own/HEAD", "ref: refs/heads/main\n".to_owned()),
        ] {
            fs::create_dir_all(forged.join(file).parent().unwrap()).unwrap();
            fs::write(forged.join(file), text).unwrap();
        }
        let lab = lab.unprivileged();
        for pointer in ["own".to_owned(), victim.display().to_string()] {
            fs::write(forged.join(".git"), format!("gitdir: {pointer}\n")).unwrap();
            let text = command_in(&lab, kernel, "../forged", "git update-ref refs/heads/evil HEAD");
            assert!(!victim.join("refs/heads/evil").exists(), "{tier}, {pointer}: {text}");
            assert!(text.contains("--allow-write") || tier == "rules", "{tier}, {pointer}: {text}");
        }
    }
}

#[test]
fn class_24_worktrees_that_were_there_are_led_nowhere_else() {
    for (kernel, tier) in confining() {
        let lab = project()
            .file("side/.git", "gitdir: ../.git/worktrees/side\n")
            .file(".git/worktrees/side/commondir", "../..\n")
            .file(".git/worktrees/side/HEAD", "ref: refs/heads/main\n");
        let attack = "cd .git/worktrees/side; echo ../../../evil > commondir; echo '[core] pager = evil' > config.worktree; true";
        let text = said(&run_script(&lab, kernel, attack));
        assert_eq!(lab.read(".git/worktrees/side/commondir"), "../..\n", "{tier}: {text}");
        assert!(!lab.exists(".git/worktrees/side/config.worktree"), "{tier}: {text}");
    }
}

/// Where what commands make of protected files is kept, of which `text` tells.
fn quarantine(text: &str) -> PathBuf {
    let (_, told) = text.split_once("is stored in ").unwrap();
    let place = Path::new(told.split_once(".\n").unwrap().0);
    place.ancestors().find(|above| above.ends_with("quarantine")).unwrap().to_owned()
}

#[test]
fn class_24_what_could_not_be_put_back_is_no_baseline_for_the_next_command() {
    for (kernel, tier) in confining() {
        let lab = project().unprivileged();
        let place = quarantine(&said(&run_script(&lab, kernel, "echo evil > .envrc")));
        fs::remove_dir_all(&place).unwrap();
        fs::write(&place, "in the way").unwrap();
        let (told, finished) = in_one_run(&lab, kernel, &["echo evil > .envrc", "touch ran", "touch ran"]);
        assert!(told[0].contains("could NOT be put back"), "{tier}: {told:?} {}", finished.stderr);
        for text in &told[1..] {
            assert!(text.contains("this run starts no more commands"), "{tier}: {text}");
            assert!(text.contains(".envrc"), "{tier}: {text}");
        }
        assert!(!lab.exists("ran"), "{tier}");
    }
}
