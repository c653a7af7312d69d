//! Whole sessions on small projects: `tests/scenarios`.

use crate::support::run::Lab;
use crate::support::server::Server;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A project before and after, the session that gets it from one to the other, and its linter.
struct Scenario {
    dir: PathBuf,
    /// The answers of the model, each as its YAML.
    turns: Vec<String>,
    config: String,
    /// The script of the hook.
    hook: PathBuf,
    answer: &'static str,
}

impl Scenario {
    /// The session in `tests/scenarios/NAME`, with `hook` of `hooks/` for the files of `pattern`.
    fn new(name: &str, hook: &str, pattern: &str, answer: &'static str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let dir = root.join("tests/scenarios").join(name);
        let session = fs::read_to_string(dir.join("session.yaml")).unwrap();
        let turns = session.trim_start_matches("turns:\n").replace("\n  - ", "\n\0  - ");
        let hook = root.join("hooks").join(hook);
        let command = format!("PLACE/{} {{file}}", hook.file_name().unwrap().display());
        Self {
            dir,
            turns: turns.split('\0').map(str::to_owned).collect(),
            config: format!(
                "hooks: {{post_edit: [{{command: '{command}', file_patterns: ['{pattern}']}}]}}\n"
            ),
            hook,
            answer,
        }
    }

    fn shell() -> Self {
        let answer = "Comments no longer break the ledger, and the check passes.";
        Self::new("shell", "shellcheck.sh", "*.sh", answer)
    }

    fn python() -> Self {
        let answer = "It is called without_tax everywhere, and the check passes.";
        Self::new("python", "python-ruff.sh", "*.py", answer)
    }

    /// The project as it was, with the linter on the path.
    fn lab(&self) -> Lab {
        let mut lab = Lab::new();
        for (path, content) in files(&self.dir.join("before")) {
            lab = lab.file(&path, content);
        }
        let bin = lab.outside().join("bin");
        fs::create_dir(&bin).unwrap();
        for (name, content) in files(&self.dir.join("bin")) {
            fs::write(bin.join(&name), content).unwrap();
            fs::set_permissions(bin.join(&name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        // Beside the linter: a command of the sandbox may not see the repository of this program.
        fs::copy(&self.hook, bin.join(self.hook.file_name().unwrap())).unwrap();
        lab = lab.config(&self.config.replace("PLACE", &bin.display().to_string()));
        let path = std::env::var("PATH").unwrap();
        lab.env("PATH", &format!("{}:{path}", bin.display()))
    }

    fn server(turns: &[String], then: &str) -> Server {
        Server::start(&format!("turns:\n{}{then}", turns.concat()))
    }

    #[track_caller]
    fn check(&self, lab: &Lab) {
        assert_eq!(files(&lab.ws()), files(&self.dir.join("after")));
    }

    /// The session without a break.
    #[track_caller]
    fn runs(&self, more: &[&str]) -> crate::support::run::Finished {
        let lab = self.lab();
        let server = Self::server(&self.turns, "");
        let done = lab.run_yolo(&server, more).exits(0);
        assert_eq!(server.requests().len(), self.turns.len());
        self.check(&lab);
        done
    }

    /// The session broken by `signal` at each of its steps in turn, and resumed.
    #[track_caller]
    fn survives(&self, signal: Signal) {
        for step in 0..self.turns.len() {
            let lab = self.lab();
            let (before, after) = self.turns.split_at(step);
            let server = Self::server(before, "  - fault: hang\n");
            let run = lab.start_run(&server, &["--mode", "yolo"]);
            server.wait_for_request(step + 1);
            run.signal(signal);
            let code = run.finish().code;
            assert_eq!(code, (signal == Signal::INT).then_some(130), "step {step}");
            let server = Self::server(after, "");
            let json = lab.resume(&server, &["--mode", "yolo", "--json"]).exits(0).json();
            assert_eq!(json["output"], self.answer, "step {step}");
            self.check(&lab);
            let interrupted_step = 1;
            assert_eq!(json["steps"], self.turns.len() + interrupted_step, "step {step}");
        }
    }
}

/// Every file below `dir` by its path.
/// The files below a directory, by their paths.
pub fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(next) = todo.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

#[test]
fn a_shell_project_is_mended_in_yolo() {
    let scenario = Scenario::shell();
    assert_eq!(scenario.runs(&[]).stdout, format!("{}\n", scenario.answer));
}

#[test]
fn a_shell_project_is_mended_with_json() {
    let scenario = Scenario::shell();
    let json = scenario.runs(&["--json"]).json();
    assert_eq!((&json["output"], &json["stop_reason"]), (&scenario.answer.into(), &"llm_done".into()));
    let files: BTreeMap<_, _> = json["files_modified"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| (file["path"].as_str().unwrap(), file["action"].as_str().unwrap()))
        .collect();
    let expected = [("NOTES", "created"), ("lib/report.sh", "modified"), ("lib/sum.sh", "modified")];
    assert_eq!(files, BTreeMap::from(expected));
}

#[test]
fn a_shell_project_is_mended_without_streaming() {
    let scenario = Scenario::shell();
    assert_eq!(scenario.runs(&["--no-stream"]).stdout, format!("{}\n", scenario.answer));
}

#[test]
fn a_shell_project_is_mended_although_it_is_interrupted_at_any_step() {
    Scenario::shell().survives(Signal::INT);
}

#[test]
fn a_shell_project_is_mended_although_it_is_killed_at_any_step() {
    Scenario::shell().survives(Signal::KILL);
}

#[test]
fn a_python_project_is_mended_in_yolo() {
    let scenario = Scenario::python();
    assert_eq!(scenario.runs(&[]).stdout, format!("{}\n", scenario.answer));
}

#[test]
fn a_python_project_is_mended_with_json() {
    let scenario = Scenario::python();
    let json = scenario.runs(&["--json"]).json();
    assert_eq!((&json["output"], &json["stop_reason"]), (&scenario.answer.into(), &"llm_done".into()));
    assert_eq!(json["files_modified"].as_array().unwrap().len(), 3, "{json}");
}

#[test]
fn a_python_project_is_mended_without_streaming() {
    let scenario = Scenario::python();
    assert_eq!(scenario.runs(&["--no-stream"]).stdout, format!("{}\n", scenario.answer));
}

#[test]
fn a_python_project_is_mended_although_it_is_interrupted_at_any_step() {
    Scenario::python().survives(Signal::INT);
}

#[test]
fn a_python_project_is_mended_although_it_is_killed_at_any_step() {
    Scenario::python().survives(Signal::KILL);
}
