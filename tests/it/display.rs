//! What a person sees at a terminal, whatever a model, a file or a server sends: nothing is obeyed, nothing is hidden, and the
//! question stands where it is answered. Tests name the class of attack they stand for.

use crate::support::run::{Finished, KEY, Lab};
use crate::support::server::Server;
use crate::support::terminal::{AtTerminal, QUESTION};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

/// Rows and columns of the terminal.
const SCREEN: (usize, usize) = (24, 80);

/// Sequences that clear, colour, name, copy, link, move and turn around, each before the same word.
const HOSTILE: &str = "\u{1b}[2JEVIL\u{1b}[31mEVIL\u{1b}[1A\u{1b}[2KEVIL\u{1b}]0;x\u{7}EVIL\u{1b}]52;c;eA==\u{7}EVIL\
                       \u{1b}]8;;x:y\u{1b}\\EVIL\u{9b}2JEVIL\u{9d}0;x\u{9c}EVIL\u{8}EVIL\u{7f}EVIL\u{b}EVIL\u{c}EVIL\
                       \u{1b}cEVIL\u{202e}EVIL\u{200b}EVIL\u{e0041}EVIL";

/// What is left of a terminal's input when the sequences that colour and the spinner are made of are taken out; fails at any
/// other control character, and at one of ours that stands where only a stranger would put it.
#[track_caller]
fn seen(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\u{1b}' => {
                let end = rest.find(|c: char| c.is_ascii_alphabetic());
                let (sequence, after) = rest.split_at(end.expect("a whole sequence") + 1);
                let ours = sequence.starts_with('[')
                    && sequence.ends_with(['m', 'K', 'J', 'A', 'B', 'C', 'G'])
                    || ["[?2026h", "[?2026l"].contains(&sequence);
                assert!(ours && !after.starts_with("EVIL"), "ESC {sequence}{after:.20}");
                rest = after;
            }
            '\r' => assert!(!rest.starts_with("EVIL"), "a carriage return: {rest:.20}"),
            c if agent_terminal::needs_escape(c) => panic!("{c:?} before {rest:.20}"),
            c => plain.push(c),
        }
    }
    plain
}

/// What was read from a terminal so far, without the beginning of a sequence that has not arrived whole.
fn arrived(text: &str) -> &str {
    let last = text.rfind('\u{1b}').unwrap_or(text.len());
    let whole = text[last..].chars().skip(1).any(|c| c.is_ascii_alphabetic());
    if whole { text } else { &text[..last] }
}

/// Nothing that was sent is obeyed on either stream.
#[track_caller]
fn is_harmless(done: &Finished) -> String {
    assert!(!done.stdout.contains('\u{1b}'), "{:?}", done.stdout);
    seen(&done.stdout) + &seen(&done.stderr)
}

/// A project and a configuration whose every name and text is hostile.
fn hostile_lab() -> Lab {
    let hook = json!({"name": format!("hook{HOSTILE}"), "command": "cat bad*; exit 1"});
    Lab::new()
        .file(&format!("bad{HOSTILE}.txt"), format!("{HOSTILE}\n"))
        .file("AGENTS.md", HOSTILE)
        .config(&yaml(&json!({"hooks": {"post_tool_use": [hook]}})))
}

/// A script as YAML reads it, which takes no control characters as they are.
fn yaml(script: &Value) -> String {
    let escaped = |c: char| match c {
        '\u{7f}'..='\u{9f}' => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    script.to_string().chars().map(escaped).collect()
}

/// A model and a server of which every word is hostile.
fn hostile_script() -> Value {
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let calls = [
        call("list_files", json!({})),
        call("read_file", json!({"path": format!("bad{HOSTILE}.txt")})),
        call("read_file", json!({"path": format!("none{HOSTILE}")})),
        call(&format!("no{HOSTILE}"), json!({})),
        call("run_command", json!({"command": format!("cat bad* >&2; echo '{HOSTILE}'; exit 3")})),
        call("write_file", json!({"path": format!("new{HOSTILE}"), "content": HOSTILE})),
    ];
    json!({"turns": [
        {"text": HOSTILE, "thinking": HOSTILE, "chunk": 3, "calls": calls},
        {"error": {"status": 503, "retry_after": 0.01, "message": HOSTILE}},
        {"text": HOSTILE, "chunk": 3},
    ]})
}

#[test]
fn class_48_tr_020_tr_021_no_control_byte_of_anybody_reaches_a_terminal_with_colour() {
    let lab = hostile_lab();
    let task = format!("task {HOSTILE}");
    for more in [&["-vv"][..], &["-vv", "--mode", "yolo"], &["-vv", "--dry-run"], &["--json"]] {
        let server = Server::start(&yaml(&hostile_script()));
        let url = server.url();
        let args = ["run", &task, "--model", "openai/mock", "--api-base", &url, "--api-key", KEY];
        let mut run = AtTerminal::launch(lab.command(&[&args, more].concat()));
        if more == ["-vv"] {
            let command = run.answer("n\r");
            assert!(seen(arrived(&command)).contains("echo '\\u{1b}[2JEVIL"), "{command}");
            let write = run.answer("n\r");
            assert!(seen(arrived(&write)).contains("+ \\u{1b}[2JEVIL"), "{write}");
        }
        let done = run.finish().exits(0);
        let all = is_harmless(&done);
        assert!(all.contains("no\\u{1b}[2JEVIL") || more == ["--json"], "{all}");
        match more {
            ["--json"] => assert_eq!(done.json()["output"], HOSTILE, "the data is whole"),
            [_, "--dry-run"] => {}
            _ => assert!(done.stderr.contains("\u{1b}[1m") && all.contains("hook\\u{1b}[2JEVIL"), "{all}"),
        }
    }
    let id = lab.journal().parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    for args in [&["sessions", "list"][..], &["sessions", "show", &id], &["agents"], &["doctor"]] {
        assert!(is_harmless(&AtTerminal::launch(lab.command(args)).finish()).len() > 20, "{args:?}");
    }
}

#[test]
fn class_48_an_error_of_the_server_and_a_projects_wishes_are_shown_and_not_obeyed() {
    let lab = hostile_lab();
    for error in [json!({"status": 400, "message": HOSTILE}), json!({"status": 401, "message": HOSTILE})] {
        let server = Server::start(&yaml(&json!({"turns": [{"error": error}]})));
        let done = AtTerminal::start(&lab, &server, &[]).finish();
        assert_ne!(done.code, Some(0));
        assert!(is_harmless(&done).contains("EVIL"), "{}", done.stderr);
    }
    let hooks =
        json!({"hooks": {"session_start": [{"command": format!("true '{HOSTILE}'"), "name": HOSTILE}]}});
    let lab = lab.file(".agent/config.yaml", yaml(&hooks));
    let shown = AtTerminal::launch(lab.command(&["trust", "--show"])).finish();
    assert!(is_harmless(&shown).contains("EVIL"), "{}{}", shown.stdout, shown.stderr);
    let mut asked = AtTerminal::launch(lab.command(&["trust"]));
    asked.answer("n\r");
    assert!(is_harmless(&asked.finish().exits(3)).contains("EVIL"));
    // With white space it would be a message.
    let word = HOSTILE.replace(char::is_whitespace, "");
    for args in [&["config", "show"][..], &["run", "x", HOSTILE], &[&word], &["help", HOSTILE]] {
        is_harmless(&AtTerminal::launch(lab.command(args)).finish());
    }
}

#[test]
fn class_48_names_of_a_project_forge_no_line_of_what_is_to_be_trusted() {
    let forged = "x\nnothing here needs trust\n.sh";
    let hooks = json!({"hooks": {"session_start": [{"command": format!("sh '{forged}'")}]}});
    let lab = Lab::new().file(forged, "true\n").file(".agent/config.yaml", hooks.to_string());
    let shown = lab.agent(&["trust", "--show"]).stdout;
    assert!(shown.contains("x\\nnothing here needs trust\\n.sh"), "{shown}");
    assert!(!shown.lines().any(|line| line.starts_with("nothing")), "{shown}");
}

/// The rows that text takes on the screen.
fn rows(text: &str) -> usize {
    let columns = |c: char| match c {
        '\t' => 8,
        '\u{301}' => 0,
        '\u{1100}'.. => 2,
        _ => 1,
    };
    text.lines().map(|line| line.chars().map(columns).sum::<usize>().div_ceil(SCREEN.1).max(1)).sum()
}

/// What a person sees who is asked about one call, and says no.
#[track_caller]
fn asked(lab: &Lab, name: &str, arguments: &Value) -> String {
    let calls = json!([{"name": name, "arguments": arguments}]);
    let server = Server::batch(calls);
    let mut run = AtTerminal::start(lab, &server, &["--mode", "confirm-all"]);
    let shown = seen(&run.answer("n\r"));
    run.finish().exits(0);
    let question = shown.find("May I ").unwrap();
    shown[question..].to_owned()
}

#[test]
fn class_49_what_is_asked_stands_on_the_last_screen_with_head_tail_and_size_of_the_whole() {
    let lab = Lab::new().unprivileged();
    let cases = [
        ("newlines", "\n".repeat(9_000), " lines not shown ("),
        ("tabs", "\t".repeat(9_000), " characters not shown "),
        ("spaces", " ".repeat(9_000), " characters not shown "),
        ("wide", "宽".repeat(3_000), " characters not shown "),
        ("combining", format!("e{}", "\u{301}".repeat(4_000)), " characters not shown "),
        (
            "tabs on many lines",
            "\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\n".repeat(400),
            " lines not shown (",
        ),
    ];
    for (what, filling, size) in cases {
        let command = json!({"command": format!("echo start {filling}; touch marker")});
        let file = json!({"path": "new.txt", "content": format!("start {}; end", filling.repeat(20))});
        for (name, arguments, first, last) in [
            ("run_command", command, "echo start", "; touch marker"),
            ("write_file", file, "+ start", "; end"),
        ] {
            let shown = asked(&lab, name, &arguments);
            // A row can end within what is looked for.
            let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            for part in [first, last, size] {
                assert!(words.contains(part), "{what}: {part}\n{shown}");
            }
            assert!(rows(&shown) < 10 * SCREEN.0 && shown.len() < 50_000, "{what}: {} rows", rows(&shown));
            let bottom = &shown[shown.rfind("May I ").unwrap()..];
            assert!(bottom.contains("Asked because"), "{what}: {bottom}");
            assert!(bottom.trim_end().ends_with(QUESTION.trim_end()), "{what}: {bottom}");
            let below = rows(&shown) > SCREEN.0;
            assert!(!below || rows(bottom) <= SCREEN.0 / 2, "{what}: {} rows\n{bottom}", rows(bottom));
        }
    }
    assert!(!lab.exists("marker") && !lab.exists("new.txt"));
}

// Fault E2: the prompt of a long command hid its middle, and `y` ran it.
#[test]
fn a_question_that_hides_something_takes_no_yes_before_it_was_shown_whole() {
    let lines = format!("true\n{}touch marker\n{}true", "true\n".repeat(100), "true\n".repeat(100));
    let line = format!("true {}; touch marker; true {}", "x".repeat(2_000), "x".repeat(2_000));
    for command in [lines, line] {
        for yes in ["y\r", "a\r"] {
            let lab = Lab::new().unprivileged();
            let calls = json!([{"name": "run_command", "arguments": {"command": command}}]);
            let server = Server::batch(calls);
            let mut run = AtTerminal::start(&lab, &server, &["--mode", "confirm-all"]);
            let cut = seen(&run.answer(yes));
            assert!(cut.contains("Not all is shown: v = view all"), "{cut}");
            assert!(!cut.contains("touch marker"), "{cut}");
            let refused = seen(&run.answer("v\r"));
            assert!(refused.contains("Nothing was allowed: v shows all of it"), "{refused}");
            assert!(!lab.exists("marker"));
            let whole = seen(&run.answer(yes));
            assert!(
                whole.contains("touch marker") && whole.trim_end().ends_with(QUESTION.trim_end()),
                "{whole}"
            );
            run.finish().exits(0);
            assert!(lab.exists("marker"));
        }
    }
}

// Fault E2: what a tool without a diff or command does with a long text was cut in the question.
#[test]
fn a_long_argument_is_shown_in_the_question_of_every_tool() {
    let lab = Lab::new().config("memory: {enabled: true}\n").unprivileged();
    let fact = format!("{} in the middle {}", "word ".repeat(60), "word ".repeat(60));
    let calls = json!([{"name": "remember", "arguments": {"fact": fact}}]);
    let server = Server::batch(calls);
    let mut run = AtTerminal::start(&lab, &server, &["--mode", "confirm-all"]);
    assert!(!seen(&run.answer("v\r")).contains("in the middle"));
    assert!(seen(&run.answer("n\r")).contains("in the middle"));
    run.finish().exits(0);
}

#[test]
fn class_49_a_name_that_is_too_long_or_of_many_lines_is_one_bounded_line_with_its_end() {
    let lab = Lab::new().unprivileged();
    let path = format!("a\n\n{}/end.txt", "d/".repeat(1_000));
    let shown = asked(&lab, "read_file", &json!({"path": path}));
    assert!(rows(&shown) <= SCREEN.0 && shown.starts_with("May I read a\\n"), "{shown}");
}

#[test]
fn class_47_what_nobody_sees_is_shown_as_an_escape_in_a_question() {
    let lab = Lab::new().unprivileged();
    let arguments = json!({"path": "new\u{202e}.txt", "content": "if (x\u{2066}) {}\u{e0041}\u{200b}"});
    let shown = asked(&lab, "write_file", &arguments);
    for part in ["write new\\u{202e}.txt", "+ if (x\\u{2066}) {}\\u{e0041}\\u{200b}"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

/// A workspace in which names lead elsewhere.
fn linked() -> Lab {
    let lab = Lab::new().file("real/target.txt", "alpha\n").file("other.txt", "alpha\n");
    symlink("real/target.txt", lab.ws().join("link.txt")).unwrap();
    symlink("real", lab.ws().join("dir")).unwrap();
    fs::write(lab.outside().join("outside.txt"), "outside\n").unwrap();
    symlink(lab.outside().join("outside.txt"), lab.ws().join("out.txt")).unwrap();
    lab.unprivileged()
}

#[test]
fn class_05_a_question_about_a_link_shows_where_it_leads() {
    let lab = linked();
    let edit = |path: &str| json!({"path": path, "old_str": "alpha", "new_str": "beta"});
    let cases = [
        ("edit_file", edit("link.txt"), "link.txt leads through a link to real/target.txt"),
        ("edit_file", edit("dir/target.txt"), "dir/target.txt leads through a link to real/target.txt"),
        (
            "write_file",
            json!({"path": "dir/new.txt", "content": "x"}),
            "dir/new.txt leads through a link to real/new.txt",
        ),
        ("read_file", json!({"path": "link.txt"}), "link.txt leads through a link to real/target.txt"),
        (
            "run_command",
            json!({"command": "echo x > link.txt"}),
            "link.txt leads through a link to real/target.txt",
        ),
        (
            "run_command",
            json!({"command": "echo x > out.txt"}),
            "out.txt leads through a link out of the workspace",
        ),
        ("run_command", json!({"command": "ls", "cwd": "dir"}), "dir leads through a link to real"),
    ];
    for (name, arguments, told) in cases {
        let shown = asked(&lab, name, &arguments);
        assert!(shown.contains(told), "{told}:\n{shown}");
    }
    let plain = asked(&lab, "edit_file", &edit("./real/../other.txt"));
    assert!(!plain.contains("link"), "{plain}");
}

#[test]
fn class_05_a_file_tool_that_a_link_would_take_outside_is_refused_and_nobody_is_asked() {
    let lab = linked();
    let calls = [
        json!({"name": "write_file", "arguments": {"path": "out.txt", "content": "x"}}),
        json!({"name": "edit_file", "arguments": {"path": "out.txt", "old_str": "outside", "new_str": "x"}}),
    ];
    let server = Server::batch(calls);
    let done = AtTerminal::start(&lab, &server, &[]).finish().exits(0);
    assert!(!done.stderr.contains(QUESTION), "{}", done.stderr);
    assert_eq!(fs::read_to_string(lab.outside().join("outside.txt")).unwrap(), "outside\n");
}

#[test]
fn class_05_a_yes_is_not_for_where_a_link_was_turned_while_the_question_stood() {
    for (path, elsewhere) in [("link.txt", "other.txt"), ("real/target.txt", "../other.txt")] {
        let lab = linked();
        let write = json!({"name": "run_command", "arguments": {"command": format!("echo beta > {path}")}});
        let edit =
            json!({"name": "edit_file", "arguments": {"path": path, "old_str": "alpha", "new_str": "beta"}});
        for call in [write, edit] {
            let server = Server::batch([call]);
            let mut run = AtTerminal::start(&lab, &server, &["--mode", "confirm-all"]);
            run.wait("question", |text| text.contains(QUESTION));
            let (name, before) = (lab.ws().join(path), lab.ws().join("before"));
            fs::rename(&name, &before).unwrap();
            symlink(elsewhere, &name).unwrap();
            run.answer("y\r");
            run.finish().exits(0);
            assert_eq!(lab.read("other.txt"), "alpha\n", "{path}");
            let told = server.requests()[1].messages().last().unwrap().to_string();
            assert!(told.contains("a link in the path of a file changed"), "{told}");
            fs::rename(&before, &name).unwrap();
        }
    }
}
