//! A model that plays a YAML script, for tests, demonstrations and trials.

pub mod model;
pub mod render;

use agent_core::failure::FailureKind;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// Limit on a script, in bytes.
const SCRIPT_CAP: u64 = 16 * 1024 * 1024;

/// The answers of a scripted model, in order.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Turns that answer the first request of a session, the second, and so on.
    pub turns: Vec<Turn>,
}

/// One answer or one failure. In its texts, `{i}` is replaced by the number of the repetition, from 1.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turn {
    /// Expectation about the request.
    pub expect: Option<Expect>,
    /// Reasoning.
    pub thinking: Option<String>,
    /// Text.
    pub text: Option<String>,
    /// Tool calls.
    pub calls: Vec<Call>,
    /// Finish reason in the notation of Chat Completions; by default the one that fits the turn.
    pub finish: Option<String>,
    /// Reported token counts; none by default.
    pub usage: Option<Tokens>,
    /// Delay before the answer, in milliseconds.
    pub delay_ms: u64,
    /// Length of a piece of text or arguments, in characters; by default a single piece.
    pub chunk: Option<usize>,
    /// Delay between two pieces, in milliseconds.
    pub chunk_delay_ms: u64,
    /// How often the turn is played; once by default.
    pub repeat: Option<usize>,
    /// Error instead of an answer.
    pub error: Option<ScriptedError>,
    /// Fault on the wire.
    pub fault: Option<Fault>,
}

/// A tool call of a turn.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Name of the tool.
    pub name: String,
    /// Arguments: an object, or a string that is sent unchanged.
    #[serde(default)]
    pub arguments: Value,
    /// Id of the call; derived from the turn's number by default.
    #[serde(default)]
    pub id: Option<String>,
}

/// Token counts of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tokens {
    /// Prompt tokens that were not cached.
    pub input: u64,
    /// Prompt tokens from the cache.
    pub cached_read: u64,
    /// Generated tokens.
    pub output: u64,
    /// Reasoning tokens among the generated tokens.
    pub reasoning: u64,
}

/// An error of a turn.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptedError {
    /// Error class; determines the status if none is set.
    pub kind: Option<FailureKind>,
    /// HTTP status.
    pub status: Option<u16>,
    /// Message of the provider.
    pub message: Option<String>,
    /// Error code of the provider, such as `insufficient_quota`.
    pub code: Option<String>,
    /// `Retry-After` in seconds.
    pub retry_after: Option<f64>,
}

/// A fault on the wire.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// The stream ends properly, but after this many pieces of the answer.
    Cut(usize),
    /// The connection closes in the middle of the stream, after this many pieces.
    Close(usize),
    /// The stream stays open without data after this many pieces.
    Stall(usize),
    /// The connection is reset before any answer.
    Reset,
    /// No answer is ever sent.
    Hang,
    /// The program panics, as a bug would make it: shows what becomes of the runs beside this one.
    Panic,
    /// An answer with exactly this status, headers and body.
    Http(RawResponse),
    /// Exactly these bytes instead of an HTTP answer.
    Raw(String),
}

/// A literal HTTP answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RawResponse {
    /// The status; 200 when 0.
    pub status: u16,
    /// Headers; `content-length` is added.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: String,
}

/// Expectation about a request.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expect {
    /// Texts that must each occur in some message.
    pub contains: Vec<String>,
    /// Texts that must not occur in any message.
    pub not_contains: Vec<String>,
    /// Texts that must each occur in the last message (or in the last results).
    pub last_contains: Vec<String>,
    /// Role of the last message: `user`, `assistant` or `tool`.
    pub last_role: Option<String>,
    /// Whether tools must be offered.
    pub tools: Option<bool>,
    /// Whether a stream must be requested.
    pub stream: Option<bool>,
}

/// Error of a script that cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("the script {path} cannot be read: {source}")]
    Unreadable {
        /// Path of the file.
        path: String,
        /// Cause.
        source: std::io::Error,
    },
    /// The text is not a valid script.
    #[error("the script {path} is not valid: {message}")]
    Invalid {
        /// Path of the file.
        path: String,
        /// What is wrong, with its line.
        message: String,
    },
}

impl Script {
    /// Parses a script; `path` is used only in errors.
    ///
    /// # Errors
    /// When it is not YAML, has an unknown key, no turn, or a turn that both answers and fails.
    pub fn parse(yaml: &str, path: &str) -> Result<Self, ScriptError> {
        let invalid = |message: String| ScriptError::Invalid { path: path.to_owned(), message };
        let script: Self = serde_yaml::from_str(yaml).map_err(|error| invalid(error.to_string()))?;
        if script.turns.is_empty() {
            return Err(invalid("it has no turns".into()));
        }
        for (turn, number) in script.turns.iter().zip(1_usize..) {
            turn.check().map_err(|why| invalid(format!("turn {number} {why}")))?;
        }
        Ok(script)
    }

    /// Reads a script from a file.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), and when the file cannot be read.
    pub fn open(path: &Path) -> Result<Self, ScriptError> {
        let name = path.display().to_string();
        let mut yaml = String::new();
        let read = open_regular_file(path).and_then(|file| file.take(SCRIPT_CAP).read_to_string(&mut yaml));
        if let Err(source) = read {
            return Err(ScriptError::Unreadable { path: name, source });
        }
        Self::parse(&yaml, &name)
    }

    /// Returns the turn for request `number`, counted from 0, with `{i}` filled in; `None` after the end of the script.
    pub fn turn(&self, number: usize) -> Option<Turn> {
        let mut before = 0_usize;
        for turn in &self.turns {
            let repeat = turn.repeat.unwrap_or(1);
            if number - before < repeat {
                return Some(turn.filled(number - before + 1));
            }
            before = before.saturating_add(repeat);
            if before > number {
                break;
            }
        }
        None
    }

    /// Returns the number of requests that the script answers.
    pub fn length(&self) -> usize {
        self.turns.iter().fold(0, |sum, turn| sum.saturating_add(turn.repeat.unwrap_or(1)))
    }

    /// Returns the error message for request `number`, counted from 0, if it has no turn.
    pub fn exhausted_message(&self, number: usize) -> String {
        let (turns, request) = (self.length(), number + 1);
        format!(
            "the script is used up: it has {turns} turns, and this is request {request} of the session; add turns"
        )
    }
}

/// Opens a regular file; opening a pipe without a writer would block forever.
fn open_regular_file(path: &Path) -> std::io::Result<std::fs::File> {
    if std::fs::metadata(path)?.is_file() {
        std::fs::File::open(path)
    } else {
        Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

impl Turn {
    fn check(&self) -> Result<(), &'static str> {
        let answers = self.text.is_some() || self.thinking.is_some() || !self.calls.is_empty();
        let replaced = !matches!(self.fault, None | Some(Fault::Cut(_) | Fault::Close(_) | Fault::Stall(_)));
        if self.error.is_some() && (answers || self.fault.is_some()) {
            return Err("has an `error` and an answer; make them two turns");
        }
        if replaced && answers {
            return Err("has a `fault` that replaces the answer, and an answer; make them two turns");
        }
        if self.chunk == Some(0) {
            return Err("has a `chunk` of 0 characters");
        }
        Ok(())
    }

    fn filled(&self, i: usize) -> Self {
        let number = i.to_string();
        let fill = |text: &String| text.replace("{i}", &number);
        let mut turn = self.clone();
        turn.text = self.text.as_ref().map(fill);
        turn.thinking = self.thinking.as_ref().map(fill);
        for call in &mut turn.calls {
            fill_value(&mut call.arguments, &number);
        }
        turn
    }
}

fn fill_value(value: &mut Value, number: &str) {
    match value {
        Value::String(text) => *text = text.replace("{i}", number),
        Value::Array(items) => items.iter_mut().for_each(|item| fill_value(item, number)),
        Value::Object(entries) => entries.values_mut().for_each(|entry| fill_value(entry, number)),
        _ => {}
    }
}

/// The parts of a request that [`Expect`] checks.
#[derive(Debug, Clone, Default)]
pub struct RequestView<'a> {
    /// Role and text of each message; every tool result counts as one.
    pub messages: Vec<(&'a str, &'a str)>,
    /// Whether tools are offered.
    pub tools: bool,
    /// Whether a stream is requested.
    pub stream: bool,
}

impl Expect {
    /// Checks whether the request is as expected.
    ///
    /// # Errors
    /// A description of the first unmet expectation.
    pub fn check(&self, asked: &RequestView<'_>) -> Result<(), String> {
        let any_contains =
            |text: &String| asked.messages.iter().any(|(_, message)| message.contains(text.as_str()));
        let last_role = asked.messages.last().map_or("none", |(role, _)| role);
        let last = |text: &String| {
            let results = asked.messages.iter().rev().take_while(|(role, _)| *role == last_role);
            results
                .take(if last_role == "tool" { usize::MAX } else { 1 })
                .any(|(_, message)| message.contains(text.as_str()))
        };
        if let Some(text) = self.contains.iter().find(|text| !any_contains(text)) {
            return Err(format!("no message contains `{text}`"));
        }
        if let Some(text) = self.not_contains.iter().find(|text| any_contains(text)) {
            return Err(format!("a message contains `{text}`"));
        }
        if let Some(text) = self.last_contains.iter().find(|text| !last(text)) {
            return Err(format!("the last message does not contain `{text}`"));
        }
        if let Some(role) = self.last_role.as_deref().filter(|role| *role != last_role) {
            return Err(format!("the last message is from `{last_role}`, not from `{role}`"));
        }
        for (name, wanted, actual) in
            [("tools", self.tools, asked.tools), ("stream", self.stream, asked.stream)]
        {
            if wanted.is_some_and(|wanted| wanted != actual) {
                return Err(format!("`{name}` is {actual}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(yaml: &str) -> Result<Script, String> {
        Script::parse(yaml, "s.yaml").map_err(|error| error.to_string())
    }

    #[test]
    fn a_script_is_read_with_all_its_kinds_of_turns() {
        let script = parse(
            "turns:\n\
             - {thinking: hm, text: a, calls: [{name: read_file, arguments: {path: x}}], usage: {input: 1}}\n\
             - {calls: [{name: read_file, arguments: '{\"path\":'}]}\n\
             - error: {status: 429, message: slow, retry_after: 2}\n\
             - {text: abc, chunk: 1, fault: {cut: 1}}\n\
             - fault: reset\n\
             - fault: {http: {status: 200, headers: {x-a: b}, body: <html>}}\n\
             - {text: n, expect: {contains: [a], last_role: tool, tools: true}}\n",
        )
        .unwrap();
        assert_eq!(script.length(), 7);
        assert_eq!(script.turn(3).unwrap().fault, Some(Fault::Cut(1)));
        assert_eq!(script.turn(1).unwrap().calls[0].arguments, Value::from("{\"path\":"));
    }

    #[test]
    fn the_manuals_examples_are_scripts() {
        let manual = include_str!("../../../config/help/scripted.md");
        let examples: Vec<String> = manual
            .split("\n\n")
            .filter(|block| block.starts_with("    turns:"))
            .map(|block| {
                block.lines().map(|line| line.get(4..).unwrap_or_default().to_owned() + "\n").collect()
            })
            .collect();
        assert_eq!(examples.len(), 2);
        for example in examples {
            parse(&example).unwrap();
        }
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let error = parse("turns:\n- text: a\n  txt: b\n").unwrap_err();
        assert!(error.contains("s.yaml") && error.contains("txt") && error.contains('3'), "{error}");
        for yaml in
            ["turns: []", "turns:\n- {text: a, error: {}}", "turns:\n- {text: a, fault: hang}", "a: b"]
        {
            parse(yaml).unwrap_err();
        }
    }

    #[test]
    fn a_repeated_turn_counts_and_the_script_ends() {
        let script = parse(
            "turns:\n- {text: 't{i}', repeat: 2, calls: [{name: n, arguments: {p: '{i}.rs'}}]}\n- text: z",
        )
        .unwrap();
        let text = |number| script.turn(number).and_then(|turn| turn.text);
        assert_eq!(
            [text(0), text(1), text(2), text(3)],
            ["t1", "t2", "z", ""].map(|text| (!text.is_empty()).then(|| text.into()))
        );
        assert_eq!(script.turn(1).unwrap().calls[0].arguments["p"], "2.rs");
        assert!(script.exhausted_message(3).contains("3 turns"));
    }

    #[test]
    fn an_unmet_expectation_says_which() {
        let asked = RequestView {
            messages: vec![("user", "hello"), ("tool", "one"), ("tool", "two")],
            tools: true,
            stream: true,
        };
        let check = |yaml: &str| serde_yaml::from_str::<Expect>(yaml).unwrap().check(&asked);
        check(
            "{contains: [hello], not_contains: [x], last_contains: [one, two], last_role: tool, tools: true}",
        )
        .unwrap();
        for yaml in [
            "contains: [x]",
            "not_contains: [two]",
            "last_contains: [hello]",
            "last_role: user",
            "tools: false",
            "stream: false",
        ] {
            assert!(check(yaml).is_err(), "{yaml}");
        }
    }
}
