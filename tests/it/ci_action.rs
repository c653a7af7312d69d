//! The action for GitHub and its examples, and a job that goes on from an uploaded session.

use crate::support::run::{KEY, Lab};
use crate::support::server::Server;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn action(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(".github/actions/agent").join(name)
}

/// A stand-in for `agent`: writes its arguments and its variables to files, and prints a document or a report. An argument
/// `wait` lets it stay until it gets a signal.
const STUB: &str = r#"#!/usr/bin/env bash
printf '%s\0' "$@" >>"$STUB_DIRECTORY/arguments"
printf '\n' >>"$STUB_DIRECTORY/arguments"
case $1 in
  report) printf 'a report\n' ;;
  sessions) [ "$2" = import ] && printf -- '-imported\n'; printf '%s\n' "$*" >"$STUB_DIRECTORY/sessions" ;;
  *)
    env >"$STUB_DIRECTORY/environment"
    case "$*" in *please-wait*)
      trap 'kill "$sleeper"; stopped=1' TERM
      sleep 600 &
      sleeper=$!
      : >"$STUB_DIRECTORY/started"
      while [ -z "${stopped:-}" ]; do wait "$sleeper" || true; done ;;
    esac
    cat "$STUB_DIRECTORY/result"
    exit "${STUB_CODE:-0}" ;;
esac
"#;

/// The directories of a job with the stub.
struct Job {
    lab: Lab,
}

impl Job {
    fn new(result: &Value) -> Self {
        let lab = Lab::new().script("stub", STUB).file("result", result.to_string());
        for name in ["output", "summary"] {
            fs::write(lab.outside().join(name), "").unwrap();
        }
        Self { lab }
    }

    /// The script with these inputs, ready to be started.
    fn command(&self, inputs: &[(&str, &str)]) -> Command {
        let mut command = Command::new("bash");
        command
            .arg(action("run.sh"))
            .current_dir(self.lab.home())
            .env("ACTION_PROGRAM", self.lab.ws().join("stub"))
            .env("STUB_DIRECTORY", self.lab.ws())
            .env("RUNNER_TEMP", self.lab.outside())
            .env("GITHUB_OUTPUT", self.lab.outside().join("output"))
            .env("GITHUB_STEP_SUMMARY", self.lab.outside().join("summary"))
            .envs(inputs.iter().map(|(name, value)| (format!("ACTION_{name}"), *value)))
            .stdin(Stdio::null());
        command
    }

    fn run(&self, inputs: &[(&str, &str)]) -> Output {
        self.command(inputs).output().unwrap()
    }

    /// The arguments of each call of the stub.
    fn calls(&self) -> Vec<Vec<String>> {
        let text = self.lab.read("arguments");
        let calls = text.strip_suffix("\0\n").unwrap().split("\0\n");
        calls.map(|call| call.split('\0').map(str::to_owned).collect()).collect()
    }

    /// The outputs of the step, read as the runner reads them.
    fn outputs(&self) -> Vec<(String, String)> {
        let text = fs::read_to_string(self.lab.outside().join("output")).unwrap();
        let mut lines = text.lines();
        let mut outputs = Vec::new();
        while let Some(line) = lines.next() {
            let (name, delimiter) = line.split_once("<<").unwrap();
            let value: Vec<&str> = lines.by_ref().take_while(|line| *line != delimiter).collect();
            outputs.push((name.to_owned(), value.join("\n")));
        }
        outputs
    }
}

#[test]
fn ci_the_actions_script_passes_hostile_inputs_on_as_they_are() {
    let hostile = "--model=evil\n$(touch marker) `touch marker` \"; touch marker; '\nEOF\nagent_00\n::set-env name=A::b";
    let answer = format!("{hostile}\nagent_<<x\nstatus<<EOF\nevil\nEOF\n");
    let job =
        Job::new(&json!({"session_id": "20260101-000000-abcdef", "status": "success", "output": answer}));
    let directory = job.lab.outside().join("a dir; touch marker");
    let done = job.run(&[
        ("PROMPT", hostile),
        ("MODEL", hostile),
        ("CONFIG", "-c $(touch marker)"),
        ("WORKSPACE", ""),
        ("BUDGET", "1 --mode yolo"),
        ("DIRECTORY", directory.to_str().unwrap()),
    ]);
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    let calls = job.calls();
    let directory = directory.display();
    let model = format!("--model={hostile}");
    let config = "--config=-c $(touch marker)";
    let budget = "--budget=1 --mode yolo";
    let (sarif, xml, file) = (
        format!("--report-file={directory}/report.sarif"),
        format!("--output={directory}/report.xml"),
        format!("--output={directory}/session.jsonl"),
    );
    let id = "20260101-000000-abcdef";
    assert_eq!(
        calls,
        [
            vec![
                "run",
                "--json",
                "--report=sarif",
                &sarif,
                config,
                &model,
                "--sandbox=require",
                budget,
                "--mode=yolo",
                "--",
                hostile
            ],
            vec!["report", config, "--format=junit", &xml, "--", id],
            vec!["sessions", "export", config, &file, "--", id],
            vec!["report", config, "--format=github", "--", id],
        ]
    );
    let outputs = job.outputs();
    let of = |wanted: &str| outputs.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let names: Vec<&str> = outputs.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["exit-code", "status", "answer", "session-id", "directory"]);
    assert_eq!((of("status"), of("answer")), (Some("success"), Some(answer.trim_end())));
    assert_eq!((of("exit-code"), of("session-id")), (Some("0"), Some(id)));
    // Commands of the model inherit no inputs, and the log holds no commands for the runner.
    assert!(!job.lab.read("environment").contains("ACTION_"));
    let log = String::from_utf8(done.stdout).unwrap();
    let token = log.lines().next().unwrap().strip_prefix("::stop-commands::").unwrap();
    assert_eq!(log.lines().last(), Some(format!("::{token}::").as_str()));
    for place in [job.lab.home(), job.lab.ws(), job.lab.outside()] {
        assert!(!place.join("marker").exists(), "{}", place.display());
    }
}

#[test]
fn ci_the_actions_script_keeps_the_exit_code_and_trusts_no_session_id() {
    let job = Job::new(
        &json!({"session_id": "../x; touch marker", "status": "partial", "output": {"findings": []}}),
    );
    let inputs = [("COMMAND", "review"), ("BASE", "-x"), ("FAIL_ON", "high"), ("PROMPT", "not used")];
    let done = job.command(&inputs).env("STUB_CODE", "2").output().unwrap();
    assert_eq!(done.status.code(), Some(2));
    let [call] = &job.calls()[..] else { panic!("{:?}", job.calls()) };
    assert_eq!(
        (call[0].as_str(), &call[4..]),
        ("review", &["--sandbox=require", "--base=-x", "--fail-on=high"].map(str::to_owned)[..])
    );
    let outputs = job.outputs();
    assert!(outputs.contains(&("session-id".into(), String::new())), "{outputs:?}");
    assert!(outputs.contains(&("answer".into(), "{\"findings\":[]}".into())), "{outputs:?}");
    let summary = fs::read_to_string(job.lab.outside().join("summary")).unwrap();
    assert_eq!(summary, "agent ended with exit code 2 and without a session.\n");
    for (inputs, text) in [
        (&[("COMMAND", "run; touch marker")][..], "none of run, review and resume"),
        (&[("COMMAND", "run")], "the input prompt is empty"),
        (&[("COMMAND", "resume")], "the input session-file is empty"),
    ] {
        let done = job.run(inputs);
        assert_eq!(done.status.code(), Some(3));
        assert!(String::from_utf8_lossy(&done.stderr).contains(text));
    }
    assert_eq!(job.calls().len(), 1);
}

#[test]
fn ci_the_actions_script_resumes_an_imported_session() {
    let job = Job::new(&json!({"session_id": null, "status": "failed", "output": ""}));
    let done = job.run(&[("COMMAND", "resume"), ("SESSION_FILE", "-cut.jsonl"), ("PROMPT", "go on")]);
    assert_eq!(done.status.code(), Some(0));
    let calls = job.calls();
    assert_eq!(calls[0], ["sessions", "import", "--", "-cut.jsonl"]);
    assert_eq!(calls[1][4..], ["--sandbox=require", "--mode=yolo", "--", "-imported", "go on"]);
}

#[test]
fn ci_the_actions_script_passes_the_end_of_the_job_on_and_still_exports_the_session() {
    let job = Job::new(&json!({"session_id": "s1", "status": "partial", "output": ""}));
    let mut command = job.command(&[("PROMPT", "please-wait")]);
    let mut script = command.env("STUB_CODE", "130").stdout(Stdio::piped()).spawn().unwrap();
    job.lab.wait_for_file("started");
    let id = rustix::process::Pid::from_raw(i32::try_from(script.id()).unwrap()).unwrap();
    rustix::process::kill_process(id, Signal::TERM).unwrap();
    assert_eq!(script.wait().unwrap().code(), Some(130));
    assert!(job.lab.read("sessions").starts_with("sessions export "));
    assert!(job.outputs().contains(&("exit-code".into(), "130".into())));
}

fn yaml(name: &str) -> Value {
    serde_yaml::from_str(&fs::read_to_string(action(name)).unwrap()).unwrap()
}

/// Checks the steps of a workflow or of the action: expressions stand outside of scripts, and actions are pinned by a commit.
fn check_steps(steps: &Value) {
    for step in steps.as_array().unwrap() {
        assert!(!step["run"].as_str().unwrap_or_default().contains("${{"), "{step}");
        let Some(used) = step["uses"].as_str() else { continue };
        let (_, commit) = used.split_once('@').unwrap();
        assert!(commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()), "{used}");
        assert!(!used.starts_with("./"), "{used}");
    }
}

#[test]
fn ci_the_example_workflows_read_only_and_put_no_expression_into_a_script() {
    let inputs = yaml("action.yml")["inputs"].clone();
    for name in ["review", "repair", "nightly"] {
        let workflow = yaml(&format!("examples/{name}.yml"));
        let granted = workflow["permissions"].as_object().unwrap();
        assert!(granted["contents"] == "read" && granted.values().all(|right| right == "read"), "{name}");
        for job in workflow["jobs"].as_object().unwrap().values() {
            assert!(job.get("permissions").is_none() && job["timeout-minutes"].is_u64(), "{name}");
            check_steps(&job["steps"]);
            let used = |step: &&Value| step["uses"].as_str().unwrap_or_default().contains("actions/agent@");
            let step = job["steps"].as_array().unwrap().iter().find(used).unwrap();
            for input in step["with"].as_object().unwrap().keys() {
                assert!(inputs.get(input).is_some(), "{name}: {input}");
            }
        }
        let triggers = workflow["on"].to_string();
        assert!(!triggers.contains("pull_request_target") && !triggers.contains("issue"), "{name}");
    }
}

#[test]
fn ci_the_action_hands_each_input_over_in_a_variable_that_the_script_reads() {
    let (action, script) = (yaml("action.yml"), fs::read_to_string(action("run.sh")).unwrap());
    check_steps(&action["runs"]["steps"]);
    let variables = action["runs"]["steps"][0]["env"].as_object().unwrap();
    for input in action["inputs"].as_object().unwrap().keys() {
        let name = format!("ACTION_{}", input.to_uppercase().replace('-', "_"));
        assert_eq!(variables[&name], format!("${{{{ inputs.{input} }}}}"));
        assert!(script.contains(&format!("${{{name}:")), "{name}");
    }
    assert_eq!(variables.len(), action["inputs"].as_object().unwrap().len());
    for output in action["outputs"].as_object().unwrap().keys() {
        assert!(script.contains(&format!("write_output {output} ")), "{output}");
    }
}

#[test]
fn ci_a_cut_job_goes_on_from_its_uploaded_session() {
    let write =
        json!({"calls": [{"name": "write_file", "arguments": {"path": "half.txt", "content": "half\n"}}]});
    let server = Server::turns(json!([write, {"text": "late", "delay_ms": 600_000}]));
    let first = Lab::new().file("a.txt", "a\n");
    let running = first.start_run(&server, &["--mode", "yolo"]);
    server.wait_for_request(2);
    running.signal(Signal::KILL);
    let _killed = running.finish();
    let id = first.journal().parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    first.agent(&["sessions", "export", &id, "-o", "../session.jsonl"]).exits(0);
    // Another machine: its own home and workspace, where the change was restored from the patch.
    let second = Lab::new().file("a.txt", "a\n").file("half.txt", "half\n");
    let file = first.outside().join("session.jsonl");
    let imported = second.agent(&["sessions", "import", file.to_str().unwrap()]).exits(0).stdout;
    let read = json!({"calls": [{"name": "read_file", "arguments": {"path": "half.txt"}}]});
    let server = Server::turns(json!([read, {"text": "all done"}]));
    let url = server.url();
    let model = ["--model", "openai/mock", "--api-base", &url, "--api-key", KEY, "--mode", "yolo", "--json"];
    let done = second.agent(&[&["resume"], &model[..], &["--", imported.trim()]].concat()).exits(0).json();
    assert_eq!((&done["status"], &done["output"]), (&json!("success"), &json!("all done")));
    let requests = server.requests();
    let messages = requests[0].messages();
    assert_eq!(messages[1]["content"], "task");
    assert!(
        messages.iter().any(|message| message["tool_calls"][0]["function"]["name"] == "write_file"),
        "{messages:?}"
    );
    let messages = requests[1].messages();
    assert!(messages.last().unwrap()["content"].as_str().unwrap().contains("half"), "{messages:?}");
}
