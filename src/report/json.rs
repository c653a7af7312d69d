//! The result document of `--json`, and compact JSON that is safe to print on a terminal.

use agent_text::invisible::escape_json;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter};
use std::io::{self, Write};

/// Returns `value` as one line of JSON with a newline, without raw control or invisible characters.
///
/// # Errors
/// When the value cannot be serialized.
pub fn line(value: &impl Serialize) -> io::Result<String> {
    let mut bytes = Vec::with_capacity(512);
    value.serialize(&mut serde_json::Serializer::with_formatter(
        &mut bytes,
        SanitizingFormatter(CompactFormatter),
    ))?;
    bytes.push(b'\n');
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// JSON formatter that escapes raw characters which a terminal interprets or hides (DEL, C1, bidirectional controls, …) as
/// `\u` escapes. The data stays the same.
struct SanitizingFormatter(CompactFormatter);

impl Formatter for SanitizingFormatter {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        self.0.write_string_fragment(writer, &escape_json(fragment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::failure::{Failure, FailureKind};
    use agent_core::run_result::RunResult;
    use agent_terminal::needs_escape;
    use proptest::prelude::*;

    #[test]
    fn a_run_that_never_began_is_a_whole_document() {
        let failure = Failure { kind: FailureKind::Usage, message: "unknown flag".into(), retryable: false };
        assert_eq!(
            line(&RunResult::not_started(failure, None)).unwrap(),
            concat!(
                r#"{"schema_version":1,"status":"failed","stop_reason":null,"output":"","session_id":null,"steps":0,"#,
                r#""requests":0,"tool_calls":0,"tools_used":[],"files_modified":[],"executables":{"files":[],"more":0,"complete":true},"duration_seconds":0.0,"#,
                r#""model":null,"usage":{"input":0,"cached_read":0,"cached_write":0,"output":0,"reasoning":0},"#,
                r#""cost":{"total_usd":null,"by_source":{}},"cache":{"read_tokens":0,"write_tokens":0,"answers":0,"#,
                r#""prefix_changes":[]},"context":null,"permission_denials":[],"sandbox":null,"#,
                r#""error":{"kind":"usage","message":"unknown flag","retryable":false}}"#,
                "\n"
            )
        );
    }

    proptest! {
        #[test]
        fn o01_the_document_is_the_same_data_without_hidden_characters(text in any::<String>()) {
            let mut result = RunResult::not_started(
                Failure { kind: FailureKind::Config, message: text.clone(), retryable: false }, Some(text.clone()));
            result.output = format!("{text}\u{9b}\u{e0041}\u{202e}\u{7f}\u{1b}\r\n").into();
            let json = line(&result).unwrap();
            prop_assert!(!json.trim_end_matches('\n').chars().any(|c| needs_escape(c) || c.is_control()));
            prop_assert_eq!(serde_json::from_str::<RunResult>(&json).unwrap(), result);
        }
    }
}
