//! What shells, editors and agents obey below the root of a workspace: held against commands where people work.

use crate::sandbox::{confining, run_script, said};
use crate::support::kernel::Kernel;
use crate::support::run::Lab;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const TASKS: &str = ".vscode/tasks.json";

/// A project of several parts, of which two are configured and one is a package of others.
fn parts() -> Lab {
    let lab = Lab::new()
        .started()
        .file("api/.envrc", "kept\n")
        .file("api/main.py", "")
        .file("web/ui/.claude/settings.json", "kept\n")
        .file("docs/a.md", "")
        .file("node_modules/x/.vscode/settings.json", "theirs\n")
        .file("vendor/y/lib.rs", "");
    fs::set_permissions(lab.ws().join("api/.envrc"), fs::Permissions::from_mode(0o640)).unwrap();
    lab.unprivileged()
}

/// What the script left, in directories that are open again, and what was said of it.
fn tried(kernel: Kernel, script: &str) -> (Lab, String) {
    let lab = parts();
    let text = said(&run_script(&lab, kernel, script));
    for directory in ["api", "docs", "web", "web/ui"].map(|name| lab.ws().join(name)) {
        if directory.exists() {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    (lab, text)
}

#[test]
fn class_22_23_24_28_configuration_below_the_root_stays_as_it_was() {
    for (kernel, tier) in confining() {
        for script in [
            "echo evil > api/.envrc; echo evil > web/ui/.claude/settings.json",
            "rm -r api/.envrc web/ui/.claude",
            "echo evil > x; mv x api/.envrc; ln -sf /nowhere web/ui/.claude/settings.json",
            "mv api/.envrc api/other; echo evil > api/other; ln api/other api/.envrc; mv web/ui/.claude web/ui/c",
            "ln api/.envrc other; echo evil > other; cp -r web/ui web/u; rm -r web/ui; mv web/u web/ui; echo evil > web/ui/.claude/settings.json",
            "chmod 777 api/.envrc; touch web/ui/.claude/new; chmod 000 web/ui api web",
        ] {
            let (lab, text) = tried(kernel, script);
            assert_eq!(lab.read("api/.envrc"), "kept\n", "{tier}, {script}: {text}");
            assert_eq!(lab.read("web/ui/.claude/settings.json"), "kept\n", "{tier}, {script}: {text}");
            assert!(!lab.exists("web/ui/.claude/new"), "{tier}, {script}: {text}");
            let mode = fs::metadata(lab.ws().join("api/.envrc")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o640, "{tier}, {script}");
            for name in ["api/.envrc\"", "web/ui/.claude"] {
                assert!(
                    text.contains("changed protected files") && text.contains(name),
                    "{tier}, {script}: {text}"
                );
            }
        }
    }
}

#[test]
fn class_22_23_24_28_configuration_that_comes_where_people_work_does_not_stay() {
    for (kernel, tier) in confining() {
        for script in [
            format!("mkdir docs/.vscode; echo evil > docs/{TASKS}"),
            format!("mkdir -p x/.vscode; echo evil > x/{TASKS}; mv x/.vscode docs/.vscode"),
            format!("cp -r docs d; rm -r docs; mkdir d/.vscode; echo evil > d/{TASKS}; mv d docs"),
            format!("mkdir docs/.vscode; echo evil > docs/{TASKS}; chmod 000 docs"),
            "mkdir x; ln -s ../x docs/.vscode".to_owned(),
        ] {
            let (lab, text) = tried(kernel, &script);
            assert!(!lab.exists("docs/.vscode"), "{tier}, {script}: {text}");
            assert!(text.contains("docs/.vscode\" (created, now removed)"), "{tier}, {script}: {text}");
        }
    }
}

#[test]
fn configuration_in_packages_and_in_what_a_run_makes_or_moves_may_come() {
    for (kernel, tier) in confining() {
        let (lab, text) = tried(
            kernel,
            "mkdir -p new/.vscode node_modules/z/.claude; echo ours > new/.vscode/tasks.json; echo theirs > vendor/y/.envrc
            echo newer > node_modules/x/.vscode/settings.json; mv api service; rm -r web",
        );
        assert!(text.contains("exit_code: 0") || !text.contains("protected"), "{tier}: {text}");
        assert_eq!(lab.read("node_modules/x/.vscode/settings.json"), "newer\n", "{tier}");
        assert_eq!(
            (lab.read("new/.vscode/tasks.json"), lab.read("vendor/y/.envrc")),
            ("ours\n".into(), "theirs\n".into())
        );
        assert!(lab.exists("service/.envrc") && !lab.exists("api") && !lab.exists("web"), "{tier}: {text}");
    }
}
