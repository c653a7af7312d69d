//! How much memory a run takes while a server streams without end: less than 40 MB, whatever it streams.

use crate::support::run::{KEY, Lab};
use crate::support::wire_server::{WireServer, events, flood};
use serde_json::{Value, json};
use std::io::Write;

/// The most memory that a run may ever have held, in KiB: 40 MB.
const PEAK_CAP: u64 = 40_000_000 / 1024;
/// A hook that keeps the run from ending until its figures were read.
const WAIT: &str = "llm: {retries: 0}
hooks: {session_end: [{command: 'mkfifo go; touch ended; cat go'}]}
";

/// The peak of a run with this model whose server begins an answer so and then repeats `piece`, in KiB, and how it ended.
fn peak(model: &str, beginning: &[u8], piece: &[u8]) -> (u64, String) {
    let (beginning, piece) = (beginning.to_owned(), piece.to_owned());
    let server = WireServer::start(move |stream, _| {
        stream.write_all(&beginning)?;
        flood(stream, &piece)
    });
    let url = server.url();
    let lab = Lab::new().config(WAIT);
    let args = ["run", "task", "--mode", "yolo", "--model", model, "--api-base", &url, "--api-key", KEY];
    let running = lab.start(&args);
    lab.wait_for_file("ended");
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.id())).unwrap();
    std::fs::write(lab.ws().join("go"), "").unwrap();
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
    (peak.unwrap(), running.finish().exits(1).stderr)
}

#[track_caller]
fn stays_small(what: &str, model: &str, beginning: &[u8], piece: &[u8]) {
    let (peak, stderr) = peak(model, beginning, piece);
    eprintln!("{what}: {peak} KiB");
    assert!(peak < PEAK_CAP, "{what}: {peak} KiB\n{stderr}");
    assert!(stderr.contains("MiB") || stderr.contains("more than"), "{what}: {stderr}");
}

fn event(value: &Value) -> Vec<u8> {
    format!("data: {value}\n\n").into_bytes()
}

fn delta(delta: &Value) -> Vec<u8> {
    event(&json!({"choices": [{"delta": delta}]}))
}

#[test]
fn endless_pieces_of_an_answer_are_cut_in_little_memory() {
    let start = events("").into_bytes();
    let long = "x".repeat(500);
    let call = |arguments: &str| json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "read_file", "arguments": arguments}}]});
    for (what, piece) in [
        ("text", delta(&json!({"content": long}))),
        ("thinking", delta(&json!({"reasoning": long}))),
        ("arguments", delta(&call(&long))),
        ("huge events", delta(&json!({"content": "x".repeat(3_900_000)}))),
        ("values", delta(&json!({"ignored": vec![0; 90_000]}))),
        ("lists", delta(&json!({"content": vec![json!({}); 45_000]}))),
    ] {
        stays_small(what, "openai/m", &start, &piece);
    }
}
