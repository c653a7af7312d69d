//! `loop`, `parallel`, `pipeline` and `eval` repair a crate and a Python package of which something was broken: small ones in
//! `tests/scenarios`, and published ones where `AGENT_TEST_PUBLISHED` names their directory (`tests/published.sh`).

use crate::scenarios::files;
use crate::support::run::{KEY, Lab};
use crate::support::server::Server;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A project, and what is broken in it.
struct Broken {
    lab: Lab,
    server: Server,
    repair: Value,
}

/// Six steps; CHECK is the test of the project.
const PIPELINE: &str = "steps:
  - {name: broken, run: 'if CHECK; then exit 1; fi'}
  - {name: plan, prompt: repair it, output_var: plan, checkpoint: commit}
  - {name: test, run: 'CHECK'}
  - {name: done, if: \"'COMPLETE' in plan\", run: 'echo yes', output_var: done}
  - {name: review, prompt: 'was it repaired? {{done}}'}
  - {name: clean, run: git diff --quiet}
";

fn directory() -> PathBuf {
    let small = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    std::env::var_os("AGENT_TEST_PUBLISHED").map_or(small, PathBuf::from)
}

/// The directory of the tools of the compiler: the program `cargo` on the path may be one that looks for them in the home directory.
fn toolchain() -> String {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap();
    format!("{}/bin", String::from_utf8(output.stdout).unwrap().trim())
}

impl Broken {
    fn new(name: &str) -> Self {
        let dir = directory().join(name);
        let repair: Value = serde_json::from_slice(&std::fs::read(dir.join("repair.json")).unwrap()).unwrap();
        let text = |key: &str| repair[key].as_str().unwrap().to_owned();
        let path = format!("{}:{}", toolchain(), std::env::var("PATH").unwrap());
        let mut lab = Lab::new().env("PATH", &path);
        for (path, content) in files(&dir.join("project")) {
            lab = lab.file(&path, content);
        }
        let source = lab.read(&text("file"));
        assert_eq!(source.matches(&text("right")).count(), 1);
        let lab = lab.file(&text("file"), source.replace(&text("right"), &text("wrong")));
        let lab = lab.pipeline(PIPELINE.replace("CHECK", &text("check").replace('\'', "''")));
        let lab = lab.committed();
        let read = json!({"name": "read_file", "arguments": {"path": text("file")}});
        let edit = json!({"name": "edit_file", "arguments": {"path": text("file"), "old_str": text("wrong"), "new_str": text("right")}});
        let turns = json!({"turns": [{"calls": [read]}, {"calls": [edit]}, {"text": "COMPLETE"}]});
        Self { lab, server: Server::following(&turns.to_string()), repair }
    }

    fn text(&self, key: &str) -> &str {
        self.repair[key].as_str().unwrap()
    }

    /// Runs the command until it succeeds; returns the document.
    fn agent(&self, words: &[&str]) -> Value {
        let url = self.server.url();
        let options = ["--mode", "yolo", "--json", "--api-base", &url, "--api-key", KEY];
        self.lab.agent(&[words, &options].concat()).exits(0).json()
    }

    /// The file on `branch` has what is right.
    fn is_repaired_on(&self, branch: &str) {
        let file = self.lab.git(&["show", &format!("{branch}:{}", self.text("file"))]);
        assert!(file.contains(self.text("right")), "{branch}: {file}");
    }
}

fn names() -> [&'static str; 2] {
    ["crate", "package"]
}

#[test]
fn a_loop_repairs_a_crate_and_a_package() {
    for name in names() {
        let broken = Broken::new(name);
        let document =
            broken.agent(&["loop", "repair it", "--check", broken.text("check"), "--model", "openai/mock"]);
        assert_eq!(document["runs"].as_array().unwrap().len(), 1, "{document:#}");
        assert!(broken.lab.read(broken.text("file")).contains(broken.text("right")));
    }
}

#[test]
fn four_workers_repair_a_crate_and_a_package_each() {
    for name in names() {
        let broken = Broken::new(name);
        let tasks = ["--task", "a", "--task", "b", "--task", "c", "--task", "d", "--workers", "4"];
        let check = ["--check", broken.text("check"), "--model", "openai/mock"];
        let document = broken.agent(&[&["parallel"][..], &tasks, &check].concat());
        let runs = document["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 4, "{document:#}");
        for run in runs {
            assert_eq!(run["checks"][0]["passed"], true, "{run:#}");
            broken.is_repaired_on(run["worktree"]["branch"].as_str().unwrap());
        }
        assert!(broken.lab.read(broken.text("file")).contains(broken.text("wrong")));
    }
}

#[test]
fn a_pipeline_of_six_steps_repairs_a_crate_and_a_package() {
    for name in names() {
        let broken = Broken::new(name);
        let document = broken.agent(&["pipeline", "../p.yaml", "--model", "openai/mock"]);
        assert_eq!(document["runs"].as_array().unwrap().len(), 6, "{document:#}");
        broken.is_repaired_on("main");
    }
}

#[test]
fn an_eval_of_three_models_repairs_a_crate_and_a_package() {
    for name in names() {
        let broken = Broken::new(name);
        let check = broken.text("check");
        let document =
            broken.agent(&["eval", "repair it", "--models", "openai/a,openai/b,openai/c", "--check", check]);
        let ranking = document["ranking"].as_array().unwrap();
        assert_eq!(ranking.len(), 3, "{document:#}");
        assert!(document["runs"].as_array().unwrap().iter().all(|run| run["checks"][0]["passed"] == true));
    }
}
