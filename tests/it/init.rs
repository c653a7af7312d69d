//! `agent init`: the presets, what is written and kept, and the trust that is offered.

use crate::support::run::{Finished, Lab};
use crate::support::terminal::AtTerminal;
use std::fs;
use std::os::unix::fs::symlink;

const PRESETS: [&str; 7] = ["python", "node-react", "rust", "go", "ci", "paranoid", "yolo"];
const CONFIG: &str = ".agent/config.yaml";

fn init(lab: &Lab, args: &[&str]) -> Finished {
    lab.agent(&[&["init"], args].concat())
}

/// The paths of all files in the workspace, sorted.
fn files(lab: &Lab) -> Vec<String> {
    let mut found = Vec::new();
    let mut todo = vec![lab.ws()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else {
                found.push(path.strip_prefix(lab.ws()).unwrap().display().to_string());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn f08_list_presets_prints_each_name_and_writes_nothing() {
    let lab = Lab::new().file("Cargo.toml", "");
    let listed = init(&lab, &["--list-presets"]).exits(0).stdout;
    for preset in PRESETS {
        assert!(listed.lines().any(|line| line.split_whitespace().next() == Some(preset)), "{listed}");
    }
    assert_eq!((listed.lines().count(), files(&lab)), (PRESETS.len(), vec!["Cargo.toml".to_owned()]));
    init(&lab, &["--list-presets", "--preset", "rust"]).exits(3);
}

#[test]
fn f08_each_preset_passes_config_validate_and_a_second_init_changes_nothing() {
    for preset in PRESETS {
        let lab = Lab::new();
        let first = init(&lab, &["--preset", preset, "--trust"]).exits(0);
        assert!(first.stdout.contains("created      .agent.md\n"), "{preset}: {}", first.stdout);
        assert!(first.stdout.contains("created      .agent/config.yaml\n"), "{preset}: {}", first.stdout);
        assert_eq!(files(&lab), [".agent.md", CONFIG], "{preset}");
        let checked = lab.agent(&["config", "validate"]).exits(0);
        assert!(checked.stdout.starts_with("Valid configuration\n"), "{preset}: {}", checked.stdout);
        assert_eq!(checked.stderr, "", "{preset}");
        let before = (lab.read(".agent.md"), lab.read(CONFIG));
        for args in [&["--preset", preset][..], &["--preset", preset, "--overwrite"]] {
            let again = init(&lab, args).exits(0);
            assert_eq!(again.stdout, "unchanged    .agent.md\nunchanged    .agent/config.yaml\n", "{preset}");
            assert_eq!(again.stderr, "", "{preset}: it is trusted already");
        }
        assert_eq!((lab.read(".agent.md"), lab.read(CONFIG)), before, "{preset}");
    }
}

#[test]
fn f08_an_existing_file_is_kept_until_overwrite_is_given() {
    let lab = Lab::new().file(".agent.md", "mine\n").file(CONFIG, "language: es\n");
    let kept = init(&lab, &["--preset", "go"]).exits(0).stdout;
    assert_eq!(kept.matches("kept  ").count(), 2, "{kept}");
    assert!(kept.contains("--overwrite"), "{kept}");
    assert_eq!((lab.read(".agent.md"), lab.read(CONFIG)), ("mine\n".to_owned(), "language: es\n".to_owned()));
    let replaced = init(&lab, &["--preset", "go", "--overwrite"]).exits(0).stdout;
    assert!(replaced.contains("replaced     .agent.md\nreplaced     .agent/config.yaml\n"), "{replaced}");
    assert!(lab.read(CONFIG).contains("gofmt") && lab.read(".agent.md").contains("Go project"));
}

#[test]
fn f08_instructions_under_another_name_are_not_displaced() {
    let lab = Lab::new().file("AGENTS.md", "ours\n");
    for args in [&["--preset", "rust"][..], &["--preset", "rust", "--overwrite"]] {
        let out = init(&lab, args).exits(0).stdout;
        assert!(out.starts_with("not written  .agent.md (AGENTS.md"), "{out}");
    }
    assert_eq!(files(&lab), [CONFIG, "AGENTS.md"]);
}

#[test]
fn f08_a_dry_run_prints_the_files_and_writes_nothing() {
    let lab = Lab::new();
    let out = init(&lab, &["--preset", "python", "--dry-run"]).exits(0).stdout;
    assert!(out.contains("--- .agent/config.yaml (would be created)\n"), "{out}");
    assert!(out.contains("ruff check {file}") && out.contains("Python project"), "{out}");
    assert_eq!(files(&lab), Vec::<String>::new());
    let out = init(&lab.file(CONFIG, "language: es\n"), &["--preset", "python", "--dry-run"]).exits(0).stdout;
    assert!(out.contains("would be kept"), "{out}");
}

#[test]
fn f08_an_unknown_preset_is_a_usage_error_with_the_names() {
    let lab = Lab::new();
    let out = init(&lab, &["--preset", "pyth\u{1b}on"]).exits(3);
    assert!(out.stderr.contains("python, ") && out.stderr.contains("node-react"), "{}", out.stderr);
    assert!(!out.stderr.contains('\u{1b}'), "{}", out.stderr);
    assert_eq!(files(&lab), Vec::<String>::new());
}

#[test]
fn f08_without_a_preset_the_command_for_the_fitting_one_is_shown() {
    for (file, preset) in
        [("Cargo.toml", "rust"), ("go.mod", "go"), ("package.json", "node-react"), ("setup.py", "python")]
    {
        let lab = Lab::new().file(file, "");
        let out = init(&lab, &[]).exits(3);
        let line = format!("{file} suggests the preset `{preset}`: agent init --preset {preset} ");
        assert!(out.stderr.contains(&line), "{}", out.stderr);
        assert_eq!(files(&lab), [file]);
    }
    let both = Lab::new().file("package.json", "").file("Cargo.toml", "");
    assert!(init(&both, &[]).exits(3).stderr.contains("--preset rust"));
    let out = init(&Lab::new(), &[]).exits(3);
    assert!(out.stderr.contains("no file here suggests a preset") && out.stderr.contains("paranoid"));
}

// Fault C4: eight `.py` files without a `pyproject.toml` suggested no preset.
#[test]
fn source_files_suggest_the_preset_of_their_language() {
    let lab =
        Lab::new().file("a.py", "").file("app/b.py", "").file("app/c.py", "").file("tools/build.go", "");
    let out = init(&lab, &[]).exits(3);
    assert!(out.stderr.contains("*.py suggests the preset `python`"), "{}", out.stderr);
    let named = lab.file("go.mod", "");
    assert!(init(&named, &[]).exits(3).stderr.contains("go.mod suggests the preset `go`"));
}

#[test]
fn f08_at_a_terminal_the_fitting_preset_and_the_trust_are_asked_for() {
    let lab = Lab::new().file("Cargo.toml", "");
    let mut screen = AtTerminal::launch(lab.command(&["init"]));
    let shown = screen.answer("n\n");
    assert!(shown.contains("the preset `rust`?") && shown.contains("Cargo.toml"), "{shown}");
    assert_eq!(screen.finish().code, Some(1));
    assert_eq!(files(&lab), ["Cargo.toml"]);

    let mut screen = AtTerminal::launch(lab.command(&["init"]));
    screen.answer("y\n");
    let shown = screen.answer("y\n");
    assert!(shown.contains("hooks.post_edit") && shown.contains("cargo clippy"), "{shown}");
    assert_eq!(screen.finish().code, Some(0));
    assert!(lab.agent(&["trust", "--show"]).exits(0).stdout.contains("status  trusted"));
}

#[test]
fn f08_what_needs_trust_is_shown_and_stays_without_effect_until_it_is_given() {
    let lab = Lab::new();
    let out = init(&lab, &["--preset", "ci"]).exits(0);
    assert!(out.stdout.contains("mode (line") && out.stdout.contains("yolo"), "{}", out.stdout);
    assert!(out.stderr.contains("no effect until you trust them: agent trust"), "{}", out.stderr);
    assert!(lab.agent(&["trust", "--show"]).exits(0).stdout.contains("status  not trusted"));
}

#[test]
fn f08_trust_covers_only_what_init_has_written() {
    let lab = Lab::new().file(CONFIG, "hooks: {session_start: [{command: touch ran}]}\n");
    let out = init(&lab, &["--preset", "ci", "--trust"]).exits(1);
    assert!(out.stderr.contains("would cover .agent/config.yaml"), "{}", out.stderr);
    assert!(out.stdout.contains("touch ran"), "it is shown: {}", out.stdout);
    assert!(lab.agent(&["trust", "--show"]).exits(0).stdout.contains("status  not trusted"));
    let lab = Lab::new().file(".agent/commands/x.md", "do it\n");
    let out = init(&lab, &["--preset", "ci", "--trust"]).exits(1);
    assert!(out.stderr.contains("would cover .agent/commands/x.md"), "{}", out.stderr);
}

#[test]
fn f08_a_link_out_of_the_workspace_is_refused_before_anything_is_written() {
    let lab = Lab::new();
    fs::create_dir(lab.outside().join("elsewhere")).unwrap();
    symlink(lab.outside().join("elsewhere"), lab.ws().join(".agent")).unwrap();
    for more in [&[][..], &["--overwrite"], &["--dry-run"]] {
        let out = init(&lab, &[&["--preset", "rust"], more].concat()).exits(3);
        assert!(out.stderr.contains(".agent: is a link that leaves the workspace"), "{}", out.stderr);
    }
    assert!(!lab.exists(".agent.md") && fs::read_dir(lab.outside().join("elsewhere")).unwrap().count() == 0);
    let lab = Lab::new();
    symlink(lab.outside().join("target"), lab.ws().join(".agent.md")).unwrap();
    let out = init(&lab, &["--preset", "rust", "--overwrite"]).exits(3);
    assert!(out.stderr.contains(".agent.md: is a broken link"), "{}", out.stderr);
    assert!(!lab.outside().join("target").exists() && !lab.exists(CONFIG));
    let lab = Lab::new().file(".agent", "a file\n");
    let out = init(&lab, &["--preset", "rust"]).exits(1);
    assert!(out.stderr.contains("not a directory") && !lab.exists(".agent.md"), "{}", out.stderr);
}
