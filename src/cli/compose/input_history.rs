//! `--history FILE`: what was said in an earlier conversation, read before anything begins.

use crate::cli::error::{CliError, CliResult};
use crate::config::text_file::read_text;
use crate::core::failure::FailureKind;
use crate::core::message::{HistoryMessage, HistoryRole};
use crate::text::lines::one_line;
use serde::Deserialize;
use std::path::Path;

/// The largest file, in bytes: about what the largest windows hold.
const MAX_BYTES: u64 = 4 << 20;

/// Characters shown of why a file is not understood, which quotes it.
const WHY_CHARS: usize = 200;

/// One message of the file. What is not said in words, such as a call, is refused rather than left out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    role: HistoryRole,
    content: String,
}

/// The messages in `file`, in their order.
///
/// # Errors
/// When the file cannot be read, or holds no conversation that a model can go on with; the message says where.
pub fn read(file: &Path) -> CliResult<Vec<HistoryMessage>> {
    let wrong = |why: String| {
        CliError::new(
            FailureKind::Config,
            format!("--history: {} {why}; see `agent help sessions`", file.display()),
        )
    };
    let text = read_text(file, MAX_BYTES).map_err(|error| wrong(error.to_string()))?;
    parse(&text.ok_or_else(|| wrong("does not exist".to_owned()))?).map_err(wrong)
}

/// The messages in `text`, or what is wrong with it.
fn parse(text: &str) -> Result<Vec<HistoryMessage>, String> {
    let entries: Vec<Entry> = serde_json::from_str(text).map_err(|error| {
        let why = one_line(&error.to_string(), WHY_CHARS);
        format!("is not an array of messages with a role, user or assistant, and a content in words: {why}")
    })?;
    if let Some(at) = entries.iter().position(|entry| entry.content.trim().is_empty()) {
        return Err(format!("says nothing in message {}", at.saturating_add(1)));
    }
    match entries.first() {
        None => Err("holds no message".to_owned()),
        Some(Entry { role: HistoryRole::Assistant, .. }) => {
            Err("begins with an answer; providers want a message of the user first".to_owned())
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
        let said: Vec<(HistoryRole, &str)> =
            read.iter().map(|said| (said.role, said.content.as_str())).collect();
        assert_eq!(said, [(HistoryRole::User, " a\nb"), (HistoryRole::Assistant, "c")]);
    }

    #[test]
    fn k16_what_is_wrong_with_a_file_is_said_in_few_words() {
        for (text, why) in [
            ("", "EOF"),
            ("[]", "holds no message"),
            ("{}", "expected a sequence"),
            (r#"[{"role":"system","content":"x"}]"#, "unknown variant `system`"),
            (r#"[{"role":"user","content":["x"]}]"#, "expected a string at line 1 column 26"),
            (r#"[{"role":"user","content":"x","tool_calls":[]}]"#, "unknown field `tool_calls`"),
            (r#"[{"role":"user","content":"x"},{"role":"assistant","content":" "}]"#, "message 2"),
            (r#"[{"role":"assistant","content":"x"}]"#, "begins with an answer"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        let long = format!(r#"[{{"role":"{}"}}]"#, r"\u001b[2J".repeat(10_000));
        let error = parse(&long).unwrap_err();
        assert!(error.chars().count() < 10 * WHY_CHARS && !error.contains('\u{1b}'), "{error}");
    }
}
