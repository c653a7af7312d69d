//! What goes to standard output, standard error, and the log file.

use crate::support::kernel::without_warning;
use crate::support::run::{Finished, KEY, Lab, PATIENCE};
use crate::support::schema;
use crate::support::server::Server;
use crate::support::terminal::wide_screen;
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;

/// One of everything: a retry, text beside calls, a success, a failure, a failed command, a refusal, an answer.
pub const EVENTFUL: &str = "turns:
  - error: {status: 429, retry_after: 0.01, message: slow down}
  - text: I look at it.
    calls:
      - {name: read_file, arguments: {path: a.txt}}
      - {name: read_file, arguments: {path: b.txt}}
      - {name: run_command, arguments: {command: 'cat b.txt'}}
      - {name: write_file, arguments: {path: c.txt, content: new}}
    usage: {input: 1000, output: 10}
  - text: |-
      All done:
      nothing to do.
    chunk: 5
    usage: {input: 1200, cached_read: 1000, output: 12}
";

/// The text with what differs from run to run and from machine to machine replaced: session ids, times, and what
/// confines commands.
fn settled(text: &str) -> String {
    let text = without_warning(text);
    let text = regex::Regex::new(r"\d{8}-\d{6}-[0-9a-f]{6}").unwrap().replace_all(&text, "ID");
    let text =
        regex::Regex::new("sandbox (full|rules|none)").unwrap().replace(&text, "sandbox TIER").into_owned();
    regex::Regex::new(r"\d+\.\d s\b").unwrap().replace_all(&text, "T s").into_owned()
}

/// What differs from `expected`, shown line by line when it does.
#[track_caller]
fn same_text(told: &str, expected: &str) {
    let told = settled(told);
    assert!(told == expected, "got:\n{told}\nexpected:\n{expected}\n{told:?}");
}

const PIPE: &str = "\
session ID, openai/mock, agent build, mode confirm-sensitive, sandbox TIER
Step 1: model call (2 messages)
   Rate limit reached (rate_limit), asking again 1 of 5 in T s: HOST answered 429 Too Many Requests: slow down
I look at it.
   Model responded with 4 tool calls
   Tool read_file: a.txt
      OK
   Tool read_file: b.txt
      ERROR: File does not exist: b.txt. Did you mean a.txt?
   Tool run_command: cat b.txt
      ERROR: Command failed with exit_code: 1
   Tool write_file: c.txt (1 line)
      REFUSED: REASON
Step 2: model call (4 messages)
All done:
nothing to do.
   Model responded with final text
Agent completed (2 steps)
   Reason: the model decided it was done
   Status: success (llm_done) | Steps: 2 | Tool calls: 4 | Tokens: 3,200 in (1,000 cached), 22 out | Cost: unknown (agent help costs) | T s
warning: 1 action was refused:
   write_file: c.txt (1 line): REASON
   What to do: run it at a terminal to be asked, add --approvals pause to be asked later or --mode yolo to allow everything that needs a confirmation, or preview it with --dry-run.
";

/// The parts of the log that belong to others: the server's address, the rule's words.
fn impersonal(text: &str, server: &Server) -> String {
    let host = server.url().trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    let text = text.replace(&host, "HOST");
    let refused =
        text.lines().find_map(|line| line.split_once("REFUSED: ")).map(|(_, reason)| reason.to_owned());
    text.replace(&refused.expect("a refusal"), "REASON")
}

#[test]
fn o20_a_run_into_a_pipe_is_told_in_plain_words() {
    let server = Server::start(EVENTFUL);
    let done = Lab::with_a_txt().run(&server, &[]).exits(0);
    same_text(&impersonal(&done.stderr, &server), PIPE);
    assert_eq!(done.stdout, "All done:\nnothing to do.\n");
}

#[test]
fn o20_a_run_that_stops_says_why_and_how_to_go_on() {
    let server = Server::start("turns: [{calls: [{name: list_files, arguments: {}}]}, {text: half}]");
    let done = Lab::with_a_txt().run(&server, &["--max-steps", "1"]).exits(2);
    same_text(
        &done.stderr,
        "\
session ID, openai/mock, agent build, mode confirm-sensitive, sandbox TIER
Step 1: model call (2 messages)
   Model responded with 1 tool call
   Tool list_files: .
      OK
warning: Step limit reached (1/1)
Closing (max_steps, 1 step)
half
   Model responded with final text
Stopped (max_steps, 1 step)
   Reason: the step limit was reached (1)
   Status: partial (max_steps) | Steps: 1 | Tool calls: 1 | Tokens: 0 in, 0 out | Cost: unknown (agent help costs) | T s
   Continue with: agent resume ID
",
    );
}

/// Runs the binary with a terminal as standard error, and as standard output as well where `both` says so. What the
/// terminal got comes back as `stderr`.
fn at_terminal(lab: &Lab, args: &[&str], both: bool) -> Finished {
    let mut master =
        File::from(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap());
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let name = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    let slave = File::options().read(true).write(true).open(name).unwrap();
    // The bytes as they are written: no carriage returns of the terminal's own.
    let mut modes = tcgetattr(&slave).unwrap();
    modes.make_raw();
    tcsetattr(&slave, OptionalActions::Now, &modes).unwrap();
    let size = Winsize { ws_row: 24, ws_col: 300, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&slave, size).unwrap();
    let mut command = lab.command(args);
    command.stdin(Stdio::null()).stderr(slave.try_clone().unwrap());
    if both {
        command.stdout(slave.try_clone().unwrap());
    }
    let mut child = command.spawn().unwrap();
    // The master's end comes when nobody holds the terminal any more.
    drop((command, slave));
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut seen = Vec::new();
        // It is reported as an error.
        let _ = master.read_to_end(&mut seen);
        sender.send(String::from_utf8(seen).unwrap())
    });
    let Ok(stderr) = receiver.recv_timeout(PATIENCE) else {
        child.kill().unwrap();
        panic!("the run did not end in {PATIENCE:?}");
    };
    let mut stdout = String::new();
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_string(&mut stdout).unwrap();
    }
    Finished { code: child.wait().unwrap().code(), stdout, stderr }
}

fn run_at_terminal(lab: &Lab, server: &Server, more: &[&str], both: bool) -> Finished {
    let url = server.url();
    let mut args = vec!["run", "task", "--model", "openai/mock", "--api-base", &url, "--api-key", KEY];
    args.extend(more);
    at_terminal(lab, &args, both)
}

const SCREEN: &str = "\
─── session ID · openai/mock · agent build · mode confirm-sensitive · sandbox TIER ───

🔄 Step 1 → model call (2 messages)
   ⏳ Rate limit reached (rate_limit), asking again 1 of 5 in T s: HOST answered 429 Too Many Requests: slow down
I look at it.
   ✓ Model responded with 4 tool calls
   🔧 read_file → a.txt
      ✓ OK: 1 line
   🔧 read_file → b.txt
      ✗ ERROR: File does not exist: b.txt. Did you mean a.txt?
   🔧 run_command → cat b.txt
      ✗ ERROR: Command failed with exit_code: 1
         │ cat: b.txt: No such file or directory
   🔧 write_file → c.txt (1 line)
      ✗ REFUSED: REASON

🔄 Step 2 → model call (4 messages)
   ✓ Model responded with final text

✅ Agent completed (2 steps)
   Reason: the model decided it was done
   Status: success (llm_done) | Steps: 2 | Tool calls: 4 | Tokens: 3,200 in (1,000 cached), 22 out | Cost: unknown (agent help costs) | T s
   Next: agent -c (a conversation about it)
⚠️ 1 action was refused:
   write_file → c.txt (1 line): REASON
   What to do: run it at a terminal to be asked, add --approvals pause to be asked later or --mode yolo to allow everything that needs a confirmation, or preview it with --dry-run.
";

#[test]
fn o20_a_run_at_a_terminal_has_icons_colour_and_a_spinner_that_leaves_no_trace() {
    let server = Server::start(&EVENTFUL.replace("  - text: |-", "  - delay_ms: 200\n    text: |-"));
    let lab = Lab::with_a_txt().env("TERM", "xterm-256color");
    let done = run_at_terminal(&lab, &server, &[], false).exits(0);
    same_text(&impersonal(&wide_screen(&done.stderr), &server), SCREEN);
    assert_eq!(done.stdout, "All done:\nnothing to do.\n");
    assert!(
        done.stderr.contains("step 2 (48 left): waiting for openai/mock · 1,010 tokens so far"),
        "{:?}",
        done.stderr
    );
    assert!(done.stderr.contains("\u{1b}[32m      ✓ OK: 1 line\u{1b}[0m"), "{:?}", done.stderr);
}

#[test]
fn o20_an_answer_seen_on_the_terminal_is_not_printed_a_second_time() {
    let lab = Lab::with_a_txt().env("TERM", "xterm-256color");
    let server = Server::start("turns: [{text: the answer, chunk: 4}]");
    let done = run_at_terminal(&lab, &server, &[], true).exits(0);
    assert_eq!(wide_screen(&done.stderr).matches("the answer").count(), 1, "{}", done.stderr);
    for flag in ["--quiet", "--no-stream"] {
        let server = Server::start("turns: [{text: the answer}]");
        let done = run_at_terminal(&lab, &server, &[flag], true).exits(0);
        assert_eq!(wide_screen(&done.stderr).matches("the answer").count(), 1, "{flag}: {}", done.stderr);
    }
}

#[test]
fn no_color_takes_the_colour_away_and_a_dumb_terminal_the_icons() {
    let plain = |done: &Finished| !regex::Regex::new("\u{1b}\\[[0-9;]*m").unwrap().is_match(&done.stderr);
    let script = "turns: [{text: hi}]";
    let server = Server::start(script);
    let colourless = Lab::with_a_txt().env("TERM", "xterm-256color").env("NO_COLOR", "1");
    let done = run_at_terminal(&colourless, &server, &[], false).exits(0);
    assert!(plain(&done) && done.stderr.contains("✅"), "{:?}", done.stderr);

    let server = Server::start(script);
    let done = run_at_terminal(&Lab::with_a_txt().env("TERM", "dumb"), &server, &[], false).exits(0);
    assert!(!done.stderr.contains(['\u{1b}', '✅', '\r']), "{:?}", done.stderr);

    let server = Server::start(script);
    let done = Lab::with_a_txt().env("CLICOLOR_FORCE", "1").run(&server, &[]).exits(0);
    assert!(!plain(&done) && !done.stdout.contains('\u{1b}'), "{:?}", done.stderr);
}

#[test]
fn o01_standard_output_is_the_answer_and_nothing_else() {
    for more in [&[][..], &["-vv"], &["--quiet"], &["--no-stream"], &["--log-level", "debug"]] {
        let server = Server::start(EVENTFUL);
        let done = Lab::with_a_txt().run(&server, more).exits(0);
        assert_eq!(done.stdout, "All done:\nnothing to do.\n", "{more:?}");
    }
    for more in [&["--json"][..], &["--json", "-vv"], &["--json", "--quiet"]] {
        let server = Server::start(EVENTFUL);
        let done = Lab::with_a_txt().run(&server, more).exits(0);
        assert_eq!(done.stdout.lines().count(), 1, "{}", done.stdout);
        assert!(done.stdout.ends_with('\n'));
        assert_eq!(done.json()["output"], "All done:\nnothing to do.");
    }
}

#[test]
fn o01_a_run_that_failed_has_no_answer() {
    let server = Server::start("turns: [{error: {status: 400, message: no}}]");
    let done = Lab::with_a_txt().run(&server, &[]).exits(1);
    assert_eq!(done.stdout, "");
    let server = Server::start("turns: [{error: {status: 400, message: no}}]");
    assert_eq!(Lab::with_a_txt().run(&server, &["--json"]).exits(1).json()["output"], "");
}

#[track_caller]
fn has_keys(value: &Value, keys: &[&str]) {
    let mut there: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = keys.to_vec();
    there.sort_unstable();
    expected.sort_unstable();
    assert_eq!(there, expected);
}

/// The keys of every document.
const ALWAYS: [&str; 19] = [
    "schema_version",
    "status",
    "stop_reason",
    "output",
    "session_id",
    "steps",
    "requests",
    "tool_calls",
    "tools_used",
    "files_modified",
    "executables",
    "duration_seconds",
    "model",
    "usage",
    "cost",
    "cache",
    "context",
    "permission_denials",
    "sandbox",
];

/// A run in which there is something to say under every key.
fn documented() -> (Lab, Value) {
    let script = "turns:
  - error: {status: 503, retry_after: 0.01}
  - calls:
      - {name: read_file, arguments: {path: old.txt}}
      - {name: write_file, arguments: {path: new.txt, content: x}}
      - {name: run_command, arguments: {command: 'echo y > made.txt; rm gone.txt'}}
      - {name: run_command, arguments: {command: 'rm -rf /'}}
      - {name: read_file, arguments: {path: nope.txt}}
    usage: {input: 10, cached_read: 4, output: 3, reasoning: 1}
  - calls: [{name: write_file, arguments: {path: old.txt, content: changed}}]
    usage: {input: 20, output: 2}
  - text: the end
";
    let server = Server::start(script);
    let lab = Lab::with_a_txt().file("old.txt", "old\n").file("gone.txt", "gone\n");
    let json = lab.run_yolo(&server, &["--json"]).exits(0).json();
    schema::is_result(&json);
    (lab, json)
}

#[test]
fn o02_the_document_has_every_key_and_the_figures_of_the_run() {
    let (lab, json) = documented();
    has_keys(&json, &ALWAYS);
    assert_eq!(json["schema_version"], 1);
    assert_eq!((&json["status"], &json["stop_reason"]), (&"success".into(), &"llm_done".into()));
    assert_eq!(json["output"], "the end");
    assert_eq!((&json["steps"], &json["requests"], &json["tool_calls"]), (&3.into(), &4.into(), &6.into()));
    let id = json["session_id"].as_str().unwrap();
    assert!(lab.journal().components().any(|part| part.as_os_str() == id), "{id}");
    assert!(json["duration_seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(json["model"], "openai/mock");
    assert!(
        ["full", "bubblewrap", "rules", "none"].contains(&json["sandbox"].as_str().unwrap()),
        "{}",
        json["sandbox"]
    );
    let usage = json!({"input": 30, "cached_read": 4, "cached_write": 0, "output": 5, "reasoning": 1});
    assert_eq!(json["usage"], usage);
    assert_eq!(json["cost"], json!({"total_usd": null, "by_source": {}}));
}

#[test]
fn o02_the_document_lists_tools_files_and_refusals() {
    let (_lab, mut json) = documented();
    let used = json["tools_used"].as_array().unwrap();
    let outcomes: Vec<_> = used.iter().map(|used| used["success"] == true).collect();
    assert_eq!(outcomes, [true, true, true, false, false, true]);
    assert_eq!(used[0], json!({"name": "read_file", "success": true, "path": "old.txt"}));
    assert!(used[4]["error"].as_str().unwrap().starts_with("File does not exist: nope.txt"), "{json}");
    let denials = json["permission_denials"].as_array().unwrap();
    assert_eq!(denials.len(), 1);
    has_keys(&denials[0], &["tool", "summary", "reason", "rule"]);
    assert_eq!((&denials[0]["tool"], &denials[0]["summary"]), (&"run_command".into(), &"rm -rf /".into()));
    let files = json["files_modified"].as_array_mut().unwrap();
    files.sort_by_key(|file| file["path"].to_string());
    for file in files.iter_mut() {
        assert!(file.as_object_mut().unwrap().remove("lines").is_some(), "{file}");
    }
    let file = |path, action, by| json!({"path": path, "action": action, "by": by});
    let expected = [
        file("gone.txt", "deleted", "command"),
        file("made.txt", "created", "command"),
        file("new.txt", "created", "tool"),
        file("old.txt", "modified", "tool"),
    ];
    assert_eq!(files.as_slice(), expected);
}

#[test]
fn o02_limit_and_error_are_there_when_there_is_one() {
    let with = |key| [&ALWAYS[..], &[key]].concat();
    let server = Server::start("turns: [{calls: [{name: list_files, arguments: {}}]}, {text: half}]");
    let json = Lab::with_a_txt().run(&server, &["--json", "--max-steps", "1"]).exits(2).json();
    schema::is_result(&json);
    has_keys(&json, &[&ALWAYS[..], &["limit", "limit_value"]].concat());
    // Fault B8: the limit was named without its value.
    assert_eq!((&json["limit"], &json["limit_value"]), (&"steps".into(), &1.0.into()));

    let server = Server::start("turns: [{error: {status: 400, message: no}}]");
    let json = Lab::with_a_txt().run(&server, &["--json"]).exits(1).json();
    schema::is_result(&json);
    has_keys(&json, &with("error"));
    has_keys(&json["error"], &["kind", "message", "retryable"]);

    let json = Lab::with_a_txt().config("nonsense: 1\n").agent(&["run", "task", "--json"]).exits(3).json();
    schema::is_result(&json);
    has_keys(&json, &with("error"));
    assert_eq!(
        (&json["stop_reason"], &json["session_id"], &json["model"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!(json["error"]["kind"], "config");
}

/// Runs a script with `--json`, then the same without; both exit with `code`, and the document says `reason`.
fn ends(script: &str, more: &[&str], code: i32, reason: &str, status: &str) {
    let server = Server::start(script);
    let done = Lab::with_a_txt().run(&server, &[&["--json"], more].concat()).exits(code);
    let json = done.json();
    schema::is_result(&json);
    assert_eq!((&json["stop_reason"], &json["status"]), (&reason.into(), &status.into()), "{json}");
    let server = Server::start(script);
    Lab::with_a_txt().run(&server, more).exits(code);
}

const TOOL: &str = "{calls: [{name: list_files, arguments: {}}]}";

#[test]
fn o03_0_when_the_model_finished() {
    ends("turns: [{text: hi}]", &[], 0, "llm_done", "success");
}

#[test]
fn o03_1_when_the_provider_is_unusable() {
    ends("turns: [{error: {status: 400}}]", &[], 1, "llm_error", "failed");
    ends("turns: [{text: '', repeat: 9}]", &[], 1, "llm_error", "failed");
}

#[test]
fn o03_2_when_a_watchdog_or_the_provider_cut_it() {
    ends(&format!("turns: [{TOOL}, {{text: half}}]"), &["--max-steps", "1"], 2, "max_steps", "partial");
    ends("turns: [{text: oh, finish: content_filter}]", &[], 2, "content_filter", "partial");
}

#[test]
fn o03_3_when_no_run_began() {
    for args in [
        &["run"][..],
        &["run", "  "],
        &["run", "task", "--no-such-flag"],
        &["run", "task", "--max-steps", "many"],
        &["run", "task", "--mode", "reckless"],
        &["run", "task", "--agent", "nobody"],
        &["run", "task", "--model", "nobody/model"],
        &["run", "task", "--workspace", "nowhere"],
        &["run", "task", "-c", "nothing.yaml"],
        &["run", "task", "--log-level", "loud"],
        &["resume", "20200101-000000-abcdef"],
        &["resume", "--last"],
        &["resume"],
        &["sessions", "show", "../../etc"],
        &["help", "nothing"],
        &["completions", "no-shell"],
        &["no-such-command"],
        &["tools", "call"],
    ] {
        let done = Lab::with_a_txt().agent(args).exits(3);
        assert!(!done.stderr.is_empty() && done.stdout.is_empty(), "{args:?}: {}", done.stdout);
    }
    let done = Lab::with_a_txt().agent(&["run", "task", "--model", "nobody/model", "--json"]).exits(3);
    schema::is_result(&done.json());
    assert!(done.json()["error"]["message"].as_str().unwrap().contains("nobody"), "{}", done.stdout);
    assert_eq!(done.json()["sandbox"], json!(null), "no command could run, confined or not");
}

#[test]
fn o03_4_when_the_key_is_refused_or_missing() {
    ends("turns: [{error: {status: 401}}]", &[], 4, "auth_error", "failed");
    let json = Lab::with_a_txt().agent(&["run", "task", "--json"]).exits(4).json();
    schema::is_result(&json);
}

#[test]
fn o03_5_when_the_time_is_up() {
    ends("turns: [{fault: hang}, {fault: hang}]", &["--timeout", "1"], 5, "timeout", "partial");
}

#[test]
fn o03_130_when_it_is_interrupted() {
    let server = Server::start("turns: [{fault: hang}]");
    let lab = Lab::with_a_txt();
    let run = lab.start_run(&server, &["--json"]);
    server.wait_for_request(1);
    run.signal(Signal::INT);
    let json = run.finish().exits(130).json();
    schema::is_result(&json);
    assert_eq!((&json["stop_reason"], &json["status"]), (&"user_interrupt".into(), &"partial".into()));
}

#[test]
fn o04_the_exit_code_of_a_partial_result_is_replaced_and_no_other() {
    let partial = format!("turns: [{TOOL}, {{text: half}}]");
    for (code, text) in [(0, "0"), (9, "9")] {
        let server = Server::start(&partial);
        let more = ["--max-steps", "1", "--exit-code-on-partial", text, "--json"];
        assert_eq!(Lab::with_a_txt().run(&server, &more).exits(code).json()["status"], "partial");
    }
    for (script, code) in [
        ("turns: [{text: hi}]", 0),
        ("turns: [{error: {status: 400}}]", 1),
        ("turns: [{error: {status: 401}}]", 4),
    ] {
        let server = Server::start(script);
        Lab::with_a_txt().run(&server, &["--exit-code-on-partial", "9"]).exits(code);
    }
    let server = Server::start("turns: [{fault: hang}, {fault: hang}]");
    Lab::with_a_txt().run(&server, &["--timeout", "1", "--exit-code-on-partial", "9"]).exits(5);
    Lab::with_a_txt().agent(&["run", "task", "--exit-code-on-partial", "256"]).exits(3);
}

#[test]
fn o05_text_is_seen_while_the_server_still_holds_the_rest() {
    let server = Server::start("turns: [{text: beginning and end, chunk: 9, fault: {stall: 1}}]");
    let lab = Lab::with_a_txt();
    let run = lab.start_run(&server, &[]);
    let seen = run.wait_for_stderr("beginning");
    assert!(!seen.contains("beginning and end"));
    run.signal(Signal::INT);
    run.finish().exits(130);
    server.wait_for_disconnect();
}

#[test]
fn o06_answers_are_streamed_unless_a_flag_or_the_configuration_says_no() {
    let two = format!("turns: [{TOOL}, {{text: done}}]");
    for (more, streamed) in [
        (&[][..], true),
        (&["-v"], true),
        (&["-vv"], true),
        (&["--log-level", "error"], true),
        (&["--no-stream"], false),
        (&["--json"], false),
        (&["--quiet"], false),
        (&["--json", "-vv"], false),
    ] {
        let server = Server::start(&two);
        Lab::with_a_txt().run(&server, more).exits(0);
        let asked: Vec<_> = server.requests().iter().map(|request| request.body["stream"] == true).collect();
        assert_eq!(asked, [streamed, streamed], "{more:?}");
    }
    let server = Server::start(&two);
    Lab::with_a_txt().config("llm: {stream: false}\n").run(&server, &[]).exits(0);
    assert!(server.requests().iter().all(|request| request.body["stream"] == false));
}

/// What standard error says about an eventful run, at some loudness.
fn told(more: &[&str]) -> String {
    let server = Server::start(EVENTFUL);
    Lab::with_a_txt().run(&server, more).exits(0).stderr
}

#[test]
fn o22_each_level_tells_more() {
    let refusal = "warning: 1 action was refused:\n   write_file: c.txt (1 line): ";
    let retry = "   Rate limit reached (rate_limit)";
    let info = ["info: workspace ", "info: at most 50 steps; tools: ", "   1,000 in, 10 out, "];
    let debug = ["debug: system message, ", "debug: prompt: task\n", "debug: request sent, attempt 2\n"];
    for (more, retries, steps, infos, debugs) in [
        (&["--quiet"][..], false, false, false, false),
        (&["--log-level", "error"], false, false, false, false),
        (&["--log-level", "warn"], true, false, false, false),
        (&["--json"], true, false, false, false),
        (&[], true, true, false, false),
        (&["--log-level", "human"], true, true, false, false),
        (&["-v"], true, true, true, false),
        (&["--log-level", "info"], true, true, true, false),
        (&["--json", "-v"], true, true, true, false),
        (&["-vv"], true, true, true, true),
        (&["--log-level", "debug"], true, true, true, true),
        (&["--quiet", "-vv"], false, false, false, false),
    ] {
        let text = told(more);
        assert!(text.contains(refusal), "a refusal is never silent, {more:?}: {text}");
        assert_eq!(text.contains(retry), retries, "{more:?}: {text}");
        assert_eq!(text.contains("Step 1: model call"), steps, "{more:?}: {text}");
        assert_eq!(text.contains("   Tool read_file: a.txt\n      OK\n"), steps, "{more:?}: {text}");
        assert_eq!(info.iter().all(|line| text.contains(line)), infos, "{more:?}: {text}");
        assert_eq!(debug.iter().all(|line| text.contains(line)), debugs, "{more:?}: {text}");
        assert_eq!(text.contains("debug: "), debugs, "{more:?}: {text}");
    }
}

#[test]
fn o22_quiet_is_silent_about_a_success_and_not_about_a_failure() {
    let server = Server::start("turns: [{text: hi}]");
    let done = Lab::with_a_txt().run(&server, &["--quiet"]).exits(0);
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("hi\n", ""));
    let server = Server::start("turns: [{error: {status: 400, message: not today}}]");
    let done = Lab::with_a_txt().run(&server, &["--quiet"]).exits(1);
    assert!(done.stderr.contains("not today"), "{}", done.stderr);
    assert_eq!(done.stdout, "");
}

#[test]
fn o22_the_configuration_sets_the_level_and_flags_win() {
    let server = Server::start("turns: [{text: hi, repeat: 2}]");
    let lab = Lab::with_a_txt().config("logging: {level: error}\n");
    assert_eq!(lab.run(&server, &[]).exits(0).stderr, "");
    assert!(lab.run(&server, &["-v"]).exits(0).stderr.contains("info: workspace"));
}

/// No byte of `done` does anything to a terminal.
#[track_caller]
fn is_harmless(done: &Finished) {
    for (name, text) in [("stdout", &done.stdout), ("stderr", &done.stderr)] {
        let bad = text.chars().find(|c| {
            c.is_control() && *c != '\n' && *c != '\t'
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        });
        assert_eq!(bad, None, "on {name}: {text:?}");
    }
}

/// Clears the screen, sets the title, turns text around, and ends with a C1 sequence; as YAML writes it.
const HOSTILE: &str = "\\e[2J\\e]0;owned\\x07\\u202Eback\\u009B31m";

#[test]
fn control_bytes_of_the_model_never_reach_the_terminal() {
    let script = format!(
        "turns:
  - text: \"look {HOSTILE}\"
    thinking: \"hm {HOSTILE}\"
    chunk: 3
    calls:
      - {{name: \"read_file\", arguments: {{path: \"x{HOSTILE}\"}}}}
      - {{name: \"no{HOSTILE}\", arguments: {{}}}}
      - {{name: run_command, arguments: {{command: \"echo '{HOSTILE}'\"}}}}
      - {{name: write_file, arguments: \"{{ {HOSTILE}\"}}
  - text: \"done {HOSTILE}\"
    chunk: 3
"
    );
    for more in [&["-vv"][..], &["-vv", "--no-stream"], &["-vv", "--json"], &["-vv", "--mode", "yolo"]] {
        let server = Server::start(&script);
        let done = Lab::with_a_txt().run(&server, more).exits(0);
        is_harmless(&done);
        assert!(done.stdout.contains("\\u{1b}[2J") || done.stdout.contains("\\u001b[2J"), "{}", done.stdout);
        assert!(done.stderr.contains("look \\u{1b}[2J"), "{}", done.stderr);
    }
    let lab = Lab::with_a_txt();
    let server = Server::start(&script);
    lab.run(&server, &[]).exits(0);
    is_harmless(&lab.agent(&["sessions", "list"]).exits(0));
    let journal = lab.journal();
    let id = journal.parent().unwrap().file_name().unwrap().to_str().unwrap();
    let shown = lab.agent(&["sessions", "show", id]).exits(0);
    is_harmless(&shown);
    assert!(shown.stdout.contains("\\u{1b}"), "{}", shown.stdout);
}

#[test]
fn control_bytes_of_commands_hooks_files_and_servers_never_reach_the_terminal() {
    let hostile = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}x\u{9b}31m";
    let lab =
        Lab::with_a_txt().file(&format!("bad{hostile}.txt"), hostile).file("AGENTS.md", hostile).config(
            "hooks:\n  post_tool_use:\n    - {name: \"odd\\e[2Jname\", command: 'cat bad*.txt; exit 1'}\n",
        );
    let script = format!(
        "turns:
  - calls:
      - {{name: list_files, arguments: {{}}}}
      - {{name: run_command, arguments: {{command: 'cat bad*.txt >&2; printf \"\\\\233\"; exit 3'}}}}
      - {{name: read_file, arguments: {{path: bad}}}}
      - {{name: read_file, arguments: {{path: \"bad{HOSTILE}.txt\"}}}}
      - {{name: write_file, arguments: {{path: \"new{HOSTILE}.txt\", content: \"{HOSTILE}\"}}}}
  - error: {{status: 503, retry_after: 0.01, message: \"busy {HOSTILE}\"}}
  - error: {{status: 400, message: \"no {HOSTILE}\"}}
"
    );
    for more in [&["-vv"][..], &["-vv", "--json"]] {
        let server = Server::start(&script);
        let done = lab.run(&server, &[more, &["--mode", "yolo"]].concat()).exits(1);
        is_harmless(&done);
        assert!(done.stderr.contains("400 Bad Request: no "), "{}", done.stderr);
        assert!(done.stderr.contains("busy ") && done.stderr.contains("Hook odd"), "{}", done.stderr);
    }
    for arguments in ["{\"path\": \"bad\\u001b[2J\"}", "{\"recursive\": true}", "\u{1b}[2J"] {
        is_harmless(&lab.agent(&["tools", "call", "list_files", arguments]));
    }
}

#[test]
fn control_bytes_of_the_command_line_and_the_configuration_never_reach_the_terminal() {
    let hostile = "\u{1b}[2J\u{202e}\u{9b}31m";
    for args in [
        &["run", "task", &format!("--{hostile}")][..],
        &[hostile],
        &["help", hostile],
        &["run", "task", "--model", &format!("{hostile}/{hostile}")],
        &["run", "task", "--agent", hostile],
        &["run", "task", "--mode", hostile],
        &["run", "task", "--workspace", hostile],
        &["run", "task", "-c", hostile],
        &["resume", hostile],
        &["sessions", "show", hostile],
    ] {
        is_harmless(&Lab::with_a_txt().agent(args).exits(3));
    }
    for config in ["\"x\\e[2Jy\": 1\n", "mode: \"a\\e[2Jb\"\n", "llm: {model: [\"\\e[2J\"]}\n", "\u{1b}[2J\n"]
    {
        for args in [&["config", "validate"][..], &["run", "task"]] {
            is_harmless(&Lab::with_a_txt().config(config).agent(args).exits(3));
        }
    }
    let lab = Lab::with_a_txt()
        .config("llm: {model: \"m\\e[2J\\u202E\"}\ncommands: {safe_commands: [\"\\e[2J\"]}\n")
        .file(".agent/agents/mine.md", "---\ndescription: \"d\\e[2J\\u202E\"\n---\nBe\u{1b}[2J kind.\n");
    for args in [&["config", "show", "--origin"][..], &["config", "validate"], &["agents"], &["doctor"]] {
        is_harmless(&lab.agent(args));
    }
}

#[test]
fn the_manual_has_a_list_and_pages_that_can_be_read() {
    let list = Lab::with_a_txt().agent(&["help"]).exits(0);
    assert_eq!(list.stderr, "");
    let topics: Vec<&str> =
        list.stdout.lines().filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next()).collect();
    for topic in [
        "agents",
        "config",
        "errors",
        "exit-codes",
        "guardrails",
        "hooks",
        "json",
        "output",
        "permissions",
        "scripted",
        "sessions",
    ] {
        let page = Lab::new().agent(&["help", topic]).exits(0).stdout;
        assert!(page.starts_with("# ") && !page.contains("<!--"), "{topic}:\n{page}");
        assert!(topics.contains(&topic), "{}", list.stdout);
    }
    for topic in topics {
        let page = Lab::with_a_txt().agent(&["help", topic]).exits(0);
        assert!(
            page.stdout.starts_with("# ") && page.stdout.lines().count() > 10,
            "{topic}: {}",
            page.stdout
        );
        is_harmless(&page);
    }
    let unknown = Lab::with_a_txt().agent(&["help", "jsn"]).exits(3);
    assert!(
        unknown.stderr.contains("`jsn`") && unknown.stderr.contains("did you mean `json`?"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn help_and_version_of_the_command_line_go_to_standard_output() {
    let all = Lab::with_a_txt().agent(&["help", "commands"]).exits(0).stdout;
    for command in
        ["run", "resume", "sessions", "agents", "tools", "config", "doctor", "demo", "completions", "help"]
    {
        assert!(all.contains(&format!("\n- `{command}`: ")), "{command}: {all}");
        let of_command = if command == "help" { vec!["help", "--help"] } else { vec![command, "--help"] };
        let help = Lab::with_a_txt().agent(&of_command).exits(0);
        assert!(help.stdout.contains("Usage: agent") && help.stderr.is_empty(), "{}", help.stdout);
    }
    let version = Lab::with_a_txt().agent(&["--version"]).exits(0);
    assert_eq!(version.stdout, format!("agent {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn without_arguments_five_lines_name_what_was_found_and_the_next_command() {
    let bare = Lab::with_a_txt().agent(&[]).exits(0);
    assert_eq!((bare.stdout.lines().count(), bare.stderr.as_str()), (5, ""), "{}", bare.stdout);
    assert!(bare.stdout.contains("Next:           agent "), "{}", bare.stdout);
    let with_key = Lab::with_a_txt().env("ANTHROPIC_API_KEY", KEY).agent(&[]).exits(0).stdout;
    assert!(with_key.contains("API keys:       ANTHROPIC_API_KEY (anthropic)"), "{with_key}");
    assert!(with_key.contains("agent run \"explain this project\" --model anthropic/NAME"), "{with_key}");
    assert!(!with_key.contains(KEY), "{with_key}");
}

#[test]
fn completions_are_scripts_that_their_shell_reads() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = Lab::with_a_txt().agent(&["completions", shell]).exits(0).stdout;
        for word in ["resume", "exit-code-on-partial", "completions"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        if shell == "bash" {
            let lab = Lab::with_a_txt().file("completions", script);
            let checked =
                std::process::Command::new("bash").arg("-n").arg(lab.ws().join("completions")).status();
            assert!(checked.unwrap().success());
        }
    }
}

#[test]
fn doctor_says_what_there_is_and_what_to_do() {
    let done = Lab::with_a_txt().agent(&["doctor"]).exits(3);
    for line in [
        "agent ",
        "configuration  ok",
        "workspace      ok",
        "model          not ready",
        "sessions       ok",
        "sandbox ",
        "  full ",
        "  rules ",
    ] {
        assert!(done.stdout.lines().any(|told| told.starts_with(line)), "{line}: {}", done.stdout);
    }
    assert!(done.stdout.contains("agent demo"), "{}", done.stdout);
    let ready = Lab::with_a_txt()
        .env("OPENAI_API_KEY", KEY)
        .env("AGENT_MODEL", "openai/gpt")
        .agent(&["doctor"])
        .exits(0);
    assert!(ready.stdout.contains("model          ok: openai/gpt"), "{}", ready.stdout);
    let fallback = "llm: {model: openai/gpt, fallback: [groq/m]}\n";
    let half = Lab::with_a_txt().env("OPENAI_API_KEY", KEY).config(fallback).agent(&["doctor"]).exits(3);
    assert!(half.stdout.contains("fallback       not ready: groq/m"), "{}", half.stdout);
    Lab::with_a_txt().config("nonsense: 1\n").agent(&["doctor"]).exits(3);
}

#[test]
fn agents_lists_the_built_in_ones_and_ones_own() {
    let lab = Lab::with_a_txt()
        .config("agents: {mine: {description: My own, system_prompt: Be kind.}, plan: {max_steps: 3}}\n");
    let listed = lab.agent(&["agents"]).exits(0).stdout;
    for line in ["build: ", "plan*: ", "review: ", "resume: ", "mine (not built in): My own"] {
        assert!(listed.lines().any(|told| told.starts_with(line)), "{line}: {listed}");
    }
    assert!(listed.contains("at most 3 steps"), "{listed}");
}

#[test]
fn tools_lists_the_tools_and_calls_one_by_the_rules() {
    let lab = Lab::with_a_txt();
    let listed = lab.agent(&["tools"]).exits(0).stdout;
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(
        names,
        [
            "apply_patch",
            "command_output",
            "delete_file",
            "dispatch_subagent",
            "edit_file",
            "find_files",
            "grep",
            "list_files",
            "read_file",
            "run_command",
            "search_code",
            "stop_command",
            "write_file",
        ]
    );
    let read = lab.agent(&["tools", "call", "read_file", "{\"path\": \"a.txt\"}"]).exits(0);
    assert!(read.stdout.contains("alpha"), "{}", read.stdout);

    let write = ["tools", "call", "write_file", "{\"path\": \"b.txt\", \"content\": \"x\"}"];
    let refused = lab.agent(&write).exits(1);
    assert!(!lab.exists("b.txt") && refused.stdout.is_empty(), "{}", refused.stderr);
    assert!(refused.stderr.contains("yolo"), "{}", refused.stderr);
    lab.agent(&[&write[..], &["--mode", "yolo"]].concat()).exits(0);
    assert_eq!(lab.read("b.txt"), "x");

    let unknown = lab.agent(&["tools", "call", "red_file", "{}"]);
    assert_ne!(unknown.code, Some(0));
    assert!(unknown.stderr.contains("read_file"), "{}", unknown.stderr);
    let broken = lab.agent(&["tools", "call", "read_file", "{"]);
    assert_ne!(broken.code, Some(0));
    assert!(broken.stderr.contains("JSON"), "{}", broken.stderr);
}

#[test]
fn config_shows_checks_and_locates() {
    let lab = Lab::with_a_txt().config("max_steps: 7\nllm:\n  model: openai/gpt\n");
    let shown = lab.agent(&["config", "show"]).exits(0).stdout;
    assert!(shown.lines().any(|line| line == "max_steps = 7"), "{shown}");
    let origin = lab.agent(&["config", "show", "--origin"]).exits(0).stdout;
    let file = lab.home().join("config.yaml");
    assert!(origin.contains(&format!("llm.model = \"openai/gpt\"    # {}:3", file.display())), "{origin}");
    let valid = lab.agent(&["config", "validate"]).exits(0).stdout;
    assert!(valid.contains("Valid configuration") && valid.contains("model: openai/gpt"), "{valid}");
    let path = lab.agent(&["config", "path"]).exits(0).stdout;
    let line = path.lines().find(|line| line.starts_with("user configuration")).unwrap();
    assert!(line.ends_with(file.to_str().unwrap()), "{path}");
    assert!(path.contains(".agent/config.yaml  (does not exist)"), "{path}");

    let wrong = lab.config("max_steps: 0\n");
    let wrong = wrong.agent(&["config", "validate"]).exits(3);
    assert!(wrong.stderr.contains("max_steps") && wrong.stderr.contains("config.yaml"), "{}", wrong.stderr);
}

#[test]
fn the_demonstration_says_that_it_is_scripted_and_shows_what_changed() {
    let lab = Lab::with_a_txt().env("AGENT_MODEL", "openai/gpt").config("nonsense: 1\n");
    let done = lab.agent(&["demo"]).exits(0);
    let parts = [
        "SCRIPTED",
        "$ agent run ",
        "Fixed: ",
        "What it changed:",
        "\n-  sum=$number\n+  sum=$((sum + number))\n",
        "What to try next",
    ];
    let mut rest = done.stdout.as_str();
    for part in parts {
        rest = rest.split_once(part).unwrap_or_else(|| panic!("no {part:?} in {rest}")).1;
    }
    assert!(done.stderr.contains("Agent completed"), "{}", done.stderr);
    assert_eq!(fs::read_dir(lab.ws()).unwrap().count(), 1, "the workspace is untouched");
    assert_eq!(fs::read_dir(lab.home()).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn a_closed_standard_output_does_not_change_the_verdict() {
    let server = Server::start("turns: [{text: hi}]");
    let url = server.url();
    let lab = Lab::with_a_txt();
    let mut command =
        lab.command(&["run", "task", "--model", "openai/mock", "--api-base", &url, "--api-key", KEY]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.stdin(Stdio::null()).stdout(writer);
    let done = command.output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(String::from_utf8_lossy(&done.stderr).contains("Agent completed"));
}
