//! How much memory a run takes while a server streams without end: less than 40 MB, whatever it streams. And how it ends where
//! the system gives it too little.

use crate::support::run::{KEY, Lab};
use crate::support::wire_server::{WireServer, bomb, events, flood};
use serde_json::{Value, json};
use std::io::Write;

/// The most that a stream without end may add to what a run takes that fails at once, in KiB. That is about 12 MB as
/// built for release, and more than twice as much with all that a debugger wants to know.
const GROWTH_CAP: u64 = 28_000_000 / 1024;

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
    let lab = Lab::new().started().config(WAIT);
    let args = ["run", "task", "--mode", "yolo", "--model", model, "--api-base", &url, "--api-key", KEY];
    let running = lab.start(&args);
    lab.wait_for_file("ended");
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.id())).unwrap();
    std::fs::write(lab.ws().join("go"), "").unwrap();
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
    (peak.unwrap(), running.finish().exits(1).stderr)
}

/// Checks each of these streams without end: what it is, the model, how it begins, and what is repeated.
fn stay_small(streams: &[(&str, &str, &[u8], Vec<u8>)]) {
    let (idle, _) = peak("openai/m", events("").as_bytes(), b"data: none\n\n");
    for (what, model, beginning, piece) in streams {
        let (peak, stderr) = peak(model, beginning, piece);
        let said: String = stderr.lines().filter(|line| line.starts_with("Model error")).collect();
        assert!(peak < idle + GROWTH_CAP, "{what}: {peak} - {idle} KiB, {said}");
        assert!(said.contains("MiB") || said.contains("more than"), "{what}: {said}");
    }
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
    let long = "x".repeat(5000);
    let call = |index: usize, arguments: &str| {
        let function = json!({"name": "read_file", "arguments": arguments});
        json!({"tool_calls": [{"index": index, "function": function}]})
    };
    let calls: Vec<u8> = (0..64).flat_map(|index| delta(&call(index, &long))).collect();
    let chat = |what, piece| (what, "openai/m", start.as_slice(), piece);
    let block = json!({"type": "tool_use", "id": "a", "name": "x", "input": {"a": "x".repeat(100_000)}});
    let inputs = (0..60).flat_map(|index| {
        event(&json!({"type": "content_block_start", "index": index, "content_block": block}))
    });
    let signature = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": long}});
    let item = json!({"type": "reasoning", "encrypted_content": "x".repeat(100_000)});
    let items = (0..40).flat_map(|index| {
        event(&json!({"type": "response.output_item.done", "output_index": index, "item": item}))
    });
    let thought = json!({"candidates": [{"content": {"parts": [{"thought": true, "text": long, "thoughtSignature": long}]}}]});
    let line = json!({"message": {"content": long, "thinking": long}, "done": false});
    let values = json!({"ignored": vec![0; 90_000], "content": vec![json!({}); 4_000]});
    let many = [start.clone(), delta(&values), delta(&values)].concat();
    stay_small(&[
        chat("text", delta(&json!({"content": long}))),
        chat("thinking", delta(&json!({"reasoning": long}))),
        chat("refusal", delta(&json!({"refusal": long}))),
        chat("arguments", delta(&call(0, &long))),
        chat("calls", calls),
        chat("huge events", delta(&json!({"content": "x".repeat(3_900_000)}))),
        ("many values", "openai/m", &many, b"data: x".to_vec()),
        ("inputs of calls", "anthropic/m", &start, inputs.collect()),
        ("a signature", "anthropic/m", &start, event(&signature)),
        ("sealed reasoning", "openai-responses/m", &start, items.collect()),
        ("signed thoughts", "gemini/m", &start, event(&thought)),
        ("lines", "ollama/m", &start, format!("{line}\n").into_bytes()),
    ]);
}

#[test]
fn endless_bytes_of_no_use_are_cut_in_little_memory() {
    let start = events("").into_bytes();
    let (compressed, more) = bomb("text/event-stream");
    let chat = |what, piece: &str| (what, "openai/m", start.as_slice(), piece.as_bytes().to_vec());
    stay_small(&[
        chat("signs of life", &format!(": {}\n\n", "ping".repeat(500))),
        chat("blanks", " "),
        chat("empty events", &format!("data:{}\n\n", " ".repeat(2000))),
        chat("a line", "data: x"),
        ("a document", "openai/m", b"HTTP/1.1 200 OK\r\n\r\n{\"a\":\"".as_slice(), b"x".to_vec()),
        ("a compressed line", "openai/m", &compressed, more),
        chat("small lines of an event", "data:\n"),
    ]);
}

/// The exit code and standard error of `agent` with these arguments and at most so many KiB of address space.
fn with_address_space(lab: &Lab, kibibytes: u64, args: &[&str]) -> (Option<i32>, String) {
    let agent = lab.command(args);
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", "ulimit -c 0; ulimit -v \"$1\"; shift; exec \"$@\"", "sh", &kibibytes.to_string()]);
    shell.arg(agent.get_program()).args(agent.get_args()).current_dir(lab.ws()).env_clear();
    shell.envs(agent.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("RUST_BACKTRACE", "1");
    let done = shell.output().unwrap();
    (done.status.code(), String::from_utf8(done.stderr).unwrap())
}

#[test]
fn run_without_memory_ends_with_a_message_and_exit_1_and_no_panic_text() {
    // Below this nothing of the program runs: neither the kernel nor the loader can map it.
    let lab = Lab::with_a_txt().started().file(
        "script.yaml",
        "turns: [{calls: [{name: search_files, arguments: {pattern: alpha}}]}, {text: done}]",
    );
    let starts = |kibibytes: u64| with_address_space(&lab, kibibytes, &["--version"]).0 == Some(0);
    let (mut too_little, mut enough) = (10_000, 1_000_000);
    assert!(starts(enough));
    while enough - too_little > 100 {
        let middle = u64::midpoint(too_little, enough);
        *(if starts(middle) { &mut enough } else { &mut too_little }) = middle;
    }
    let mut failed = 0;
    for kibibytes in (enough + 100..).step_by(400).take(24) {
        let args = ["run", "task", "--model", "scripted:script.yaml", "--mode", "yolo", "--json"];
        let (code, stderr) = with_address_space(&lab, kibibytes, &args);
        let has_panic =
            ["panic", "backtrace", "RUST_", "memory allocation of"].iter().any(|text| stderr.contains(text));
        assert!(matches!(code, Some(0..=3)) && !has_panic, "{kibibytes} KiB, {code:?}: {stderr}");
        if code == Some(1) {
            failed += 1;
            assert!(stderr.lines().any(|line| line.starts_with("error: ")), "{kibibytes} KiB: {stderr}");
        }
    }
    assert!(failed > 0);
}
