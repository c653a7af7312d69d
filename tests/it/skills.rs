//! Skills: which are offered, when their text joins the conversation, and what becomes of bad files.

use crate::support::calls::turn;
use crate::support::run::Lab;
use crate::support::server::{Recorded, Server};
use crate::support::terminal::AtTerminal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

fn skill(name: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: What {name} is for\n{more}---\nBody of {name}.\n")
}

fn done() -> Value {
    json!({"text": "done"})
}

fn messages(request: &Recorded, role: &str) -> String {
    let all = request.messages().iter();
    all.filter(|message| message["role"] == role).map(|message| message["content"].to_string()).collect()
}

fn has_tool(request: &Recorded) -> bool {
    request.body["tools"].to_string().contains("\"use_skill\"")
}

#[test]
fn k09_a_skill_is_listed_and_its_text_comes_when_the_model_asks() {
    let lab = Lab::new().file(".agent/skills/deploy/SKILL.md", skill("deploy", "license: MIT\n"));
    let use_it = turn("use_skill", &json!({"name": "deploy", "input": "staging"}));
    let wrong = turn("use_skill", &json!({"name": "deplo"}));
    let server = Server::turns([use_it, wrong, done()]);
    lab.agent_on(&server, &["run", "ship it"]).exits(0);
    let requests = server.requests();
    assert!(messages(&requests[0], "system").contains("# Skills\\n") && has_tool(&requests[0]));
    assert!(messages(&requests[0], "system").contains("- deploy: What deploy is for"));
    assert!(!requests[0].body.to_string().contains("Body of deploy"), "the text comes when it is needed");
    let result = messages(&requests[1], "tool");
    assert!(result.contains("Body of deploy.") && result.contains("Input: staging"), "{result}");
    assert!(result.contains(".agent/skills/deploy"), "{result}");
    assert!(messages(&requests[2], "tool").contains("Did you mean deploy?"));
    // Without skills nothing of this is sent.
    let plain = Lab::new();
    let server = Server::done();
    plain.agent_on(&server, &["run", "ship it"]).exits(0);
    assert!(
        !has_tool(&server.requests()[0]) && !messages(&server.requests()[0], "system").contains("# Skills")
    );
}

#[test]
fn k09_a_keyword_in_the_prompt_and_a_file_that_matches_load_a_skill_once() {
    let lab = Lab::new()
        .file(".agent/skills/sql/SKILL.md", skill("sql", "keywords: [query]\n"))
        .file(".agent/skills/rust/SKILL.md", skill("rust", "globs: ['src/**/*.rs']\n"))
        .file("src/a.rs", "fn a() {}\n")
        .file("notes.txt", "x\n");
    let read = |path: &str| turn("read_file", &json!({ "path": path }));
    let server = Server::turns([read("notes.txt"), read("src/a.rs"), done(), done()]);
    lab.agent_on(&server, &["run", "optimise the Query"]).exits(0);
    let requests = server.requests();
    let users: Vec<String> = requests.iter().map(|request| messages(request, "user")).collect();
    assert!(users[0].contains("Body of sql.") && !users[1].contains("Body of rust."), "{users:?}");
    assert!(users[2].contains("Body of rust.") && users[2].contains("<data "), "{users:?}");
    lab.agent_on(&server, &["resume", "--last", "another query"]).exits(0);
    let users = messages(&server.requests()[3], "user");
    assert_eq!(
        (users.matches("Body of sql.").count(), users.matches("Body of rust.").count()),
        (1, 1),
        "{users}"
    );
    lab.agent(&["replay"]).exits(0);
}

#[test]
fn k09_at_most_20_are_listed_and_the_project_wins_over_the_user() {
    let lab = (0..25).fold(Lab::new(), |lab, number| {
        let name = format!("s{number:02}");
        lab.file(&format!(".claude/skills/{name}/SKILL.md"), skill(&name, ""))
    });
    let lab = lab
        .file(".agent/skills/s00/SKILL.md", skill("s00", "").replace("What s00", "Stronger than what s00"));
    for name in ["s00", "own", "hidden"] {
        let dir = lab.home().join("skills").join(name);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("SKILL.md"), skill(name, "")).unwrap();
    }
    let lab = lab.config("skills: {disabled: [hidden]}\n");
    let server = Server::done();
    lab.agent_on(&server, &["run", "x"]).exits(0);
    let system = messages(&server.requests()[0], "system");
    let listed: Vec<&str> = system.split("\\n- ").skip(1).filter(|line| line.contains(" is for")).collect();
    assert_eq!(listed.len(), 20, "{system}");
    assert!(listed[0].starts_with("own: ") && listed[1].starts_with("s00: Stronger"), "{system}");
}

// Fault E9: a skill of a repository replaced the user's own of that name without a word.
#[test]
fn a_skill_of_the_project_that_replaces_one_of_the_user_is_a_warning_with_both() {
    let lab = Lab::new().file(".claude/skills/sql/SKILL.md", skill("sql", ""));
    let own = lab.home().join("skills/sql");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("SKILL.md"), skill("sql", "")).unwrap();
    let warning = format!(
        "the skill `sql` of this project (.claude/skills/sql) is used instead of your own ({})",
        own.display()
    );
    assert!(lab.agent_on(&Server::done(), &["run", "x"]).exits(0).stderr.contains(&warning));
    assert!(lab.agent(&["skills"]).exits(0).stderr.contains(&warning));
    let lab = lab.config("skills: {disabled: [sql]}\n");
    assert!(!lab.agent_on(&Server::done(), &["run", "x"]).exits(0).stderr.contains("instead of your own"));
}

#[test]
fn k09_a_bad_file_is_one_warning_with_its_line_and_a_changed_skill_is_told() {
    let lab = Lab::new()
        .file(".agent/skills/good/SKILL.md", skill("good", ""))
        .file(".agent/skills/bad/SKILL.md", "---\nname: bad\ndescription: x\nglobs: ['a{']\n---\nbody\n")
        .file(".agent/skills/needs/SKILL.md", skill("needs", "requires: [no_such_tool]\n"));
    fs::create_dir_all(lab.outside().join("far")).unwrap();
    fs::write(lab.outside().join("far/SKILL.md"), skill("far", "")).unwrap();
    std::os::unix::fs::symlink(lab.outside().join("far"), lab.ws().join(".agent/skills/far")).unwrap();
    let first = Server::done();
    let shown = lab.agent_on(&first, &["run", "x", "-v"]).exits(0).stderr;
    assert_eq!(shown.matches("skill not used").count(), 2, "{shown}");
    assert!(shown.contains("skill not used: .agent/skills/bad/SKILL.md:4: "), "{shown}");
    let system = messages(&first.requests()[0], "system");
    assert!(
        system.contains("- good: ") && !system.contains("- needs: ") && !system.contains("- far: "),
        "{system}"
    );
    assert!(shown.contains("skill new in this workspace: good ("), "{shown}");
    for changed in [skill("good", "keywords: [other]\n"), skill("good", "") + "More.\n"] {
        fs::write(lab.ws().join(".agent/skills/good/SKILL.md"), changed).unwrap();
        let shown = lab.agent_on(&Server::done(), &["run", "x", "-v"]).exits(0).stderr;
        assert!(shown.contains("the skill `good` has changed") && !shown.contains("skill new"), "{shown}");
    }
    let shown = lab.agent_on(&Server::done(), &["run", "x"]).exits(0).stderr;
    assert!(!shown.contains("has changed"), "{shown}");
}

#[test]
fn k09_a_resumed_session_keeps_its_tools_and_its_system_message() {
    let lab = Lab::new();
    let server = Server::turns([done(), done(), done()]);
    lab.agent_on(&server, &["run", "x"]).exits(0);
    let lab = lab.file(".agent/skills/late/SKILL.md", skill("late", "keywords: [late]\n"));
    let resume = |task: &str| {
        lab.agent_on(&server, &["resume", "--last", task]).exits(0);
    };
    resume("too late");
    let requests = server.requests();
    assert_eq!(requests[0].body["tools"], requests[1].body["tools"]);
    assert_eq!(requests[0].body["messages"][0], requests[1].body["messages"][0]);
    assert!(messages(&requests[1], "user").contains("Body of late."), "what fits joins at the end");
}

#[test]
fn k10_skills_are_created_listed_and_removed() {
    let lab = Lab::new().file(".agent/installed-skills/extra/SKILL.md", skill("extra", ""));
    let skills = |args: &[&str]| lab.agent(&[&["skills"], args].concat());
    let created = skills(&["create", "mine"]).exits(0).stdout;
    assert!(created.contains(".agent/skills/mine/SKILL.md"), "{created}");
    skills(&["create", "ours", "--user"]).exits(0);
    let again = skills(&["create", "mine"]).exits(1);
    assert!(again.stderr.contains("exists"), "{}", again.stderr);
    let listed = skills(&[]).exits(0).stdout;
    let names: Vec<&str> = listed.lines().filter(|line| !line.starts_with(' ')).collect();
    assert!(names[0].starts_with("extra (.agent/installed-skills/extra)"), "{listed}");
    assert!(names[1].starts_with("mine (.agent/skills/mine)") && names[2].starts_with("ours (/"), "{listed}");
    for (args, code) in [
        (&["remove", "extra"][..], 0),
        (&["remove", "extra"], 1),
        (&["remove", "mine"], 1),
        (&["remove", "ours", "--user"], 0),
        (&["create", "../x"], 3),
        (&["remove", "../../x"], 3),
        (&["remove", "Mine"], 3),
    ] {
        skills(args).exits(code);
    }
    let linked = Lab::new();
    std::os::unix::fs::symlink(linked.outside(), linked.ws().join(".agent")).unwrap();
    let out = linked.agent(&["skills", "create", "x"]).exits(3);
    assert!(out.stderr.contains("leaves the workspace"), "{}", out.stderr);
    assert_eq!(skills(&["list"]).exits(0).stdout.matches('(').count(), 1);
    assert!(lab.exists(".agent/skills/mine/SKILL.md"));
}

fn git(dir: &std::path::Path, args: &[&str]) {
    let options = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"];
    let done = std::process::Command::new("git").args(options).args(args).current_dir(dir).output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

fn commit(repository: &std::path::Path) {
    git(repository, &["init", "-q"]);
    git(repository, &["add", "."]);
    git(repository, &["commit", "-qm", "x"]);
}

#[test]
fn k10_skills_of_a_local_repository_are_not_read_through_a_link_out_of_it() {
    let lab = Lab::new();
    let outside = lab.outside().join("skills");
    fs::create_dir_all(outside.join("far")).unwrap();
    fs::write(outside.join("far/SKILL.md"), skill("far", "")).unwrap();
    fs::write(outside.join("far/secret"), "the secret").unwrap();
    for (number, (link, target)) in [
        ("skills", outside.clone()),
        ("skills/far", outside.join("far")),
        (".claude", lab.outside()),
        ("far", outside.join("far")),
    ]
    .into_iter()
    .enumerate()
    {
        let repository = lab.outside().join(format!("repository{number}"));
        let link = repository.join(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, &link).unwrap();
        commit(&repository);
        let source = repository.to_string_lossy().into_owned();
        let refused = lab.agent(&["skills", "install", &source, "--yes"]).exits(1);
        assert!(refused.stderr.contains("is a symbolic link"), "{}", refused.stderr);
        assert!(!lab.exists(".agent/installed-skills"), "{}", link.display());
    }
}

// Fault E7: the token in the address of a repository was stored with the skill and printed, also in errors.
#[test]
fn a_token_in_an_address_is_neither_stored_nor_shown() {
    let git = "#!/bin/sh\ncase \"$*\" in *rev-parse*) echo abc;; *) mkdir -p clone/skills/sql; printf '%s\\n' --- 'name: sql' 'description: d' --- body > \
               clone/skills/sql/SKILL.md;; esac\n";
    let failing = "#!/bin/sh\necho \"fatal: unable to access '$*': no\" >&2; exit 128\n";
    for (program, code) in [(git, 0), (failing, 1)] {
        let lab = Lab::new();
        let bin = lab.outside().join("bin");
        fs::create_dir(&bin).unwrap();
        fs::write(bin.join("git"), program).unwrap();
        fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
        // Below `/tmp`, commands see a directory only where they may write.
        let lab = lab
            .config(&format!("sandbox: {{writable: ['{}']}}\n", bin.display()))
            .env("PATH", &format!("{}:/usr/bin:/bin", bin.display()));
        let source = "https://user:hunter22@host.example/sql?token=hunter23";
        let done = lab.agent(&["skills", "install", source, "--yes"]).exits(code);
        let shown = format!("{}{}", done.stdout, done.stderr);
        assert!(shown.contains("https://host.example/sql?token=[redacted]"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
        if code == 0 {
            let stored = lab.read(".agent/installed-skills/sql/source");
            assert!(stored.starts_with("address: https://host.example/sql?token=[redacted]\n"), "{stored}");
        }
    }
}

// Fault E2: the question before an installation named the files and did not show what is in them.
#[test]
fn skills_are_installed_after_their_text_was_shown_whole() {
    let lab = Lab::new();
    let repository = lab.outside().join("skills-repository");
    fs::create_dir_all(repository.join("sql")).unwrap();
    let long = format!("{}\nin the middle\n{}", "line\n".repeat(60), "line\n".repeat(60));
    fs::write(repository.join("sql/SKILL.md"), skill("sql", "") + &long).unwrap();
    fs::write(repository.join("sql/run.sh"), "touch script-text\n").unwrap();
    commit(&repository);
    let mut install = AtTerminal::launch(lab.command(&["skills", "install", repository.to_str().unwrap()]));
    assert!(!install.answer("y\r").contains("in the middle"));
    install.answer("v\r");
    let whole = install.answer("y\r");
    assert!(whole.contains("in the middle") && whole.contains("touch script-text"), "{whole}");
    install.finish().exits(0);
    assert!(lab.exists(".agent/installed-skills/sql/SKILL.md"));
}

#[test]
fn k10_skills_of_a_local_repository_are_installed_with_their_source_and_without_its_hooks() {
    let lab = Lab::new();
    let repository = lab.outside().join("repository");
    for name in ["one", "two"] {
        let dir = repository.join("skills").join(name);
        fs::create_dir_all(dir.join("scripts")).unwrap();
        fs::write(dir.join("SKILL.md"), skill(name, "")).unwrap();
        fs::write(dir.join("scripts/run.sh"), "echo hi\n").unwrap();
    }
    commit(&repository);
    let source = repository.to_string_lossy().into_owned();
    let refused = lab.agent(&["skills", "install", &source]).exits(3);
    assert!(
        refused.stderr.contains("scripts/run.sh (8 bytes)") && refused.stderr.contains("--yes"),
        "{}",
        refused.stderr
    );
    assert!(!lab.exists(".agent/installed-skills/one"));
    let done = lab.agent(&["skills", "install", &source, "--yes"]).exits(0);
    assert!(done.stdout.contains("one, two"), "{}", done.stdout);
    assert_eq!(lab.read(".agent/installed-skills/two/scripts/run.sh"), "echo hi\n");
    let from = lab.read(".agent/installed-skills/one/source");
    assert!(
        from.contains(&format!("address: {source}\n"))
            && from.contains("commit: ")
            && from.contains("hash: "),
        "{from}"
    );
    let again = lab.agent(&["skills", "install", &source, "--yes"]).exits(1);
    assert!(again.stderr.contains("agent skills remove one"), "{}", again.stderr);
    assert_eq!(lab.agent(&["skills"]).exits(0).stdout.matches("(.agent/installed-skills/").count(), 2);
    std::os::unix::fs::symlink("/etc/passwd", repository.join("skills/one/link")).unwrap();
    commit(&repository);
    let link = lab.agent(&["skills", "install", &source, "--user", "--yes"]).exits(1);
    assert!(link.stderr.contains("skill not used: one"), "{}", link.stderr);
    for (wrong, code) in [("ext::sh -c 'touch marker'", 3), ("no/such", 3), ("/no/such/repository", 1)] {
        let done = lab.agent(&["skills", "install", wrong, "--yes"]).exits(code);
        assert!(done.stderr.starts_with("error: "), "{}", done.stderr);
    }
    assert!(!lab.exists("marker"));
    let no_branch = lab.agent(&["skills", "install", &format!("{source}#nosuch"), "--yes"]).exits(1);
    assert!(
        no_branch.stderr.contains("fatal: ") && no_branch.stderr.contains("nosuch"),
        "{}",
        no_branch.stderr
    );
}
