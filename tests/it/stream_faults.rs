//! Faults of a connection, in every wire format and output mode: each broken answer is discarded, the step is requested again,
//! and the run reaches its end. No tool runs twice, and the answer is printed once.

use crate::support::extent::all;
use crate::support::run::{Finished, Lab};
use crate::support::wire_server::{WireServer, head, hold, pace};
use crate::truncated_answers::{FORMATS, turn};
use agent_llm::framing::Framing;
use agent_llm::quirks::Quirks;
use agent_llm::scripted::Turn;
use agent_llm::scripted::render::{body, events};
use agent_llm::wire_format::WireFormat;
use rustix::net::sockopt::set_socket_linger;
use serde_json::Value;
use std::io::{Result, Write};
use std::net::TcpStream;
use std::time::Duration;

/// What the first requests meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Three times status 500.
    ServerErrors,
    /// The connection ends in the middle.
    Drop,
    /// An event in the middle, or the document, is not JSON.
    BadJson,
    /// The last event, or the document, is cut; the body ends properly.
    CutJson,
    /// Nothing more arrives after the middle.
    Stall,
    /// The connection is reset before the tool call.
    Reset,
}

pub const FAULTS: [Fault; 6] =
    [Fault::ServerErrors, Fault::Drop, Fault::BadJson, Fault::CutJson, Fault::Stall, Fault::Reset];

/// The command line of each output mode, and whether its answers are streamed.
const MODES: [(&[&str], bool); 3] =
    [(&[], true), (&["--json"], false), (&["--output-format", "stream-json"], true)];

/// The server closes each connection after its answer. Unless it says so, a client may send the next request on a connection
/// that is about to close: a request more for the client, which the server never reads.
const CLOSES: &str = "connection: close\r\n";

/// An answer of one format as the pieces of its body.
#[derive(Clone)]
pub struct Answer {
    content_type: &'static str,
    pieces: Vec<String>,
}

impl Answer {
    pub fn new(format: WireFormat, turn: &Turn, streamed: bool) -> Self {
        if !streamed {
            let text = body(format, turn, 0);
            let (first, second) = text.split_at(text.len() / 2);
            return Self { content_type: "application/json", pieces: vec![first.into(), second.into()] };
        }
        let framing = format.codec(Quirks::default()).framing();
        let frame = |event: String| match framing {
            Framing::Sse => format!("data: {event}\n\n"),
            Framing::Ndjson => format!("{event}\n"),
        };
        let content_type = match framing {
            Framing::Sse => "text/event-stream",
            Framing::Ndjson => "application/x-ndjson",
        };
        Self { content_type, pieces: events(format, turn, 0).into_iter().map(frame).collect() }
    }

    fn write(&self, stream: &mut TcpStream, pieces: &[String], ends: bool) -> Result<()> {
        let coding = format!("content-type: {}\r\ntransfer-encoding: chunked\r\n{CLOSES}", self.content_type);
        stream.write_all(head("200 OK", &coding).as_bytes())?;
        for piece in pieces {
            stream.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes())?;
        }
        if ends { stream.write_all(b"0\r\n\r\n") } else { Ok(()) }
    }

    pub fn whole(&self, stream: &mut TcpStream) -> Result<()> {
        self.write(stream, &self.pieces, true)
    }

    /// Writes the answer with `fault`. Text comes before a call, so the middle lies before the call.
    pub fn broken(&self, stream: &mut TcpStream, fault: Fault) -> Result<()> {
        let middle = self.pieces.len() / 2;
        let first = &self.pieces[..middle];
        match fault {
            Fault::ServerErrors => {
                stream.write_all(head("500 Oops", &format!("content-length: 0\r\n{CLOSES}")).as_bytes())
            }
            Fault::Drop => self.write(stream, first, false),
            Fault::BadJson => {
                let mut pieces = self.pieces.clone();
                pieces[middle] = pieces[middle].replacen('{', "{:", 1).replacen('"', "\\", 2);
                self.write(stream, &pieces, true)
            }
            Fault::CutJson => {
                let piece = &self.pieces[middle];
                let cut = piece.len() / 2;
                self.write(stream, &[first, &[piece[..cut].to_owned()]].concat(), true)
            }
            Fault::Stall => {
                self.write(stream, first, false)?;
                hold(stream)
            }
            Fault::Reset => {
                self.write(stream, first, false)?;
                set_socket_linger(&*stream, Some(Duration::ZERO))?;
                Ok(())
            }
        }
    }
}

/// Runs a task of two steps, a call and a text, whose first step meets `fault`.
fn run_with_fault(
    format: WireFormat,
    model: &str,
    (more, streamed): (&[&str], bool),
    fault: Fault,
) -> (Lab, Finished, usize) {
    let call =
        "{text: I look at it, chunk: 4, calls: [{name: run_command, arguments: {command: echo x >> out}}]}";
    let call = Answer::new(format, &turn(call), streamed);
    let last = Answer::new(format, &turn("{text: alpha beta gamma, chunk: 6}"), streamed);
    let faults = if fault == Fault::ServerErrors { 3 } else { 1 };
    let server = WireServer::start(move |stream, number| match number {
        number if number < faults => call.broken(stream, fault),
        number if number == faults => call.whole(stream),
        number if number == faults + 1 => last.broken(stream, fault),
        _ => last.whole(stream),
    });
    let lab =
        Lab::new().file("out", "").config("llm: {context_window: 100000, timeouts: {silence_seconds: 1}}\n");
    let done = lab.run_model(model, &server.url(), &[&["--mode", "yolo"], more].concat());
    let requests = server.requests().len();
    (lab, done, requests)
}

/// The text that a client of the event stream has when it drops discarded answers.
fn text_of_last_step(stdout: &str) -> String {
    let mut text = String::new();
    for line in stdout.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        match event["type"].as_str().unwrap() {
            "text" => text.push_str(event["text"].as_str().unwrap()),
            "step_start" => text.clear(),
            "retry" if event["answer_discarded"] == true => text.clear(),
            _ => {}
        }
    }
    text
}

fn check(what: &str, mode: usize, (lab, done, requests): (Lab, Finished, usize)) {
    assert_eq!(done.code, Some(0), "{what}: {done:?}");
    assert_eq!(lab.read("out"), "x\n", "{what}: {done:?}");
    assert!(requests >= 4, "{what}: {requests} requests");
    match mode {
        0 => assert_eq!(done.stdout, "alpha beta gamma\n", "{what}"),
        1 => {
            let json: Value = serde_json::from_str(&done.stdout).unwrap();
            assert_eq!(
                (&json["output"], &json["status"]),
                (&"alpha beta gamma".into(), &"success".into()),
                "{what}"
            );
            assert_eq!(json["requests"], requests, "{what}");
        }
        _ => assert_eq!(text_of_last_step(&done.stdout), "alpha beta gamma", "{what}"),
    }
}

#[test]
fn lr5_every_fault_of_a_connection_reaches_the_end_in_every_format_and_output_mode() {
    let all_faults = |format: WireFormat, model: &str| {
        for (fault, (number, mode)) in
            FAULTS.into_iter().flat_map(|fault| MODES.into_iter().enumerate().map(move |mode| (fault, mode)))
        {
            // By default each fault in each format, and each mode once.
            if all() || number == fault as usize % MODES.len() {
                let what = format!("{model} {:?} {fault:?}", mode.0);
                check(&what, number, run_with_fault(format, model, mode, fault));
            }
        }
    };
    std::thread::scope(|scope| {
        for (format, model) in FORMATS {
            scope.spawn(move || all_faults(format, model));
        }
    });
}

#[test]
fn lr5_without_an_answer_no_run_succeeds() {
    for fault in FAULTS {
        let answer =
            Answer::new(WireFormat::ChatCompletions, &turn("{text: alpha beta gamma, chunk: 6}"), true);
        let server = WireServer::start(move |stream, _| answer.broken(stream, fault));
        let lab = Lab::new().config("llm: {retries: 1, timeouts: {silence_seconds: 1}}\n");
        let done = lab.run_model("openai/m", &server.url(), &[]).exits(1);
        assert_eq!((done.stdout.as_str(), server.requests().len()), ("", 2), "{fault:?}: {done:?}");
    }
}

/// Bytes that complete no event do not count as progress, keep-alive lines do.
#[test]
fn the_silence_deadline_counts_complete_events_and_not_bytes() {
    let drip = |piece: &'static str| {
        move |stream: &mut TcpStream, _: usize| {
            stream.write_all(head("200 OK", "content-type: text/event-stream\r\n").as_bytes())?;
            stream.write_all(b"data: {")?;
            loop {
                stream.write_all(piece.as_bytes())?;
                pace(stream, Duration::from_millis(100))?;
            }
        }
    };
    let server = WireServer::start(drip(" "));
    let lab = Lab::new().config("llm: {retries: 0, timeouts: {silence_seconds: 1, call_seconds: 60}}\n");
    let url = server.url();
    let done = lab.run_model("openai/m", &url, &[]).exits(1);
    assert!(done.stderr.contains("the answer stopped arriving for 1s"), "{}", done.stderr);
}

#[test]
fn the_silence_deadline_is_extended_by_keep_alive_lines() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"done\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let server = WireServer::start(move |stream, _| {
        stream.write_all(
            head("200 OK", "content-type: text/event-stream\r\nconnection: close\r\n").as_bytes(),
        )?;
        for line in [": keep-alive\n\n", "\n"].repeat(10) {
            stream.write_all(line.as_bytes())?;
            pace(stream, Duration::from_millis(100))?;
        }
        stream.write_all(text.as_bytes())
    });
    let lab = Lab::new().config("llm: {retries: 0, timeouts: {silence_seconds: 1}}\n");
    let url = server.url();
    let done = lab.run_model("openai/m", &url, &[]).exits(0);
    assert_eq!(done.stdout, "done\n");
}
