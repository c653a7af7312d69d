//! What a server or network can do wrong, each thing once through the binary: every run ends in time, says what was
//! wrong, exits with a failure and has executed nothing that was not asked for.

use crate::support::run::{Finished, KEY, Lab};
use crate::support::wire_server::{BOMB_START, WireServer, bomb, events, flood, head, hold};
use serde_json::{Value, json};
use std::io::{Result, Write};
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Deadlines as short as the configuration allows, and no second try.
const IMPATIENT: &str = "llm: {retries: 0, timeouts: {connect_seconds: 1, first_byte_seconds: 1, silence_seconds: 1, call_seconds: 2}}\n";
/// No second try, and no deadline that matters: for answers that a limit ends, however busy the machine is.
const PATIENT: &str = "llm: {retries: 0}\n";
/// The longest such a run may take: its deadlines and, on a machine that is busy, its own work.
const IN_TIME: Duration = Duration::from_secs(20);
/// Where a stream of Chat Completions ends.
const DONE: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// Runs a task against a server that speaks Chat Completions; gives back what came of it.
fn run_briefly(lab: &Lab, server: &WireServer, more: &[&str]) -> Finished {
    run_with("openai/m", lab, server, more)
}

/// Runs a task against the server of `model`.
fn run_with(model: &str, lab: &Lab, server: &WireServer, more: &[&str]) -> Finished {
    let started = Instant::now();
    let done = lab.run_model(model, &server.url(), &[&["--mode", "yolo"], more].concat());
    assert!(started.elapsed() < IN_TIME, "took {:?}", started.elapsed());
    assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
    assert!(!(done.stderr.clone() + &done.stdout).contains(KEY), "{}", done.stderr);
    done
}

/// Checks that the answer that `play` writes fails with one of these kinds.
#[track_caller]
fn fails(what: &str, kinds: &[&str], play: impl Fn(&mut TcpStream) -> Result<()> + Send + Sync + 'static) {
    let server = WireServer::start(move |stream, _| play(stream));
    let patience = if kinds.contains(&"malformed") { PATIENT } else { IMPATIENT };
    let lab = Lab::new().config(patience);
    let done = run_briefly(&lab, &server, &[]);
    let kind = failure(&lab);
    assert!(kinds.contains(&kind.as_str()), "{what}: {kind}\n{}\n{}", done.stdout, done.stderr);
    assert_eq!((done.code, server.requests().len()), (Some(1), 1), "{what}");
}

/// The kind of the error with which the newest session's model call failed; empty where none did.
pub fn failure(lab: &Lab) -> String {
    let journal = std::fs::read_to_string(lab.journal()).unwrap();
    let records = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let kind =
        records.map(|line| line["record"]["event"]["failure"]["kind"].clone()).find(|kind| !kind.is_null());
    kind.and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Checks that these bytes fail.
#[track_caller]
fn bytes_fail(what: &str, kinds: &[&str], answer: impl Into<Vec<u8>>) {
    let answer = answer.into();
    fails(what, kinds, move |stream| stream.write_all(&answer));
}

/// Checks that these bytes are an answer that says `done`.
#[track_caller]
fn says_done(what: &str, answer: impl Into<Vec<u8>>) {
    let server = WireServer::bytes(answer);
    let done = run_briefly(&Lab::new().config(IMPATIENT), &server, &["--quiet"]);
    assert_eq!((done.code, done.stdout.trim()), (Some(0), "done"), "{what}: {}", done.stderr);
}

fn text(text: &str) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"content": text}}]}))
}

fn whole() -> String {
    text("done") + DONE
}

/// `body` as one chunk of a chunked body.
fn chunk(body: &str) -> String {
    format!("{:x}\r\n{body}\r\n", body.len())
}

fn chunked(body: &str) -> String {
    head("200 OK", "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n") + body
}

/// Writes `piece` twenty times a second until the client goes away.
fn drip(stream: &mut TcpStream, piece: &[u8]) -> Result<()> {
    let (_open, never) = channel::<()>();
    loop {
        stream.write_all(piece)?;
        assert!(never.recv_timeout(Duration::from_millis(50)).is_err());
    }
}

#[test]
fn a_server_that_holds_the_connection_open_meets_a_deadline() {
    let hints = head("103 Early Hints", "").repeat(500);
    let zeros = "0".repeat(10_000);
    std::thread::scope(|scope| {
        for (what, beginning, piece) in [
            ("nothing", String::new(), ""),
            ("a head", head("200 OK", ""), ""),
            ("half a head", "HTTP/1.1 200 OK\r\nx: ".into(), ""),
            ("half an answer", events(&text("do")), ""),
            ("a header without end", "HTTP/1.1 200 OK\r\nx: ".into(), "x"),
            ("headers without end", "HTTP/1.1 200 OK\r\n".into(), "x: y\r\n"),
            ("signs of life without end", events(""), ": ping\n\n"),
            ("empty events without end", events(""), "data:\n\n"),
            ("blanks without end", events(""), " "),
            ("half a document", head("200 OK", "content-type: application/json\r\n") + "{", ""),
            ("spaces in a document", head("200 OK", "content-type: application/json\r\n") + "{", " "),
            ("informational answers", String::new(), hints.as_str()),
            ("zeros before a chunk's size", chunked(""), zeros.as_str()),
        ] {
            let piece = piece.to_owned();
            let play = move |stream: &mut TcpStream| {
                stream.write_all(beginning.as_bytes())?;
                if piece.is_empty() { hold(stream) } else { drip(stream, piece.as_bytes()) }
            };
            scope.spawn(move || fails(what, &["timeout"], play));
        }
    });
}

#[test]
fn an_error_whose_words_never_end_is_told_by_its_status() {
    fails("held", &["server"], |stream| {
        stream.write_all(head("500 Oops", "content-length: 10\r\n").as_bytes())?;
        hold(stream)
    });
    fails("endless", &["server"], |stream| {
        stream.write_all(head("500 Oops", "").as_bytes())?;
        flood(stream, b"sorry ")
    });
}

#[test]
fn an_answer_without_an_end_is_cut_off() {
    let beginning = |start: String, piece: &'static [u8]| {
        move |stream: &mut TcpStream| {
            stream.write_all(start.as_bytes())?;
            flood(stream, piece)
        }
    };
    for (what, kinds, start, piece) in [
        ("a header", &["network"], "HTTP/1.1 200 OK\r\nx: ".to_owned(), b"x".as_slice()),
        ("headers", &["network"], "HTTP/1.1 200 OK\r\n".into(), b"x: y\r\n"),
        ("a status line", &["network"], "HTTP/1.1 200 O".into(), b"K"),
        ("a line", &["malformed"], events("data: "), b"x"),
        ("an event", &["malformed"], events(""), b"data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"),
        ("a document", &["malformed"], events("{"), b" "),
        ("a web page", &["malformed"], events("<html>"), b"<p>"),
        ("a chunk's size", &["network"], chunked(""), b"1"),
        ("a chunk's extension", &["network"], chunked("5;"), b"x"),
    ] {
        fails(what, kinds, beginning(start, piece));
    }
    fails("trailers", &["network"], beginning(chunked("0\r\n"), b"x: y\r\n"));
}

#[test]
fn a_response_that_is_no_model_answer_is_an_error() {
    for (what, kinds, answer) in [
        (
            "a web page",
            &["malformed"],
            head("200 OK", "content-type: text/html\r\n") + "<html><title>Login</title>",
        ),
        ("text", &["malformed"], head("200 OK", "content-type: text/plain\r\n") + "upstream is asleep"),
        (
            "another document",
            &["malformed"],
            head("200 OK", "content-type: application/json\r\n") + "{\"ok\":true}",
        ),
        ("no content", &["cut_stream"], head("204 No Content", "")),
        ("an empty body", &["cut_stream"], head("200 OK", "content-length: 0\r\n")),
        ("not modified", &["request"], head("304 Not Modified", "")),
        ("another protocol", &["network"], "SSH-2.0-OpenSSH_9.6\r\n".into()),
        (
            "switched protocols",
            &["request"],
            head("101 Switching Protocols", "upgrade: x\r\nconnection: upgrade\r\n"),
        ),
        ("an unknown status", &["server"], head("599 Odd", "content-length: 0\r\n")),
        ("no status", &["network"], "HTTP/1.1 OK\r\n\r\n".into()),
        ("a length too large", &["network"], head("200 OK", "content-length: 999\r\n") + &text("done")),
        ("a length too small", &["cut_stream"], head("200 OK", "content-length: 20\r\n") + &whole()),
        ("a length that is none", &["network"], head("200 OK", "content-length: many\r\n") + &whole()),
        (
            "two lengths",
            &["network"],
            head("200 OK", "content-length: 5\r\ncontent-length: 6\r\n") + &whole(),
        ),
        ("chunks that are none", &["network"], chunked("zz\r\n")),
        ("a chunk of 2^64 bytes", &["network"], chunked("10000000000000000\r\nx")),
        ("a cut chunk", &["network"], chunked("ff\r\ndata: {")),
        (
            "a part of an answer",
            &["cut_stream"],
            events(&text("done")).replace("200 OK", "206 Partial Content"),
        ),
        ("a cut event", &["cut_stream"], events("data: {\"choices\":[{\"del")),
    ] {
        bytes_fail(what, kinds, answer);
    }
}

#[test]
fn odd_but_whole_answers_are_answers() {
    let body = whole();
    let with = |status: &str, headers: &str| head(status, headers) + &body;
    for (what, answer) in [
        ("http/1.0", with("200 OK", "").replace("HTTP/1.1", "HTTP/1.0")),
        ("another content type", with("200 OK", "content-type: application/pdf\r\nconnection: close\r\n")),
        ("created", with("201 Created", "connection: close\r\n")),
        (
            "informational answers before",
            head("103 Early Hints", "link: x\r\n").repeat(9) + &with("200 OK", ""),
        ),
        ("trailers", chunked(&chunk(&body)) + "0\r\nx-more: y\r\n\r\n"),
        (
            "single bytes",
            chunked(&body.chars().map(|c| chunk(&c.to_string())).collect::<String>()) + "0\r\n\r\n",
        ),
        ("a length too large, but the end of the answer", with("200 OK", "content-length: 9999\r\n")),
        ("rubbish after the end", with("200 OK", "") + &"\u{7}\u{1b}[31m".repeat(99)),
    ] {
        says_done(what, answer);
    }
}

#[test]
fn a_redirect_is_followed_nowhere_and_the_key_stays_home() {
    let elsewhere = WireServer::bytes(events(&whole()));
    let port = elsewhere.authority();
    let there = format!("http://{port}/v1/chat/completions");
    let refused = |status: &str, location: &str| {
        bytes_fail(location, &["request"], head(status, &format!("location: {location}\r\n")));
    };
    for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent", "300 Choices"]
    {
        refused(status, &there);
    }
    for location in [
        &there.replace("http:", "https:"),
        &format!("http://user:password@{port}/"),
        &format!("//{port}/"),
        "/elsewhere",
        "https:///",
        "%zz",
    ] {
        refused("307 Temporary", location);
    }
    assert_eq!(elsewhere.requests(), Vec::<String>::new());
}

#[test]
fn what_a_server_adds_to_an_answer_is_not_taken_for_the_next_one() {
    let forged = head("200 OK", "connection: close\r\n") + &text("forged") + DONE;
    let call = json!({"index": 0, "id": "a", "function": {"name": "list_files", "arguments": "{}"}});
    let first = format!(
        "data: {}\n\n",
        json!({"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]})
    );
    let first = first + "data: [DONE]\n\n";
    let first = head("200 OK", &format!("content-length: {}\r\n", first.len())) + &first + &forged;
    let server = WireServer::start(move |stream, number| {
        if number > 0 {
            return stream.write_all(events(&whole()).as_bytes());
        }
        stream.write_all(first.as_bytes())?;
        hold(stream)
    });
    let done = run_briefly(&Lab::new().config(IMPATIENT), &server, &["--quiet"]);
    assert_eq!(
        (done.code, done.stdout.trim(), server.requests().len()),
        (Some(0), "done", 2),
        "{}",
        done.stderr
    );
}

/// The arguments of a call as they go out on the wire, and the lines that the command of that call then writes.
fn calls_run(calls: &[Value]) -> (usize, Value, String) {
    let event = json!({"choices": [{"delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}]});
    let first = events(&format!("data: {event}\n\ndata: [DONE]\n\n"));
    let server = WireServer::answers(vec![first.into(), events(&whole()).into()]);
    let lab = Lab::new().config(IMPATIENT).file("out", "");
    let done = run_briefly(&lab, &server, &["--json"]);
    let stderr = done.stderr.clone();
    (lab.read("out").lines().count(), done.json(), stderr)
}

fn call(id: &Value, arguments: &Value) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "run_command", "arguments": arguments}})
}

#[test]
fn no_call_runs_twice_and_none_runs_without_its_arguments() {
    let command = json!({"command": "echo x >> out"});
    let written = json!(command.to_string());
    let doubled = json!(written.to_string());
    for (what, arguments, runs) in [
        ("text", &written, 1),
        ("an object", &command, 1),
        ("empty", &json!(""), 0),
        ("null", &Value::Null, 0),
        ("the word null", &json!("null"), 0),
        ("encoded twice", &doubled, 1),
        ("a list", &json!("[]"), 0),
        ("two documents", &json!(format!("{0}{0}", command)), 0),
        ("cut", &json!("{\"command\": \"echo x >> out"), 0),
        ("too deep", &json!(format!("{{\"command\":\"echo x >> out\",\"a\":{}", "[".repeat(200_000))), 0),
        (
            "too many",
            &json!(format!("{{\"command\":\"echo x >> out\",\"a\":[{}0]}}", "0,".repeat(200_000))),
            0,
        ),
        ("the same key twice", &json!("{\"command\":\"echo x >> out\",\"command\":\"echo x >> out\"}"), 0),
    ] {
        let (lines, result, stderr) = calls_run(&[call(&json!("a"), arguments)]);
        assert_eq!(lines, runs, "{what}: {result}\n{stderr}");
        assert_eq!(result["status"], "success", "{what}: {result}\n{stderr}");
    }
}

#[test]
fn each_call_runs_once_whatever_its_id() {
    let arguments = json!("{\"command\":\"echo x >> out\"}");
    let other = json!("{\"command\":\"echo y >> out\"}");
    for (what, first, second) in [
        ("missing", Value::Null, Value::Null),
        ("empty", json!(""), json!("")),
        ("the same", json!("a"), json!("a")),
        ("numbers", json!(7), json!(7)),
        ("strange", json!("a\u{0}b\n\u{202e}"), json!("../../x")),
        ("long", json!("x".repeat(60_000)), json!("x".repeat(60_000))),
    ] {
        let (lines, result, stderr) = calls_run(&[call(&first, &arguments), call(&second, &other)]);
        assert_eq!(lines, 2, "{what}: {result}\n{stderr}");
    }
}

#[test]
fn a_call_that_is_sent_in_two_ways_runs_once() {
    let arguments = json!("{\"command\":\"echo x >> out\"}");
    let at = |index: usize, id: &str| {
        let mut call = call(&json!(id), &arguments);
        call["index"] = json!(index);
        call
    };
    let function = json!({"name": "run_command", "arguments": arguments});
    for (what, delta, runs) in [
        ("under two numbers", json!({"tool_calls": [at(0, "a"), at(1, "a")]}), 1),
        ("in the older form too", json!({"tool_calls": [at(0, "a")], "function_call": function}), 1),
        ("as two calls", json!({"tool_calls": [at(0, "a"), at(1, "b")]}), 2),
    ] {
        let event = json!({"choices": [{"delta": delta, "finish_reason": "tool_calls"}]});
        let first = events(&format!("data: {event}\n\ndata: [DONE]\n\n"));
        let server = WireServer::answers(vec![first.into(), events(&whole()).into()]);
        let lab = Lab::new().config(IMPATIENT).file("out", "");
        run_briefly(&lab, &server, &[]).exits(0);
        assert_eq!(lab.read("out").lines().count(), runs, "{what}");
    }
}

#[test]
fn floods_of_calls_and_depth_are_refused_before_anything_runs() {
    let one = call(&Value::Null, &json!("{\"command\":\"echo x >> out\"}"));
    let event =
        |calls: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{calls}]}}}}]}}\n\n");
    let deep = "[".repeat(200_000);
    for (what, body) in [
        ("100,000 calls", event(&vec![one.to_string(); 100_000].join(","))),
        ("depth", format!("data: {deep}\n\n")),
        ("depth of what is ignored", format!("data: {{\"ignored\":{deep}\n\n")),
        ("depth of a document", "{\"choices\":".to_owned() + &deep),
        ("many values", format!("data: {{\"ignored\":[{}0]}}\n\n", "0,".repeat(1_000_000))),
    ] {
        bytes_fail(what, &["malformed"], events(&(body + DONE)));
    }
    bytes_fail("depth of an error", &["request"], head("400 Bad", "") + &deep);
}

#[test]
fn a_compressed_answer_that_is_cut_wrong_or_a_bomb_is_an_error() {
    let (start, more) = bomb("text/event-stream");
    let body = start.len() - BOMB_START;
    bytes_fail("cut in its head", &["network", "cut_stream"], &start[..body + 5]);
    bytes_fail("cut", &["network"], start.clone());
    bytes_fail("none", &["network"], [&start[..body], b"data: {}\n\n".as_slice()].concat());
    let other = head("200 OK", "content-encoding: br\r\n") + "\u{1b}\u{0}\u{0}";
    bytes_fail("one that was not asked for", &["malformed"], other);
    fails("a bomb", &["malformed"], move |stream| {
        stream.write_all(&start)?;
        flood(stream, &more)
    });
}

/// Checks that an answer of the server of `model` that begins like this, and goes on with `piece` for ever or is held
/// when there is none, fails with this kind.
fn fails_with(model: &str, what: &str, kind: &str, beginning: Vec<u8>, piece: Vec<u8>) {
    let server = WireServer::start(move |stream, _| {
        stream.write_all(&beginning)?;
        if piece.is_empty() { hold(stream) } else { flood(stream, &piece) }
    });
    let lab = Lab::new().config(if kind == "malformed" { PATIENT } else { IMPATIENT });
    let done = run_with(model, &lab, &server, &[]);
    assert_eq!((done.code, failure(&lab).as_str()), (Some(1), kind), "{model}, {what}: {}", done.stderr);
}

#[test]
fn every_format_meets_the_same_deadlines_and_bounds() {
    let start = |content_type: &str| head("200 OK", &format!("content-type: {content_type}\r\n"));
    let others = [
        ("anthropic/claude-m", "text/event-stream"),
        ("gemini/m", "text/event-stream"),
        ("openai-responses/m", "text/event-stream"),
        ("ollama/m", "application/x-ndjson"),
    ];
    std::thread::scope(|scope| {
        for (model, stream) in others {
            let (bomb, more) = bomb(stream);
            let cut = bomb[..bomb.len() - 1].to_vec();
            for (what, kind, beginning, piece) in [
                ("held before its head", "timeout", Vec::new(), Vec::new()),
                ("held after its head", "timeout", start(stream).into(), Vec::new()),
                ("a line without end", "malformed", (start(stream) + "data: ").into(), b"x".to_vec()),
                (
                    "a document without end",
                    "malformed",
                    (start("application/json") + "{").into(),
                    b" ".to_vec(),
                ),
                ("a compressed answer that is held", "timeout", cut, Vec::new()),
                ("a bomb", "malformed", bomb, more),
            ] {
                scope.spawn(move || fails_with(model, what, kind, beginning, piece));
            }
        }
    });
}
