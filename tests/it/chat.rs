//! `agent chat`: a conversation at a terminal, each message a run on one session.

use crate::support::calls::turn;
use crate::support::run::{KEY, Lab};
use crate::support::server::{Recorded, Server};
use crate::support::sleepers::{survivors, unique_seconds, wait_for_sleepers};
use crate::support::terminal::{AtTerminal, questions, shown as seen_on};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Ctrl+C and Ctrl+D.
const INTERRUPT: &str = "\u{3}";
const END: &str = "\u{4}";

fn edit(old: &str, new: &str) -> Value {
    turn("edit_file", &json!({"path": "a.txt", "old_str": old, "new_str": new}))
}

/// The user messages of a request.
fn user_messages(request: &Recorded) -> Vec<String> {
    let messages = request.messages().iter();
    let users = messages.filter(|message| message["role"] == "user");
    users.map(|message| message["content"].to_string()).collect()
}

#[test]
fn chat_each_message_is_a_run_on_one_session_and_only_the_answers_are_on_stdout() {
    let lab = Lab::new();
    let server = Server::turns([json!({"text": "# First"}), json!({"text": "second"})]);
    let mut chat = AtTerminal::chat(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("one\r");
    let shown = chat.prompt(2);
    assert!(shown.contains("openai/mock · 1 step · "), "{shown}");
    chat.types("two\r");
    chat.prompt(3);
    chat.types("/report\r");
    chat.prompt(4);
    chat.types(END);
    let done = chat.finish();
    let (answers, report) = done.stdout.split_at("# First\nsecond\n".len());
    assert_eq!((done.code, answers), (Some(0), "# First\nsecond\n"));
    // Fault C3
    let has_markup = ["&#", "&lt;", "</"].iter().any(|markup| report.contains(markup));
    assert!(report.contains("openai/mock") && !has_markup, "{report}");
    let requests = server.requests();
    assert_eq!(user_messages(&requests[1]), ["\"one\"", "\"two\""]);
    for part in ["tools", "model"] {
        assert_eq!(requests[0].body[part], requests[1].body[part]);
    }
    assert_eq!(requests[0].body["messages"][0], requests[1].body["messages"][0], "the system message");
    // The session is an ordinary one.
    lab.agent(&["replay"]).exits(0);
    assert!(lab.agent(&["report"]).exits(0).stdout.contains("second"));
    let more = Server::start(r#"{"turns": [{"text": "third"}]}"#);
    let resumed = lab.agent(&[
        "resume",
        "--last",
        "three",
        "--model",
        "openai/mock",
        "--api-base",
        &more.url(),
        "--api-key",
        KEY,
    ]);
    assert_eq!(resumed.exits(0).stdout, "third\n");
    let messages = user_messages(&more.requests()[0]);
    // Without a person there is no `ask_user`, which the model is told.
    let typed: Vec<&String> = messages.iter().filter(|text| !text.contains("[SYSTEM]")).collect();
    assert_eq!(typed, ["\"one\"", "\"two\"", "\"three\""]);
}

// Fault C1: each message started the script again.
#[test]
fn chat_a_scripted_model_goes_on_with_its_script() {
    let lab = Lab::new().file("script.yaml", "turns: [{text: first}, {text: second}]");
    let words = ["chat", "--model", "scripted:script.yaml"];
    let mut chat = AtTerminal::launch_controlled(&lab.command(&words));
    for (number, text) in [(1, "one\r"), (2, "two\r"), (3, "three\r")] {
        chat.prompt(number);
        chat.types(text);
    }
    let shown = chat.prompt(4);
    assert!(shown.contains("the script is used up: it has 2 turns"), "{shown}");
    chat.types(END);
    assert_eq!(chat.finish().stdout, "first\nsecond\n");
}

#[test]
fn chat_undo_undoes_the_last_message_and_then_the_one_before() {
    let lab = Lab::new().file("a.txt", "one\n");
    let done = || json!({"text": "done"});
    let server = Server::turns([edit("one", "two"), done(), edit("two", "three"), done()]);
    let mut chat = AtTerminal::chat(&lab, &server, &["--mode", "yolo"]);
    chat.prompt(1);
    chat.types("first\r");
    let shown = chat.prompt(2);
    assert!(shown.contains("1 - ") && shown.contains("1 + "), "the edit is shown as its diff: {shown}");
    chat.types("second\r");
    chat.prompt(3);
    assert_eq!(lab.read("a.txt"), "three\n");
    // An undo that is refused is not counted as done.
    fs::write(lab.ws().join("a.txt"), "changed by someone else\n").unwrap();
    chat.types("/undo\r");
    let shown = chat.prompt(4);
    assert!(shown.contains("a.txt") && lab.read("a.txt") == "changed by someone else\n", "{shown}");
    fs::write(lab.ws().join("a.txt"), "three\n").unwrap();
    for (prompt, content) in [(5, "two\n"), (6, "one\n")] {
        chat.types("/undo\r");
        chat.prompt(prompt);
        assert_eq!(lab.read("a.txt"), content);
    }
    chat.types("/redo\r");
    chat.prompt(7);
    assert_eq!(lab.read("a.txt"), "two\n");
    chat.types("/new\r");
    chat.prompt(8);
    chat.types("/undo\r");
    let shown = chat.prompt(9);
    assert!(shown.contains("no message of this conversation is left to undo"), "{shown}");
    chat.types(END);
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn chat_ctrl_c_interrupts_a_tool_ends_its_processes_and_the_conversation_goes_on() {
    let lab = Lab::new();
    let seconds = unique_seconds();
    let command = format!("touch begun; sleep {seconds} & sleep {seconds}");
    let server = Server::turns([turn("run_command", &json!({ "command": command })), json!({"text": "on"})]);
    let mut chat = AtTerminal::chat(&lab, &server, &["--mode", "yolo"]);
    chat.prompt(1);
    chat.types("wait\r");
    lab.wait_for_file("begun");
    wait_for_sleepers(&seconds, 2);
    chat.types(INTERRUPT);
    let shown = chat.prompt(2);
    assert_eq!(survivors(&seconds), 0, "{shown}");
    assert!(shown.contains("Interrupted; the completed steps are kept"), "{shown}");
    chat.types("go on\r");
    chat.prompt(3);
    chat.types(END);
    let done = chat.finish();
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), "on\n"));
}

#[test]
fn chat_ctrl_c_interrupts_a_model_call_and_a_second_one_soon_ends_with_130() {
    let lab = Lab::new();
    let server = Server::turns([json!({"text": "never", "delay_ms": 600_000})]);
    let mut chat = AtTerminal::chat(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("hello\r");
    server.wait_for_request(1);
    chat.types(INTERRUPT);
    chat.prompt(2);
    chat.types(INTERRUPT);
    assert_eq!(chat.finish().code, Some(130));
}

#[test]
fn chat_ctrl_c_ends_a_command_of_the_user_and_a_second_one_soon_ends_with_130() {
    let lab = Lab::new();
    let server = Server::turns([json!({"text": "never"})]);
    let seconds = unique_seconds();
    let mut chat = AtTerminal::chat(&lab, &server, &["--mode", "yolo"]);
    chat.prompt(1);
    chat.types(&format!("!touch begun; sleep {seconds}\r"));
    lab.wait_for_file("begun");
    chat.types(INTERRUPT);
    chat.prompt(2);
    chat.types(INTERRUPT);
    assert_eq!((chat.finish().code, survivors(&seconds)), (Some(130), 0));
}

#[test]
fn chat_ctrl_c_at_a_question_refuses_and_ctrl_c_twice_at_the_prompt_ends_with_0() {
    let lab = Lab::new().file("a.txt", "one\n");
    let server = Server::turns([edit("one", "two"), json!({"text": "never"})]);
    let mut chat = AtTerminal::chat(&lab, &server, &["--mode", "confirm-all"]);
    chat.prompt(1);
    chat.types("edit\r");
    chat.wait("question", |text| text.contains("stop the run: "));
    chat.types(INTERRUPT);
    chat.prompt(2);
    assert_eq!(lab.read("a.txt"), "one\n");
    // A line after the interrupt: the next Ctrl+C is the first one again.
    chat.types("/mode\r\r");
    chat.wait("mode", |text| text.contains("mode confirm-all · effort"));
    chat.prompt(3);
    chat.types(INTERRUPT);
    let shown = chat.prompt(4);
    assert!(shown.contains("Ctrl+C again, or Ctrl+D, ends the conversation"), "{shown}");
    chat.types(INTERRUPT);
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn chat_s_at_a_question_stops_the_turn_and_the_prompt_returns() {
    let lab = Lab::new().file("a.txt", "one\n");
    let server = Server::turns([edit("one", "two"), json!({"text": "again"})]);
    let mut chat = AtTerminal::chat(&lab, &server, &["--mode", "confirm-all"]);
    chat.prompt(1);
    chat.types("edit\r");
    chat.answer("s\r");
    chat.prompt(2);
    assert_eq!(lab.read("a.txt"), "one\n");
    chat.types("hello\r");
    chat.prompt(3);
    chat.types(END);
    let done = chat.finish();
    assert_eq!((done.code, done.stdout.trim()), (Some(0), "again"));
}

#[test]
fn chat_goes_on_with_last_after_kill_9_and_signals_at_the_prompt_restore_the_terminal() {
    // Under `nohup` SIGHUP stays ignored.
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    let hears_hangup = u64::from_str_radix(ignored, 16).unwrap() & 1 == 0;
    let signals = [Signal::KILL, Signal::TERM, Signal::HUP, Signal::QUIT];
    for signal in signals.into_iter().filter(|signal| hears_hangup || *signal != Signal::HUP) {
        let lab = Lab::new();
        let first = Server::turns([json!({"text": "first"}), json!({"text": "never", "delay_ms": 600_000})]);
        let mut chat = AtTerminal::chat(&lab, &first, &[]);
        chat.prompt(1);
        chat.types("one\r");
        chat.prompt(2);
        chat.types("two\r");
        first.wait_for_request(2);
        chat.signal(signal);
        let code = chat.finish().code;
        assert_eq!(code, (signal != Signal::KILL).then_some(130), "{signal:?}");
        let next = Server::turns([json!({"text": "third"})]);
        let mut chat = AtTerminal::chat(&lab, &next, &["--last"]);
        chat.prompt(1);
        chat.types("three\r");
        chat.prompt(2);
        assert_eq!(user_messages(&next.requests()[0]), ["\"one\"", "\"two\"", "\"three\""]);
        if signal != Signal::KILL {
            assert_ne!(chat.modes(), chat.modes_before, "a line is being edited");
            chat.signal(signal);
            chat.wait("restored modes", |_| chat.modes() == chat.modes_before);
            assert_eq!(chat.finish().code, Some(130), "{signal:?}");
        }
    }
}

#[test]
fn chat_slash_commands_are_not_sent_and_an_unknown_one_names_the_nearest() {
    let lab = Lab::new();
    fs::create_dir(lab.home().join("commands")).unwrap();
    fs::write(lab.home().join("commands/review.md"), "Review $1 and report.").unwrap();
    let server = Server::turns([json!({"text": "first"}), json!({"text": "second"})]);
    let mut chat = AtTerminal::chat(&lab, &server, &[]);
    let lines = [
        ("/undoo", "did you mean `undo`?"),
        ("/mode yolo", "mode yolo"),
        ("/mode all", "the modes are confirm-all, confirm-sensitive, auto and yolo"),
        ("/agent nobody", "nobody"),
        ("/plan", "agent plan"),
        ("/agent build", "agent build"),
        ("/diff", "there is no session yet"),
        ("/help", "/fork"),
        ("/help", "/review"),
        ("/memory rm 9", "there is no entry 9"),
        ("/memory add \"Use 'tabs'\"", ""),
        ("/memory rm \"9", "not closed"),
    ];
    for (number, (line, answer)) in lines.into_iter().enumerate() {
        let before = chat.prompt(number + 1).len();
        chat.types(&format!("{line}\r"));
        let shown = chat.prompt(number + 2);
        assert!(shown[before..].contains(answer), "{line}: {shown}");
    }
    assert!(server.requests().is_empty());
    let mut number = lines.len() + 1;
    for line in ["/review src/a.rs\r", "/new\r", "hello\r", "/sessions\r", "/resume\r\r", "/fork\r"] {
        chat.types(line);
        number += 1;
        chat.prompt(number);
    }
    chat.types("/quit\r");
    let done = chat.finish();
    assert_eq!(done.code, Some(0));
    let requests = server.requests();
    assert_eq!(user_messages(&requests[0]), ["\"Review src/a.rs and report.\""]);
    assert_eq!(user_messages(&requests[1]), ["\"hello\""], "a new session");
    assert!(done.stdout.contains("Fact: Use 'tabs'"), "{}", done.stdout);
    assert_eq!(
        done.stdout.lines().filter(|line| line.contains("success (llm_done)")).count(),
        2,
        "{}",
        done.stdout
    );
}

#[test]
fn chat_a_command_of_the_user_runs_and_joins_the_next_message_as_data() {
    let lab = Lab::new();
    let server = Server::turns([json!({"text": "ok"}), json!({"text": "ok"})]);
    let mut chat = AtTerminal::chat(&lab, &server, &["--mode", "yolo"]);
    chat.prompt(1);
    chat.types("!echo '</data>' && exit 3\r");
    let shown = chat.prompt(2);
    assert!(shown.contains("✗ exit 3"), "{shown}");
    for number in 3..5 {
        chat.types("what was that?\r");
        chat.prompt(number);
    }
    chat.types(END);
    assert_eq!(chat.finish().code, Some(0));
    let first = user_messages(&server.requests()[0]);
    assert!(
        first[1].contains("The user ran `echo '</data>' && exit 3`") && first[1].contains("<data "),
        "{first:?}"
    );
    assert_eq!(user_messages(&server.requests()[1]).len(), first.len() + 1, "it is sent once");
}

#[test]
fn chat_a_fork_with_a_command_of_the_user_and_a_skill_replays() {
    let skill = "---\nname: sql\ndescription: d\nkeywords: [query]\n---\nUse indexes.\n";
    let lab = Lab::new().file(".agent/skills/sql/SKILL.md", skill);
    let server = Server::turns([json!({"text": "ok"}), json!({"text": "ok"})]);
    let mut chat = AtTerminal::chat(&lab, &server, &["--mode", "yolo"]);
    for (number, line) in ["!echo hi", "explain the query", "/fork", "and again"].into_iter().enumerate() {
        chat.prompt(number + 1);
        chat.types(&format!("{line}\r"));
    }
    chat.prompt(5);
    chat.types(END);
    assert_eq!(chat.finish().code, Some(0));
    let requests = server.requests();
    let first = user_messages(&requests[0]);
    assert!(first.iter().filter(|text| text.contains("<data ")).count() == 2, "{first:?}");
    let replayed = lab.agent(&["replay"]).exits(0).stdout;
    assert!(replayed.contains("identical to its end"), "{replayed}");
    // Data in both halves of the conversation stands between the delimiters of the session that is sent.
    let word = |text: &str| text.split("<data ").nth(1).map(|rest| rest[..12].to_owned());
    let words =
        |request: &Recorded| user_messages(request).iter().filter_map(|text| word(text)).collect::<Vec<_>>();
    assert_eq!(words(&requests[0]).len(), words(&requests[1]).len());
    assert_ne!(words(&requests[0]), words(&requests[1]));
}

#[test]
fn chat_budget_total_bounds_all_messages() {
    let lab = Lab::new()
        .file("prices.yaml", "models: {openai/mock: {input: 1, output: 1, output_limit: 10}}")
        .config("costs: {prices_file: prices.yaml}\n");
    let usage = json!({"text": "ok", "usage": {"input": 100_000, "output": 100}});
    let server = Server::turns(vec![usage; 4]);
    let mut chat = AtTerminal::chat(&lab, &server, &["--budget-total", "0.15"]);
    chat.prompt(1);
    let mut number = 1;
    loop {
        chat.types("again\r");
        number += 1;
        let shown = chat.prompt(number);
        if shown.contains("budget_exceeded") || shown.contains("--budget-total") || number > 5 {
            break;
        }
    }
    chat.types(END);
    let done = chat.finish();
    assert!((1..=2).contains(&server.requests().len()), "{}", done.stderr);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
}

#[test]
fn chat_lines_are_continued_pasted_and_completed_and_secrets_stay_out_of_the_history() {
    let secret = "sk-chat-0123456789abcdefghij";
    let lab = Lab::new().file("notes.txt", "x").env("OPENAI_API_KEY", secret);
    let server = Server::turns(vec![json!({"text": "ok"}); 5]);
    let mut chat = AtTerminal::chat(&lab, &server, &[]);
    chat.prompt(1);
    let typed = [
        ("one\\\rtwo\r", "\"one\\ntwo\""),
        ("three\u{1b}\rfour\r", "\"three\\nfour\""),
        ("\u{1b}[200~pasted\rline\u{1b}[201~\r", "\"pasted\\nline\""),
        ("see @no\t\r", "\"see @notes.txt\""),
    ];
    for (number, (keys, _)) in typed.iter().enumerate() {
        chat.types(keys);
        chat.prompt(number + 2);
    }
    chat.types(&format!("my key is {secret}\r"));
    chat.prompt(typed.len() + 2);
    chat.types(END);
    assert_eq!(chat.finish().code, Some(0));
    for (request, (keys, message)) in server.requests().iter().zip(typed) {
        assert_eq!(user_messages(request).last().unwrap(), message, "{keys:?}");
    }
    let states = fs::read_dir(lab.home().join("state/workspaces")).unwrap();
    let path =
        states.map(|entry| entry.unwrap().path().join("chat-history")).find(|path| path.exists()).unwrap();
    let history = fs::read_to_string(&path).unwrap();
    assert!(history.contains("notes.txt") && !history.contains("my key"), "{history}");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn chat_answers_are_coloured_at_a_terminal_and_unchanged_elsewhere_and_a_dumb_terminal_reads_plain_lines() {
    let answer = json!({"text": "# Title\n**bold**\n"});
    let colored = ["\u{1b}[1mTitle\u{1b}[0m\r\n", "\u{1b}[1mbold\u{1b}[0m\r\n"];
    let plain = ["# Title\r\n", "**bold**\r\n"];
    let color = [("TERM", "xterm-256color")];
    for (variables, shown) in [
        (&color[..], colored),
        (&[("TERM", "xterm"), ("NO_COLOR", "1")], plain),
        (&[("TERM", "dumb")], plain),
    ] {
        let lab = variables.iter().fold(Lab::new(), |lab, (name, value)| lab.env(name, value));
        for streams in [&[][..], &["--no-stream"]] {
            let server = Server::turns(std::slice::from_ref(&answer));
            let mut chat = AtTerminal::chat_on_screen(&lab, &server, streams);
            chat.wait("prompt", |text| text.contains("> "));
            chat.types("hello\r");
            chat.wait("status", |text| text.contains("openai/mock · 1 step"));
            chat.types("/quit\r");
            let seen = chat.see("the answer", |_| true);
            let screen = chat.finish().stderr;
            assert!(shown.iter().all(|row| screen.contains(row)), "{variables:?} {streams:?}: {screen}");
            assert_eq!(seen.matches("bold").count(), 1, "the answer is shown once: {seen}");
        }
    }
    let lab = Lab::new().env("TERM", "xterm-256color");
    let server = Server::turns(std::slice::from_ref(&answer));
    let mut chat = AtTerminal::chat(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("hello\r");
    chat.prompt(2);
    chat.types(END);
    assert_eq!(chat.finish().stdout, "# Title\n**bold**\n");
}

#[test]
fn chat_discards_a_broken_answer_and_shows_notices_once() {
    let lab = Lab::new().file(".agent/config.yaml", "commands: {safe_commands: [make]}\n");
    let broken = json!({"text": "first part", "chunk": 5, "fault": {"close": 1}});
    let server = Server::turns([broken, json!({"text": "whole"}), json!({"text": "next"})]);
    let mut chat = AtTerminal::chat(&lab, &server, &[]);
    for (number, line) in ["one\r", "two\r"].into_iter().enumerate() {
        chat.prompt(number + 1);
        chat.types(line);
    }
    chat.prompt(3);
    chat.types(END);
    let done = chat.finish();
    assert_eq!(done.stdout, "whole\nnext\n");
    assert_eq!(done.stderr.matches("agent trust").count(), 1, "{}", done.stderr);
}

#[test]
fn chat_commands_of_a_project_need_trust() {
    for trusted in [false, true] {
        let lab = Lab::new()
            .file(".agent/commands/ship.md", "Ship $ARGUMENTS.")
            .file(".agent/config.yaml", "commands: {safe_commands: [make]}\n");
        let server = Server::turns([json!({"text": "ok"})]);
        let more: &[&str] = if trusted { &["--trust-workspace"] } else { &[] };
        let mut chat = AtTerminal::chat(&lab, &server, more);
        chat.prompt(1);
        chat.types("/ship it now\r");
        let shown = chat.prompt(2);
        chat.types(END);
        assert_eq!(chat.finish().code, Some(0));
        let sent: Vec<_> = server.requests().iter().flat_map(user_messages).collect();
        let expected: &[&str] = if trusted { &["\"Ship it now.\""] } else { &[] };
        assert_eq!(sent, expected, "{shown}");
    }
}

#[test]
fn chat_is_what_agent_alone_starts_at_a_terminal_with_a_model() {
    let server = Server::turns([json!({"text": "ok"})]);
    let lab = Lab::new()
        .env("OPENAI_API_KEY", KEY)
        .config(&format!("llm: {{model: openai/mock, api_base: '{}'}}\n", server.url()));
    let mut chat = AtTerminal::launch_controlled(&lab.command(&[]));
    chat.prompt(1);
    chat.types("hello\r");
    chat.prompt(2);
    chat.types(END);
    let done = chat.finish();
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), "ok\n"));
}

#[test]
fn chat_of_200_messages_grows_by_less_than_2_mib_and_leaves_no_process_and_no_mode() {
    let lab = Lab::new();
    let seconds = unique_seconds();
    let turns = (1..=200).flat_map(|number| {
        // Every tenth message leaves a process behind.
        let leaves = turn(
            "run_command",
            &json!({ "command": format!("setsid sleep {seconds} > /dev/null 2>&1 & echo {number}") }),
        );
        (number % 10 == 0).then_some(leaves).into_iter().chain([json!({"text": "ok"})])
    });
    let server = Server::turns(turns.collect::<Vec<_>>());
    let mut chat = AtTerminal::chat(&lab, &server, &["--mode", "yolo"]);
    let mut early = 0;
    for number in 1..=200 {
        chat.prompt(number);
        if number == 40 {
            early = chat.memory_kib();
        }
        chat.types("hello\r");
    }
    chat.prompt(201);
    let grown = chat.memory_kib().saturating_sub(early);
    assert_eq!(survivors(&seconds), 0, "a process of a message outlives it");
    chat.types(END);
    chat.wait("restored modes", |_| chat.modes() == chat.modes_before);
    assert_eq!(chat.finish().code, Some(0));
    assert!(grown < 2048, "{early} KiB, and {grown} more");
}

#[test]
fn chat_without_a_terminal_names_run() {
    let done = Lab::new().agent(&["chat"]).exits(3);
    assert!(done.stderr.contains("needs a terminal") && done.stderr.contains("agent run"), "{}", done.stderr);
    let done = AtTerminal::chat(&Lab::new(), &Server::turns([json!({"text": "ok"})]), &["--json"]).finish();
    assert_eq!((done.code, done.stdout.as_str()), (Some(3), ""));
    assert!(done.stderr.contains("has no JSON output"), "{}", done.stderr);
}

#[test]
fn chat_compact_summarizes_the_older_messages_and_replay_knows_it() {
    let hook = "hooks: {context_compress: [{command: 'echo $AGENT_CONTEXT_TOKENS > tokens'}]}\n";
    let lab = Lab::new().config(&format!("context: {{keep_recent_steps: 1}}\n{hook}"));
    let long = "a long answer ".repeat(100);
    let server = Server::turns([
        json!({ "text": long }),
        json!({ "text": long }),
        json!({"text": "the summary"}),
        json!({"text": "third"}),
    ]);
    let mut chat = AtTerminal::chat(&lab, &server, &[]);
    for (number, line) in ["one\r", "two\r", "/compact\r", "three\r"].into_iter().enumerate() {
        chat.prompt(number + 1);
        chat.types(line);
    }
    chat.prompt(5);
    chat.types(END);
    assert_eq!(chat.finish().code, Some(0));
    let requests = server.requests();
    let last = requests[3].body["messages"].to_string();
    assert!(last.contains("the summary") && !last.contains("\"two\""), "{last}");
    assert_eq!(last.matches(&long).count(), 1, "the last exchange stays: {last}");
    assert!(lab.read("tokens").trim().parse::<u32>().unwrap() > 0);
    lab.agent(&["replay"]).exits(0);
}

#[test]
fn chat_class_48_names_of_files_do_not_reach_the_terminal_through_completion() {
    let lab = Lab::new()
        .file("notes\u{1b}]52;c;x\u{7}.txt", "x")
        .file("notes-\u{202e}.txt", "x")
        .file("notes.txt", "x");
    let server = Server::turns([json!({"text": "ok"})]);
    let mut chat = AtTerminal::chat(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("see @no\t\r");
    let shown = chat.prompt(2);
    chat.types(END);
    chat.finish();
    assert!(!shown.contains("\u{1b}]52") && !shown.contains('\u{202e}'), "{shown:?}");
    assert_eq!(user_messages(&server.requests()[0]), ["\"see @notes.txt\""]);
}

#[test]
fn chat_class_48_names_of_commands_do_not_reach_the_terminal_through_completion() {
    let name = "zz\u{1b}]52;c;eA==\u{7}.md";
    let project =
        Lab::new().file(&format!(".agent/commands/{name}"), "x").file(".agent/commands/zzz.md", "fine");
    let user = Lab::new();
    fs::create_dir(user.home().join("commands")).unwrap();
    fs::write(user.home().join("commands").join(name), "x").unwrap();
    fs::write(user.home().join("commands/zzz.md"), "fine").unwrap();
    for lab in [project, user] {
        let server = Server::turns([json!({"text": "ok"})]);
        let mut chat = AtTerminal::chat(&lab, &server, &["--trust-workspace"]);
        chat.prompt(1);
        chat.types("/zz\t\r");
        chat.prompt(2);
        chat.types("/help\r");
        chat.prompt(3);
        chat.types(END);
        let shown = chat.finish().stderr;
        assert!(shown.contains("/zzz") && !shown.contains("\u{1b}]52"), "{shown:?}");
        assert_eq!(user_messages(&server.requests()[0]), ["\"fine\""]);
    }
}

#[test]
fn chat_commands_of_a_project_are_part_of_its_trust_and_never_read_through_a_link_out_of_it() {
    let lab = Lab::new().file(".agent/commands/ship.md", "Ship it.");
    let server = Server::turns([json!({"text": "ok"}), json!({"text": "ok"})]);
    let says = |lines: &[&str]| {
        let mut chat = AtTerminal::chat(&lab, &server, &[]);
        for (number, line) in lines.iter().enumerate() {
            chat.prompt(number + 1);
            chat.types(&format!("{line}\r"));
        }
        chat.prompt(lines.len() + 1);
        chat.types(END);
        chat.finish().stderr
    };
    let shown = says(&["/ship"]);
    assert!(server.requests().is_empty() && shown.contains("agent trust"), "{shown}");
    let listed = lab.agent(&["trust", "--show"]).exits(0).stdout;
    let hash = listed.split_whitespace().find(|word| word.len() == 64).unwrap().to_owned();
    assert!(listed.contains(".agent/commands/ship.md"), "{listed}");
    let trusted = || AtTerminal::chat(&lab, &server, &[&format!("--trust-workspace={hash}")]);
    let mut chat = trusted();
    chat.prompt(1);
    chat.types("/ship\r");
    chat.prompt(2);
    chat.types(END);
    assert_eq!(chat.finish().code, Some(0));
    assert_eq!(user_messages(&server.requests()[0]), ["\"Ship it.\""]);
    fs::write(lab.ws().join(".agent/commands/ship.md"), "Ship something else.").unwrap();
    assert_eq!(trusted().finish().code, Some(3), "trust is in the content");
    fs::write(lab.outside().join("secret"), "the secret").unwrap();
    fs::remove_file(lab.ws().join(".agent/commands/ship.md")).unwrap();
    std::os::unix::fs::symlink(lab.outside().join("secret"), lab.ws().join(".agent/commands/ship.md"))
        .unwrap();
    let mut chat = AtTerminal::chat(&lab, &server, &["--trust-workspace"]);
    chat.wait("refusal", |text| text.contains("leaves the workspace") || text.contains("> "));
    chat.types("/ship\r/quit\r");
    chat.finish();
    assert_eq!(server.requests().len(), 1, "nothing of the file was sent");
}

#[test]
fn chat_budget_total_never_lifts_the_configured_budget_of_a_run() {
    let lab = Lab::new()
        .file("prices.yaml", "models: {openai/mock: {input: 1000, output: 1, output_limit: 10}}")
        .config("costs: {prices_file: prices.yaml, budget_usd: 0.01}\n");
    let server = Server::turns([json!({"text": "ok"})]);
    let mut chat = AtTerminal::chat(&lab, &server, &["--budget-total", "100"]);
    chat.prompt(1);
    chat.types("hello\r");
    let shown = chat.prompt(2);
    chat.types(END);
    chat.finish();
    assert!(server.requests().is_empty() && shown.contains("budget_exceeded"), "{shown}");
}

#[test]
fn chat_ends_after_sigterm_also_in_a_command_of_the_user_and_when_a_message_cannot_begin() {
    let lab = Lab::new();
    let server = Server::turns([json!({"text": "never"})]);
    let seconds = unique_seconds();
    let mut chat = AtTerminal::chat(&lab, &server, &["--mode", "yolo"]);
    chat.prompt(1);
    chat.types(&format!("!touch begun; sleep {seconds}\r"));
    lab.wait_for_file("begun");
    chat.signal(Signal::TERM);
    let done = chat.finish();
    assert_eq!((done.code, survivors(&seconds)), (Some(130), 0), "{}", done.stderr);
    // Also while the user's editor runs: the terminal is as it was.
    let editor = lab.ws().join("editor.sh");
    fs::write(&editor, "touch editing; mkfifo gate; read -r line < gate\n").unwrap();
    let lab = lab.env("EDITOR", &format!("sh {}", editor.display()));
    let mut chat = AtTerminal::chat(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("/edit\r");
    lab.wait_for_file("editing");
    chat.signal(Signal::TERM);
    fs::write(lab.ws().join("gate"), "go\n").unwrap();
    chat.wait("restored modes", |_| chat.modes() == chat.modes_before);
    assert_eq!(chat.finish().code, Some(130));
}

#[test]
fn chat_commands_of_the_user_obey_dry_run_and_the_agent_of_the_session() {
    let lab = Lab::new();
    let server = Server::turns([json!({"text": "ok"}), json!({"text": "ok"})]);
    let mut chat = AtTerminal::chat(&lab, &server, &["--mode", "yolo", "--dry-run"]);
    chat.prompt(1);
    chat.types("!touch marker\r");
    let shown = chat.prompt(2);
    chat.types(END);
    chat.finish();
    assert!(!lab.exists("marker"), "{shown}");
    let mut chat = AtTerminal::chat(&lab, &server, &["--agent", "plan"]);
    chat.prompt(1);
    chat.types("plan it\r");
    chat.prompt(2);
    chat.types(END);
    chat.finish();
    let mut chat = AtTerminal::chat(&lab, &server, &["--last"]);
    chat.prompt(1);
    chat.types("/agent\r\r");
    let shown = chat.prompt(2);
    assert!(shown.contains("agent plan"), "{shown}");
    chat.types(END);
    chat.finish();
}

#[test]
fn chat_what_is_typed_is_not_lost_when_the_history_or_a_message_fails() {
    let lab = Lab::new();
    let server = Server::turns([json!({"text": "ok"}), json!({"text": "ok"})]);
    let mut chat = AtTerminal::chat(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("first\r");
    chat.prompt(2);
    let workspaces = fs::read_dir(lab.home().join("state/workspaces")).unwrap();
    let state = workspaces
        .map(|entry| entry.unwrap().path())
        .find(|path| path.join("chat-history").exists())
        .unwrap();
    // A directory in its place can be neither read nor written.
    fs::remove_file(state.join("chat-history")).unwrap();
    fs::create_dir(state.join("chat-history")).unwrap();
    chat.types("second\r");
    let shown = chat.prompt(3);
    assert!(shown.contains("history") && server.requests().len() == 2, "{shown}");
    // Bytes that are no text are seen.
    chat.types_bytes(b"\xff\xfe");
    chat.wait("them", |text| text.contains("\u{fffd}\u{fffd}"));
    chat.types("\u{15}");
    chat.types("/mode\r\r");
    chat.wait("mode", |text| text.contains("mode confirm-sensitive · effort"));
    chat.types("/quit\r");
    assert_eq!(chat.finish().code, Some(0));
    let mut chat = AtTerminal::chat(&lab, &server, &["--last"]);
    let shown = chat.prompt(1);
    assert!(shown.contains("history"), "{shown}");
    // The text of the editor is kept until its run has begun.
    chat.types(END);
    chat.finish();
    fs::write(lab.ws().join("editor.sh"), "printf 'a long message' > \"$1\"\n").unwrap();
    let editor = format!("sh {}", lab.ws().join("editor.sh").display());
    let lab = lab.env("EDITOR", &editor);
    let mut chat = AtTerminal::chat(&lab, &server, &["--output-schema", "missing.json"]);
    chat.prompt(1);
    chat.types("/edit\r");
    let shown = chat.prompt(2);
    chat.types(END);
    chat.finish();
    let kept = shown
        .split(|char: char| char.is_whitespace() || char.is_control())
        .find(|word| word.contains("chat-message-"))
        .unwrap_or_else(|| panic!("{shown}"));
    let draft = fs::read_to_string(kept);
    assert_eq!(draft.as_ref().map(|text| text.trim()).ok(), Some("a long message"), "{shown}");
}

#[test]
fn chat_a_pasted_backslash_stays_and_a_typed_one_at_the_end_is_a_new_line() {
    let lab = Lab::new();
    let server = Server::turns(vec![json!({"text": "ok"}); 2]);
    let mut chat = AtTerminal::chat(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("\u{1b}[200~cc \\\r  -o x\u{1b}[201~\r");
    chat.prompt(2);
    chat.types("one\\\rtwo\r");
    chat.prompt(3);
    chat.types(END);
    chat.finish();
    let requests = server.requests();
    assert_eq!(user_messages(&requests[0]), [r#""cc \\\n  -o x""#]);
    assert_eq!(user_messages(&requests[1]).last().unwrap(), r#""one\ntwo""#);
}

#[test]
fn chat_redo_brings_an_undo_point_back() {
    let lab = Lab::new().file("a.txt", "one\n");
    let done = || json!({"text": "done"});
    let server = Server::turns([edit("one", "two"), done(), edit("two", "three"), done()]);
    let mut chat = AtTerminal::chat(&lab, &server, &["--mode", "yolo"]);
    let lines = [
        ("first", "two\n"),
        ("second", "three\n"),
        ("/undo", "two\n"),
        ("/redo", "three\n"),
        ("/undo", "two\n"),
    ];
    for (number, (line, content)) in lines.into_iter().enumerate() {
        chat.prompt(number + 1);
        chat.types(&format!("{line}\r"));
        chat.prompt(number + 2);
        assert_eq!(lab.read("a.txt"), content, "{line}");
    }
    chat.types(END);
    chat.finish();
}

#[test]
fn chat_a_continued_answer_and_one_of_a_fallback_model_are_shown_whole_and_once() {
    for streams in [&[][..], &["--no-stream"]] {
        let lab = Lab::new().env("TERM", "xterm-256color");
        let first = json!({"text": "half of a wo", "finish": "length"});
        let server = Server::turns([first, json!({"text": "rd, done"})]);
        let mut chat = AtTerminal::chat_on_screen(&lab, &server, streams);
        chat.prompt(1);
        chat.types("hello\r");
        chat.prompt(2);
        chat.types(END);
        let screen = seen_on(&chat.finish().stderr);
        assert_eq!(screen.matches("half of a word, done").count(), 1, "{streams:?}: {screen}");
        assert_eq!(screen.matches("done").count(), 1, "{streams:?}: {screen}");
    }
}

#[test]
fn chat_another_session_gets_nothing_of_the_one_before_and_arguments_that_have_no_meaning_are_told() {
    let lab = Lab::new();
    let server = Server::turns(vec![json!({"text": "ok"}); 3]);
    let mut chat = AtTerminal::chat(&lab, &server, &["--mode", "yolo"]);
    let lines = ["one", "!echo output", "/compact", "/new now", "/new", "/cost", "two"];
    for (number, line) in lines.iter().enumerate() {
        chat.prompt(number + 1);
        chat.types(&format!("{line}\r"));
    }
    let shown = chat.prompt(lines.len() + 1);
    chat.types(END);
    chat.finish();
    assert!(
        shown.contains("`/new` takes no arguments") && shown.contains("no message was sent yet"),
        "{shown}"
    );
    assert_eq!(user_messages(&server.requests()[1]), ["\"two\""]);
}

#[test]
fn chat_tells_of_changed_instructions_and_counts_limits() {
    let lab = Lab::new().file("AGENTS.md", "Use tabs.");
    let looks = || turn("read_file", &json!({"path": "AGENTS.md"}));
    let server = Server::turns([json!({"text": "ok"}), looks(), json!({"text": "end"})]);
    let mut chat = AtTerminal::chat(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("one\r");
    chat.prompt(2);
    chat.types(END);
    chat.finish();
    fs::write(lab.ws().join("AGENTS.md"), "Use spaces.").unwrap();
    let mut chat = AtTerminal::chat(&lab, &server, &["--max-steps", "1"]);
    chat.prompt(1);
    chat.types("two\r");
    let shown = chat.prompt(2);
    chat.types(END);
    chat.finish();
    assert!(shown.contains("AGENTS.md") && shown.contains("changed"), "{shown}");
    assert!(!shown.contains("/0") && shown.contains("1/1"), "{shown}");
}

#[test]
fn chat_queue_sends_what_is_typed_in_a_turn_with_the_next_step_or_the_next_message() {
    let lab = Lab::new();
    let wait = |gate: &str| {
        let command = format!("mkfifo {gate}; read -r line < {gate}");
        json!({"calls": [{"name": "run_command", "arguments": {"command": command}}]})
    };
    let server = Server::turns([
        wait("one"),
        json!({"text": "first", "delay_ms": 600_000}),
        json!({"text": "second"}),
        wait("two"),
        json!({"text": "third"}),
    ]);
    let mut chat = AtTerminal::chat(&lab, &server, &["--mode", "yolo"]);
    chat.prompt(1);
    chat.types("hello\r");
    lab.wait_for_file("one");
    chat.types("also the tests\r");
    chat.see("what waits", |text| text.contains("with the next step: also the tests"));
    fs::write(lab.ws().join("one"), "go\n").unwrap();
    server.wait_for_request(2);
    assert_eq!(user_messages(&server.requests()[1]), ["\"hello\"", "\"also the tests\""]);
    // The turn is interrupted: what was typed stands at the prompt.
    chat.types("and the docs\r");
    chat.see("what waits", |text| text.contains("with the next step: and the docs"));
    chat.types(INTERRUPT);
    chat.prompt(2);
    chat.see("the input", |text| text.contains("> and the docs"));
    chat.types(" too\r");
    chat.prompt(3);
    assert_eq!(user_messages(&server.requests()[2]).last().unwrap(), "\"and the docs too\"");
    chat.types("/quit\r");
    assert_eq!(chat.finish().code, Some(0));
    lab.agent(&["replay"]).exits(0);
}

#[test]
fn chat_queue_what_no_step_has_sent_is_the_next_message_and_never_an_answer() {
    let lab = Lab::new();
    let write = json!({"calls": [{"name": "write_file", "arguments": {"path": "a.txt", "content": "x"}}]});
    let server = Server::turns([
        json!({"calls": [{"name": "list_files", "arguments": {}}], "delay_ms": 300}),
        write,
        json!({"text": "first"}),
        json!({"text": "second"}),
    ]);
    let mut chat = AtTerminal::chat(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("hello\r");
    server.wait_for_request(1);
    chat.types("y\r");
    chat.see("what waits", |text| text.contains("with the next step: y"));
    chat.answer("n\r");
    chat.prompt(2);
    assert!(!lab.exists("a.txt"), "what was typed before the question is not its answer");
    assert_eq!(user_messages(&server.requests()[1]), ["\"hello\"", "\"y\""]);
    chat.types(END);
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn chat_a_window_that_is_resized_while_a_line_is_edited_loses_nothing() {
    let lab = Lab::new();
    let server = Server::turns([json!({"text": "ok"}), json!({"text": "ok"})]);
    let mut chat = AtTerminal::chat(&lab, &server, &[]);
    chat.prompt(1);
    let (first, second) = ("one ".repeat(40), "two ".repeat(40));
    chat.types(&first);
    chat.wait("the line", |text| text.matches("one").count() >= 40);
    chat.resize(30);
    chat.types(&second);
    chat.wait("the line", |text| text.contains("two"));
    chat.resize(200);
    chat.types("three\r");
    chat.prompt(2);
    chat.types(END);
    assert_eq!(chat.finish().code, Some(0));
    assert_eq!(user_messages(&server.requests()[0]), [format!("\"{first}{second}three\"")]);
}

// Fault C8: the question discarded it.
#[test]
fn chat_a_half_typed_line_before_a_question_stands_at_the_next_prompt() {
    for queue in ["true", "false"] {
        let lab = Lab::new().config(&format!("chat: {{queue: {queue}}}\n"));
        let wait = json!({"command": "mkfifo gate; read -r line < gate"});
        let ask = json!({"path": "a.txt", "content": "x"});
        let server = Server::turns([
            turn("run_command", &wait),
            turn("write_file", &ask),
            json!({"text": "first"}),
            json!({"text": "second"}),
        ]);
        let mut chat = AtTerminal::chat(&lab, &server, &[]);
        chat.prompt(1);
        chat.types("hello\r");
        chat.answer("y\r");
        lab.wait_for_file("gate");
        chat.types("y half\u{e9} lix\u{7f}ne");
        chat.see("the input", |text| text.contains("> y half\u{e9} line"));
        fs::write(lab.ws().join("gate"), "go\n").unwrap();
        chat.answer("n\r");
        chat.prompt(2);
        assert!(!lab.exists("a.txt"), "{queue}");
        chat.types(" and more\r");
        chat.prompt(3);
        let requests = server.requests();
        assert_eq!(user_messages(&requests[3]).last().unwrap(), "\"y half\u{e9} line and more\"", "{queue}");
        chat.types(END);
        assert_eq!(chat.finish().code, Some(0), "{queue}");
    }
}

// Fault A7: the shell set its modes after the editor, and nothing drew the prompt.
#[test]
fn chat_a_line_is_edited_further_after_the_process_was_stopped() {
    let lab = Lab::new();
    let server = Server::turns([json!({"text": "ok"})]);
    let mut chat = AtTerminal::chat(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("one");
    chat.wait("the line", |text| text.contains("one"));
    let editing = chat.modes();
    let drawn = |text: &str| text.matches("one").count();
    let before = chat.wait("the line", |_| true);
    chat.stop_and_continue();
    chat.wait("the line again", |text| drawn(text) > drawn(&before));
    assert_eq!(chat.modes(), editing);
    // Ctrl+A, which only the editor understands.
    chat.types("\u{1}two \r");
    let before = chat.prompt(3);
    assert_eq!(user_messages(&server.requests()[0]), ["\"two one\""], "{before}");
    chat.types(END);
    chat.wait("restored modes", |_| chat.modes() == chat.modes_before);
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn chat_queue_works_after_a_question_that_was_interrupted_and_nothing_typed_before_a_question_is_lost() {
    for queue in ["true", "false"] {
        let lab = Lab::new().config(&format!("chat: {{queue: {queue}}}\n"));
        let write =
            || json!({"calls": [{"name": "write_file", "arguments": {"path": "a.txt", "content": "x"}}]});
        let server = Server::turns([
            write(),
            json!({"calls": [{"name": "list_files", "arguments": {}}], "delay_ms": 300}),
            write(),
            json!({"text": "first"}),
            json!({"text": "second"}),
        ]);
        let mut chat = AtTerminal::chat(&lab, &server, &[]);
        chat.prompt(1);
        chat.types("hello\r");
        chat.answer(INTERRUPT);
        chat.prompt(2);
        chat.types("again\r");
        server.wait_for_request(2);
        chat.types("meanwhile\r");
        chat.answer("n\r");
        chat.prompt(3);
        assert!(!lab.exists("a.txt"));
        chat.types("/quit\r");
        assert_eq!(chat.finish().code, Some(0), "{queue}");
        let number = if queue == "true" { 2 } else { 4 };
        let messages = user_messages(&server.requests()[number]);
        assert_eq!(messages.last().unwrap(), "\"meanwhile\"", "{queue}");
    }
}

#[test]
fn u09_always_lasts_for_the_conversation_and_is_for_all_edits() {
    let lab = Lab::new().file("a.txt", "one\n");
    let done = || json!({"text": "done"});
    let write = turn("write_file", &json!({"path": "b.txt", "content": "new\n"}));
    let server = Server::turns([edit("one", "two"), done(), edit("two", "three"), done(), write, done()]);
    let mut chat = AtTerminal::chat(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("first\r");
    let asked = chat.answer("a");
    let question = &asked[asked.find("May I ").unwrap()..];
    assert!(question.lines().count() <= 14, "{question}");
    chat.prompt(2);
    for (prompt, message) in [(3, "second"), (4, "third")] {
        chat.types(&format!("{message}\r"));
        chat.prompt(prompt);
    }
    assert_eq!((lab.read("a.txt"), lab.read("b.txt")), ("three\n".to_owned(), "new\n".to_owned()));
    chat.types(END);
    let shown = chat.finish().stderr;
    assert_eq!(shown.matches("May I ").count(), 1, "{shown}");
    // The diff that was approved is not shown a second time, the other one is.
    assert_eq!((shown.matches("a.txt (+1 −1)").count(), shown.matches(" 1 - ").count()), (2, 2), "{shown}");
}

#[test]
fn u09_letters_of_a_message_that_is_being_written_answer_no_question() {
    let lab = Lab::new();
    let server = Server::turns([
        waiting("gate"),
        turn("write_file", &json!({"path": "a.txt", "content": "x"})),
        json!({"text": "refused"}),
    ]);
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("go\r");
    chat.answer("y");
    lab.wait_for_file("gate");
    chat.types("please ");
    chat.see("the input", |text| input(text) == "> please");
    fs::write(lab.ws().join("gate"), "go\n").unwrap();
    chat.see("the question", |text| questions(text) == 2);
    // A sentence goes on: its `a` is not "always".
    chat.types("also run");
    chat.see("the question again", |text| questions(text) == 3);
    // A letter that is taken back is none either.
    chat.types("y\u{7f}");
    // Arrows are no answer and print nothing.
    chat.types("\u{1b}[A");
    chat.types("n");
    let seen = chat.see("the answer", |text| text.contains("\nrefused\n"));
    assert!(!lab.exists("a.txt") && input(&seen) == "> please also run", "{seen}");
    assert!(!seen.contains("none of the keys") && !seen.contains("[A"), "{seen}");
    chat.types("\u{15}/quit\r");
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn u09_a_capital_a_writes_the_rule_and_a_sentence_that_begins_with_it_writes_nothing() {
    let lab = Lab::new().config("# mine\nchat: {notify: none}\n");
    let touch = |file: &str| turn("run_command", &json!({"command": format!("touch {file}.txt")}));
    let server =
        Server::turns([touch("a"), touch("b"), json!({"text": "done"}), touch("c"), json!({"text": "on"})]);
    let file = || fs::read_to_string(lab.home().join("config.yaml")).unwrap();
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &["--mode", "confirm-sensitive"]);
    chat.prompt(1);
    chat.types("go\r");
    let asked = chat.answer("Also");
    let rows = asked.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(rows.contains("A = save") && rows.contains("mode: allow run_command \"touch …\""), "{asked}");
    chat.see("the question again", |text| questions(text) == 2);
    assert_eq!(file(), "# mine\nchat: {notify: none}\n");
    assert!(!lab.exists("a.txt"));
    chat.types("A");
    chat.prompt(2);
    let seen = chat.see("the answer", |text| text.contains("\ndone\n"));
    assert!(seen.contains("Written to ") && questions(&seen) == 2 && input(&seen) == "> Also", "{seen}");
    assert!(lab.exists("a.txt") && lab.exists("b.txt"));
    let rules =
        "policy:\n  rules:\n    - {action: allow, tool: run_command, command: touch, confined: true}\n";
    assert_eq!(file(), format!("# mine\nchat: {{notify: none}}\n{rules}"));
    chat.types("\u{15}again\r");
    let seen = chat.see("the answer", |text| text.contains("\non\n"));
    assert!(questions(&seen) == 2 && lab.exists("c.txt"), "{seen}");
    chat.types("/quit\r");
    assert_eq!(chat.finish().code, Some(0));
    let explained = lab.agent(&["policy", "test", "run_command touch d.txt"]).stdout;
    assert!(
        explained.contains("allow: ") && explained.contains("decided by: policy.rules[0]"),
        "{explained}"
    );
}

#[test]
fn u09_a_refusal_with_a_reason_takes_one_key_and_a_line() {
    let lab = Lab::new().file("a.txt", "one\n");
    let server = Server::turns([edit("one", "two"), json!({"text": "on"})]);
    let mut chat = AtTerminal::chat(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("first\r");
    chat.answer("w");
    chat.wait("the question why", |text| text.contains("Why not? "));
    chat.types("use the other file\r");
    chat.prompt(2);
    assert!(server.requests()[1].messages().last().unwrap().to_string().contains("use the other file"));
    chat.types(END);
    chat.finish();
}

#[test]
fn u01_the_output_of_a_call_is_shown_in_part_and_ctrl_o_shows_all_of_it() {
    let lab = Lab::new();
    let commands = ["seq 101 140", "seq 201 220; exit 3"];
    let [first, second] = commands.map(|command| turn("run_command", &json!({"command": command})));
    let server = Server::turns([first, second, json!({"text": "done"})]);
    let mut chat = AtTerminal::chat(&lab, &server, &["--mode", "yolo"]);
    chat.prompt(1);
    chat.types("go\r");
    let shown = chat.prompt(2);
    for part in [
        "$ seq 101 140",
        "105",
        "… +35 lines (Ctrl+O, /out 1)",
        "✗ exit 3",
        "… +10 lines (Ctrl+O, /out 2)",
        "211",
        "220",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("106") && !shown.contains("210"), "{shown}");
    chat.types("typed\u{f}");
    let shown = chat.prompt(3);
    assert!(shown.contains("210") && !shown.contains("106"), "{shown}");
    // What was typed stands at the next prompt.
    chat.types("\u{15}/out 1\r");
    let shown = chat.prompt(4);
    assert!(shown.contains("106") && server.requests().len() == 3, "{shown}");
    // The same key again shows the call before.
    chat.types("/out\r");
    assert!(chat.prompt(5).contains("210"));
    chat.types("\u{f}");
    let shown = chat.prompt(6);
    assert!(shown.contains("/out 1 · $ seq 101 140") && shown.contains("106"), "{shown}");
    chat.types("\u{f}");
    assert!(chat.prompt(7).contains("there is no such output"));
    chat.types(END);
    chat.finish();
}

#[test]
fn u01_of_an_output_that_is_too_long_for_the_model_the_user_sees_all() {
    let lab = Lab::new();
    let command = json!({"command": "seq 1001 1400"});
    let server = Server::turns([turn("run_command", &command), json!({"text": "done"})]);
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &["--mode", "yolo"]);
    chat.prompt(1);
    chat.types("go\r");
    let seen = chat.see("the end", |text| text.contains("2 steps"));
    assert!(seen.contains("│ 1005\n   … +395 lines (Ctrl+O, /out 1)") && !seen.contains("1006"), "{seen}");
    chat.types("\u{f}");
    let seen = chat.see("the output", |text| text.contains("│ 1400\n"));
    assert!(seen.contains("│ 1200\n   │ 1201\n"), "what the model does not read: {seen}");
    assert!(!seen.contains("omitted") && !seen.contains("Full output"), "words for the model: {seen}");
    chat.types("/quit\r");
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn u11_a_command_of_the_user_is_not_asked_about_and_its_output_is_plain() {
    let lab = Lab::new().file("a.txt", "alpha\n");
    let server = Server::turns([json!({"text": "seen"})]);
    let mut chat = AtTerminal::chat(&lab, &server, &["--mode", "confirm-all"]);
    chat.prompt(1);
    chat.types("!cat a.txt; touch made; exit 4\r");
    let shown = chat.prompt(2);
    assert!(shown.contains("alpha") && shown.contains("✗ exit 4") && lab.exists("made"), "{shown}");
    assert!(!shown.contains("stdout:") && !shown.contains("May I "), "{shown}");
    chat.types("and?\r");
    chat.prompt(3);
    assert!(server.requests()[0].messages().iter().any(|message| message.to_string().contains("alpha")));
    chat.types(END);
    chat.finish();
}

#[test]
fn u12_the_model_is_told_whether_a_person_can_reply() {
    let lab = Lab::new();
    let system = |server: &Server| server.requests()[0].messages()[0].to_string();
    let server = Server::done();
    lab.run(&server, &[]).exits(0);
    assert!(system(&server).contains("# Unattended") && !system(&server).contains("# Conversation"));
    let server = Server::turns([json!({"text": "hello"})]);
    let mut chat = AtTerminal::chat(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("hello\r");
    chat.prompt(2);
    assert!(system(&server).contains("# Conversation") && !system(&server).contains("never ask"));
    chat.types(END);
    chat.finish();
}

#[test]
fn u15_a_message_on_the_command_line_begins_a_conversation_and_continue_shows_it_again() {
    let lab = Lab::new();
    let server = Server::turns([json!({"text": "a first answer"}), json!({"text": "a second answer"})]);
    let url = server.url();
    let model = ["--model", "openai/mock", "--api-base", &url, "--api-key", KEY];
    let start = |words: &[&str]| AtTerminal::launch_controlled(&lab.command(&[words, &model].concat()));
    let mut chat = start(&["what is this"]);
    let shown = chat.prompt(1);
    assert!(shown.contains("> what is this") && server.requests().len() == 1, "{shown}");
    chat.types(END);
    chat.finish();
    let mut chat = start(&["-c"]);
    let shown = chat.prompt(1);
    assert!(shown.contains("> what is this") && server.requests().len() == 1, "{shown}");
    chat.types("more\r");
    chat.prompt(2);
    chat.types(END);
    let done = chat.finish();
    assert_eq!(done.stdout, "a second answer\n");
    assert_eq!(user_messages(&server.requests()[1]), ["\"what is this\"", "\"more\""]);
}

#[test]
fn u06_the_header_says_where_and_how_the_agent_works_and_warns_in_the_home_directory() {
    let lab = Lab::repository();
    let server = Server::turns([json!({"text": "hello"})]);
    let mut chat = AtTerminal::chat(&lab, &server, &["--mode", "yolo"]);
    let shown = chat.prompt(1);
    for part in ["openai/mock · agent build, mode yolo", "/ws (main) · /help"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("is not the directory of one project"), "{shown}");
    chat.types("hello\r");
    let shown = chat.prompt(2);
    assert!(shown.contains(" s · ") && shown.contains("cost unknown"), "{shown}");
    // Words of a person who wants to leave are no message.
    chat.types("exit\r");
    assert_eq!((chat.finish().code, server.requests().len()), (Some(0), 1));
    let home = lab.home().to_str().unwrap().to_owned();
    let mut chat = AtTerminal::chat(&lab, &server, &["--workspace", &home]);
    let shown = chat.prompt(1);
    assert!(shown.contains("is not the directory of one project"), "{shown}");
    chat.types("quit\r");
    assert_eq!(chat.finish().code, Some(0));
}

/// The results of calls in a request.
fn results(request: &Recorded) -> String {
    let tools = request.messages().iter().filter(|message| message["role"] == "tool");
    tools.map(|message| message["content"].to_string()).collect()
}

/// Waits in a command until the file `NAME` is written.
fn waiting(name: &str) -> Value {
    turn("run_command", &json!({"command": format!("mkfifo {name}; read -r line < {name}")}))
}

#[test]
fn u08_what_is_typed_while_text_streams_is_seen_below_it_and_disturbs_nothing() {
    let lab = Lab::new();
    let words = (1..=60).map(|word| format!("word{word}")).collect::<Vec<_>>().join(" ");
    let streamed = json!({"text": words, "chunk": 6, "chunk_delay_ms": 20});
    let server = Server::turns([streamed, json!({"text": "second"})]);
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("hello\r");
    chat.see("the first words", |text| text.contains("word3 "));
    chat.types("next quest");
    let seen = chat.see("the input", |text| text.contains("> next quest"));
    assert!(!seen.contains("word60"), "it was typed after the end: {seen}");
    let seen = chat.see("the end", |text| text.contains("1 step"));
    let flat = seen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(&words), "the words are whole and in order: {seen}");
    assert_eq!(seen.matches("next quest").count(), 1, "the input leaves no rows behind: {seen}");
    chat.types("ion\r");
    chat.see("the answer", |text| text.contains("second"));
    assert_eq!(user_messages(&server.requests()[1]).last().unwrap(), "\"next question\"");
    chat.types("/quit\r");
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn u03_a_window_that_is_resized_while_an_answer_streams_damages_nothing() {
    let lab = Lab::new();
    let text = "Some words and a [link to the docs](https://example.org/docs/index.html) and ~~strike~~ text.\n\n- first\n  - second level with a [link](https://example.org/list) and words of which some do not fit\n  - second level\n- last\n";
    let streamed = json!({"text": text, "chunk": 3, "chunk_delay_ms": 20});
    let server = Server::turns([streamed]);
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("hello\r");
    chat.see("the link", |text| text.contains("https://example"));
    chat.resize(100);
    chat.see("the item", |text| text.contains("• second level"));
    chat.resize(140);
    let seen = chat.see("the end", |text| text.contains("1 step"));
    let flat = seen.split_whitespace().collect::<Vec<_>>().join(" ");
    for (part, text) in [
        (
            "Some words",
            "Some words and a link to the docs (https://example.org/docs/index.html) and strike text.",
        ),
        (
            "• second level with",
            "• first • second level with a link (https://example.org/list) and words of which some do not fit • second level • last",
        ),
    ] {
        assert!(flat.contains(text) && flat.matches(part).count() == 1, "{seen}");
    }
    assert_eq!(seen.matches("\n  • second level").count(), 2, "{seen}");
    chat.types("/quit\r");
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn u08_a_process_that_is_stopped_while_it_works_leaves_nothing_behind_and_goes_on() {
    let lab = Lab::new();
    let words = (1..=90).map(|word| format!("word{word}")).collect::<Vec<_>>().join(" ");
    let streamed = json!({"text": words, "chunk": 6, "chunk_delay_ms": 20});
    let server = Server::turns([streamed]);
    let mut chat = AtTerminal::chat_in_shell(&lab, &server);
    chat.prompt(1);
    chat.types("hello\r");
    chat.see("the first words", |text| text.contains("word3 "));
    chat.types("draft\u{1a}");
    let seen = chat.see("the shell", |text| text.contains("has stopped"));
    let (_, left) = seen.split_once("> hello").unwrap();
    let has_live_area = ["word", "writes", "> ", "? help"].iter().any(|part| left.contains(part));
    assert!(!has_live_area, "{seen}");
    chat.types("\n");
    let seen = chat.see("the end", |text| text.contains("1 step"));
    let flat = seen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(&words) && flat.matches("word1 ").count() == 1, "{seen}");
    assert!(!seen.contains("writes") && seen.matches("draft").count() == 1, "{seen}");
    chat.types("\u{15}/quit\r");
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn u09_a_question_is_shown_again_after_the_process_was_stopped() {
    let lab = Lab::new();
    let ask = json!({"path": "a.txt", "content": "x"});
    let server = Server::turns([turn("write_file", &ask), json!({"text": "the end"})]);
    let mut chat = AtTerminal::chat_in_shell(&lab, &server);
    chat.prompt(1);
    chat.types("hello\r");
    chat.see("the question", |text| questions(text) == 1);
    chat.types("\u{1a}");
    chat.see("the shell", |text| text.contains("has stopped"));
    chat.types("\n");
    chat.see("the question", |text| questions(text) == 2);
    chat.types("n");
    chat.see("the end", |text| text.contains("2 steps"));
    assert!(!lab.exists("a.txt"));
    chat.types("/quit\r");
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn u08_enter_queues_for_the_step_alt_enter_for_the_end_and_up_takes_back() {
    let lab = Lab::new();
    let answers = ["first", "second"].map(|text| json!({"text": text}));
    let server = Server::turns([vec![waiting("gate")], answers.to_vec()].concat());
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &["--mode", "yolo"]);
    chat.prompt(1);
    chat.types("hello\r");
    lab.wait_for_file("gate");
    chat.types("for the step\rfor the end\u{1b}\r/cost\r/queue\r/report\r");
    let seen = chat.see("what waits", |text| text.contains("after the end: /report"));
    for line in ["with the next step: for the step", "after the end: for the end", "no message was sent yet"]
    {
        assert!(seen.contains(line), "{line}: {seen}");
    }
    chat.types("\u{1b}[A");
    chat.see("it in the input", |text| text.contains("> /report") && !text.contains("the end: /report"));
    chat.types("\u{15}");
    fs::write(lab.ws().join("gate"), "go\n").unwrap();
    chat.prompt(2);
    let requests = server.requests();
    assert_eq!(user_messages(&requests[1]), ["\"hello\"", "\"for the step\""]);
    assert_eq!(user_messages(&requests[2]).last().unwrap(), "\"for the end\"");
    chat.types("/quit\r");
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn u08_esc_stops_the_work_and_gives_back_what_waits() {
    let lab = Lab::new();
    let server = Server::turns([waiting("gate"), json!({"text": "done"})]);
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &["--mode", "yolo"]);
    chat.prompt(1);
    chat.types("hello\r");
    lab.wait_for_file("gate");
    chat.types("one\rtwo\u{1b}\rhalf");
    chat.see("what waits", |text| text.contains("after the end: two") && text.contains("> half"));
    chat.types("\u{1b}");
    chat.prompt(2);
    let seen = chat.see("it in the input", |text| text.contains("> one\n  two\n  half"));
    assert!(seen.contains("Interrupted") && !seen.contains("the end: two"), "{seen}");
    chat.types("\r");
    chat.prompt(3);
    assert_eq!(user_messages(&server.requests()[1]).last().unwrap(), r#""one\ntwo\nhalf""#);
    chat.types("/quit\r");
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn u16_a_slash_opens_a_menu_with_descriptions_and_a_long_paste_is_folded() {
    let lab = Lab::new().file("src/dates.py", "");
    let server = Server::turns([json!({"text": "done"})]);
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("/mo");
    let menu = "→ /mode                    show or change which calls run without a prompt\n  /model ";
    chat.see("the menu", |text| text.contains(&format!("> /mo\n{menu}")));
    // Enter takes what is marked. A command that has values shows them, and the value that is taken ends the line.
    chat.types("\u{1b}[B\r");
    chat.see("the models", |text| {
        text.contains("> /model\n→ openai/mock                 in force\n  openai/")
            && !text.contains("/mode ")
    });
    chat.types("\u{15}/mo\r");
    chat.see("the modes", |text| text.contains("\n→ confirm-sensitive        in force · asks"));
    chat.types("\u{1b}[A\r");
    chat.see("the change", |text| text.contains("agent build, mode confirm-all"));
    // A command that was typed whole shows its values too.
    chat.types("/mode\r");
    chat.see("the modes", |text| text.contains("\n→ confirm-all              in force · asks"));
    chat.types("\r");
    chat.see("the same mode", |text| text.matches("agent build, mode confirm-all").count() == 2);
    chat.types("?");
    chat.see("the help", |text| text.contains("> ?\n  /help") && input(text) == ">");
    chat.types("/stat\r");
    chat.see("the status", |text| text.contains("> /status\n"));
    chat.types("see @sr\t");
    chat.see("the files", |text| text.contains("> see @src/\n→ src/dates.py"));
    chat.types("\t ");
    let pasted = "row\n".repeat(200);
    chat.types(&format!("\u{1b}[200~{pasted}\u{1b}[201~"));
    chat.see("the mark", |text| text.contains("> see @src/dates.py [pasted: 200 lines]"));
    chat.types("\r");
    let seen = chat.see("the answer", |text| text.contains("\ndone\n"));
    assert!(seen.contains("… +190 lines") || seen.contains("… +188 lines"), "{seen}");
    let message = user_messages(&server.requests()[0]).pop().unwrap();
    assert_eq!(message, json!(format!("see @src/dates.py {}", pasted.trim_end())).to_string());
    chat.types("/quit\r");
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn u17_the_history_is_searched_and_a_screen_is_cleared() {
    let lab = Lab::new();
    let server = Server::turns(vec![json!({"text": "ok"}); 3]);
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &[]);
    for (number, line) in [(1, "the first one"), (2, "another")] {
        chat.prompt(number);
        chat.types(&format!("{line}\r"));
    }
    chat.prompt(3);
    chat.types("draft\u{1b}[A");
    chat.see("the line before", |text| text.contains("> another\n  ? help · build"));
    chat.types("\u{1b}[B");
    chat.see("the draft", |text| text.contains("> draft\n"));
    chat.types("\u{15}\u{12}first");
    chat.see("the search", |text| text.contains("> the first one\n") && text.contains("history: first"));
    chat.types("\u{c}");
    chat.see("a clear screen", |text| text.contains("> the first one\n  ? help · build"));
    chat.types("\r");
    chat.prompt(4);
    assert_eq!(user_messages(&server.requests()[2]).last().unwrap(), "\"the first one\"");
    chat.types("/quit\r");
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn u02_the_last_lines_of_a_running_command_are_seen_and_ctrl_b_leaves_it_in_the_background() {
    let lab = Lab::new();
    let command = "seq 1 9; mkfifo gate; read -r line < gate; echo over";
    let server = Server::turns([
        turn("run_command", &json!({"command": command})),
        waiting("second"),
        json!({"text": "done"}),
    ]);
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &["--mode", "yolo"]);
    chat.prompt(1);
    chat.types("hello\r");
    let tail = "   … 5 lines before · Ctrl+B leaves it in the background\n   │ 6\n   │ 7\n   │ 8\n   │ 9\n";
    chat.see("the last lines", |text| text.contains(tail));
    chat.types("\u{2}");
    lab.wait_for_file("second");
    let result = results(&server.requests()[1]);
    assert!(result.contains("left the command in the background: bg1"), "{result}");
    fs::write(lab.ws().join("gate"), "go\n").unwrap();
    fs::write(lab.ws().join("second"), "go\n").unwrap();
    chat.prompt(2);
    let seen = chat.see("the end", |_| true);
    assert!(!seen.contains("│ 6\n   │ 7\n   │ 8\n   │ 9\n>"), "{seen}");
    // A command of the user is followed too.
    chat.types("!seq 1 9; mkfifo own; read -r line < own\r");
    chat.see("the last lines", |text| text.contains("   … 5 lines before\n   │ 6\n"));
    fs::write(lab.ws().join("own"), "go\n").unwrap();
    chat.prompt(3);
    chat.types("/quit\r");
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn u10_auto_is_the_default_in_a_git_work_tree_with_a_sandbox_and_shift_tab_changes_it() {
    let lab = Lab::new().file("a.txt", "one\n");
    lab.git(&["init", "-q"]);
    let server = Server::turns([
        edit("one", "two"),
        turn("run_command", &json!({"command": "cp a.txt b.txt && rm -r a.txt"})),
        json!({"text": "done"}),
        edit("two", "three"),
        json!({"text": "done"}),
    ]);
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &[]);
    let shown = chat.prompt(1);
    assert!(shown.contains("agent build, mode auto"), "{shown}");
    chat.types("hello\r");
    // The edit is not asked about, and what cannot be undone is.
    let asked = chat.answer("n");
    assert!(asked.contains("rm -r") && asked.contains("(mode auto)"), "{asked}");
    assert_eq!(lab.read("a.txt"), "two\n");
    chat.prompt(2);
    chat.types("\u{1b}[Z");
    chat.see("the plan", |text| text.contains("· plan, only reads"));
    chat.types("\u{1b}[Z");
    chat.see("the mode", |text| text.contains("· build, mode confirm-sensitive"));
    chat.types("again\r");
    chat.answer("n");
    chat.see("the end", |text| text.matches("\ndone\n").count() == 2);
    assert_eq!(lab.read("a.txt"), "two\n");
    chat.types("/quit\r");
    assert_eq!(chat.finish().code, Some(0));
    // Outside a work tree, and with a configured mode, nothing changes.
    let configured = Lab::new().config("mode: confirm-sensitive\n");
    configured.git(&["init", "-q"]);
    for lab in [Lab::new(), configured] {
        let mut chat = AtTerminal::chat_on_screen(&lab, &server, &[]);
        let shown = chat.prompt(1);
        assert!(shown.contains("agent build, mode confirm-sensitive"), "{shown}");
        chat.types("/quit\r");
        chat.finish();
    }
}

#[test]
fn u12_the_model_asks_the_user_and_a_plan_is_carried_out_with_one_key() {
    let lab = Lab::new().file("a.txt", "one\n");
    let questions = json!({"questions": [
        {"question": "Which data base?", "choices": ["SQLite", "Postgres"]},
        {"question": "Which name?"},
    ]});
    let server = Server::turns([
        turn("ask_user", &questions),
        json!({"text": "1. Read.\n2. Change.\n3. Test."}),
        edit("one", "two"),
        json!({"text": "done"}),
    ]);
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &["--agent", "plan"]);
    chat.prompt(1);
    chat.types("hello\r");
    chat.see("the choices", |text| {
        text.contains("Which data base?\nYour answer") && text.contains("\n  1  SQLite\n  2  Postgres")
    });
    // Enter that was meant for something else is no answer.
    chat.types("\r\u{1b}[B");
    chat.see("the mark", |text| text.contains("\n→ 1  SQLite\n  2  Postgres"));
    chat.types("\u{1b}[B");
    chat.see("the mark", |text| text.contains("\n  1  SQLite\n→ 2  Postgres"));
    chat.types("\r");
    chat.see("the second question", |text| {
        text.contains("(Esc = none): Postgres\nWhich name?\nYour answer") && !text.contains("SQLite")
    });
    chat.types("users\r");
    chat.see("the question", |text| text.contains("Do it? y/n"));
    let result = results(&server.requests()[1]);
    assert!(result.contains(r"Which data base?\nAnswer: Postgres\nWhich name?\nAnswer: users"), "{result}");
    chat.types("y\r");
    chat.answer("y");
    chat.prompt(2);
    assert_eq!(lab.read("a.txt"), "two\n");
    assert_eq!(user_messages(&server.requests()[2]).last().unwrap(), "\"Carry out the plan.\"");
    chat.types("/quit\r");
    assert_eq!(chat.finish().code, Some(0));
    // Nobody is there in a run without a person.
    let server = Server::turns([turn("ask_user", &questions), json!({"text": "done"})]);
    lab.run(&server, &[]).exits(0);
    assert!(results(&server.requests()[1]).contains("Nobody is there to answer"));
}

#[test]
fn u07_the_list_of_steps_is_shown_when_it_changes_and_one_key_turns_it_off() {
    let steps = |statuses: [&str; 3]| {
        let texts = ["Read the tests", "Mend the parser", "Run the tests"];
        let step = |at: usize| json!({"text": texts[at], "status": statuses[at]});
        turn("todo", &json!({"steps": [step(0), step(1), step(2)]}))
    };
    let turns = || {
        [
            steps(["done", "in_progress", "pending"]),
            turn("todo", &json!({"steps": []})),
            steps(["done", "done", "done"]),
            json!({"text": "done"}),
        ]
    };
    let (lab, server) = (Lab::new(), Server::turns(turns()));
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("go\r");
    let shown = chat.see("the answer", |text| text.contains("\ndone\n"));
    for part in [
        "● Todo 1 of 3 done\n   ✔ Read the tests\n   ▸ Mend the parser\n   ☐ Run the tests\n",
        "Todo 0 of 0 done ✗ Give 1 to 30 steps",
        "● Todo 3 of 3 done\n   ✔ Read the tests\n   ✔ Mend the parser\n   ✔ Run the tests\n",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let result = results(&server.requests()[1]);
    assert!(
        result.contains(r"1 of 3 done\n[x] Read the tests\n[>] Mend the parser\n[ ] Run the tests"),
        "{result}"
    );
    chat.types("/quit\r");
    assert_eq!(chat.finish().code, Some(0));
    let (lab, server) = (Lab::new().config("tools: {todo: false}\n"), Server::turns(turns()));
    lab.run(&server, &[]).exits(0);
    assert!(results(&server.requests()[1]).contains("Unknown tool 'todo'"));
}

/// The row of the input on a screen, above the one below it.
fn input(seen: &str) -> &str {
    seen.lines().rev().nth(1).unwrap_or_default()
}

/// A conversation of two messages, each of which has changed `a.txt`.
fn two_edits<'a>(lab: &'a Lab, server: &'a Server) -> AtTerminal {
    let mut chat = AtTerminal::chat_on_screen(lab, server, &["--mode", "yolo"]);
    chat.prompt(1);
    for (message, prompt) in [("make it two", 2), ("make it three", 3)] {
        chat.types(&format!("{message}\r"));
        chat.prompt(prompt);
    }
    assert_eq!(lab.read("a.txt"), "three\n");
    chat
}

fn two_edits_and(more: &[Value]) -> Server {
    let done = |text: &str| json!({"text": text});
    let first = [edit("one", "two"), done("it is two"), edit("two", "three"), done("it is three")];
    Server::turns(first.into_iter().chain(more.iter().cloned()).collect::<Vec<_>>())
}

#[test]
fn u15_a_conversation_that_goes_on_shows_the_calls_again_and_can_undo() {
    let lab = Lab::new().file("a.txt", "one\n");
    let seq = turn("run_command", &json!({"command": "seq 1 9"}));
    let server = two_edits_and(&[seq, json!({"text": "counted"}), waiting("gate")]);
    let mut chat = two_edits(&lab, &server);
    chat.types("count\r");
    chat.see("the answer", |text| text.contains("\ncounted\n"));
    chat.types("wait\r");
    lab.wait_for_file("gate");
    chat.types("\u{1b}");
    chat.see("the end", |text| text.contains("interrupted"));
    chat.types("\u{15}/quit\r");
    chat.finish();
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &["--last"]);
    chat.prompt(1);
    let seen = chat.see("the conversation", |text| text.contains("> wait\n"));
    for part in [
        "> make it three\n● Edit a.txt (+1 −1)\n",
        "  1 + three\nit is three\n> count\n● $ seq 1 9\n   │ 1\n",
        "the work on this message was cut off",
    ] {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    assert!(!seen.contains("make it two"), "three messages are shown: {seen}");
    chat.types("/out\r");
    chat.see("the output", |text| text.contains("   │ 9\n"));
    chat.types("/undo\r/undo\r/undo\r");
    chat.see("the undo", |text| text.contains("undone: a.txt has its earlier content again"));
    assert_eq!(lab.read("a.txt"), "two\n");
    chat.types("/quit\r");
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn u13_rewind_goes_back_to_before_a_message_with_files_and_conversation() {
    let lab = Lab::new().file("a.txt", "one\n");
    let server = two_edits_and(&[json!({"text": "again"}), json!({"text": "anew"})]);
    let mut chat = two_edits(&lab, &server);
    chat.types("/rewind\r");
    chat.see("the messages", |text| {
        text.contains("  1  make it two · a.txt\n  2  make it three · a.txt\n/rewind N goes back")
    });
    chat.types("/rewind ");
    chat.see("the menu", |text| text.contains("  2 ") && text.contains("  make it three · a.txt"));
    chat.types("2\r");
    chat.see("the input", |text| input(text) == "> make it three");
    assert_eq!(lab.read("a.txt"), "two\n");
    chat.types(" and a half\r");
    chat.see("the answer", |text| text.contains("\nagain\n"));
    let said = user_messages(&server.requests()[4]);
    assert_eq!(said, ["\"make it two\"", "\"make it three and a half\""]);
    // Before the first message nothing was said.
    chat.types("/rewind 1\r");
    chat.see("the input", |text| input(text) == "> make it two");
    assert_eq!(lab.read("a.txt"), "one\n");
    chat.types("\r");
    chat.see("the answer", |text| text.contains("\nanew\n"));
    assert_eq!(user_messages(&server.requests()[5]), ["\"make it two\""]);
    chat.types("/quit\r");
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn u13_rewind_leaves_files_or_conversation_and_does_nothing_by_half() {
    let lab = Lab::new().file("a.txt", "one\n");
    let server = two_edits_and(&[json!({"text": "again"})]);
    let mut chat = two_edits(&lab, &server);
    chat.types("/rewind 3\r");
    chat.see("the error", |text| text.contains("there is no message 3: the conversation has 2 messages"));
    chat.types("/rewind 2 all\r");
    chat.see("the error", |text| text.contains("/rewind N goes back to before message N"));
    // A person has changed the file since: nothing goes back.
    fs::write(lab.ws().join("a.txt"), "mine\n").unwrap();
    chat.types("/rewind 2\r");
    chat.see("the refusal", |text| text.contains("a.txt") && text.contains("changed"));
    assert_eq!(lab.read("a.txt"), "mine\n");
    fs::write(lab.ws().join("a.txt"), "three\n").unwrap();
    chat.types("/rewind 2 files\r");
    chat.see("what was undone", |text| text.contains("undone: a.txt has its earlier content again"));
    assert_eq!(lab.read("a.txt"), "two\n");
    chat.types("/rewind 1 conversation\r");
    chat.see("the input", |text| input(text) == "> make it two");
    assert_eq!(lab.read("a.txt"), "two\n");
    chat.types("\r");
    chat.see("the answer", |text| text.contains("\nagain\n"));
    assert_eq!(user_messages(&server.requests()[4]), ["\"make it two\""]);
    chat.types("/quit\r");
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn u06_the_share_of_the_window_and_the_cost_are_seen_and_context_says_what_fills_it() {
    let prices = "models: {openai/mock: {input: 1000, output: 0}}";
    let config = "llm: {context_window: 20000}\ncosts: {prices_file: prices.yaml}\n";
    let lab = Lab::new().config(config).file("prices.yaml", prices).file("a.txt", "x".repeat(4_000));
    let mut read = turn("read_file", &json!({"path": "a.txt"}));
    read["usage"] = json!({"input": 2_000, "output": 7});
    let usage = json!({"text": "done", "usage": {"input": 5_000, "output": 7}});
    let server = Server::turns([read, usage]);
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("go\r");
    let row = |text: &str| text.lines().last().unwrap_or_default().to_owned();
    chat.see("the row", |text| row(text).contains(" · window 25 % · $7.0000 · "));
    chat.types("/context\r");
    let seen = chat.see("the page", |text| text.contains("The parts are estimates"));
    for part in
        ["5,007 of 20,000 tokens of the window (25 %)", "  results of read_file ", "  free ", " 74 %  ████"]
    {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    chat.types("/quit\r");
    chat.finish();
    // A conversation that goes on knows what it has used.
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &["--last"]);
    chat.prompt(1);
    chat.see("the row", |text| row(text).contains(" · window 25 % · $7.0000 · "));
    chat.types("/quit\r");
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn u17_the_answer_is_copied_and_thoughts_are_shown_on_request() {
    let (lab, text) = (Lab::new(), "a \u{1b}[31mred\nanswer");
    let thinks = |text: &str| json!({"thinking": "I had a thought", "text": text});
    let server = Server::turns([thinks(text), thinks("second"), thinks("third")]);
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("/copy\r");
    chat.see("the error", |text| text.contains("no message was sent yet"));
    chat.types("one\r");
    chat.see("the end", |text| text.contains("answer\n") && text.contains(" · 1 step · "));
    chat.types("/copy\r");
    chat.see("the copy", |text| text.contains("2 lines given to the clipboard"));
    // Without the escape character: "a [31mred\nanswer".
    chat.wait("the sequence", |text| text.contains("\u{1b}]52;c;YSBbMzFtcmVkCmFuc3dlcg==\u{7}"));
    chat.types("/thinking\rtwo\r");
    let seen = chat.see("the answer", |text| text.contains("\nsecond\n") && text.contains(" · 2 steps · "));
    assert_eq!(seen.matches("I had a thought").count(), 1, "{seen}");
    chat.types("/thinking\rthree\r");
    let seen = chat.see("the answer", |text| text.contains("\nthird\n"));
    assert_eq!(seen.matches("I had a thought").count(), 1, "{seen}");
    chat.types("/quit\r");
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn u17_the_path_of_an_image_that_is_dropped_attaches_it() {
    let lab = Lab::new().file("a shot.png", crate::images::png(640, 480, 500));
    let server = Server::turns([json!({"text": "seen"})]);
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("what is");
    let path = lab.ws().join("a shot.png").display().to_string().replace(' ', "\\ ");
    chat.types(&format!("\u{1b}[200~{path}\u{1b}[201~"));
    chat.see("the image", |text| text.contains("a shot.png") && input(text) == "> what is");
    chat.types(" this\r");
    chat.see("the answer", |text| text.contains("\nseen\n"));
    assert!(server.requests()[0].body.to_string().contains("image/png;base64,"));
    chat.types("/quit\r");
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn u17_the_keys_can_be_those_of_vi() {
    let lab = Lab::new().config("chat: {editing: vi}\n");
    let server = Server::turns([json!({"text": "done"}), json!({"text": "again"})]);
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("fix the tset\u{1b}");
    chat.see("the mode", |text| text.contains("\n  NORMAL"));
    chat.types("bcwtest\r");
    chat.see("the answer", |text| text.contains("\ndone\n") && !text.contains("NORMAL"));
    assert_eq!(user_messages(&server.requests()[0]), ["\"fix the test\""]);
    chat.types("and\u{1b}k");
    chat.see("the history", |text| input(text) == "> fix the test");
    chat.types("\r");
    chat.see("the answer", |text| text.contains("\nagain\n"));
    chat.types("/quit\r");
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn u16_values_of_commands_and_files_with_similar_names_are_offered() {
    let lab = Lab::new().file("src/parse_dates.py", "").file("docs/notes.md", "");
    let server = Server::turns([json!({"text": "done"})]);
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("/mode ");
    chat.see("the modes", |text| {
        text.contains("  confirm-all") && text.contains("  yolo                     asks nothing")
    });
    chat.types("y\t\r");
    chat.see("the mode", |text| text.contains("agent build, mode yolo"));
    chat.types("/agent pl\t\r");
    chat.see("the agent", |text| text.contains("agent plan, only reads"));
    chat.types("/model openai/gpt-4.1-mimi\r");
    chat.see("the hint", |text| {
        text.contains("not among the known models (did you mean\n`openai/gpt-4.1-mini`?)")
    });
    chat.types("see @pdat");
    chat.see("the file", |text| text.contains("→ src/parse_dates.py"));
    chat.types("\t");
    chat.see("the name", |text| text.contains("> see @src/parse_dates.py"));
    chat.types("\u{15}/quit\r");
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn u14_a_user_who_looks_elsewhere_is_called_and_the_window_says_why() {
    for (notify, called) in
        [("bell", "\u{7}"), ("osc9", "\u{1b}]9;a question waits · agent · ws\u{7}"), ("none", "")]
    {
        let lab = Lab::new().config(&format!("chat: {{notify: {notify}, notify_after: 0}}\n"));
        let write = turn("write_file", &json!({"path": "a.txt", "content": "x"}));
        let server = Server::turns([write, json!({"text": "done"})]);
        let mut chat = AtTerminal::chat_on_screen(&lab, &server, &[]);
        chat.prompt(1);
        chat.types("hello\r");
        let before = chat.answer("y");
        let titles: Vec<&str> =
            before.match_indices("\u{1b}]2;").map(|(at, _)| &before[at + 4..at + 20]).collect();
        assert!(titles.iter().any(|title| title.starts_with("… agent")), "{titles:?}");
        assert!(titles.last().unwrap().starts_with("? agent"), "{titles:?}");
        // The end of a title is a bell too.
        let calls = before.replace("ws\u{7}", "ws").matches(called.trim_end_matches("ws\u{7}")).count();
        assert!(notify == "none" || calls == 1, "{notify}: {before:?}");
        assert!(notify != "none" || !before.contains("\u{1b}]9;"), "{before:?}");
        chat.prompt(2);
        chat.types("/quit\r");
        let done = chat.finish();
        assert!(done.stderr.contains("\u{1b}[22;2t") && done.stderr.trim_end().contains("\u{1b}[23;2t"));
        assert_eq!(done.code, Some(0));
    }
    // What has ended before the user has looked away calls later.
    let lab = Lab::new().config("chat: {notify: osc9, notify_after: 1}\n");
    let server = Server::turns([json!({"text": "done"})]);
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("hello\r");
    let before = chat.prompt(2);
    assert!(!before.contains("\u{1b}]9;"), "{before:?}");
    chat.wait("the call", |text| text.contains("\u{1b}]9;the agent is done · agent · ws\u{7}"));
    chat.types("/quit\r");
    chat.finish();
    // A name of a directory cannot end the title.
    let lab = Lab::new();
    let hostile = lab.ws().join("a\u{7}\u{1b}]52;c;eA==");
    fs::create_dir(&hostile).unwrap();
    let server = Server::turns([json!({"text": "done"})]);
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &["-w", hostile.to_str().unwrap()]);
    chat.prompt(1);
    chat.types("hello\r");
    let shown = chat.prompt(2);
    assert!(!shown.contains("\u{1b}]52") && shown.contains("agent · a\\u{7}"), "{shown:?}");
    chat.types("/quit\r");
    chat.finish();
}

#[test]
fn u14_a_command_calls_too_and_its_failure_is_told_once() {
    let said = |lab: &Lab| lab.ws().join("said").display().to_string();
    let lab = Lab::new();
    let script = format!("printf '%s' \"$1\" > {0}.new && mv {0}.new {0}", said(&lab));
    let command = json!(["/bin/sh", "-c", script, "sh"]);
    let lab = lab.config(
        &json!({"chat": {"notify": "none", "notify_after": 0, "notify_command": command}}).to_string(),
    );
    let write = turn("write_file", &json!({"path": "a.txt", "content": "x"}));
    let server = Server::turns([write, json!({"text": "done"})]);
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &["--mode", "confirm-sensitive"]);
    chat.prompt(1);
    chat.types("hello\r");
    chat.answer("");
    lab.wait_for_file("said");
    assert_eq!(lab.read("said"), "a question waits · agent · ws");
    chat.types("n");
    chat.prompt(2);
    chat.types("/quit\r");
    assert_eq!(chat.finish().code, Some(0));
    // A project cannot set it, and a program that is not there is told once.
    let of_project = "chat: {notify_command: [touch, made]}\n";
    let lab = Lab::new()
        .config("chat: {notify: none, notify_after: 0, notify_command: [/nowhere/notify]}\n")
        .file(".agent/config.yaml", of_project);
    let server = Server::turns(["one", "two"].map(|text| json!({"text": text})));
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &["--trust-workspace"]);
    chat.prompt(1);
    for (prompt, message) in [(2, "first"), (3, "second")] {
        chat.types(&format!("{message}\r"));
        chat.prompt(prompt);
    }
    chat.types("/quit\r");
    let seen = seen_on(&chat.finish().stderr);
    assert_eq!(seen.matches("`chat.notify_command` failed").count(), 1, "{seen}");
    assert!(!lab.exists("made"), "{seen}");
}

#[test]
fn u15_continue_takes_the_session_that_was_used_last_and_asks_as_much_as_before() {
    let lab = Lab::new();
    lab.git(&["init", "-q"]);
    let server = Server::turns(["one", "two", "three"].map(|text| json!({"text": text})));
    let talk = |args: &[&str]| {
        let mut chat = AtTerminal::chat_on_screen(&lab, &server, args);
        let header = chat.prompt(1);
        chat.see("the end", |text| text.contains(" step"));
        chat.types("/quit\r");
        let ended = chat.finish().stderr;
        let id = ended.rsplit_once("(session ").unwrap().1.split(')').next().unwrap().to_owned();
        (id, header)
    };
    let (first, _) = talk(&["first", "--mode", "confirm-all"]);
    let (second, header) = talk(&["second"]);
    assert!(second != first && header.contains("mode auto"), "{header}");
    let (again, header) = talk(&["--resume", &first, "more"]);
    assert!(again == first && header.contains("mode confirm-all"), "{header}");
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &["--last"]);
    let header = chat.prompt(1);
    assert!(header.contains(&first) && header.contains("mode confirm-all"), "{header}");
    chat.types("/resume\r");
    let other = |text: &str| text.contains("→ second") && !text.contains("  first  ");
    chat.see("the other session", other);
    // Its age is no word of it.
    chat.types("ago");
    chat.see("no session", |text| !text.contains("→ second"));
    chat.types("\u{15}/quit\r");
    chat.finish();
}

#[test]
fn u15_a_session_is_chosen_from_a_list_that_typing_filters() {
    let lab = Lab::new();
    lab.git(&["init", "-q", "-b", "main"]);
    let server = Server::turns(["red", "blue", "more"].map(|text| json!({"text": text})));
    for task in ["paint it red", "paint it blue"] {
        let mut chat = AtTerminal::chat_on_screen(&lab, &server, &[task]);
        chat.prompt(1);
        if task.contains("blue") {
            chat.types("/name  the \u{b}sea and the sky\r");
            chat.see("the name", |text| text.contains("the session is named: the sea and the sky"));
        }
        chat.types("/quit\r");
        chat.finish();
    }
    let listed = lab.agent(&["sessions", "list"]).exits(0).stdout;
    assert!(listed.contains("the sea and the sky") && !listed.contains("paint it blue"), "{listed}");
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &["--resume"]);
    let listed =
        |text: &str| text.contains("→ the sea and the sky") && text.contains("  paint it red             ");
    chat.see("the list", |text| text.contains("> /resume") && listed(text));
    chat.types("red");
    chat.see("the filtered list", |text| text.contains("paint it red") && !text.contains("the sea"));
    chat.types("\r");
    chat.see("what was said", |text| text.contains("> paint it red\nred"));
    chat.prompt(2);
    chat.types("go on\r");
    chat.prompt(3);
    assert_eq!(user_messages(&server.requests()[2]), ["\"paint it red\"", "\"go on\""]);
    chat.types("/quit\r");
    assert_eq!(chat.finish().code, Some(0));
}

#[test]
fn u10_the_row_below_the_input_is_true_after_a_change_of_the_agent() {
    let lab = Lab::new();
    let call = turn("list_files", &json!({}));
    let server = Server::turns([
        json!({"text": "planned"}),
        waiting("gate"),
        json!({"text": "changed"}),
        call,
        json!({"text": "read"}),
    ]);
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &["--agent", "plan"]);
    chat.prompt(1);
    chat.types("one\r");
    chat.prompt(2);
    chat.types("\u{1b}[Z");
    chat.see("the agent", |text| text.contains("· build, mode confirm-sensitive"));
    chat.types("two\r");
    chat.answer("y");
    lab.wait_for_file("gate");
    // A change while the agent works holds for the next message.
    chat.types("\u{1b}[Z\u{1b}[Z");
    let row = |text: &str| text.lines().last().unwrap_or_default().to_owned();
    chat.see("the agent", |text| row(text).contains("plan, only reads"));
    fs::write(lab.ws().join("gate"), "go\n").unwrap();
    chat.prompt(3);
    let seen = chat
        .see("the answer", |text| text.contains("\nchanged\n") && row(text).contains("· plan, only reads"));
    assert!(!seen.contains("settings differ") && !seen.contains("the tools have changed"), "{seen}");
    chat.types("/quit\r");
    let done = chat.finish();
    assert!(done.stderr.contains("agent -c continues this conversation"), "{}", done.stderr);
}

#[test]
fn u17_the_editor_gives_its_text_to_the_input_and_a_paste_is_no_answer() {
    let lab = Lab::new();
    fs::write(lab.ws().join("editor.sh"), "printf ' and more' >> \"$1\"\n").unwrap();
    let editor = format!("sh {}", lab.ws().join("editor.sh").display());
    let lab = lab.env("EDITOR", &editor);
    let write = turn("write_file", &json!({"path": "a.txt", "content": "x"}));
    let server = Server::turns([write, json!({"text": "done"})]);
    let mut chat = AtTerminal::chat_on_screen(&lab, &server, &[]);
    chat.prompt(1);
    chat.types("half\u{7}");
    chat.prompt(2);
    chat.see("the text", |text| text.contains("> half\n   and more"));
    assert!(server.requests().is_empty());
    chat.types("\r");
    chat.see("the question", |text| text.contains("stop the run:"));
    chat.types("\u{1b}[200~y\rpasted\u{1b}[201~");
    chat.answer("");
    chat.answer("n");
    chat.prompt(3);
    chat.see("the paste", |text| text.contains("> y\n  pasted"));
    assert!(!lab.exists("a.txt"));
    // The key takes what was typed, and does not end the conversation.
    chat.types("\u{3}");
    chat.see("the empty input", |text| input(text) == ">");
    chat.types("/quit\r");
    chat.finish();
}
