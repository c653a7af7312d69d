//! Answers that end too early, through the binary and in every wire format: cut at each end of an event and within, and
//! where the end of the connection shows it or does not. Each is discarded and requested again; stdout holds the text once, no
//! call runs twice or in part.

use crate::support::run::{Finished, Lab};
use crate::support::wire_server::{WireServer, head};
use agent_llm::framing::Framing;
use agent_llm::quirks::Quirks;
use agent_llm::scripted::render::{body, events};
use agent_llm::scripted::{Script, Turn};
use agent_llm::wire_format::WireFormat;
use std::io::Write;

pub const FORMATS: [(WireFormat, &str); 5] = [
    (WireFormat::ChatCompletions, "openai/m"),
    (WireFormat::Messages, "anthropic/m"),
    (WireFormat::Ollama, "ollama/m"),
    (WireFormat::Gemini, "gemini/m"),
    (WireFormat::Responses, "openai-responses/m"),
];

/// How many runs of one format there are at one time: most of them wait before they ask again.
const AT_ONCE: usize = 6;

/// The only turn of a script.
pub fn turn(yaml: &str) -> Turn {
    Script::parse(&format!("turns: [{yaml}]"), "script").unwrap().turn(0).unwrap()
}

/// An answer as it goes over the wire, and where it is cut: in its head and after it, after each event, and within each,
/// not always at the same place.
struct Wire {
    bytes: Vec<u8>,
    cuts: Vec<usize>,
}

impl Wire {
    /// The answer as a stream, `chunked` or up to the end of the connection.
    fn stream(format: WireFormat, turn: &Turn, chunked: bool) -> Self {
        let (kind, end) = match format.codec(Quirks::default()).framing() {
            Framing::Sse => ("text/event-stream", "\n\n"),
            Framing::Ndjson => ("application/x-ndjson", "\n"),
        };
        let coding = if chunked { "transfer-encoding: chunked\r\n" } else { "connection: close\r\n" };
        let mut bytes = head("200 OK", &format!("content-type: {kind}\r\n{coding}")).into_bytes();
        let mut cuts = vec![bytes.len() / 2, bytes.len()];
        for (number, event) in events(format, turn, 0).into_iter().enumerate() {
            let event = if end == "\n" { event + end } else { format!("data: {event}{end}") };
            let piece = if chunked { format!("{:x}\r\n{event}\r\n", event.len()) } else { event };
            if !chunked {
                cuts.push(bytes.len() + 1 + number * 7 % (piece.len() - 1));
            }
            bytes.extend_from_slice(piece.as_bytes());
            cuts.push(bytes.len());
        }
        if !chunked {
            // The end of the connection is the end of the stream.
            cuts.pop();
        }
        Self { bytes, cuts }
    }

    /// The answer as a document whose length is known.
    fn document(format: WireFormat, turn: &Turn) -> Self {
        let body = body(format, turn, 0);
        let headers = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
        let start = head("200 OK", &headers);
        let cuts = [0, 1, body.len() / 2, body.len() - 1].map(|at| start.len() + at).into();
        Self { bytes: (start + &body).into_bytes(), cuts }
    }
}

/// Runs a task for each of the cuts, against a server whose first answer is cut there; `then` says how it goes on.
fn each_cut(
    wire: &Wire,
    model: &str,
    more: &[&str],
    then: impl Fn(&Lab) -> Vec<u8> + Clone + Send + Sync + 'static,
    check: impl Fn(&str, &Lab, &Finished, usize) + Sync,
) {
    let one = |cut: usize| {
        let lab = std::sync::Arc::new(Lab::new().file("out", "").config("llm: {retries: 1}"));
        let (first, then, of_server) = (wire.bytes[..cut].to_vec(), then.clone(), lab.clone());
        let server = WireServer::start(move |stream, number| {
            stream.write_all(&if number == 0 { first.clone() } else { then(&of_server) })
        });
        let done = lab.run_model(model, &server.url(), &[&["--mode", "yolo"], more].concat());
        let asked = server.requests().len();
        let all = wire.bytes.len();
        let what = format!("{model} {more:?}, {cut} of {all} bytes, {asked} requests: {done:?}");
        assert!(!done.stderr.contains("panicked"), "{what}");
        check(&what, &lab, &done, asked);
    };
    std::thread::scope(|scope| {
        for cuts in wire.cuts.chunks(wire.cuts.len().div_ceil(AT_ONCE)) {
            scope.spawn(move || cuts.iter().for_each(|cut| one(*cut)));
        }
    });
}

/// Does something for each format at one time.
fn in_each_format(run: impl Fn(WireFormat, &str) + Sync) {
    let run = &run;
    std::thread::scope(|scope| {
        for (format, model) in FORMATS {
            scope.spawn(move || run(format, model));
        }
    });
}

#[test]
fn a_call_whose_answer_is_cut_runs_once_with_all_of_its_arguments() {
    let calls = turn("{calls: [{name: run_command, arguments: {command: echo x >> out}}], chunk: 6}");
    let last = turn("{text: done}");
    in_each_format(|format, model| {
        for chunked in [true, false] {
            let wire = Wire::stream(format, &calls, chunked);
            let whole = Wire::stream(format, &calls, false).bytes;
            let done = Wire::stream(format, &last, false).bytes;
            let then = move |lab: &Lab| if lab.read("out").is_empty() { whole.clone() } else { done.clone() };
            each_cut(&wire, model, &[], then, |what, lab, done, _| {
                assert_eq!((done.code, done.stdout.as_str()), (Some(0), "done\n"), "{what}");
                assert_eq!(lab.read("out"), "x\n", "{what}");
            });
        }
    });
}

#[test]
fn a_text_that_is_cut_is_discarded_and_requested_again() {
    let text = turn("{text: alpha beta gamma, chunk: 6}");
    in_each_format(|format, model| {
        for chunked in [true, false] {
            let whole = Wire::stream(format, &text, false).bytes;
            let wire = Wire::stream(format, &text, chunked);
            each_cut(
                &wire,
                model,
                &[],
                move |_| whole.clone(),
                |what, _, done, asked| {
                    assert_eq!((done.code, done.stdout.as_str()), (Some(0), "alpha beta gamma\n"), "{what}");
                    let shown = done.stderr.matches("alpha").count();
                    let discarded =
                        done.stderr.matches("the text above is discarded, asking again 1 of 1").count();
                    assert_eq!(shown, 1 + discarded, "{what}");
                    assert!(asked == 1 && discarded == 0 || asked == 2, "{what}");
                },
            );
        }
    });
}

#[test]
fn a_document_that_is_cut_is_asked_for_again() {
    let text = turn("{text: alpha beta gamma}");
    in_each_format(|format, model| {
        let whole = Wire::document(format, &text);
        let again = whole.bytes.clone();
        each_cut(
            &whole,
            model,
            &["--no-stream"],
            move |_| again.clone(),
            |what, _, done, asked| {
                assert_eq!(
                    (done.code, done.stdout.as_str(), asked),
                    (Some(0), "alpha beta gamma\n", 2),
                    "{what}"
                );
            },
        );
    });
}
