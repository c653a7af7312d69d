//! Bad input: each gives a clear message, the right exit code, and nothing half-written.

use crate::support::run::{Finished, KEY, Lab, NO_BREAKERS, program};
use crate::support::server::Server;
use rustix::process::Signal;
use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};

/// What the model read as the result of one call of `tool` with `arguments` (YAML).
fn result_of(lab: &Lab, call: &str, more: &[&str]) -> String {
    let server = Server::start(&format!("turns:\n  - calls: [{call}]\n  - text: done\n"));
    lab.run(&server, more).exits(0);
    let requests = server.requests();
    let messages = requests[1].messages();
    messages.last().unwrap()["content"].as_str().unwrap().to_owned()
}

/// The run failed before it began: exit 3, the reason on stderr, the same in the JSON document.
#[track_caller]
fn refused(lab: &Lab, args: &[&str], reason: &str) {
    let done = lab.agent(args).exits(3);
    assert!(done.stderr.contains(reason), "{reason:?} not in:\n{}", done.stderr);
    assert!(done.stdout.is_empty(), "{}", done.stdout);
    let with_json = [args, &["--json"]].concat();
    let done = lab.agent(&with_json).exits(3);
    let json = done.json();
    assert_eq!(json["stop_reason"], serde_json::Value::Null);
    assert!(json["error"]["message"].as_str().unwrap().contains(reason), "{json}");
}

#[test]
fn a_workspace_that_is_absent_or_a_file_exits_3() {
    let lab = Lab::new().started().file("a.txt", "x");
    refused(&lab, &["run", "x", "-w", "nowhere", "--model", "openai/m", "--api-key", "k"], "nowhere");
    refused(&lab, &["run", "x", "-w", "a.txt", "--model", "openai/m", "--api-key", "k"], "not a directory");
}

#[test]
fn an_empty_prompt_and_a_prompt_too_long_exit_3() {
    refused(&Lab::new().started(), &["run", ""], "empty");
    refused(&Lab::new().started(), &["run", "  \n"], "empty");
    refused(&Lab::new().started().stdin(""), &["run"], "empty");
    refused(&Lab::new().started().stdin(vec![b'x'; 10 << 20]), &["run", "-"], "1 MiB");
    refused(&Lab::new().started().stdin([0xff, 0xfe]), &["run", "-"], "UTF-8");
}

#[test]
fn a_prompt_from_a_pipe_is_read_only_when_none_was_given() {
    let server = Server::done();
    let lab = Lab::new().started().stdin("from the pipe");
    let url = server.url();
    lab.agent(&["run", "--model", "openai/m", "--api-base", &url, "--api-key", KEY]).exits(0);
    assert!(server.requests()[0].body.to_string().contains("from the pipe"));
    let server = Server::done();
    lab.run(&server, &[]).exits(0);
    assert!(!server.requests()[0].body.to_string().contains("from the pipe"));
}

#[test]
fn unknown_agents_models_flags_and_keys_exit_3_and_say_what_there_is() {
    let lab = Lab::new().started();
    refused(&lab, &["run", "x", "--agent", "nobody"], "build");
    refused(&lab, &["run", "x", "--model", "nosuch/model"], "nosuch");
    let done = lab.agent(&["run", "x", "--no-such-flag"]).exits(3);
    assert!(done.stderr.contains("--no-such-flag"), "{}", done.stderr);
    let done = lab.agent(&["nonsense"]).exits(3);
    assert!(done.stderr.contains("nonsense"), "{}", done.stderr);
    let lab = Lab::new().started().config("llm:\n  modle: x\n");
    refused(&lab, &["run", "x"], "modle");
}

#[test]
fn no_key_and_no_endpoint_exits_4_with_three_ways_on() {
    let done = Lab::new().started().agent(&["run", "x"]).exits(4);
    for way in ["API_KEY", "--model local/", "agent demo"] {
        assert!(done.stderr.contains(way), "{way}:\n{}", done.stderr);
    }
    let json = Lab::new().started().agent(&["run", "x", "--json"]).exits(4).json();
    assert_eq!((&json["status"], &json["error"]["kind"]), (&"failed".into(), &"auth".into()));
}

#[test]
fn unreadable_files_are_reported_to_the_model() {
    let lab = Lab::new().started().file("closed.txt", "x");
    fs::set_permissions(lab.ws().join("closed.txt"), fs::Permissions::from_mode(0o000)).unwrap();
    let lab = lab.unprivileged();
    let result = result_of(&lab, "{name: read_file, arguments: {path: closed.txt}}", &[]);
    assert!(result.to_lowercase().contains("permission"), "{result}");
}

#[test]
fn invalid_utf8_is_reported_and_stays_as_it_is() {
    let bytes = b"caf\xe9 au lait\n";
    let lab = Lab::new().started().file("latin1.txt", bytes);
    let result = result_of(&lab, "{name: read_file, arguments: {path: latin1.txt}}", &[]);
    assert!(result.contains("UTF-8"), "{result}");
    let edit = "{name: edit_file, arguments: {path: latin1.txt, old_str: lait, new_str: the}}";
    result_of(&lab, edit, &["--mode", "yolo"]);
    let after = fs::read(lab.ws().join("latin1.txt")).unwrap();
    assert!(after == bytes || after == b"caf\xe9 au the\n", "{after:?}");
}

#[test]
fn a_2_gb_file_is_neither_loaded_nor_searched_through() {
    let lab = Lab::new().started().file("small.txt", "needle\n");
    let big = fs::File::create(lab.ws().join("big.bin")).unwrap();
    big.set_len(2 << 30).unwrap();
    let result = result_of(&lab, "{name: read_file, arguments: {path: big.bin}}", &[]);
    assert!(result.len() < 100_000);
    let result = result_of(&lab, "{name: grep, arguments: {text: needle}}", &[]);
    assert!(result.contains("small.txt"), "{result}");
}

#[test]
fn a_symlink_loop_is_an_error_of_its_read_and_no_search_hangs() {
    let lab = Lab::new().started().file("a/real.txt", "needle\n");
    symlink("loop", lab.ws().join("loop")).unwrap();
    symlink("..", lab.ws().join("a/up")).unwrap();
    let result = result_of(&lab, "{name: read_file, arguments: {path: loop}}", &[]);
    assert!(result.starts_with("Error"), "{result}");
    let result = result_of(&lab, "{name: grep, arguments: {text: needle}}", &[]);
    assert_eq!(result.matches("real.txt").count(), 1, "{result}");
}

/// A run against a server that answers like this, over and over.
fn against(fault: &str, more: &[&str]) -> Finished {
    let server = Server::start(&format!("turns:\n  - {fault}\n    repeat: 9\n"));
    let more = [&["--json"], more].concat();
    let lab = Lab::new().started().config("llm: {retries: 1}\n");
    lab.run(&server, &more)
}

#[test]
fn an_absent_server_exits_1_and_names_the_address() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let base = format!("http://127.0.0.1:{port}/v1");
    let lab = Lab::new().started().config("llm: {retries: 0}\n");
    let done =
        lab.agent(&["run", "x", "--model", "openai/m", "--api-base", &base, "--api-key", KEY]).exits(1);
    assert!(done.stderr.contains(&port.to_string()), "{}", done.stderr);
    assert!(done.stdout.is_empty(), "an error is no answer: {}", done.stdout);
    assert!(!done.stderr.contains(KEY));
}

#[test]
fn a_slow_server_ends_with_the_time_it_was_given() {
    let json = against("fault: hang", &["--timeout", "1"]).exits(5).json();
    assert_eq!(json["stop_reason"], "timeout");
}

#[test]
fn html_garbage_and_lies_are_named_and_exit_1() {
    let html =
        "fault: {http: {headers: {content-type: text/html}, body: '<html><title>Login</title></html>'}}";
    let lie = "fault: {raw: \"HTTP/1.1 200 OK\\r\\ncontent-length: 999\\r\\n\\r\\n{}\"}";
    let noise = "fault: {raw: 'SSH-2.0-OpenSSH_9.2'}";
    for fault in [html, lie, noise, "fault: reset"] {
        let json = against(fault, &[]).exits(1).json();
        assert_eq!(json["stop_reason"], "llm_error", "{fault}: {json}");
        assert!(!json["error"]["message"].as_str().unwrap().is_empty());
    }
}

#[test]
fn an_empty_answer_is_asked_again_once_and_then_an_error() {
    let server = Server::start("turns: [{text: ''}, {text: ''}, {text: never}]");
    let json = Lab::new().started().run(&server, &["--json"]).exits(1).json();
    assert_eq!(json["error"]["kind"], "empty_answer");
    assert_eq!(json["requests"], 2);
    let server = Server::start("turns: [{text: ''}, {text: there}]");
    assert_eq!(Lab::new().started().run(&server, &[]).exits(0).stdout, "there\n");
}

#[test]
fn a_stream_that_is_cut_is_never_a_success() {
    let server = Server::start("turns: [{text: a long answer, chunk: 2, fault: {close: 3}}]");
    let done = Lab::new().started().run(&server, &[]).exits(1);
    assert!(!done.stderr.is_empty());
    assert!(!done.stdout.contains("a long answer"));
}

#[test]
fn an_endless_stream_is_ended_by_the_time_limit() {
    let server = Server::start(
        "turns: [{text: 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', chunk: 1, chunk_delay_ms: 100}]",
    );
    let done = Lab::new().started().run(&server, &["--timeout", "1"]);
    done.exits(5);
}

#[test]
fn a_full_disk_for_the_journal_ends_the_run_with_what_there_is() {
    let script = "turns: [{repeat: 30, calls: [{name: read_file, arguments: {path: a.txt}}]}]";
    let server = Server::start(script);
    let lab = Lab::new().started().file("a.txt", "line of text\n".repeat(300)).config(NO_BREAKERS);
    let agent = program();
    let url = server.url();
    let command = format!(
        "trap '' XFSZ; ulimit -f 40; exec '{agent}' run task --json --model openai/m --api-base {url} --api-key {KEY}"
    );
    let mut shell = std::process::Command::new("/bin/bash");
    shell.args(["-c", &command]).current_dir(lab.ws()).env("AGENT_HOME", lab.home());
    let output = shell.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["stop_reason"], "internal_error");
    assert!(json["error"]["message"].as_str().unwrap().contains("journal"), "{json}");
    let server = Server::done();
    lab.resume(&server, &["go on"]).exits(0);
}

#[test]
fn a_full_disk_for_the_log_file_costs_one_warning_and_not_the_run() {
    let server = Server::done();
    let done = Lab::new().started().run(&server, &["--log-file", "/dev/full"]);
    let done = done.exits(0);
    assert_eq!(done.stdout, "done\n");
    assert_eq!(done.stderr.matches("/dev/full").count(), 1, "{}", done.stderr);
}

#[test]
fn a_log_file_that_is_a_pipe_is_written_when_somebody_reads_it_and_else_refused() {
    use rustix::fs::{CWD, FileType, Mode};
    let server = Server::done();
    let lab = Lab::new().started();
    let pipe = lab.outside().join("pipe");
    rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let name = pipe.to_str().unwrap();
    let done = lab.run(&server, &["--log-file", name]).exits(3);
    assert!(done.stderr.contains(name), "{}", done.stderr);
    let mut both_ends = fs::File::options().read(true).write(true).open(name).unwrap();
    lab.run(&server, &["--log-file", name]).exits(0);
    let mut log = vec![0; 64 * 1024];
    let length = both_ends.read(&mut log).unwrap();
    assert!(String::from_utf8_lossy(&log[..length]).contains("run_end"));
}

#[test]
fn an_error_of_a_tool_called_by_hand_is_called_an_error_once() {
    let done = Lab::new().started().agent(&["tools", "call", "read_file", "{\"path\": \"../x\"}"]).exits(1);
    assert!(done.stderr.starts_with("error: Security error: "), "{}", done.stderr);
}

#[test]
fn a_closed_standard_output_leaves_the_verdict() {
    let server = Server::done();
    let lab = Lab::new().started();
    let agent = program();
    let url = server.url();
    let command = format!(
        "'{agent}' run task --model openai/m --api-base {url} --api-key {KEY} | true; echo ${{PIPESTATUS[0]}} >&2"
    );
    let mut shell = std::process::Command::new("/bin/bash");
    shell.args(["-c", &command]).current_dir(lab.ws()).env("AGENT_HOME", lab.home());
    let output = shell.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.ends_with("\n0\n"), "{stderr}");
    assert!(!stderr.contains("panic"), "{stderr}");
}

#[test]
fn a_run_whose_closing_failed_is_gone_on_with_after_a_resume() {
    let script = "turns:
  - calls: [{name: read_file, arguments: {path: a.txt}}]
  - error: {status: 400}
";
    let server = Server::start(script);
    let lab = Lab::new().started().file("a.txt", "x");
    lab.run(&server, &["--max-steps", "1"]).exits(2);
    let server = Server::done();
    lab.resume(&server, &[]).exits(0);
    let requests = server.requests();
    let last = requests[0].messages().last().unwrap();
    let said = last["content"].as_str().unwrap();
    assert!(said.starts_with("Continue"), "the model would only close the run a second time: {said}");
}

#[test]
fn a_configuration_error_leaves_no_session_behind_that_resume_would_take() {
    let server = Server::done();
    let lab = Lab::new().started();
    lab.run(&server, &[]).exits(0);
    let config = lab.home().join("config.yaml");
    fs::write(&config, "hooks: {pre_tool_use: [{command: x, matcher: '(a{1000}){100}'}]}\n").unwrap();
    lab.run(&server, &[]).exits(3);
    fs::remove_file(config).unwrap();
    let server = Server::done();
    lab.resume(&server, &["more"]).exits(0);
}

#[test]
fn an_error_is_said_once() {
    let done = Lab::new()
        .started()
        .agent(&["run", "x", "--model", "scripted:x", "--log-file", "/nonexistent/log"])
        .exits(3);
    assert_eq!(done.stderr.matches("os error").count(), 1, "{}", done.stderr);
}

#[test]
fn hooks_share_the_time_of_the_run_and_a_first_interrupt_ends_those_of_its_end() {
    let server = Server::start("turns: [{text: done, repeat: 2}]");
    let lab = Lab::new().started().config("hooks: {session_start: [{command: sleep 60, timeout: 300}]}\n");
    let json = lab.run(&server, &["--timeout", "1", "--json"]).exits(5).json();
    assert_eq!(json["stop_reason"], "timeout");
    let lab = Lab::new()
        .started()
        .config("hooks: {session_end: [{command: 'touch ending; sleep 60', timeout: 300}]}\n");
    let run = lab.start_run(&server, &["-v", "--json"]);
    lab.wait_for_file("ending");
    run.signal(Signal::INT);
    let json = run.finish().exits(0).json();
    assert_eq!(json["output"], "done");
}

#[test]
fn an_interrupt_during_a_guard_is_no_refusal() {
    let script =
        "turns: [{calls: [{name: write_file, arguments: {path: new.txt, content: x}}]}, {text: never}]";
    let server = Server::start(script);
    let lab = Lab::new()
        .started()
        .config("hooks: {pre_tool_use: [{command: 'touch asked; sleep 60', timeout: 300}]}\n");
    let run = lab.start_run(&server, &["--mode", "yolo", "--json"]);
    lab.wait_for_file("asked");
    run.signal(Signal::INT);
    let json = run.finish().exits(130).json();
    assert_eq!(json["permission_denials"], serde_json::json!([]));
    assert!(!lab.exists("new.txt"));
}

#[test]
fn a_question_is_not_waited_for_longer_than_the_run_may_take() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let script =
        "turns: [{calls: [{name: write_file, arguments: {path: new.txt, content: x}}]}, {text: not written}]";
    let server = Server::start(script);
    let lab = Lab::new().started();
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let side = || fs::File::options().read(true).write(true).open(&name).unwrap();
    let url = server.url();
    let args = ["run", "task", "--timeout", "2", "--model", "openai/m", "--api-base", &url, "--api-key", KEY];
    let mut run = lab.command(&args).stdin(side()).stderr(side()).spawn().unwrap();
    std::thread::spawn(move || std::io::copy(&mut fs::File::from(terminal), &mut std::io::sink()));
    let (ended, end) = std::sync::mpsc::channel();
    let pid = rustix::process::Pid::from_child(&run);
    std::thread::spawn(move || ended.send(run.wait().unwrap().code()));
    let code = end.recv_timeout(crate::support::run::PATIENCE / 2);
    let _already_gone = rustix::process::kill_process(pid, Signal::KILL);
    assert_eq!(code, Ok(Some(5)));
    assert!(!lab.exists("new.txt"));
}

#[test]
fn a_journal_that_ends_anywhere_can_be_gone_on_with() {
    let script = "turns:
  - calls:
      - {name: read_file, arguments: {path: a.txt}}
      - {name: write_file, arguments: {path: b.txt, content: x}}
  - {text: one, finish: length}
  - {text: two, calls: [{name: run_command, arguments: {command: 'true'}}]}
  - text: a summary
";
    let server = Server::start(script);
    let lab = Lab::new().started().file("a.txt", "x");
    lab.run_yolo(&server, &["--max-steps", "3"]).exits(2);
    let journal = lab.journal();
    let whole = fs::read_to_string(&journal).unwrap();
    let ends = whole.match_indices('\n').map(|(at, _)| at + 1);
    for end in ends {
        let (kept, lost) = whole.split_at(end);
        let torn = &lost[..lost.find('\n').unwrap_or(0) / 2];
        fs::write(&journal, [kept, torn].concat()).unwrap();
        let server = Server::done();
        let code = lab.resume(&server, &[]).code;
        let expected = if kept.contains("user_message") { 0 } else { 3 };
        assert_eq!(code, Some(expected), "after {}", kept.lines().last().unwrap());
        let last = server.requests().first().map(|request| request.messages().to_vec());
        let last = last.and_then(|messages| messages.last().cloned()).unwrap_or_default();
        assert!(!last["content"].to_string().contains("no more tools can be called"), "{last}");
    }
}

#[test]
fn a_background_hook_at_the_end_of_a_run_runs() {
    let server = Server::done();
    let lab = Lab::new().started().config("hooks: {session_end: [{command: touch told, async: true}]}\n");
    lab.run(&server, &[]).exits(0);
    assert!(lab.exists("told"));
}

#[test]
fn the_time_of_a_call_holds_for_all_its_tries_together() {
    let server = Server::start("turns: [{fault: hang, repeat: 9}]");
    let lab = Lab::new().started().config("llm: {retries: 5, timeouts: {call_seconds: 1}}\n");
    let json = lab.run(&server, &["--json"]).exits(1).json();
    assert_eq!((&json["error"]["kind"], &json["requests"]), (&"timeout".into(), &1.into()));
}

/// The results of these commands, each in a call of its own, as the model read them.
fn told_about_commands(lab: &Lab, calls: &[serde_json::Value], more: &[&str]) -> Vec<String> {
    let calls: Vec<String> =
        calls.iter().map(|call| format!("{{name: run_command, arguments: {call}}}")).collect();
    let server = Server::start(&format!("turns:\n  - calls: [{}]\n  - text: done\n", calls.join(", ")));
    lab.run(&server, more).exits(0);
    server.requests()[1].texts("tool")
}

/// Calls of `run_command` with nothing but a command.
fn plain_commands(commands: &[&str]) -> Vec<serde_json::Value> {
    commands.iter().map(|command| serde_json::json!({"command": command})).collect()
}

#[test]
fn a_link_of_the_project_shows_nothing_outside_of_it_to_a_command_that_nobody_was_asked_about() {
    let lab = Lab::new().started().file("a.txt", "inside\n").file("sub/b.txt", "inside\n");
    fs::create_dir(lab.outside().join("out")).unwrap();
    fs::write(lab.outside().join("out/id_rsa"), "the private key\n").unwrap();
    symlink("../out/id_rsa", lab.ws().join("notes.txt")).unwrap();
    symlink("../out", lab.ws().join("docs")).unwrap();
    symlink("../../out/id_rsa", lab.ws().join("sub/a.txt")).unwrap();
    fs::create_dir(lab.ws().join("other")).unwrap();
    fs::write(lab.ws().join("other/a.txt"), "inside\n").unwrap();
    let mut calls = plain_commands(&[
        "cat notes.txt",
        "cat a.txt notes.txt",
        "grep key docs/id_rsa",
        "head -n 1 sub/a.txt",
        "ls docs",
        "find docs/ -name id_rsa",
        "diff other sub",
        "diff -r other sub",
    ]);
    calls.push(serde_json::json!({"command": "cat a.txt", "cwd": "sub"}));
    for (call, said) in calls.iter().zip(told_about_commands(&lab, &calls, &[])) {
        assert!(said.contains("this run has no prompts"), "{call}: {said}");
    }
    let harmless = plain_commands(&["cat a.txt", "grep -r inside other", "ls -la", "diff a.txt other/a.txt"]);
    for (call, said) in harmless.iter().zip(told_about_commands(&lab, &harmless, &[])) {
        assert!(said.contains("exit_code: 0"), "{call}: {said}");
    }
}

#[test]
fn no_plain_command_shows_a_sensitive_file_or_searches_where_one_may_be_unasked() {
    let lab = Lab::new()
        .started()
        .file(".env", "TOKEN=hidden\n")
        .file("private/key", "hidden\n")
        .file("a.txt", "TOKEN of a.txt\n")
        .config("guardrails: {sensitive_files: [.env, private/]}\n");
    symlink(".env", lab.ws().join("link")).unwrap();
    let mut calls = plain_commands(&[
        "grep TOKEN .env",
        "grep -e TOKEN link",
        "sort .env",
        "nl .env",
        "cut -c1- .env",
        "uniq .env",
        "diff .env a.txt",
        "sed -n p .env",
        "strings .env",
        "cat < .env",
        "wc -c <.env; rev <link",
        "env cat .env",
        "xargs cat .env",
        "bash -c 'cat .env'",
        "eval cat .env",
        "cp .env copy",
        "ln .env copy",
        "source .env",
        "dd if=.env",
    ]);
    calls.push(serde_json::json!({"command": "cat key", "cwd": "private"}));
    calls.push(serde_json::json!({"command": "cat ../.env", "cwd": "private"}));
    for mode in ["confirm-sensitive", "yolo"] {
        for (call, said) in calls.iter().zip(told_about_commands(&lab, &calls, &["--mode", mode])) {
            assert!(said.contains("Sensitive file blocked by guardrail"), "{call}: {said}");
        }
    }
    let searches = plain_commands(&["grep -r TOKEN .", "grep -rh hidden", "rg TOKEN", "rg --hidden TOKEN ."]);
    for (call, said) in searches.iter().zip(told_about_commands(&lab, &searches, &[])) {
        assert!(said.contains("this run has no prompts"), "{call}: {said}");
    }
    let harmless = plain_commands(&["grep '.env' a.txt; true", "grep TOKEN a.txt", "ls -la .env"]);
    for (call, said) in harmless.iter().zip(told_about_commands(&lab, &harmless, &["--mode", "yolo"])) {
        assert!(said.contains("exit_code: 0"), "{call}: {said}");
    }
    assert!(!lab.exists("copy"));
}

#[test]
fn no_plain_command_changes_a_protected_file_wherever_it_runs() {
    let lab = Lab::new()
        .started()
        .file("lock.txt", "as it was\n")
        .file("sub/a.txt", "x\n")
        .file(".git/config", "as it was\n")
        .config("guardrails: {protected_files: [lock.txt]}\n");
    symlink(".git", lab.ws().join("data")).unwrap();
    let mut calls = plain_commands(&[
        "cp sub/a.txt lock.txt",
        "mv sub/a.txt lock.txt",
        "ln -sf sub/a.txt lock.txt",
        "install sub/a.txt .git/hooks",
        "cp sub/a.txt .git/",
        "sed -i s/was/is/ lock.txt",
        "rm lock.txt",
        "unlink lock.txt",
        "truncate -s 0 lock.txt",
        "touch .git/hooks",
        "mkdir .vscode",
        "chmod +x .git/config",
        "dd if=sub/a.txt of=lock.txt",
        "echo x >& lock.txt",
        "echo x >&lock.txt",
        "bash -c 'echo x > lock.txt'",
        "eval 'echo x > lock.txt'",
        "echo x | env tee lock.txt",
    ]);
    calls.push(serde_json::json!({"command": "echo x > config", "cwd": ".git"}));
    calls.push(serde_json::json!({"command": "echo x > config", "cwd": "data"}));
    calls.push(serde_json::json!({"command": "echo x > ../lock.txt", "cwd": "sub"}));
    for (call, said) in calls.iter().zip(told_about_commands(&lab, &calls, &["--mode", "yolo"])) {
        assert!(said.contains("Protected file blocked by guardrail"), "{call}: {said}");
    }
    assert_eq!((lab.read("lock.txt"), lab.read(".git/config")), ("as it was\n".into(), "as it was\n".into()));
    let harmless = plain_commands(&["cp lock.txt copy", "cat .git/config", "echo x 2>&1", "echo x >&2"]);
    for (call, said) in harmless.iter().zip(told_about_commands(&lab, &harmless, &["--mode", "yolo"])) {
        assert!(said.contains("exit_code: 0"), "{call}: {said}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn s25_a_command_of_the_same_user_cannot_read_the_agents_environment() {
    use std::os::unix::fs::MetadataExt;
    let server = Server::start("turns: [{fault: hang}]");
    let lab = Lab::new().started().unprivileged();
    let run = lab.start_run(&server, &[]);
    server.wait_for_request(1);
    let owner = fs::metadata(format!("/proc/{}/environ", run.id())).unwrap().uid();
    assert_eq!(owner, 0, "the environment, and with it the key, is readable for whoever runs as {owner}");
    run.signal(Signal::INT);
    run.finish().exits(130);
}

#[test]
fn a_script_that_is_a_pipe_is_refused_and_not_waited_for() {
    let lab = Lab::new().started();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, lab.ws().join("pipe"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    refused(&lab, &["run", "x", "--model", "scripted:pipe"], "not a regular file");
}

#[test]
fn a_key_that_cannot_be_one_is_told_with_its_variable_and_never_shown() {
    for key in ["sk-a\nX-Evil: 1", "\u{201C}sk-quoted\u{201D}", "sk-\u{e9}"] {
        let lab = Lab::new().started().env("OPENAI_API_KEY", key);
        let done = lab.agent(&["run", "x", "--model", "openai/m"]).exits(4);
        assert!(done.stderr.contains("check the key in OPENAI_API_KEY"), "{}", done.stderr);
        assert!(!done.stderr.contains("sk-"), "{}", done.stderr);
    }
}

#[test]
fn a_word_that_stands_in_for_a_key_does_not_garble_what_is_said() {
    let server = Server::start("turns: [{error: {status: 404, message: 'no such model on 127.0.0.1'}}]");
    let lab = Lab::new().started().env("OPENAI_API_KEY", "1");
    let done = lab.agent(&["run", "x", "--model", "openai/m1", "--api-base", &server.url()]).exits(1);
    assert!(!done.stderr.contains("[secret]"), "{}", done.stderr);
    assert!(done.stderr.contains("answered 404") && done.stderr.contains("`m1`"), "{}", done.stderr);
}

#[test]
fn an_api_base_with_a_query_is_refused_because_the_path_would_end_up_in_it() {
    let wrong = "http://127.0.0.1:9/v1?api-version=1&key=sk-secret";
    let done = Lab::new().started().agent(&["run", "x", "--model", "openai/m", "--api-base", wrong]).exits(3);
    assert!(
        done.stderr.contains("must not have a query") && !done.stderr.contains("sk-secret"),
        "{}",
        done.stderr
    );
    let lab = Lab::new().started().env("AZURE_OPENAI_ENDPOINT", wrong).env("AZURE_OPENAI_API_KEY", KEY);
    let done = lab.agent(&["run", "x", "--model", "azure/m"]).exits(3);
    assert!(
        done.stderr.contains("it contains a query or fragment") && !done.stderr.contains("sk-secret"),
        "{}",
        done.stderr
    );
    let told = lab.agent(&["doctor", "--model", "azure/m"]).exits(3);
    assert!(
        told.stdout.contains("it contains a query or fragment") && !told.stdout.contains("sk-secret"),
        "{}",
        told.stdout
    );
}

#[test]
fn a_provider_without_a_model_is_not_taken_for_a_model() {
    for lab in [
        Lab::new().started(),
        Lab::new().started().env("GROQ_API_KEY", KEY),
        Lab::new().started().env("OPENAI_API_KEY", KEY),
    ] {
        let done = lab.agent(&["run", "x", "--model", "openai"]).exits(3);
        assert!(done.stderr.contains("--model openai/NAME"), "{}", done.stderr);
    }
    let done = Lab::new().started().agent(&["run", "x", "--model", "gpt-4.1"]).exits(4);
    assert!(done.stderr.contains("OPENAI_API_KEY"), "{}", done.stderr);
}

#[test]
fn u18_a_model_that_no_provider_has_is_refused_with_similar_names() {
    let done = Lab::new().agent(&["run", "x", "--model", "gpt-4.1-minni"]).exits(3);
    assert!(done.stderr.contains("no known provider has the model `gpt-4.1-minni`"), "{}", done.stderr);
    assert!(done.stderr.contains("did you mean openai/gpt-4.1-mini"), "{}", done.stderr);
}

#[test]
fn u18_words_that_are_no_command_say_how_to_begin_with_them() {
    let lab = Lab::new();
    for (words, tip) in [
        (&["fix"][..], Some("`agent chat \"fix\"`, a task is `agent run \"fix\"`")),
        (&["fix", "the", "test"], Some("`agent run \"fix the test\"`")),
        (&["fix$(x)"], Some("`agent run \"…\"`")),
        (&["memroy"], None),
        (&["sessions", "fix"], None),
    ] {
        let refused = lab.agent(words).exits(3).stderr;
        assert!(tip.is_none_or(|tip| refused.contains(tip)), "{refused}");
        assert_eq!(refused.contains("agent run"), tip.is_some(), "{refused}");
    }
    assert!(lab.agent(&["memroy"]).stderr.contains("'memory'"));
}

#[test]
fn u18_a_model_is_shown_without_a_server_or_a_filter() {
    let lab = Lab::new();
    for words in ["show m --endpoint", "--endpoint=openai show m", "--endpoint show m", "gpt show m"] {
        let words: Vec<&str> = ["models"].into_iter().chain(words.split(' ')).collect();
        let refused = lab.agent(&words).exits(3).stderr;
        assert!(
            refused.contains("`agent models show` takes a model and nothing else"),
            "{words:?}: {refused}"
        );
    }
    lab.agent(&["models", "show", "openai/gpt-4.1"]).exits(0);
}

#[test]
fn u18_flags_take_durations_with_units() {
    let lab = Lab::new();
    let shown = lab.agent(&["run", "x", "--timeout", "soon"]).exits(3).stderr;
    assert!(shown.contains("--timeout") && shown.contains("such as 90s, 5m or 1h30m"), "{shown}");
    let late = Lab::new().agent(&["run", "x", "--timeout", "3000d", "--json"]).exits(3);
    assert!(
        late.json()["error"]["message"].as_str().unwrap().contains("found `259200000`"),
        "{}",
        late.stdout
    );
    let lab = Lab::new();
    lab.agent(&["config", "set", "timeout_seconds", "5m"]).exits(0);
    let file = fs::read_to_string(lab.home().join("config.yaml")).unwrap();
    let got = lab.agent(&["config", "get", "timeout_seconds"]).exits(0).stdout;
    assert_eq!((file.as_str(), got.as_str()), ("timeout_seconds: 5m\n", "300\n"));
}
