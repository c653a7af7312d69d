//! What a run leaves behind that somebody may start later.

use crate::support::calls::{call, command, edit};
use crate::support::run::Lab;
use crate::support::server::Server;
use serde_json::json;
use std::fs;

/// A project whose scripts were there long before, as far as a run can tell.
fn project() -> Lab {
    Lab::new()
        .started()
        .script("old.sh", "#!/bin/sh\n")
        .script("edited.sh", "#!/bin/sh\necho old\n")
        .file("plain.txt", "text\n")
        .file(".gitignore", "hidden/\n.venv/\n")
}

#[test]
fn class_28_executables_that_a_run_made_or_changed_are_listed_for_people_and_scripts() {
    let calls = [
        command(
            "mkdir -p hidden .venv/bin && printf '#!/bin/sh\\n' > .venv/bin/python && chmod +x .venv/bin/python",
        ),
        command("cp old.sh hidden/tool && touch -d 2001-01-01 hidden/tool && mv hidden/tool hidden/renamed"),
        command("chmod +x plain.txt; ln -s /bin/sh link; echo text > other.txt"),
        call("read_file", &json!({"path": "edited.sh"})),
        edit("edited.sh", "old", "new"),
    ];
    let expected = [".venv/bin/python", "edited.sh", "hidden/renamed", "plain.txt"];
    for lab in [project(), project().unprivileged()] {
        let json = lab.run_yolo(&Server::calls(calls.clone()), &["--json"]).exits(0).json();
        assert_eq!(json["executables"], json!({"files": expected, "more": 0, "complete": true}), "{json}");
    }
    let lab = project();
    let told = lab.run_yolo(&Server::calls(calls.clone()), &[]).exits(0).stderr;
    let line = "   Executables created or changed: \".venv/bin/python\", \"edited.sh\", \"hidden/renamed\", \"plain.txt\"\n";
    assert!(told.contains(line), "{told}");
    assert!(!lab.run_yolo(&Server::calls(calls), &["--quiet"]).exits(0).stderr.contains("Executables"));
}

#[test]
fn class_28_a_run_that_leaves_none_says_nothing_and_names_are_harmless() {
    let told = project().run_yolo(&Server::calls([command("sh old.sh; echo x > new.txt")]), &[]).exits(0);
    assert!(!told.stderr.contains("Executables"), "{}", told.stderr);
    let json = project()
        .run_yolo(&Server::calls([call("read_file", &json!({"path": "old.sh"}))]), &["--json"])
        .exits(0)
        .json();
    assert_eq!(json["executables"], json!({"files": [], "more": 0, "complete": true}));
    let hostile = "cp old.sh \"$(printf 'a\\033[2Jb\\nc')\"";
    let told = project().run_yolo(&Server::calls([command(hostile)]), &[]).exits(0).stderr;
    let line = told.lines().find(|line| line.contains("Executables")).unwrap();
    assert!(line.contains("[2Jb") && !line.contains('\u{1b}') && line.ends_with('"'), "{line:?}");
}

#[test]
fn class_28_what_a_hook_makes_counts_too_and_a_list_is_bounded() {
    let lab = project().config("hooks: {session_end: [{command: 'cp old.sh hooked.sh'}]}\n");
    let json = lab.run_yolo(&Server::calls([]), &["--json"]).exits(0).json();
    assert_eq!(json["executables"]["files"], json!(["hooked.sh"]), "{json}");
    let many = command("for i in $(seq 1 130); do : > made$i; chmod +x made$i; done");
    let json = project().run_yolo(&Server::calls([many]), &["--json"]).exits(0).json();
    assert_eq!(json["executables"]["files"].as_array().unwrap().len(), 100);
    assert_eq!((&json["executables"]["more"], &json["executables"]["complete"]), (&30.into(), &true.into()));
}

#[test]
fn class_28_a_tree_that_is_too_large_is_said_not_to_be_known() {
    // A hook may change files too, so that the scan after the command does not serve again.
    let lab = project().config("hooks: {session_start: [{command: 'true'}]}\n");
    for directory in 0..40 {
        let directory = lab.ws().join(format!("d{directory}"));
        fs::create_dir(&directory).unwrap();
        for file in 0..520 {
            fs::File::create(directory.join(file.to_string())).unwrap();
        }
    }
    let done = lab.run_yolo(&Server::calls([command("chmod +x plain.txt")]), &["--json"]).exits(0);
    assert_eq!(done.json()["executables"]["complete"], false);
    assert_eq!(
        done.json()["executables"]["files"],
        json!(["plain.txt"]),
        "what is near the root is seen first"
    );
}
