//! What must hold of any bytes from a server or a model: one function per fuzz target.

use agent::engine::command_class::{CommandClass, CommandOptions, classify, named_files, readings};
use agent::llm::LlmError;
use agent::llm::answer::{Answer, Surroundings};
use agent::llm::embedded_call;
use agent::llm::format::Format;
use agent::llm::framing::{FrameDecoder, Framing, FramingError};
use agent::llm::quirks::Quirks;
use agent::llm::receive::Reception;
use agent::llm::retry::Advice;
use agent::llm::{Progress, Response};
use agent::process::shell::quoted;
use agent::text::edit::{Replacement, replace};
use agent::text::patch::apply::apply;
use agent::text::patch::parse;
use agent::text::shell;
use std::cell::Cell;
use std::time::Duration;

/// The longest message of an error, in characters; it stands on one line of a terminal.
const MESSAGE_CHARS: usize = 1000;

/// A fuzz target by its name, which is also that of its corpus.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 13] = [
    ("sse", |bytes| frames(Framing::Sse, bytes)),
    ("ndjson", |bytes| frames(Framing::Ndjson, bytes)),
    ("chat_completions", |bytes| answer(Format::ChatCompletions, bytes)),
    ("messages", |bytes| answer(Format::Messages, bytes)),
    ("gemini", |bytes| answer(Format::Gemini, bytes)),
    ("ollama", |bytes| answer(Format::Ollama, bytes)),
    ("responses", |bytes| answer(Format::Responses, bytes)),
    ("error_body", error_body),
    ("embedded_call", embedded),
    ("envelope", |bytes| patched(bytes, None)),
    ("unified_diff", |bytes| patched(bytes, Some("f"))),
    ("edit", edited),
    ("command", command),
];

/// Ways to cut `bytes`: at every byte, and at places that depend on what they say.
fn cuts(bytes: &[u8]) -> [Vec<&[u8]>; 3] {
    let sum = bytes.iter().fold(7_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    let (front, back) = bytes.split_at(sum % (bytes.len() + 1));
    [bytes.chunks(1).collect(), bytes.chunks(2 + sum % 61).collect(), vec![front, back]]
}

/// A stream has the same events, up to the same error, however it is cut.
fn frames(framing: Framing, bytes: &[u8]) {
    let divide = |pieces: &[&[u8]]| -> (Vec<String>, Result<(), FramingError>) {
        let mut decoder = FrameDecoder::new(framing);
        let mut events = Vec::new();
        let read = pieces.iter().try_for_each(|piece| decoder.push(piece, &mut events));
        let ended = read.and_then(|()| decoder.finish(&mut events));
        (events, ended)
    };
    let whole = divide(&[bytes]);
    assert!(whole.0.iter().map(String::len).sum::<usize>() <= bytes.len());
    for pieces in cuts(bytes) {
        assert_eq!(divide(&pieces), whole);
    }
}

/// An answer is the same, and shows the same text, however it is cut; it is an error or it says something usable.
pub fn answer(format: Format, bytes: &[u8]) {
    for streamed in [true, false] {
        let whole = receive(format, streamed, &[bytes]);
        if let (Ok(response), _) = &whole {
            let mut ids: Vec<_> = response.message.tool_calls().map(|call| call.id.as_str()).collect();
            let calls = ids.len();
            ids.sort_unstable();
            ids.dedup();
            assert!(ids.len() == calls && ids.first() != Some(&""), "{ids:?}");
        }
        if let (Err(error), _) = &whole {
            fit_for_a_line(&error.message);
        }
        for pieces in cuts(bytes) {
            assert_eq!(receive(format, streamed, &pieces), whole, "{format:?}, streamed: {streamed}");
        }
    }
}

/// What comes of a body that arrives in these pieces, and what was shown.
pub fn receive(format: Format, streamed: bool, pieces: &[&[u8]]) -> (Result<Response, LlmError>, String) {
    let codec = format.codec(Quirks::default());
    let mut shown = String::new();
    let mut show = |progress: Progress<'_>| match progress {
        Progress::Text(text) => shown.push_str(text),
        Progress::Thinking(text) => shown.extend(["<", text, ">"]),
        Progress::Sent { .. } | Progress::Retry { .. } => {}
    };
    let mut answer = Answer::new(codec.name(), true);
    let mut reception = Reception::new(codec.as_ref(), streamed);
    let made = Cell::new(0);
    let new_id = || {
        made.set(made.get() + 1);
        format!("made_{}", made.get())
    };
    let surroundings = Surroundings {
        offered: &|name| name == "read_file",
        taken: &|id| id == "old",
        repeated: &|_| false,
        is_answer: &|_| false,
        new_id: &new_id,
    };
    let outcome = pieces
        .iter()
        .try_for_each(|piece| reception.push(piece, &mut answer, &mut show))
        .and_then(|()| reception.finish(&mut answer, &mut show))
        .and_then(|()| answer.finish(&surroundings, &mut show));
    (outcome, shown)
}

/// The error of every format and status is one short line, and so is the wait that headers ask for.
fn error_body(bytes: &[u8]) {
    for format in Format::ALL {
        let codec = format.codec(Quirks::default());
        for status in [400, 401, 404, 413, 429, 500, 503] {
            fit_for_a_line(&codec.error(status, bytes).message);
        }
    }
    let text = String::from_utf8_lossy(bytes);
    let advice = Advice::from_headers(&|_| Some(&text), Duration::from_secs(1_445_412_481));
    assert_ne!(advice.retry_after, Some(Duration::ZERO));
}

/// A text and a patch, with a NUL byte between them: what can be read names its files, and what fits changes as many lines
/// as it says.
fn patched(bytes: &[u8], path: Option<&str>) {
    let input = String::from_utf8_lossy(bytes);
    let (text, patch) = input.split_once('\0').unwrap_or(("", &input));
    let sections = match parse(patch, path) {
        Ok(sections) => sections,
        Err(error) => return fit_for_a_line(&error.to_string()),
    };
    assert!(!sections.is_empty());
    for section in sections {
        assert!(path.is_none_or(|path| section.path == path));
        let (added, removed) = section.extent();
        match apply(text, section.hunks()) {
            Err(error) => fit_for_a_line(&error.to_string()),
            Ok(patched) if !section.hunks().is_empty() => {
                assert_eq!(patched.changed_lines, added + removed);
                // A last line that is empty and has no line break is none.
                let lines = |text: &str| text.split_inclusive('\n').count();
                assert!((lines(&patched.text) + removed).abs_diff(lines(text) + added) <= 1);
            }
            Ok(patched) => assert_eq!(patched.text, text),
        }
    }
}

/// A passage, its new text and a text, with NUL bytes between them: outside of the passage every byte stays.
fn edited(bytes: &[u8]) {
    let input = String::from_utf8_lossy(bytes);
    let mut parts = input.splitn(3, '\0').map(str::to_owned);
    let mut part = || parts.next().unwrap_or_default();
    let (old, new, text) = (part(), part(), part());
    let edits = [Replacement { old: &old, new: &new }];
    match replace("f", &text, &edits) {
        Err(error) => fit_for_a_line(&error.to_string()),
        Ok(edited) => {
            let front = text.bytes().zip(edited.text.bytes()).take_while(|(a, b)| a == b).count();
            let back = text.bytes().rev().zip(edited.text.bytes().rev()).take_while(|(a, b)| a == b).count();
            let lines = old.lines().count();
            let touched = text.len().saturating_sub(front + back);
            assert!(touched <= old.len() * 4 + 1000, "{touched} bytes for {lines} lines");
            assert_ne!(edited.text, text);
        }
    }
}

/// A call is found in a text only when it names an offered tool and its arguments are an object.
fn embedded(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let found = embedded_call::find(&text, &|name| name == "read_file");
    assert!(found.is_empty() || embedded_call::may_begin(&text));
    for call in found {
        assert_eq!(call.name, "read_file");
        assert!(call.arguments.trim_start().starts_with('{'), "{}", call.arguments);
    }
}

fn fit_for_a_line(message: &str) {
    assert!(message.chars().count() <= MESSAGE_CHARS, "{message}");
    assert!(!message.contains(char::is_control), "{message:?}");
}

/// A command is no more harmless inside of another one, and what is called safe is understood and redirects nothing.
fn command(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let class = |text: &str| classify(text, &CommandOptions::default()).class;
    let own = class(&text);
    named_files(&text);
    readings(&text);
    if own == CommandClass::Safe {
        let script = shell::parse(&text).expect("what is safe is understood");
        let writes = |simple: &shell::Simple| {
            simple.redirections.iter().any(|redirection| redirection.target.text != "/dev/null")
        };
        assert!(script.is_list && !script.commands.iter().any(|simple| simple.assigns || writes(simple)));
    }
    let is_blocked = |class: &CommandClass| matches!(class, CommandClass::Blocked { .. });
    for around in [format!("sh -c -- {}", quoted(&text)), format!("ls; {text}")] {
        let class = class(&around);
        assert!(
            class >= own || (is_blocked(&class) && is_blocked(&own)),
            "{around:?}: {class:?}, not {own:?}"
        );
    }
}
