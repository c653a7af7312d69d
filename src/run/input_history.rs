//! Reads the messages of an earlier conversation for `--history FILE`.

use crate::error::{AppError, AppResult};
use agent_config::text_file::read_text;
use agent_core::failure::FailureKind;
use agent_core::message::{HistoryMessage, HistoryRole};
use agent_text::lines::one_line;
use serde::Deserialize;
use std::path::Path;

/// Maximum size of the file in bytes: about the content of the largest context windows.
const MAX_BYTES: u64 = 4 << 20;

/// Maximum length of a parse error in characters, because it quotes the file.
const ERROR_CHARS: usize = 200;

/// One message of the file. Messages without text, such as calls, are refused rather than dropped.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    role: HistoryRole,
    content: String,
}

/// Reads the messages in `file`, in order.
///
/// # Errors
/// Fails for an unreadable file and for a conversation that a model cannot continue; the message contains the position.
pub fn read(file: &Path) -> AppResult<Vec<HistoryMessage>> {
    let wrong = |problem: String| {
        AppError::new(
            FailureKind::Config,
            format!("--history: {} {problem}; see `agent help sessions`", file.display()),
        )
    };
    let text = read_text(file, MAX_BYTES).map_err(|error| wrong(error.to_string()))?;
    parse(&text.ok_or_else(|| wrong("does not exist".to_owned()))?).map_err(wrong)
}

/// Parses the messages in `text`, or returns the problem.
fn parse(text: &str) -> Result<Vec<HistoryMessage>, String> {
    let entries: Vec<Entry> = serde_json::from_str(text).map_err(|error| {
        let problem = one_line(&error.to_string(), ERROR_CHARS);
        format!(
            "is not an array of messages with a `role` (user or assistant) and a text `content`: {problem}"
        )
    })?;
    if let Some(at) = entries.iter().position(|entry| entry.content.trim().is_empty()) {
        return Err(format!("has no text in message {}", at.saturating_add(1)));
    }
    match entries.first() {
        None => Err("contains no message".to_owned()),
        Some(Entry { role: HistoryRole::Assistant, .. }) => {
            Err("starts with an answer; providers require a user message first".to_owned())
        }
        Some(_) => {
            Ok(entries.into_iter().map(|Entry { role, content }| HistoryMessage { role, content }).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k16_a_conversation_is_read_as_it_is() {
        let read =
            parse(r#"[{"role":"user","content":" a\nb"},{"content":"c","role":"assistant"}]"#).unwrap();
        let messages: Vec<(HistoryRole, &str)> =
            read.iter().map(|message| (message.role, message.content.as_str())).collect();
        assert_eq!(messages, [(HistoryRole::User, " a\nb"), (HistoryRole::Assistant, "c")]);
    }

    #[test]
    fn k16_what_is_wrong_with_a_file_is_said_in_few_words() {
        for (text, why) in [
            ("", "EOF"),
            ("[]", "contains no message"),
            ("{}", "expected a sequence"),
            (r#"[{"role":"system","content":"x"}]"#, "unknown variant `system`"),
            (r#"[{"role":"user","content":["x"]}]"#, "expected a string at line 1 column 26"),
            (r#"[{"role":"user","content":"x","tool_calls":[]}]"#, "unknown field `tool_calls`"),
            (r#"[{"role":"user","content":"x"},{"role":"assistant","content":" "}]"#, "message 2"),
            (r#"[{"role":"assistant","content":"x"}]"#, "starts with an answer"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        let long = format!(r#"[{{"role":"{}"}}]"#, r"\u001b[2J".repeat(10_000));
        let error = parse(&long).unwrap_err();
        assert!(error.chars().count() < 10 * ERROR_CHARS && !error.contains('\u{1b}'), "{error}");
    }
}
