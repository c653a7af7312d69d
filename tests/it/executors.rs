//! Tasks that another program does: `agent submit --executor NAME` and `fleet.executors`.

use crate::support::mcp::processes_with;
use crate::support::run::{Finished, Lab};
use crate::support::server::Server;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// Writes what it got into files, and says the key and its figures.
const FAKE: &str = r#"printf '%s\n' "$@" > args.txt
env | sort > env.txt
cat > stdin.txt
echo more >> a.txt
echo "$SERVICE_KEY" > "$HOME/key.txt"
echo "the key is $SERVICE_KEY"
echo "Tokens: 1.2k sent, 45 received."
"#;

const FIGURES: &str =
    r"patterns: {tokens_input: 'Tokens: ([\d.]+k?) sent', tokens_output: 'sent, (\d+) received'}";

/// A repository with the program `fake.sh`, which is the executor `fake` with more keys.
fn with_executor(script: &str, keys: &str) -> Lab {
    Lab::new().file("fake.sh", script).file("a.txt", "first\n").config(&format!(
        "fleet: {{executors: {{fake: {{command: /bin/sh, args: [fake.sh, '{{prompt}}', '--said={{prompt}}'], {keys}}}}}}}"
    ))
        .committed()
}

/// Submits a task and lets a worker do it; returns the task and what the worker wrote.
fn done(lab: &Lab, submit: &[&str], worker: &[&str]) -> (Value, Finished) {
    lab.agent(&[&["submit", "--id", "a"], submit].concat()).exits(0);
    let worked = lab.agent(&[&["worker", "--drain"], worker].concat());
    let listed = lab.agent(&["tasks", "show", "a", "--json"]).exits(0).json();
    (listed["tasks"][0].clone(), worked)
}

const YOLO: &[&str] = &["--mode", "yolo"];

fn published(lab: &Lab, file: &str) -> String {
    lab.git(&["show", &format!("agent/task/a:{file}")])
}

#[test]
fn a20_an_executor_works_in_a_worktree_with_a_home_of_its_own_and_only_the_mapped_key() {
    let keys = format!(
        "model_args: ['--model={{model}}'], env: {{SERVICE_KEY: {{from: MY_SERVICE_KEY}}, LEVEL: {{value: high}}}}, {FIGURES}"
    );
    let lab = with_executor(FAKE, &keys)
        .env("MY_SERVICE_KEY", "sk-4f9a8b7c6d5e")
        .env("OTHER_API_KEY", "sk-other-5e6d7c8b");
    let prompt = "$(touch x) `touch x` {model} {prompt}\n--second 'line'";
    let (task, _) = done(&lab, &[prompt, "--executor", "fake", "--model", "m/1"], YOLO);
    assert_eq!((&task["state"], &task["attempt"]), (&json!("done"), &json!(1)), "{task}");
    assert_eq!(published(&lab, "args.txt"), format!("{prompt}\n--said={prompt}\n--model=m/1\n"));
    assert_eq!(
        (published(&lab, "stdin.txt"), published(&lab, "a.txt")),
        (String::new(), "first\nmore\n".to_owned())
    );
    let env = published(&lab, "env.txt");
    let has = |line: &str| env.lines().any(|known| known == line);
    assert!(has("SERVICE_KEY=sk-4f9a8b7c6d5e") && has("LEVEL=high"), "{env}");
    assert!(
        !env.contains("MY_SERVICE_KEY") && !env.contains("sk-other") && !env.contains("API_KEY"),
        "{env}"
    );
    let home = env.lines().find_map(|line| line.strip_prefix("HOME=")).unwrap();
    assert!(home.contains("worktrees") && !Path::new(home).exists(), "{home}");
    let result = &task["result"];
    assert_eq!(
        result["executor"],
        json!({"name": "fake", "exit_code": 0, "tokens_input": 1_200, "tokens_output": 45})
    );
    assert_eq!((&result["usage"]["input"], &result["cost"]["total_usd"]), (&json!(1_200), &Value::Null));
    let files: Vec<&str> = result["files_modified"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["path"].as_str().unwrap())
        .collect();
    assert_eq!(files, ["a.txt", "args.txt", "env.txt", "stdin.txt"]);
    assert!(!result["output"].as_str().unwrap().contains("sk-4f9a"), "{result}");
    assert_eq!(lab.read("a.txt"), "first\n");
    assert_eq!(lab.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a20_tokens_that_cannot_be_read_are_null_and_json_is_read_by_pointers() {
    let keys = "output: json, patterns: {answer: /result, tokens_input: /usage/in, tokens_output: /usage/out, cost_usd: /cost}";
    let answer = r#"echo '{"result": "it is done", "usage": {"in": 7}, "cost": 0.25}'"#;
    let (task, _) = done(&with_executor(answer, keys), &["x", "--executor", "fake"], YOLO);
    let result = &task["result"];
    assert_eq!(
        (&result["output"], &result["cost"]["total_usd"]),
        (&json!("it is done"), &json!(0.25)),
        "{task}"
    );
    assert_eq!(
        (&result["executor"]["tokens_input"], &result["executor"]["tokens_output"]),
        (&json!(7), &Value::Null)
    );
    assert_eq!((&task["state"], &task["branch"]), (&json!("done"), &Value::Null), "nothing was changed");
}

#[test]
fn a20_an_executor_that_runs_out_of_time_is_killed_with_its_children() {
    let lab = with_executor("sleep 4711.25 & sleep 4711.25", "timeout: 1");
    let (task, _) = done(&lab, &["x", "--executor", "fake"], YOLO);
    assert_eq!(task["state"], "failed");
    let cause = task["cause"].as_str().unwrap();
    assert!(cause.contains("timed out after 1 seconds"), "{cause}");
    assert_eq!(task["result"]["stop_reason"], "timeout");
    assert_eq!(processes_with("4711.25"), 0);
    assert_eq!(lab.git(&["branch", "--format=%(refname:short)"]), "main\n");
}

#[test]
fn a20_a_program_that_fails_or_whose_checks_fail_publishes_nothing() {
    let lab = with_executor(
        "echo more >> a.txt; test \"$1\" = good || { echo broken pipe >&2; exit 7; }",
        "timeout: 9",
    );
    let (task, _) = done(&lab, &["bad", "--executor", "fake"], YOLO);
    let cause = task["cause"].as_str().unwrap().to_owned();
    assert_eq!(task["result"]["executor"]["exit_code"], 7);
    for part in ["exited with code 7", "broken pipe", "fleet.executors.fake.allowed_hosts"] {
        assert!(cause.contains(part), "{cause}");
    }
    lab.agent(&["submit", "good", "--id", "b", "--executor", "fake", "--check", "grep -q other a.txt"])
        .exits(0);
    lab.agent(&["submit", "good", "--id", "c", "--executor", "fake", "--check", "grep -q more a.txt"])
        .exits(0);
    lab.agent(&[&["worker", "--drain"], YOLO].concat()).exits(0);
    lab.agent(&["submit", "good", "--id", "d", "--executor", "fake"]).exits(0);
    let of_worker = ["--check", "grep -q another a.txt"];
    lab.agent(&[&["worker", "--drain"], YOLO, &of_worker[..]].concat()).exits(0);
    let waited = lab.agent(&["tasks", "wait", "b", "c", "d"]).exits(2).stdout;
    assert!(waited.contains("d  failed") && waited.contains("the check `grep -q another a.txt`"), "{waited}");
    assert!(
        waited.contains("b  failed") && waited.contains("the check `grep -q other a.txt` failed"),
        "{waited}"
    );
    assert_eq!(lab.git(&["branch", "--format=%(refname:short)"]), "agent/task/c\nmain\n");
}

#[test]
fn a20_an_executor_starts_only_if_the_user_allows_it_and_no_limit_would_be_exceeded() {
    let refused = |lab: &Lab, submit: &[&str], worker: &[&str], why: &str| {
        let (task, _) = done(lab, submit, worker);
        let cause = task["cause"].as_str().unwrap_or_default();
        assert!(task["state"] == "failed" && cause.contains(why), "{task}");
        assert_eq!(lab.git(&["branch", "--format=%(refname:short)"]), "main\n");
        lab.agent(&["tasks", "rm", "a"]).exits(0);
    };
    let lab = with_executor("echo x > started", "timeout: 9");
    let fake = ["x", "--executor", "fake"];
    refused(&lab, &fake, &[], "`--mode yolo`");
    refused(&lab, &[&fake[..], &["--mode", "confirm-all"]].concat(), YOLO, "`--mode yolo`");
    refused(&lab, &[&fake[..], &["--budget", "1"]].concat(), YOLO, "does not keep `--budget`");
    refused(&lab, &fake, &["--mode", "yolo", "--budget-total", "1"], "does not keep `--budget`");
    refused(&lab, &fake, &["--mode", "yolo", "--max-steps", "9"], "`--max-steps`");
    refused(&lab, &[&fake[..], &["--agent", "build"]].concat(), YOLO, "`--agent`");
    refused(&lab, &["x", "--executor", "aider"], YOLO, "not among those of `fleet.executors` (fake)");
    let lab = Lab::new()
        .config("fleet: {executors: {aider: {enabled: true}}}")
        .env("PATH", "/usr/bin:/bin")
        .file("a", "");
    let lab = lab.committed();
    refused(&lab, &["x", "--executor", "aider"], YOLO, "python3 -m pip install aider-chat");
}

#[test]
fn a20_executors_of_a_project_are_refused() {
    let lab = Lab::new().file(".agent/config.yaml", "fleet: {executors: {fake: {command: /bin/sh}}}");
    let told = lab.agent(&["tasks"]);
    assert!(told.stderr.contains("fleet.executors"), "{}", told.stderr);
}

/// The programs of the built-in executors, as fakes that write their arguments, input and `variables` into files, and then `line`.
struct Programs {
    lab: Lab,
    _programs: TempDir,
}

impl Programs {
    fn new(enabled: &[&str], line: &str, variables: &str) -> Self {
        // Commands have a `/tmp` of their own, in which these programs would not be.
        let programs = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for name in ["claude", "goose", "aider", "opencode", "npx"] {
            let program = programs.path().join(name);
            let text = format!(
                "#!/bin/sh\nprintf '%s\\n' \"$@\" | sed \"s|^$HOME/|~/|\" > args.txt; cat > stdin.txt; cat ~/.*.md ~/.config/*/* > files.txt; env | grep -E '^({variables})=' | sort > env.txt; echo '{line}'\n"
            );
            fs::write(&program, text).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", programs.path().display());
        let enabled: Vec<String> = enabled.iter().map(|name| format!("{name}: {{enabled: true}}")).collect();
        let lab = Lab::new()
            .config(&format!("fleet: {{executors: {{{}}}}}", enabled.join(", ")))
            .env("PATH", &path)
            .file("a", "");
        let lab = lab.committed();
        Self { lab, _programs: programs }
    }

    /// Lets an executor do a task; its task, arguments, input, variables and files.
    fn called(&self, executor: &str, prompt: &str) -> (Value, [String; 4]) {
        let lab = &self.lab;
        lab.agent(&["submit", "--id", executor, "--model", "p/m", "--executor", executor, "--", prompt])
            .exits(0);
        lab.agent(&[&["worker", "--drain"], YOLO].concat()).exits(0);
        let task = lab.agent(&["tasks", "show", executor, "--json"]).exits(0).json()["tasks"][0].clone();
        let file = |name: &str| lab.git(&["show", &format!("agent/task/{executor}:{name}")]);
        (task, ["args.txt", "stdin.txt", "env.txt", "files.txt"].map(|name| file(name).replace('\n', " ")))
    }
}

#[test]
fn a20_own_is_the_agent_itself() {
    let lab = with_executor("true", "timeout: 9");
    let model = Server::start("turns: [{text: by the model}]");
    lab.agent(&["submit", "x", "--id", "a", "--executor", "own"]).exits(0);
    lab.agent_on(&model, &["worker", "--drain"]).exits(0);
    let task = lab.agent(&["tasks", "show", "a", "--json"]).exits(0).json()["tasks"][0].clone();
    assert_eq!((&task["state"], &task["result"]["output"]), (&json!("done"), &json!("by the model")));
}

#[test]
fn a20_a_prompt_that_is_too_long_for_an_argument_is_refused() {
    let lab = with_executor("true", "timeout: 9");
    let file = lab.outside().join("tasks.jsonl");
    fs::write(&file, json!({"id": "a", "prompt": "x".repeat(128 << 10), "executor": "fake"}).to_string())
        .unwrap();
    lab.agent(&["submit", "-f", file.to_str().unwrap()]).exits(0);
    lab.agent(&[&["worker", "--drain"], YOLO].concat()).exits(0);
    let task = lab.agent(&["tasks", "show", "a", "--json"]).exits(0).json()["tasks"][0].clone();
    let cause = task["cause"].as_str().unwrap();
    assert!(task["state"] == "failed" && cause.contains("`fleet.executors.fake.prompt: stdin`"), "{cause}");
}

// Fault B12: executors got the model with its provider, and goose always that of OpenAI.
#[test]
fn a20_the_executors_of_the_seed_are_called_with_its_flags_variables_and_files_and_their_tokens_are_read() {
    let of = |executor: &str, line: &str| {
        Programs::new(&[executor], line, "[A-Z_]*(API_KEY|AIDER|OPENCODE|CLAUDE_CODE)[A-Z_]*")
            .called(executor, "fix it")
    };
    let check = |executor: &str, line: &str, args: &str, variables: &str| {
        let (task, [given, stdin, env, files]) = of(executor, line);
        assert_eq!((given.trim_end(), stdin.as_str(), env.trim_end()), (args, "", variables));
        let tokens = &task["result"]["executor"];
        assert_eq!((&tokens["tokens_input"], &tokens["tokens_output"]), (&json!(12), &json!(3)), "{task}");
        files
    };
    check(
        "claude-code-seed",
        "Tokens used: 12 input, 3 output",
        "@anthropic/claude-code --print --system-prompt ~/.claude-system-prompt.md --max-tokens 4096 --allowedTools Read,Write,Edit,Bash,Glob,Grep,Task,WebFetch --message fix it --model m",
        r#"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 CLAUDE_CODE_MCP_CONFIG={"mcpServers": {}}"#,
    );
    let profile = check(
        "goose-seed",
        "Token usage: 12 prompt, 3 completion",
        "session start --profile agent --message fix it --no-interactive",
        "",
    );
    assert_eq!(
        profile.split_whitespace().collect::<Vec<_>>().join(" "),
        r#"agent: provider: "p" model: "m" extensions: [developer, github, web-search] system_prompt: """#
    );
    check(
        "aider-seed",
        "Tokens: 12 sent, 3 received",
        "--message fix it --yes --no-git --edit-format diff --no-stream --map-tokens 2048 --model p/m",
        "AIDER_DARK_MODE=1 AIDER_NO_AUTO_COMMITS=1",
    );
    check(
        "opencode-seed",
        r#"{"usage": {"prompt_tokens": 12, "completion_tokens": 3}}"#,
        "--headless --prompt fix it --output-format json --model m --provider p",
        "OPENCODE_AUTO_APPROVE=1 OPENCODE_NO_TUI=1",
    );
    let (task, _) = of("opencode-seed", "Tokens: 12 in, 3 out");
    assert_eq!(
        task["result"]["executor"],
        json!({"name": "opencode-seed", "exit_code": 0, "tokens_input": 12, "tokens_output": 3})
    );
}

// Fault B12: executors got the model with its provider, and goose always that of OpenAI.
#[test]
fn a20_the_built_in_executors_are_called_with_the_flags_of_today() {
    let programs = Programs::new(&["claude-code", "goose", "aider", "opencode"], "done", "GOOSE_[A-Z]*");
    let called = |executor: &str| {
        let (_, [args, stdin, env, _]) = programs.called(executor, "--do it");
        (args, stdin, env)
    };
    let (args, stdin, _) = called("claude-code");
    assert_eq!(
        (args.as_str(), stdin.as_str()),
        ("-p --output-format json --dangerously-skip-permissions --model m ", "--do it")
    );
    assert_eq!(
        called("goose"),
        (
            "run --no-session --instructions - ".to_owned(),
            "--do it".to_owned(),
            "GOOSE_MODE=auto GOOSE_MODEL=m GOOSE_PROVIDER=p ".to_owned()
        )
    );
    let (args, stdin, _) = called("aider");
    assert!(
        args.starts_with("--yes-always --no-git ") && args.ends_with(" --message=--do it --model p/m "),
        "{args}"
    );
    assert_eq!(stdin, "");
    assert_eq!(called("opencode"), ("run --model p/m ".to_owned(), "--do it".to_owned(), String::new()));
}

#[test]
fn a20_doctor_tells_which_executors_are_installed() {
    let lab = Lab::new()
        .config("fleet: {executors: {aider: {enabled: true}, mine: {command: sh, prompt: stdin}, none: {enabled: true}}}")
        .env("PATH", "/usr/bin:/bin");
    let shown = lab.agent(&["doctor"]).stdout;
    for line in [
        "aider: the executor aider is not installed",
        "mine: ok: /usr/bin/sh",
        "none: the executor none has no `fleet",
    ] {
        assert!(shown.contains(&format!("executor       {line}")), "{shown}");
    }
}

#[test]
fn a20_an_executor_reaches_no_network_unless_it_is_allowed() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script =
        format!("bash -c 'echo x > /dev/tcp/127.0.0.1/{port}' 2>/dev/null && echo reached || echo not");
    for (keys, expected) in [("timeout: 9", "not"), ("network: true", "reached")] {
        let (task, _) = done(&with_executor(&script, keys), &["x", "--executor", "fake"], YOLO);
        let has_own_network = ["full", "bubblewrap"].contains(&task["result"]["sandbox"].as_str().unwrap());
        if has_own_network || expected == "reached" {
            assert_eq!(task["result"]["output"], expected, "{task}");
        }
    }
}
