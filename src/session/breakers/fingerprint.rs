//! Fingerprints that compare calls, results, errors and texts: hashes without the volatile parts.

use crate::volatile::strip_volatile_and_times;
use agent_engine::call_arguments;
use agent_text::lines::words;
use agent_text::shell;
use agent_tools::TypedTool;
use agent_tools::command_output::CommandOutput;
use agent_tools::run_command::RunCommand;
use blake3::Hasher;
use serde_json::Value;

/// A hash that distinguishes different values within one run with near certainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint(u64);

/// Programs that wait or poll: repeating them is how a model waits.
const POLLING_PROGRAMS: [&str; 22] = [
    "sleep",
    "wait",
    "watch",
    "inotifywait",
    "curl",
    "wget",
    "nc",
    "ping",
    "pg_isready",
    "pgrep",
    "ps",
    "ss",
    "netstat",
    "lsof",
    "systemctl",
    "journalctl",
    "docker",
    "podman",
    "kubectl",
    "gh",
    "squeue",
    "jobs",
];

/// Texts of transient errors: of networks, and of overloaded servers.
const TRANSIENT: [&str; 17] = [
    "connection refused",
    "connection reset",
    "connection timed out",
    "connection closed before",
    "econnreset",
    "econnrefused",
    "etimedout",
    "eai_again",
    "could not resolve host",
    "temporary failure in name resolution",
    "temporarily unavailable",
    "network is unreachable",
    "tls handshake timeout",
    "too many requests",
    "bad gateway",
    "service unavailable",
    "gateway timeout",
];

impl Fingerprint {
    fn finished(hasher: &Hasher) -> Self {
        let hash = hasher.finalize();
        Self(hash.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)))
    }

    fn of(text: &str) -> Self {
        Self::finished(Hasher::new().update(text.as_bytes()))
    }

    /// Returns the fingerprint of a call: its tool and its arguments, independent of the order of keys. `None` when the arguments are not valid.
    pub fn of_call(tool: &str, raw: &str) -> Option<Self> {
        let arguments = call_arguments::parse(raw).ok()?;
        let mut hasher = Hasher::new();
        hasher.update(tool.as_bytes()).update(b"\0");
        add(&mut hasher, &arguments);
        Some(Self::finished(&hasher))
    }

    /// Returns the fingerprint of a result without durations and times.
    pub fn of_result(text: &str) -> Self {
        Self::of(&strip_volatile_and_times(text))
    }

    /// Returns the fingerprint of a text of the model, independent of whitespace.
    pub fn of_text(text: &str) -> Self {
        Self::of(&words(text).to_lowercase())
    }

    /// Returns the fingerprint of a file's contents from their hash; `None` is a missing file.
    pub fn of_content(hash: Option<&str>) -> Self {
        Self::of(hash.unwrap_or_default())
    }

    /// Returns the class of an error: its text without names, paths and numbers; for a failed command, its output. A command without output has
    /// no class, because that is how searches report no match.
    pub fn of_error(tool: &str, text: &str) -> Option<Self> {
        let mut lines = text.lines().filter(|line| !matches!(line.trim(), "" | "stdout:" | "stderr:"));
        let first = lines.next()?;
        let relevant: Vec<&str> = if tool == RunCommand::NAME { lines.collect() } else { vec![first] };
        let words = relevant.iter().flat_map(|line| line.split_whitespace()).map(generic);
        let words: Vec<String> = words.collect();
        (!words.is_empty()).then(|| Self::of(&format!("{tool} {}", words.join(" "))))
    }
}

fn add(hasher: &mut Hasher, value: &Value) {
    match value {
        Value::Object(object) => {
            let mut keys: Vec<&String> = object.keys().collect();
            keys.sort_unstable();
            hasher.update(b"{");
            for key in keys {
                hasher.update(Value::from(key.as_str()).to_string().as_bytes()).update(b":");
                add(hasher, object.get(key).unwrap_or(&Value::Null));
                hasher.update(b",");
            }
            hasher.update(b"}");
        }
        Value::Array(items) => {
            hasher.update(b"[");
            for item in items {
                add(hasher, item);
                hasher.update(b",");
            }
            hasher.update(b"]");
        }
        plain => drop(hasher.update(plain.to_string().as_bytes())),
    }
}

/// Returns a word of an error with its specific parts replaced.
fn generic(word: &str) -> String {
    let names = ['/', '`', '\'', '"', '.', '_', '-'];
    let inner = word.trim_matches(|c: char| !c.is_alphanumeric());
    let is_particular =
        word.contains(['`', '\'', '"']) || inner.contains(names) || inner.contains(char::is_numeric);
    if is_particular { "#".to_owned() } else { inner.to_lowercase() }
}

/// Whether an error is transient.
pub fn is_transient(text: &str) -> bool {
    let text = text.to_lowercase();
    TRANSIENT.iter().any(|sign| text.contains(sign))
}

/// Whether a call waits or polls, so that equal calls with equal results are expected.
pub fn is_polling(tool: &str, raw: &str) -> bool {
    if tool != RunCommand::NAME {
        return tool == CommandOutput::NAME;
    }
    let Ok(arguments) = call_arguments::parse(raw) else { return false };
    let Some(Ok(script)) = arguments.get("command").and_then(Value::as_str).map(shell::parse) else {
        return false;
    };
    let mut programs = script.commands.iter().filter_map(|command| command.words.first());
    programs.any(|program| {
        let name = program.text.rsplit('/').next().unwrap_or_default();
        POLLING_PROGRAMS.contains(&name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn l25_the_order_of_keys_makes_no_difference_and_everything_else_does() {
        let of = |tool, raw| Fingerprint::of_call(tool, raw);
        assert_eq!(
            of("t", r#"{"a": {"c": 1, "d": [2]}, "b": ""}"#),
            of("t", r#"{"b":"","a":{"d":[2],"c":1}}"#)
        );
        for (tool, raw) in
            [("u", "{\"a\":1}"), ("t", "{\"a\":\"1\"}"), ("t", "{\"b\":1}"), ("t", "{\"a\":[1]}")]
        {
            assert_ne!(of("t", "{\"a\":1}"), of(tool, raw), "{tool} {raw}");
        }
        assert_ne!(of("t", r#"{"a":["x","y"]}"#), of("t", r#"{"a":["y","x"]}"#));
        assert_eq!(of("t", "{"), None);
    }

    #[test]
    fn results_that_differ_only_in_durations_are_equal() {
        let of = Fingerprint::of_result;
        assert_eq!(of("[10:11:07] 4 passed in 0.02s"), of("[10:12:59] 4 passed in 1.5s"));
        assert_ne!(of("3 of 12 blocks"), of("4 of 12 blocks"));
    }

    #[test]
    fn errors_of_a_class_differ_in_names_and_numbers_only() {
        let of = |text| Fingerprint::of_error("edit_file", text);
        let at = "The passage was not found in src/a.rs; the nearest is at line 3:\nlet a";
        assert_eq!(of(at), of("The passage was not found in b.rs; the nearest is at line 12:\nlet b"));
        assert_ne!(of(at), of("The passage stands 3 times in src/a.rs."));
        let of = |text: &str| Fingerprint::of_error("run_command", text);
        let missing = "Command failed with exit_code: 127\nstderr:\nbash: line 1: pnpm: command not found";
        assert_eq!(of(missing), of(&missing.replace("line 1", "line 7")));
        assert_ne!(of(missing), of("Command failed with exit_code: 127\nstderr:\nno such thing"));
        assert_eq!(of("Command failed with exit_code: 1"), None);
    }

    #[test]
    fn l29_errors_of_networks_go_by_themselves() {
        assert!(is_transient("curl: (7) Failed to connect to localhost port 80: Connection refused"));
        assert!(is_transient("503 Service Unavailable from https://example.org/"));
        assert!(!is_transient("assert 503 == 200"));
    }

    #[test]
    fn polling_is_detected_by_the_programs_of_a_command() {
        let command =
            |text: &str| is_polling("run_command", &serde_json::json!({"command": text}).to_string());
        assert!(command("sleep 5 && cat log"));
        assert!(command("cd x; /usr/bin/curl -s localhost"));
        assert!(!command("grep sleep a.txt"));
        assert!(is_polling("command_output", "{}") && !is_polling("read_file", "{}"));
    }

    proptest! {
        #[test]
        fn any_text_has_a_fingerprint(text in "[0-9a-zµ:. T\n-]{0,60}") {
                        prop_assert_eq!(Fingerprint::of_error("run_command", &text), Fingerprint::of_error("run_command", &text));
        }
    }
}
