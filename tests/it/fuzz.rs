//! The corpora of the fuzz targets, and the streams of `tests/wire`, through the same functions that the fuzzer calls.

#[path = "../fuzz/src/checks.rs"]
mod checks;

use agent_core::failure::FailureKind;
use agent_llm::wire_format::WireFormat;
use checks::{TARGETS, answer, receive};
use serde_json::json;
use std::path::Path;

/// What stands in a folder below `tests`, by name.
fn files(folder: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

/// The streams of `tests/wire` with their formats.
fn streams() -> Vec<(String, WireFormat, Vec<u8>)> {
    let format = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let named = text.split(['\r', '\n']).find_map(|line| line.strip_prefix(": format: "));
        serde_json::from_value(json!(named.unwrap_or("chat_completions"))).unwrap()
    };
    files("wire")
        .into_iter()
        .map(|(name, bytes)| {
            let format = format(&bytes);
            let mut stream = bytes.as_slice();
            while name.ends_with(".ndjson") && stream.starts_with(b": ") {
                stream = &stream[stream.iter().position(|byte| *byte == b'\n').unwrap() + 1..];
            }
            (name, format, stream.to_vec())
        })
        .collect()
}

#[test]
fn what_the_fuzzer_found_stays_mended() {
    for (target, check) in TARGETS {
        let corpus = files(&format!("fuzz/corpus/{target}"));
        assert!(!corpus.is_empty(), "{target} has no corpus");
        for (name, bytes) in corpus {
            eprintln!("{target}/{name}");
            check(&bytes);
        }
    }
}

#[test]
fn known_streams_hold_what_the_fuzzer_checks() {
    for (name, format, stream) in streams() {
        eprintln!("{name}");
        answer(format, &stream);
    }
}

#[test]
fn an_answer_cut_at_any_byte_is_asked_for_again_even_inside_a_character() {
    for (name, format, stream) in streams() {
        if receive(format, true, &[&stream]).0.is_err() {
            continue;
        }
        for cut in 0..stream.len() {
            let (part, _) = receive(format, true, &[&stream[..cut]]);
            let kind = part.err().map_or(FailureKind::CutStream, |error| error.kind);
            assert_eq!(kind, FailureKind::CutStream, "{name} cut at {cut}");
        }
    }
}

/// The one stream whose every event says that it is the last.
const ENDS_EVERYWHERE: &str = "gemini_stop_in_every_event.sse";

#[test]
fn an_answer_cut_at_any_byte_is_whole_or_an_error() {
    for (name, format, stream) in streams().into_iter().filter(|(name, ..)| name != ENDS_EVERYWHERE) {
        let (whole, _) = receive(format, true, &[&stream]);
        for cut in 0..stream.len() {
            let (part, _) = receive(format, true, &[&stream[..cut]]);
            let (Ok(part), Ok(whole)) = (&part, &whole) else { continue };
            assert_eq!((&part.message, &part.finish), (&whole.message, &whole.finish), "{name} cut at {cut}");
        }
    }
}
