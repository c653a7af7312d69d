//! Events for programs: the stream on standard output, the log file, and their schemas.

use crate::output::EVENTFUL;
use crate::support::kernel::without_warning;
use crate::support::run::{Finished, Lab};
use crate::support::schema;
use crate::support::server::Server;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

const STREAM: [&str; 2] = ["--output-format", "stream-json"];

/// The lines of a stream, each held against the schema.
#[track_caller]
fn lines(done: &Finished) -> Vec<Value> {
    let schema = schema::of("events");
    assert!(!done.stdout.contains('\r') && done.stdout.ends_with('\n'));
    let lines: Vec<Value> = done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        schema::valid(&schema, line);
    }
    lines
}

fn types(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["type"].as_str().unwrap()).collect()
}

#[test]
fn o09_a_stream_tells_what_happens_in_order_and_ends_with_the_document() {
    let server = Server::start(EVENTFUL);
    let done = Lab::with_a_txt().run(&server, &STREAM).exits(0);
    let lines = lines(&done);
    let told: Vec<&str> = types(&lines);
    let wanted = [
        "run_start",
        "step_start",
        "retry",
        "text",
        "tool_call_start",
        "tool_call_end",
        "step_end",
        "step_start",
        "text",
        "model_response",
        "step_end",
        "result",
    ];
    let mut rest = told.iter();
    assert!(wanted.iter().all(|wanted| rest.any(|told| told == wanted)), "{told:?}");
    assert_eq!(told.iter().filter(|told| **told == "result").count(), 1);
    let last_call = told.iter().rposition(|told| *told == "tool_call_end").unwrap();
    assert!(
        told[..last_call].iter().all(|told| *told != "step_end"),
        "a step ends after its calls: {told:?}"
    );
    let pieces: Vec<&str> = lines
        .iter()
        .filter(|line| line["type"] == "text" && line["step"] == 2)
        .map(|line| line["text"].as_str().unwrap())
        .collect();
    assert!(pieces.len() > 1, "{pieces:?}");
    let (mut result, events) = (lines.last().unwrap().clone(), &lines[..lines.len() - 1]);
    assert_eq!(pieces.concat(), result["output"].as_str().unwrap());
    assert_eq!(result.as_object_mut().unwrap().remove("type"), Some(json!("result")));
    schema::is_result(&result);
    let numbers: Vec<u64> = events
        .iter()
        .filter(|line| !["text", "thinking"].contains(&line["type"].as_str().unwrap()))
        .map(|line| line["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<u64>>());
    assert!(
        without_warning(&done.stderr).starts_with("   Rate limit reached (rate_limit), asking again 1 of 5"),
        "only what did not go as asked is told: {}",
        done.stderr
    );
}

#[test]
fn o09_without_streaming_there_are_no_pieces() {
    let server = Server::start(EVENTFUL);
    let done = Lab::with_a_txt().run(&server, &[&STREAM[..], &["--no-stream"]].concat()).exits(0);
    assert!(!types(&lines(&done)).contains(&"text"));
}

#[test]
fn o09_a_run_that_does_not_begin_is_one_line() {
    let done = Lab::with_a_txt()
        .agent(&["run", "task", "--output-format", "stream-json", "--model", "none/such"])
        .exits(3);
    let lines = lines(&done);
    assert_eq!((types(&lines), &lines[0]["stop_reason"]), (vec!["result"], &Value::Null));
}

#[test]
fn o09_an_interrupted_run_ends_its_stream() {
    let server = Server::start("turns: [{fault: hang}]");
    let lab = Lab::with_a_txt();
    let run = lab.start_run(&server, &STREAM);
    server.wait_for_request(1);
    run.signal(Signal::INT);
    let lines = lines(&run.finish().exits(130));
    assert_eq!(lines.last().unwrap()["stop_reason"], "user_interrupt");
}

#[test]
fn o09_a_reader_that_has_gone_does_not_hurt_the_run() {
    let server = Server::start(EVENTFUL);
    let lab = Lab::with_a_txt();
    let url = server.url();
    let args =
        ["run", "task", "--mode", "yolo", "--model", "openai/mock", "--api-base", &url, "--api-key", "k"];
    let mut command = lab.command(&[&args[..], &STREAM].concat());
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(lab.read("c.txt"), "new");
}

#[test]
fn o09_json_is_an_output_format_and_only_one_can_be_asked_for() {
    let server = Server::start("turns: [{text: hi, repeat: 2}]");
    assert_eq!(Lab::with_a_txt().run(&server, &["--output-format", "json"]).exits(0).json()["output"], "hi");
    assert_eq!(Lab::with_a_txt().run(&server, &["--output-format", "text"]).exits(0).stdout, "hi\n");
    Lab::with_a_txt().run(&server, &["--output-format", "text", "--json"]).exits(3);
}

#[test]
fn the_schemas_are_printed() {
    for what in ["events", "result", "config", "journal", "approvals", "stats", "report"] {
        let printed: Value = Lab::with_a_txt().agent(&["schema", what]).exits(0).json();
        assert!(jsonschema::meta::is_valid(&printed), "{what}");
    }
}

fn json_lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn o21_the_log_file_has_every_event_as_a_line_of_json() {
    let lab = Lab::with_a_txt();
    let log = lab.outside().join("run.log");
    let server = Server::start(EVENTFUL);
    let done = lab.run(&server, &["--log-file", log.to_str().unwrap(), "--quiet"]).exits(0);
    assert_eq!(done.stdout, "All done:\nnothing to do.\n");
    let logged = json_lines(&log);
    let journaled: Vec<Value> =
        json_lines(&lab.journal()).into_iter().map(|mut line| line["record"].take()).collect();
    assert_eq!(logged, journaled);
    let schema = schema::of("journal");
    for record in &logged {
        schema::valid(&schema, record);
    }
    assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn o21_with_vv_each_piece_of_text_is_logged_too() {
    let lab = Lab::with_a_txt();
    let log = lab.outside().join("run.log");
    let server = Server::start("turns: [{thinking: hm, text: abcd, chunk: 2}]");
    lab.run(&server, &["--log-file", log.to_str().unwrap(), "-vv"]).exits(0);
    let pieces: Vec<String> = json_lines(&log)
        .iter()
        .filter(|record| ["text", "thinking"].contains(&record["event"]["type"].as_str().unwrap()))
        .map(|record| {
            format!(
                "{} {}",
                record["event"]["type"].as_str().unwrap(),
                record["event"]["text"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(pieces, ["thinking hm", "text ab", "text cd"]);
}

#[test]
fn o21_a_full_log_file_is_put_aside_and_three_are_kept() {
    let lab = Lab::with_a_txt();
    let log = lab.outside().join("run.log");
    let lab = lab.config(&format!("logging: {{file: {}}}\n", log.display()));
    let aside = |number: usize| lab.outside().join(format!("run.log.{number}"));
    fs::write(&log, "x".repeat(9_999_990)).unwrap();
    for number in 1..=3 {
        fs::write(aside(number), format!("{number}")).unwrap();
    }
    let server = Server::start("turns: [{text: hi}]");
    lab.run(&server, &[]).exits(0);
    assert_eq!(json_lines(&log).last().unwrap()["event"]["type"], "run_end");
    assert_eq!(fs::metadata(aside(1)).unwrap().len(), 9_999_990);
    assert_eq!(
        (fs::read_to_string(aside(2)).unwrap(), fs::read_to_string(aside(3)).unwrap()),
        ("1".into(), "2".into())
    );
    assert!(!aside(4).exists());
}

#[test]
fn o21_a_log_file_that_cannot_be_opened_is_an_error_before_the_run() {
    let server = Server::start("turns: [{text: hi}]");
    let done = Lab::with_a_txt().run(&server, &["--log-file", "no/such/dir/run.log"]).exits(3);
    assert!(done.stderr.contains("no/such/dir/run.log"), "{}", done.stderr);
    assert_eq!(server.requests().len(), 0);
}
